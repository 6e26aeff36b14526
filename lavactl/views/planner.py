"""The weekly planner of brsvs -p and -z: reserved slots of a host for every ten minutes of the week."""

import time

from lavactl.text.render import clean
from protos import cluster_pb2

STEP_S = 600
DAY_S = 86_400
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
RULE = "-" * 67
WEEKS_MAX = 60  # of one reservation


def plans(
    records: list[cluster_pb2.ReservationRecord], named: list[str] | None, only_used: bool, now: float
) -> list[str]:
    """A plan for each host (None: all with reservations) and each week with a reservation on it."""
    hosts: dict[str, int] = {}
    for record in records:
        hosts |= {host.host: host.slots_max for host in record.hosts}
    found = []
    for name in hosts if named is None else [one for one in named if one in hosts]:
        found += [plan(records, name, hosts[name], sunday, only_used) for sunday in weeks(records, name, now)]
    return found


def weeks(records: list[cluster_pb2.ReservationRecord], host: str, now: float) -> list[float]:
    """Sundays of the weeks with one-time reservations; the current week's if all reservations are recurring."""
    found: dict[float, None] = {}
    for record in records:
        if record.windows or not slots_of(record, host):
            continue
        sunday = sunday_before(record.begins_at)
        for _ in range(WEEKS_MAX):
            if sunday >= record.ends_at:
                break
            found[sunday] = None
            sunday = sunday_before(sunday + 7.5 * DAY_S)
    return sorted(found) or [sunday_before(now)]


def sunday_before(moment: float) -> float:
    """Midnight at which the week of that moment began."""
    local = time.localtime(moment)
    day = local.tm_mday - (local.tm_wday + 1) % 7
    return time.mktime((local.tm_year, local.tm_mon, day, 0, 0, 0, 0, 0, -1))


def slots_of(record: cluster_pb2.ReservationRecord, host: str) -> int:
    """Slots that a reservation takes on that host."""
    return next((one.slots for one in record.hosts if one.host == host), 0)


def plan(
    records: list[cluster_pb2.ReservationRecord], host: str, slots_max: int, sunday: float, only_used: bool
) -> str:
    """Plan of one host for one week."""
    last = sunday + 6.5 * DAY_S
    lines = [f"HOST: {clean(host)} (MAX = {slots_max})", f"Week: {_date(sunday)} - {_date(last)}", RULE]
    lines += ["TIME   " + "".join(f"{day:>8}" for day in DAYS), RULE]
    spans = [(begin, end, slots_of(record, host)) for record in records for begin, end in _pairs(record)]
    for at in range(0, DAY_S, STEP_S):
        cells = [_reserved(spans, sunday + day * DAY_S + at) for day in range(7)]
        if any(cells) or not only_used:
            lines.append(f"{at // 3600}:{at % 3600 // 60:<4}".ljust(7) + "".join(f"{cell:>8}" for cell in cells))
    return "\n".join(lines)


def _pairs(record: cluster_pb2.ReservationRecord) -> list[tuple[float, float]]:
    edges = list(record.stretches)
    return list(zip(edges[::2], edges[1::2], strict=True))


def _reserved(spans: list[tuple[float, float, int]], at: float) -> int:
    """Slots reserved in any part of the ten minutes from ``at``."""
    return sum(slots for begin, end, slots in spans if begin < at + STEP_S and end > at)


def _date(moment: float) -> str:
    local = time.localtime(moment)
    return f"{local.tm_mon}/{local.tm_mday}/{local.tm_year}"
