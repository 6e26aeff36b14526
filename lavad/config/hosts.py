"""lsb.hosts: limits and thresholds of each host, host groups, compute units."""

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lavad.config import names, queues, users
from lavad.config import values as v
from lavad.config.grammar import Cell, Document, Row
from lavad.config.priorities.host_partitions import HOST_PARTITION, read_partitions
from lavad.config.site import Fields, Honoured, Ignored, Site, Table, check_sections, missed, required, sets
from lavad.config.values import Wrong
from lavad.core.model.rules.hosts import HostRule
from lavad.core.model.rules.queues import Threshold
from lavad.core.model.rules.resources import ComputeUnit
from lavad.core.model.rules.users import GroupRow

if TYPE_CHECKING:
    from lavad.core.model.rules.names import Names


def _slots(text: str) -> int | None:
    return None if text == "!" else v.integer(text)


def windows(text: str, site: Site) -> Fields:
    """Read dispatch windows, and keep their text."""
    return {"dispatch_windows": v.windows(text), "window_text": " ".join(text.split())}


HOST: Table = {
    "HOST_NAME": sets("name", str, "host, range `h[1-64]`, host group, model, type, or `default`; required"),
    "MXJ": sets("slots", _slots, "slots; `!`, `-` or nothing: as many as the agent offers (its processors)"),
    "JL/U": sets("user_slots", v.integer, "slots of each user on the host"),
    "DISPATCH_WINDOW": Honoured(windows, "when jobs may start there"),
    "MIG": sets(
        "migration_s",
        v.minutes,
        "minutes after which suspended jobs [migrate](checkpoints.md#migration), "
        "if their own time is longer or they have none",
    ),
    "CHKPNT": missed("every host makes checkpoints"),
    "EXIT_RATE": sets(
        "exit_rate", v.integer, "abnormal ends within JOB_EXIT_RATE_DURATION; above it the host is closed"
    ),
    "AFFINITY": Ignored("processors are always bound where a job asks for it"),
}
HOST_GROUP: Table = {
    "GROUP_NAME": sets("name", str, "the group's name; required"),
    "GROUP_MEMBER": sets(
        "member_text", str, "hosts, groups, ranges, `(all)`, `~host`, or `(!)`: what `egroup -m` says"
    ),
    "CONDENSE": Ignored("hosts are always shown one by one"),
    "GROUP_ADMIN": missed("only cluster administrators close hosts"),
    "GROUP_SLOT": missed("a Limit section does it"),
    "MAX_SLOTS": missed("a Limit section does it"),
}
COMPUTE_UNIT: Table = {
    "NAME": sets("name", str, "the unit's name; required"),
    "TYPE": sets("type", str, "one of COMPUTE_UNIT_TYPES of lsb.params; required"),
    "MEMBER": sets("member_text", str, "hosts and host groups, or units of the type below"),
    "CONDENSE": Ignored("hosts are always shown one by one"),
    "ADMIN": missed("only cluster administrators close hosts"),
}
SECTIONS: Mapping[str, Table | Ignored] = {
    "Host": HOST,
    "HostGroup": HOST_GROUP,
    "HostPartition": HOST_PARTITION,
    "ComputeUnit": COMPUTE_UNIT,
}
DEFAULT = "default"


def read_hosts(document: Document, site: Site) -> Fields:
    """Read host groups into ``site``; return the policy's fields."""
    check_sections(document, SECTIONS, site)
    rows = _group_rows(document, site)
    cells = {name: row["GROUP_MEMBER"] for name, row in rows.items()}
    changes = site.group_changes
    names.resolve_groups(cells, site.host_groups, lambda word: names.host_word(word, site), "-m", site, changes)
    for row in rows.values():
        site.read(row, HOST_GROUP)
    groups = tuple(_group_row(name, cell, cells, site) for name, cell in cells.items())
    partitions = read_partitions(document, rows, site)
    return {
        "host_group_rows": (*groups, *(GroupRow(one.name, one.written) for one in partitions)),
        "host_partitions": partitions,
        "host_rules": _rules(document, site),
        "compute_units": _compute_units(document, site),
    }


def _compute_units(document: Document, site: Site) -> tuple[ComputeUnit, ...]:
    """Read racks, enclosures and the like, each with the hosts at any depth below it."""
    rows: dict[str, Row] = {}
    for section in document.of("ComputeUnit"):
        for row in section.rows:
            site.read(row, COMPUTE_UNIT)
            needed = [required(row, name, section, site) for name in ("NAME", "TYPE", "MEMBER")]
            if all(needed):
                users.add_named(rows, needed[0], row, row["NAME"], "compute unit", site)
    members: dict[str, Names] = {}
    cells = {name: row["MEMBER"] for name, row in rows.items()}
    names.resolve_groups(cells, members, lambda word: names.host_word(word, site), "-m", site)
    for row in rows.values():
        kind = row["TYPE"]
        if kind.text not in site.unit_types:
            known = " ".join(site.unit_types) or "none is set"
            site.wrong(kind, f"TYPE = {kind.text}: expected one of COMPUTE_UNIT_TYPES of lsb.params ({known})")
    inner = {**site.host_groups, **cells}
    return tuple(
        ComputeUnit(name, row["TYPE"].text, members[name], _shown(row["MEMBER"], inner)) for name, row in rows.items()
    )


def _group_row(name: str, cell: Cell, groups: Container[str], site: Site) -> GroupRow:
    words = names.changed_words(_shown(cell, groups), site.group_changes.get(name))
    return GroupRow(name, words, is_external=names.is_external(cell.text))


def _shown(cell: Cell, groups: Container[str]) -> tuple[str, ...]:
    return tuple(users.shown(word, groups) for word in cell.text.split())


def _group_rows(document: Document, site: Site) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for section in document.of("HostGroup"):
        for row in section.rows:
            name = required(row, "GROUP_NAME", section, site)
            if name and required(row, "GROUP_MEMBER", section, site):
                users.add_named(rows, name, row, row["GROUP_NAME"], "host group", site)
    return rows


def _rules(document: Document, site: Site) -> dict[str, HostRule]:
    """Read host rules by host, model, type or ``default``; a host's own row wins over its group's, in any order."""
    by_group: dict[str, Fields] = {}
    by_name: dict[str, Fields] = {}
    for section in document.of("Host"):
        for row in section.rows:
            name = required(row, "HOST_NAME", section, site)
            if not name:
                continue
            found = site.read(row, HOST, extra=lambda word: queues.threshold_of(word, site))
            found.pop("name", None)
            try:
                members = _members(name, site)
            except Wrong as error:
                site.wrong(row["HOST_NAME"], f"HOST_NAME = {name}: {error}")
                continue
            finally:
                site.warn_of_strangers(row["HOST_NAME"])
            target = by_group if name in site.host_groups else by_name
            for member in members:
                if member in target and target is by_name:
                    site.wrong(row["HOST_NAME"], f"HOST_NAME = {name}: there is a row for {member} already")
                target[member] = found
    return _joined({**by_group, **by_name}, site)


def _members(name: str, site: Site) -> list[str]:
    if name == DEFAULT or name in site.cpu_factors or name in {rule.type for rule in site.hosts.values()}:
        return [name]
    found = names.host_word(name, site)
    if found.is_all:
        raise Wrong("expected a host, a range, a host group, a model, a type, or default")
    return sorted(found.names)


def _joined(said: Mapping[str, Fields], site: Site) -> dict[str, HostRule]:
    """Merge the rules of lsb.hosts with those of lsf.cluster for the same hosts."""
    rules = {name: HostRule(**fields) for name, fields in said.items()}
    for name, listed in site.hosts.items():
        own = next((rules[key] for key in (name, listed.model, listed.type, DEFAULT) if key in rules), None)
        rules[name] = listed if own is None else _merged(own, listed)
    return rules


def _merged(own: HostRule, listed: HostRule) -> HostRule:
    """Merge a rule of lsb.hosts with model, type, resources and windows of lsf.cluster."""
    return replace(
        own,
        model=listed.model,
        type=listed.type,
        is_server=listed.is_server,
        resources=listed.resources,
        exclusive_resources=listed.exclusive_resources,
        dispatch_windows=own.dispatch_windows or listed.dispatch_windows,
        window_text=own.window_text or listed.window_text,
        thresholds=_stricter(own.thresholds, listed.thresholds),
    )


def _stricter(one: tuple[Threshold, ...], other: tuple[Threshold, ...]) -> tuple[Threshold, ...]:
    """Return the thresholds of lsb.hosts, and those of lsf.cluster for indices that lsb.hosts does not set."""
    named = {threshold.index for threshold in one}
    return one + tuple(threshold for threshold in other if threshold.index not in named)
