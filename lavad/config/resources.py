"""lsb.resources: Limit sections, resource pools, and permissions for advance reservations."""

import re
from collections.abc import Mapping
from datetime import date

from lavad.config import names
from lavad.config import values as v
from lavad.config.grammar import Document, Row, Section
from lavad.config.guarantees.class_pools import (
    DISTRIBUTION,
    LOAN_POLICIES,
    PoolOfClasses,
    class_pools,
    has_classes,
    pool_of_classes,
)
from lavad.config.guarantees.service_classes import ServiceClasses, queue_list
from lavad.config.site import Fields, Honoured, Ignored, Site, Table, cell_of, check_sections, missed, required, sets
from lavad.config.values import Wrong
from lavad.core.model.advance_reservation import ReservationRule
from lavad.core.model.rules.budgets import HOUR_S, Budget, Every
from lavad.core.model.rules.names import ALL, Names
from lavad.core.model.rules.resources import Limit, Pool

_PAIR = re.compile(r"\s*\[\s*([^\[\],\s]+)\s*,\s*([^\[\],\s]+)\s*\]")
EVERY_PROFILE = Names(True, frozenset({""}))  # jobs without a profile are left out
_AMOUNT = re.compile(r"(slots|mem|gpus)\s*=\s*(\S+)\Z", re.IGNORECASE)


def _part(text: str, of: str) -> float:
    percent = v.decimal(text[:-1].strip())
    if not 0 < percent <= 100:
        raise Wrong(f"expected a percentage of each host's {of}, up to 100%")
    return percent / 100


def _memory(text: str, site: Site) -> Fields:
    if text.endswith("%"):
        return {"memory_share": _part(text, "memory")}
    return {"memory_mib": v.size_mib(text, site.unit or "M")}


def _space(name: str) -> Honoured:
    def read(text: str, site: Site) -> Fields:
        if text.endswith("%"):
            return {f"share.{name}": (name, _part(text, name))}
        return {
            f"resource.{name}": (
                name,
                float(v.size_mib(text, (site.unit if name != "tmp" or site.has_tmp_unit else "") or "M")),
            )
        }

    return Honoured(read, f"{name} in use together, in LSF_UNIT_FOR_LIMITS or with a unit; with PER_HOST also a part "
                    "of a host's, `50%`")  # fmt: skip


def _resource_list(text: str, site: Site) -> Fields:
    found, at, text = [], 0, v.bare(text)
    while text[at:].strip():
        pair = _PAIR.match(text, at)
        if not pair:
            raise Wrong("expected [resource,amount] one after another")
        if pair[1] not in site.resources:
            raise Wrong(f"{pair[1]}: no resource of lsf.shared")
        found.append((pair[1], v.decimal(pair[2])))
        at = pair.end()
    return {"resource.own": tuple(found)}


def _users(name: str, about: str) -> Honoured:
    return Honoured(lambda text, site: {name: names.users(text, site)}, about)


def _hosts(name: str, about: str) -> Honoured:
    return Honoured(lambda text, site: {name: names.hosts(text, site)}, about)


def _queues(name: str, about: str) -> Honoured:
    return Honoured(lambda text, site: {name: queue_list(text, site)}, about)


def _applications(name: str, about: str) -> Honoured:
    def read(text: str, site: Site) -> Fields:
        found = names.combine(text, lambda word: EVERY_PROFILE if word == "all" else Names(False, frozenset((word,))))
        for profile in sorted(found.names - site.application_names - EVERY_PROFILE.names):
            raise Wrong(f"{profile}: there is no such application profile")
        return {name: found}

    return Honoured(read, about)


def _projects(name: str, about: str) -> Honoured:
    def of_word(word: str) -> Names:
        return ALL if word == "all" else Names(False, frozenset((word,)))

    return Honoured(lambda text, site: {name: names.combine(text, of_word)}, about)


_AMOUNTS = ("SLOTS", "SLOTS_PER_PROCESSOR", "JOBS", "MEM", "TMP", "SWP", "RESOURCE", "LICENSE")
_NO_SUCH_AMOUNTS = {
    "ELIGIBLE_PEND_JOBS": "MAX_PEND_JOBS of lsb.users does it",
    "JOBS_PER_SCHED_CYCLE": "there are no cycles",
}
_TOGETHER, _EACH = "whom it counts, together", "whom it counts, each alone"
LIMIT: Table = {
    "NAME": sets("name", str, "the limit's name"),
    "SLOTS": sets("slots", v.integer, "slots in use"),
    "SLOTS_PER_PROCESSOR": sets("slots_per_processor", v.decimal, "slots for each processor of a host; takes PER_HOST"),
    "JOBS": sets("jobs", v.integer, "jobs that have started"),
    "MEM": Honoured(
        _memory, "reserved memory, in LSF_UNIT_FOR_LIMITS or with a unit; with PER_HOST also a part of a host's, `50%`"
    ),
    "TMP": _space("tmp"),
    "SWP": _space("swp"),
    "RESOURCE": Honoured(_resource_list, "`[resource,amount] ...` reserved"),
    "LICENSE": Honoured(
        lambda text, site: {"licenses": _resource_list(text, site)["resource.own"]}, "older name of RESOURCE"
    ),
    "USERS": _users("users", _TOGETHER),
    "PER_USER": _users("per_user", _EACH),
    "QUEUES": _queues("queues", _TOGETHER),
    "PER_QUEUE": _queues("per_queue", _EACH),
    "HOSTS": _hosts("hosts", "where, together"),
    "PER_HOST": _hosts("per_host", "where, each host alone"),
    "PROJECTS": _projects("projects", "projects, together"),
    "PER_PROJECT": _projects("per_project", "projects, each alone"),
    "APPS": _applications("applications", "application profiles, together; jobs without one do not count"),
    "PER_APP": _applications("per_application", "application profiles, each alone"),
    "LAVA_WINDOW": sets("windows", v.windows, "lava's own: when the limit holds; always"),
    "INELIGIBLE": missed("no eligible time is counted"),
    **{name: missed(reason) for name, reason in _NO_SUCH_AMOUNTS.items()},
}
# A limit with these would apply to all consumers if the word were ignored: the whole section is left out.
_NO_SUCH_CONSUMERS = ("LIC_PROJECTS", "PER_LIC_PROJECT", "CLUSTERS", "PER_CLUSTER")


def _amounts(name: str, about: str) -> Honoured:
    def read(text: str, site: Site) -> Fields:
        found: dict[str, float] = {}
        for word in text.replace(",", " ").split():
            match = _AMOUNT.match(word)
            if not match:
                raise Wrong("expected slots=n, mem=size and gpus=n, those that matter")
            key = match[1].lower()
            found[key] = float(v.size_mib(match[2], site.unit or "M")) if key == "mem" else v.decimal(match[2])
        return {name: found}

    return Honoured(read, about)


POOL: Table = {
    "NAME": sets("name", str, "the pool's name; required"),
    "USERS": _users("users", "whose jobs belong to it; all"),
    "QUEUES": _queues("queues", "jobs of which queues; all"),
    "HOSTS": _hosts("hosts", "on which hosts it is; all"),
    "GUARANTEED": _amounts("guaranteed", "`slots=40 mem=200G gpus=8`: always there for its jobs"),
    "DESERVED": _amounts("deserved", "its fair part of what is not guaranteed: taken back when it needs it"),
    "MAX": _amounts("largest", "the most it ever gets, loans included"),
    "LOAN": sets("lends", v.switch, "Y: what it does not use is lent to others; Y"),
    "DISTRIBUTION": DISTRIBUTION,
    "LOAN_POLICIES": LOAN_POLICIES,
    "TYPE": Ignored("GUARANTEED names slots, memory and GPUs; with DISTRIBUTION `slots`, other pools are left out"),
    "DESCRIPTION": Ignored("not shown"),
    **dict.fromkeys(("RES_SELECT", "SLOTS_PER_HOST", "ADMINISTRATORS", "RETAIN", "ADMIN"), Ignored("no such policy")),
}
RESERVATION: Table = {
    "NAME": sets("name", str, "the policy's name; required"),
    "USERS": _users("users", "who may make advance reservations, besides administrators; all"),
    "HOSTS": _hosts("hosts", "of which hosts; all"),
    "TIME_WINDOW": sets("windows", v.windows, "in which windows a reservation must begin and end; always"),
}
_EVERY = {one.value: one for one in Every}


def _hours(name: str, about: str) -> Honoured:
    return Honoured(lambda text, _: {name: v.decimal(text) * HOUR_S}, about)


def _period(text: str, _: Site) -> Fields:
    word = text.strip().lower()
    if word in _EVERY:
        return {"every": _EVERY[word]}
    first, _comma, last = word.partition(",")
    try:
        days = date.fromisoformat(first.strip()), date.fromisoformat(last.strip())
    except ValueError:
        raise Wrong("expected week, month, quarter, year, or two days as 2026-01-01,2026-06-30") from None
    if days[1] < days[0]:
        raise Wrong("expected the second day not before the first")
    return {"once": days}


def _warning(text: str, _: Site) -> Fields:
    percent = v.decimal(text.rstrip("%").strip())
    if not 0 < percent <= 100:
        raise Wrong("expected a percentage up to 100%")
    return {"warns_at": percent / 100}


_BUDGETED = ("SLOT_HOURS", "CPU_HOURS", "GPU_HOURS")
BUDGET: Table = {
    "NAME": sets("name", str, "the budget's name; required"),
    "SLOT_HOURS": _hours("slot_s", "slots times hours"),
    "CPU_HOURS": _hours("cpu_s", "hours of processor time"),
    "GPU_HOURS": _hours("gpu_s", "GPUs times hours"),
    "PERIOD": Honoured(
        _period,
        "`week` (from Monday), `month`, `quarter` or `year`, with each of which it begins anew; or first and last day, "
        "`2026-01-01,2026-06-30`, outside of which it does not hold; `month`",
    ),
    "WARNING": Honoured(_warning, "part at which its running jobs are told; `80%`"),
    "USERS": _users("users", _TOGETHER),
    "PER_USER": _users("per_user", _EACH),
    "PROJECTS": _projects("projects", "projects, together"),
    "PER_PROJECT": _projects("per_project", "projects, each alone"),
    "QUEUES": _queues("queues", "jobs of which queues; all"),
}
SECTIONS: Mapping[str, Table | Ignored] = {
    "Limit": LIMIT,
    "Budget": BUDGET,
    "GuaranteedResourcePool": POOL,
    "ReservationUsage": missed("RESOURCE_RESERVE_PER_TASK does it, or a rusage with /job, /task or /host"),
    "HostExport": missed("one cluster only"),
    "SharedResourceExport": missed("one cluster only"),
    "ResourceReservation": RESERVATION,
    "PowerPolicy": missed("hosts are never switched off"),
}


def read_resources(document: Document, site: Site, classes: ServiceClasses) -> Fields:
    """Read limits, resource pools, and permissions for advance reservations."""
    check_sections(document, SECTIONS, site)
    limits = [
        limit
        for section in document.of("Limit")
        for row in section.rows
        if (limit := _limit(row, section, site)) is not None
    ]
    _check_names([limit.name for limit in limits], document, "Limit", site)
    pools = [
        pool
        for section in document.of("GuaranteedResourcePool")
        for row in section.rows
        if (pool := _pool(row, section, site)) is not None
    ]
    _check_names([pool.name for pool in pools], document, "GuaranteedResourcePool", site)
    own = tuple(pool for pool in pools if isinstance(pool, Pool))
    parts = tuple(class_pools([pool for pool in pools if isinstance(pool, PoolOfClasses)], classes, site))
    names = {pool.name for pool in own}  # one that is there twice has been told
    _check_names([*names, *(part.name for part in parts)], document, "GuaranteedResourcePool", site)
    rules = [
        rule
        for section in document.of("ResourceReservation")
        for row in section.rows
        if (rule := _reservation_rule(row, section, site)) is not None
    ]
    _check_names([rule.name for rule in rules], document, "ResourceReservation", site)
    budgets = [
        budget
        for section in document.of("Budget")
        for row in section.rows
        if (budget := _budget(row, section, site)) is not None
    ]
    _check_names([budget.name for budget in budgets], document, "Budget", site)
    return {
        "limits": tuple(limits),
        "budgets": tuple(budgets),
        "pools": (*own, *parts),
        "service_classes": {name: found[1] for name, found in classes.items() if found is not None},
        "reservation_rules": tuple(rules),
    }


def _check_names(found: list[str], document: Document, section: str, site: Site) -> None:
    twice = sorted({name for name in found if found.count(name) > 1})
    if twice:
        site.wrong(cell_of(list(document.of(section))[-1]), f"{section}: the name {twice[0]} is there twice")


def _limit(row: Row, section: Section, site: Site) -> Limit | None:
    for name in _NO_SUCH_CONSUMERS:
        cell = row.get(name)
        if cell is not None and cell.text:
            site.warn(cell, f"{name}: lava has no such consumers; the whole limit is left out")
            return None
    if not any(word in row and row[word].text for word in _AMOUNTS):
        for name, reason in _NO_SUCH_AMOUNTS.items():
            if name in row and row[name].text:
                site.warn(row[name], f"{name}: {reason}; the whole limit is left out")
                return None
    fields = site.read(
        {name: cell for name, cell in row.items() if name not in _NO_SUCH_CONSUMERS}, LIMIT, all_narrow="Limit"
    )
    resources = [fields.pop(key) for key in list(fields) if key.startswith("resource.") and key != "resource.own"]
    own = fields.pop("resource.own", ()) + fields.pop("licenses", ())
    shares = tuple(fields.pop(key) for key in list(fields) if key.startswith("share."))
    name = fields.pop("name", "") or f"limit{_line_of(row, section)}"
    limit = Limit(name, **fields, resources=(*own, *resources), resource_shares=shares)
    where = next(iter(row.values()))
    if not row_counts(limit):
        site.wrong(where, f"Limit {name}: expected SLOTS, JOBS, MEM, TMP, SWP, SLOTS_PER_PROCESSOR or RESOURCE")
    for one, other in (("USERS", "PER_USER"), ("QUEUES", "PER_QUEUE"), ("HOSTS", "PER_HOST"), ("APPS", "PER_APP")):
        if all(row.get(word) is not None and row[word].text for word in (one, other)):
            site.wrong(where, f"Limit {name}: expected {one} or {other}, not both")
    if limit.slots_per_processor is not None and limit.per_host is None:
        site.wrong(where, f"Limit {name}: SLOTS_PER_PROCESSOR takes PER_HOST")
    for word in [key.upper() for key, _ in shares] + ["MEM"] * (limit.memory_share is not None):
        if limit.per_host is None:
            site.wrong(where, f"Limit {name}: {word} as a percentage takes PER_HOST")
    return limit


def _budget(row: Row, section: Section, site: Site) -> Budget | None:
    name = required(row, "NAME", section, site)
    fields = site.read(row, BUDGET, all_narrow="Budget")
    if not name:
        return None
    if not any(word in row and row[word].text for word in _BUDGETED):
        site.wrong(row["NAME"], f"Budget {name}: expected {', '.join(_BUDGETED)}, or some of these")
    for one, other in (("USERS", "PER_USER"), ("PROJECTS", "PER_PROJECT")):
        if all(row.get(word) is not None and row[word].text for word in (one, other)):
            site.wrong(row["NAME"], f"Budget {name}: expected {one} or {other}, not both")
    return Budget(**fields)


def _line_of(row: Row, section: Section) -> int:
    """Line that tells a limit without a name from others: of its section, or of its row in a table."""
    return section.line if row is section.rows[0] else next(iter(row.values())).line


def row_counts(limit: Limit) -> bool:
    """Return True if the section limits anything."""
    amounts = (limit.slots, limit.jobs, limit.memory_mib, limit.memory_share, limit.slots_per_processor)
    return any(amount is not None for amount in amounts) or bool(limit.resources or limit.resource_shares)


def _reservation_rule(row: Row, section: Section, site: Site) -> ReservationRule | None:
    name = required(row, "NAME", section, site)
    fields = site.read(row, RESERVATION, all_narrow="ResourceReservation")
    written = tuple((key, cell.text) for key, cell in row.items())
    return ReservationRule(**{"users": ALL, **fields}, written=written) if name else None


def _pool(row: Row, section: Section, site: Site) -> Pool | PoolOfClasses | None:
    name = required(row, "NAME", section, site)
    fields = site.read(row, POOL, all_narrow="GuaranteedResourcePool")
    if has_classes(row):
        return pool_of_classes(name, row, fields, site)
    if not name:
        return None
    pool = Pool(**fields)
    for key, most in pool.largest.items():
        for word, amounts in (("GUARANTEED", pool.guaranteed), ("DESERVED", pool.deserved)):
            if amounts.get(key, 0) > most:
                site.wrong(row["NAME"], f"pool {name}: {word} {key} is above MAX")
    return pool
