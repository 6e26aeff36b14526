"""Time windows: parts of the week in local time; state at a time, and the next change.

Windows follow local time: in weeks with a change to or from summer time they are shorter or longer; a part that does
not exist is skipped, one that comes twice is open twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

NEVER = float("inf")
WEEK_MINUTES = 7 * 24 * 60
_LOOK_AHEAD = 8  # days that contain every boundary of a week
_PRECISION_S = 1.0  # time zones change at whole seconds


@dataclass(frozen=True, slots=True)
class Window:
    """Part of the week, in minutes after Sunday 0:00 local time; it may wrap around the end of the week."""

    start: int
    end: int


def is_open(windows: Sequence[Window], zone: tzinfo, at: float) -> bool:
    """True if one of these windows is open, or if there are none."""
    if not windows:
        return True
    local = datetime.fromtimestamp(at, zone)
    minute = local.isoweekday() % 7 * 1440 + local.hour * 60 + local.minute
    return any(_holds(window, minute) for window in windows)


def _holds(window: Window, minute: int) -> bool:
    start, end = window.start % WEEK_MINUTES, window.end % WEEK_MINUTES
    if start < end:
        return start <= minute < end
    return minute >= start or minute < end


def next_change(windows: Sequence[Window], zone: tzinfo, at: float) -> float:
    """First time after this one at which the windows open or close; NEVER if there is none."""
    if not windows:
        return NEVER
    state = is_open(windows, zone, at)
    for moment in _moments(windows, zone, at):
        if moment > at and is_open(windows, zone, moment) is not state:
            return moment
    return NEVER


def opens_at(groups: Sequence[Sequence[Window]], zone: tzinfo, at: float) -> float:
    """First time from this one on at which each group has an open window; NEVER if there is none in a week."""
    until = at + _LOOK_AHEAD * 86400.0
    while at <= until:
        closed = [windows for windows in groups if not is_open(windows, zone, at)]
        if not closed:
            return at
        at = max(next_change(windows, zone, at) for windows in closed)
    return NEVER


def moment_text(at: float, zone: tzinfo) -> str:
    """Text of a time in the near future: ``Mon Nov 23 20:00``."""
    return f"{datetime.fromtimestamp(at, zone):%a %b %e %H:%M}"


def _moments(windows: Sequence[Window], zone: tzinfo, at: float) -> list[float]:
    """Times within a week at which the state may change, in order: boundaries of windows, and changes of the UTC
    offset."""
    today = datetime.fromtimestamp(at, zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    minutes = {minute % WEEK_MINUTES for window in windows for minute in (window.start, window.end)}
    found = set(_clock_steps(zone, at, at + (_LOOK_AHEAD + 1) * 86400.0))
    for ahead in range(_LOOK_AHEAD + 1):
        day = today + timedelta(days=ahead)
        first = day.isoweekday() % 7 * 1440
        for minute in minutes:
            if first <= minute < first + 1440:
                local = day + timedelta(minutes=minute - first)
                found |= {local.replace(fold=fold, tzinfo=zone).timestamp() for fold in (0, 1)}
    return sorted(found)


def _clock_steps(zone: tzinfo, begin: float, end: float) -> list[float]:
    """Times at which the zone's UTC offset changes; at most one a day is found."""
    steps = []
    while begin < end:
        low, high = begin, min(begin + 86400.0, end)
        if _offset(zone, low) != _offset(zone, high):
            before = _offset(zone, low)
            while high - low > _PRECISION_S:
                middle = (low + high) // 2 if high - low > 2 else high - _PRECISION_S
                low, high = (middle, high) if _offset(zone, middle) == before else (low, middle)
            steps.append(float(int(high)))
        begin += 86400.0
    return steps


def _offset(zone: tzinfo, at: float) -> timedelta | None:
    return datetime.fromtimestamp(at, zone).utcoffset()


class Calendar:
    """Cache of window states until their next change."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[Window, ...], tzinfo], tuple[float, float, bool]] = {}

    def look(self, windows: tuple[Window, ...], zone: tzinfo, at: float) -> tuple[bool, float]:
        """State of the windows, and the time at which it changes."""
        if not windows:
            return True, NEVER
        since, until, state = self._known.get((windows, zone), (NEVER, NEVER, False))
        if not since <= at < until:
            since, until, state = at, next_change(windows, zone, at), is_open(windows, zone, at)
            self._known[windows, zone] = since, until, state
        return state, until
