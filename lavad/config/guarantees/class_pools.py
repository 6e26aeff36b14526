"""Pools of lsb.resources with a DISTRIBUTION: one capacity pool for each of their service classes, POOL/CLASS.

A job belongs to one capacity pool, so a class counts in the first pool that names it. LSF lends only what LOAN_POLICIES
says.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lavad.config import values as v
from lavad.config.grammar import Cell, Row
from lavad.config.guarantees.service_classes import ServiceClasses, queue_list
from lavad.config.site import Fields, Honoured, Site
from lavad.config.values import Wrong
from lavad.core.model.rules.names import ALL, Names
from lavad.core.model.rules.resources import Pool, ServiceClass

_PART = re.compile(r"\s*\[\s*([^\[\],\s]+)\s*,\s*([^\[\],\s]+)\s*\]\s*")
_POLICY = re.compile(r"\s*(\w+)\s*(?:\[([^\[\]]*)\])?\s*")
_OWN_WORDS = ("USERS", "QUEUES", "GUARANTEED", "DESERVED", "MAX", "LOAN")  # of pools without service classes
_WITHOUT_EFFECT = {
    "RES_SELECT": "all hosts of HOSTS count",
    "SLOTS_PER_HOST": "all slots of its hosts count",
}


@dataclass(frozen=True, slots=True)
class PoolOfClasses:
    """A pool as the file has it: parts by class, each a number of slots or a part of all, up to 1."""

    name: str
    cell: Cell
    hosts: Names
    parts: Mapping[str, "Part"]
    lends: bool = False
    borrowers: Names = ALL


@dataclass(frozen=True, slots=True)
class Part:
    """Part of a class: a number of slots, or of a percentage the part of all slots."""

    guaranteed: Mapping[str, float] = field(default_factory=dict)
    slots_share: float = 0.0


def _part(text: str) -> Part:
    if not text.endswith("%"):
        return Part({"slots": float(v.integer(text))})
    percent = v.decimal(text[:-1])
    if not 0 < percent <= 100:
        raise Wrong("expected a percentage of the pool's slots, up to 100%")
    return Part(slots_share=percent / 100)


def _distribution(text: str, site: Site) -> Fields:
    text, found, at = text.strip(), dict[str, Part](), 0
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    while text[at:].strip() or not found:
        pair = _PART.match(text, at)
        if not pair:
            raise Wrong("expected [service class, amount or percentage] one after another")
        if pair[1] in found:
            raise Wrong(f"the service class {pair[1]} is there twice")
        found[pair[1]] = _part(pair[2])
        at = pair.end()
    return {"parts": found}


def _loans(text: str, site: Site) -> Fields:
    borrowers, others, at = ALL, list[str](), 0
    while at < len(text):
        part = _POLICY.match(text, at)
        if not part:
            raise Wrong("expected QUEUES[all] or QUEUES[queue ...]")
        if part[1].upper() == "QUEUES":
            # With ! in LSF, CLOSE_ON_DEMAND does not count for the queue.
            borrowers = queue_list(" ".join(word.removeprefix("!") for word in (part[2] or "all").split()), site)
        else:
            others.append(part[1].upper())
        at = part.end()
    return {"borrowers": borrowers, "loan.others": tuple(others)}


DISTRIBUTION = Honoured(
    _distribution,
    "`([class, 10] [class, 20%])`: slots that service classes of lsb.serviceclasses have; the pool becomes one "
    "capacity pool for each, POOL/CLASS, and takes HOSTS and LOAN_POLICIES only",
)
LOAN_POLICIES = Honoured(
    _loans,
    "`QUEUES[all]` or `QUEUES[queue ...]`: what the classes do not use is lent to jobs of these queues; without it "
    "nothing is. RETAIN, DURATION and CLOSE_ON_DEMAND have no effect: lent slots are taken back",
)


def has_classes(row: Row) -> bool:
    """Return True if the pool is for service classes."""
    return any(word in row and row[word].text for word in ("DISTRIBUTION", "LOAN_POLICIES"))


def pool_of_classes(name: str, row: Row, fields: Fields, site: Site) -> PoolOfClasses | None:
    """Check a pool with a DISTRIBUTION; None: it is left out, as a complaint says."""
    for word in _OWN_WORDS:
        if word in row and row[word].text:
            site.wrong(row[word], f"{word}: not beside DISTRIBUTION or LOAN_POLICIES; expected one or the other")
    cell = row.get("DISTRIBUTION")
    if cell is None or not cell.text:
        site.wrong(row["LOAN_POLICIES"], "LOAN_POLICIES: expected DISTRIBUTION beside it; other pools take LOAN")
        return None
    kind = row.get("TYPE")
    if kind is not None and kind.text and kind.text.strip().lower() != "slots":
        site.warn(kind, f"TYPE = {kind.text}: lava guarantees slots to service classes; the pool {name} is left out")
        return None
    for word, why in _WITHOUT_EFFECT.items():
        if word in row and row[word].text:
            site.warn(row[word], f"{word}: it has no effect: {why}")
    others = fields.get("loan.others", ())
    if others:
        told = "have no effect" if len(others) > 1 else "has no effect"
        site.warn(
            row["LOAN_POLICIES"], f"{' and '.join(others)} {told}: lent slots are taken back when the class needs them"
        )
    lends = "LOAN_POLICIES" in row and bool(row["LOAN_POLICIES"].text)
    return PoolOfClasses(
        name, cell, fields.get("hosts", ALL), fields.get("parts", {}), lends, fields.get("borrowers", ALL)
    )


def class_pools(pools: Sequence[PoolOfClasses], classes: ServiceClasses, site: Site) -> Iterator[Pool]:
    """Yield the capacity pools of all classes, in the order in which jobs attach to classes: that of their file."""
    for pool in pools:
        for name in pool.parts:
            if name not in classes:
                site.warn(pool.cell, f"{name}: lsb.serviceclasses has no such service class; its part is not kept")
    for name, found in classes.items():
        its_own = [pool for pool in pools if name in pool.parts]
        if found is None:
            continue
        cell, one = found
        if not its_own:
            site.warn(cell, f"the service class {name} is in no pool's DISTRIBUTION; it guarantees nothing")
        for pool in its_own[1:]:
            site.warn(pool.cell, f"{name}: its jobs belong to the pool {its_own[0].name}; its part here is not kept")
        for pool in its_own[:1]:
            yield _class_pool(pool, name, one)


def _class_pool(pool: PoolOfClasses, name: str, one: ServiceClass) -> Pool:
    part = pool.parts[name]
    return Pool(
        f"{pool.name}/{name}",
        one.users,
        one.queues,
        pool.hosts,
        guaranteed=part.guaranteed,
        lends=pool.lends,
        borrowers=pool.borrowers,
        applications=one.applications,
        slots_share=part.slots_share,
        service_class=name,
        attaches=one.attaches,
    )
