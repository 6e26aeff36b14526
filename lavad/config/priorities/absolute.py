"""APS_PRIORITY of lsb.queues: the weights, limits and grace periods of the factors of absolute priorities."""

import re
from collections.abc import Callable, Mapping

from lavad.config.grammar import Row
from lavad.config.site import Site
from lavad.config.values import Wrong
from lavad.core.model.priorities.absolute import ADMIN, FACTORS, FS, NAMES, AbsolutePriority, Factor
from lavad.core.model.priorities.job_order import JobOrder
from lavad.core.model.rules.queues import Queue

LARGEST = 1_000_000.0
_PART = re.compile(r"(WEIGHT|LIMIT|GRACE_PERIOD)\s*\[((?:\s*\[[^\[\]]*\])*)\s*\]\s*", re.IGNORECASE)
_PAIR = re.compile(r"\s*\[\s*([^\s,\[\]]*)\s*,\s*([^\s,\[\]]*)\s*\]")
_FORM = "WEIGHT[[factor, value] ...] LIMIT[[factor, value] ...] GRACE_PERIOD[[factor, value] ...]"
_NUMBER = re.compile(r"[-+]?(\d{1,9}(\.\d{0,9})?|\.\d{1,9})$")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_GRACE_MAX_S = 10 * 366 * 86400.0


def absolute_priority(text: str) -> AbsolutePriority:
    """Read the parameter.

    Raises:
        Wrong: it has another form, an unknown factor, or a value that is 0 or too large.
    """
    said = _parts(text.strip())
    weights = _named(said.get("WEIGHT", ()), _weight)
    limits = _named(said.get("LIMIT", ()), _limit)
    graces = _named(said.get("GRACE_PERIOD", ()), _grace_s)
    if not weights:
        raise Wrong("expected WEIGHT with at least one [factor, value]")
    if FS in graces:
        raise Wrong("GRACE_PERIOD of FS: the share of a user counts from the submission of a job on")
    for factor, inner in FACTORS.items():
        if any(name in weights for name in inner):
            weights.setdefault(factor, 1.0)
        elif inner and factor in weights:
            raise Wrong(f"{factor}: it counts by its subfactors; expected the weight of one of {' '.join(inner)}")
    for name in (*limits, *graces):
        if name not in weights:
            raise Wrong(f"{name}: it has no WEIGHT, so it does not count")
    factors = {name: Factor(weights[name], limits.get(name, 0.0), graces.get(name, 0.0)) for name in weights}
    return AbsolutePriority(tuple((name, factors[name]) for name in NAMES if name in factors))


def _parts(text: str) -> Mapping[str, tuple[tuple[str, str], ...]]:
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    at = 0
    while at < len(text):
        part = _PART.match(text, at)
        if not part or part[1].upper() in found:
            raise Wrong(f"expected {_FORM}")
        found[part[1].upper()] = _pairs(part[2])
        at = part.end()
    return found


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    pairs, at, stripped = [], 0, text.rstrip()
    while at < len(stripped):
        pair = _PAIR.match(stripped, at)
        if not pair:
            raise Wrong(f"expected {_FORM}")
        pairs.append((pair[1], pair[2]))
        at = pair.end()
    return tuple(pairs)


def _named(pairs: tuple[tuple[str, str], ...], read: Callable[[str, str], float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for word, text in pairs:
        name = word.upper()
        if name == ADMIN:
            raise Wrong("ADMIN: it has no weight, limit or grace period; bmod -aps sets it for each job")
        if name not in NAMES:
            raise Wrong(f"{word}: expected one of {' '.join(NAMES)}")
        if name in found:
            raise Wrong(f"{word}: there twice")
        found[name] = read(name, text)
    return found


def _number(name: str, text: str) -> float:
    if not _NUMBER.match(text):
        raise Wrong(f"{name}: expected a number, found {text!r}")
    if not float(text):
        raise Wrong(f"{name}: 0 is no value of a factor")
    if abs(float(text)) > LARGEST:
        raise Wrong(f"{name}: the largest value is {LARGEST:.0f}")
    return float(text)


def _weight(name: str, text: str) -> float:
    return _number(name, text)


def _limit(name: str, text: str) -> float:
    value = _number(name, text)
    if value < 0:
        raise Wrong(f"{name}: a limit is above 0; it holds for negative values as well")
    return value


def _grace_s(name: str, text: str) -> float:
    """Read a grace period; without a unit it is in hours, as in LSF."""
    unit = _UNITS.get(text[-1:].lower())
    value = _number(name, text[:-1] if unit is not None else text) * (unit or _UNITS["h"])
    if not 0 < value <= _GRACE_MAX_S:
        raise Wrong(f"{name}: expected a grace period such as 10s, 10m or 10h")
    return value


def check_absolute(queue: Queue, names_queues: bool, row: Row, site: Site) -> None:
    """Complain of what an absolute priority excludes, and of a factor that never counts."""
    if queue.absolute is None:
        return
    cell = row["APS_PRIORITY"] if "APS_PRIORITY" in row else row["QUEUE_NAME"]  # of the queue that has it in its group
    if queue.order is not JobOrder.SUBMISSION:
        site.wrong(cell, "APS_PRIORITY: the queue has another order of jobs, LAVA_JOB_ORDER or ROUND_ROBIN_POLICY")
    elif names_queues or (queue.fairshare is not None and len(queue.fairshare.queues) > 1):
        site.wrong(cell, "APS_PRIORITY: a queue that shares a tree with others, FAIRSHARE_QUEUES, has no such order")
    elif queue.absolute.has_share and queue.fairshare is None:
        site.warn(cell, "APS_PRIORITY: FS does not count, because the queue has no FAIRSHARE")
