"""Advance reservation: slots on certain hosts, reserved for its users at certain times.

The times are one interval, or windows that recur every week, from which days may be left out. The state follows from
the clock and is not stored, so that a master that was down sees the same.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from enum import Enum

from lavad.core.model.rules.names import ALL, NONE, Names
from lavad.core.model.windows import NEVER, Window, is_open, next_change


@dataclass(frozen=True, slots=True)
class ReservationRule:
    """A ResourceReservation section: these users may reserve slots of these hosts, for times in these windows."""

    name: str
    users: Names
    hosts: Names = ALL
    windows: tuple[Window, ...] = ()
    written: tuple[tuple[str, str], ...] = ()  # its lines, for display


class ReservationKind(Enum):
    """Users of a reservation; the words are those of brsvs."""

    USER = "user"
    GROUP = "group"
    SYSTEM = "sys"  # no jobs


@dataclass(frozen=True, slots=True)
class ReservationTimes:
    """Times of a reservation: from ``begins_at`` until ``ends_at``, or in ``windows`` except in ``skipped``."""

    begins_at: float = 0.0
    ends_at: float = 0.0
    windows: tuple[Window, ...] = ()
    text: str = ""  # the windows as written
    skipped: tuple[tuple[float, float], ...] = ()

    @property
    def recurs(self) -> bool:
        return bool(self.windows)


@dataclass(frozen=True, slots=True)
class AdvanceReservation:
    """An advance reservation. ``hosts`` names each host with its slots; of whole hosts all slots count."""

    name: str
    kind: ReservationKind
    holders: tuple[str, ...]  # users and groups, as written
    hosts: tuple[tuple[str, int], ...]
    times: ReservationTimes
    by: str = ""  # user who created it
    is_open: bool = False  # its jobs go on after its end; else they are killed
    is_whole: bool = False  # -unit host, and all system reservations
    suspends: bool = True  # jobs on its slots are suspended when its jobs need them
    queues: tuple[str, ...] = ()  # queues whose jobs may use the hosts until it begins, whatever their run limit
    description: str = ""

    @property
    def slots(self) -> int:
        return sum(slots for _, slots in self.hosts)

    def admits(self, user: str, groups: Mapping[str, Names]) -> bool:
        """True if this user's jobs may use it."""
        return any(user == name or user in groups.get(name, NONE) for name in self.holders)


LOOK_AHEAD_S = 8 * 86400.0  # every begin and end of a weekly window is within it
_EDGES_MAX = 10_000  # boundaries examined for one result; a week has fewer


def holds(times: ReservationTimes, zone: tzinfo, at: float) -> bool:
    """True if the reservation is active at that time."""
    if not times.windows:
        return times.begins_at <= at < times.ends_at
    return is_open(times.windows, zone, at) and not any(begin <= at < end for begin, end in times.skipped)


def next_turn(times: ReservationTimes, zone: tzinfo, at: float) -> float:
    """First time after this one at which it begins or ends; NEVER if there is none."""
    state, moment = holds(times, zone, at), at
    for _ in range(_EDGES_MAX):
        moment = _next_edge(times, zone, moment)
        if moment == NEVER or holds(times, zone, moment) is not state:
            return moment
    return NEVER


def _next_edge(times: ReservationTimes, zone: tzinfo, at: float) -> float:
    if not times.windows:
        return min((edge for edge in (times.begins_at, times.ends_at) if edge > at), default=NEVER)
    edges = [edge for interval in times.skipped for edge in interval if edge > at]
    return min([*edges, next_change(times.windows, zone, at)])


def stretches(times: ReservationTimes, zone: tzinfo, begin: float, end: float) -> Iterator[tuple[float, float]]:
    """Occurrences that begin before ``end``; the first may have begun already."""
    at = begin if holds(times, zone, begin) else next_turn(times, zone, begin)
    while at < end:
        until = next_turn(times, zone, at)
        yield at, until
        at = next_turn(times, zone, until) if until < NEVER else NEVER


def end_after(times: ReservationTimes, zone: tzinfo, at: float) -> float:
    """End of the occurrence that is active then, or of the next one."""
    begin = at if holds(times, zone, at) else next_turn(times, zone, at)
    return next_turn(times, zone, begin) if begin < NEVER else NEVER


def is_over(times: ReservationTimes, now: float) -> bool:
    """True if it will never be active again."""
    return not times.windows and times.ends_at <= now
