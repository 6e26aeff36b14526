"""When an advance reservation holds: asked of the clock, never remembered, so a master that was away sees the same."""

from collections.abc import Iterator
from datetime import tzinfo

from lavad.core.reservations import Times
from lavad.core.windows import NEVER, is_open, next_change

LOOK_AHEAD_S = 8 * 86400.0  # every turn of a weekly window comes within it
_EDGES_MAX = 10_000  # looked at for one answer; a week has fewer


def holds(times: Times, zone: tzinfo, at: float) -> bool:
    """Are the slots set apart at that moment?"""
    if not times.windows:
        return times.begins_at <= at < times.ends_at
    return is_open(times.windows, zone, at) and not any(begin <= at < end for begin, end in times.skipped)


def next_turn(times: Times, zone: tzinfo, at: float) -> float:
    """The first moment after this one at which they begin or cease to be; NEVER for none."""
    state, moment = holds(times, zone, at), at
    for _ in range(_EDGES_MAX):
        moment = _next_edge(times, zone, moment)
        if moment == NEVER or holds(times, zone, moment) is not state:
            return moment
    return NEVER


def _next_edge(times: Times, zone: tzinfo, at: float) -> float:
    if not times.windows:
        return min((edge for edge in (times.begins_at, times.ends_at) if edge > at), default=NEVER)
    edges = [edge for interval in times.skipped for edge in interval if edge > at]
    return min([*edges, next_change(times.windows, zone, at)])


def stretches(times: Times, zone: tzinfo, begin: float, end: float) -> Iterator[tuple[float, float]]:
    """The stretches in which they are, as far as they begin before ``end``; the first may have begun already."""
    at = begin if holds(times, zone, begin) else next_turn(times, zone, begin)
    while at < end:
        until = next_turn(times, zone, at)
        yield at, until
        at = next_turn(times, zone, until) if until < NEVER else NEVER


def end_after(times: Times, zone: tzinfo, at: float) -> float:
    """When the stretch ends that goes on then, or the next one."""
    begin = at if holds(times, zone, at) else next_turn(times, zone, at)
    return next_turn(times, zone, begin) if begin < NEVER else NEVER


def is_over(times: Times, now: float) -> bool:
    """Will they never be again?"""
    return not times.windows and times.ends_at <= now
