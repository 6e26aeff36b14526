"""Availability profile: free slots of a pool over future time, a step function with searchable holes and reservations.

Invariants: the first step begins now; within a step free slots do not change; after the last step slots only come back.
Expected ends are read only as far as a query needs them, so a query about the near future costs the same with a hundred
running jobs and with a hundred thousand.
"""

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lavad.core.state.expected_ends import ExpectedEnd

NEVER = float("inf")


class PoolProfile:
    """Profile of interchangeable slots. ``ends`` yields (time, slots released then) in order of time."""

    __slots__ = ("_ends", "_frees", "_later", "_next", "_times")

    def __init__(self, now: float, free: int, ends: Iterator[tuple[float, int]]) -> None:
        self._times: list[float] = [now]
        self._frees: list[int] = [free]
        self._ends = ends
        self._next = next(ends, None)
        self._later: list[tuple[float, int]] = []  # heap of reservation ends behind the last step

    def free_until(self, end: float) -> int:
        """Slots that are free from now until ``end`` without a break."""
        times, frees = self._times, self._frees
        least = frees[0]
        for at in range(1, len(times)):
            if times[at] >= end:
                return least
            if frees[at] < least:
                least = frees[at]
        return least  # behind the last step slots only come back

    def short_from(self, slots: int) -> float:
        """First time at which fewer are free; ``NEVER`` if not within the profile's steps."""
        return next((at for at, free in zip(self._times, self._frees, strict=True) if free < slots), NEVER)

    def earliest(self, slots: int, duration: float) -> float:
        """First time at which ``slots`` are free for ``duration`` seconds; ``NEVER`` if it cannot be predicted."""
        at = 0
        while True:
            while self._frees[at] < slots:
                at += 1
                if at == len(self._frees) and not self._grow():
                    return NEVER
            obstacle = self._first_below(slots, at + 1, self._times[at] + duration)
            if obstacle is None:
                return self._times[at]
            at = obstacle

    def _first_below(self, slots: int, start: int, end: float) -> int | None:
        times, frees = self._times, self._frees
        for at in range(start, len(times)):
            if times[at] >= end:
                return None
            if frees[at] < slots:
                return at
        return None

    def take(self, start: float, duration: float, slots: int) -> None:
        """Reserve slots for ``duration`` seconds from ``start``, without a check that they are free."""
        if duration <= 0:
            return
        while self._times[-1] < start and self._grow():
            pass
        first = self._split(start)
        end = start + duration
        last = len(self._times)
        if end <= self._times[-1]:
            last = self._split(end)
        elif end < NEVER:
            heapq.heappush(self._later, (end, slots))
        for at in range(first, last):
            self._frees[at] -= slots

    def _split(self, time: float) -> int:
        """Index of the step that begins at ``time``; insert it if missing."""
        at = bisect_left(self._times, time)
        if at == len(self._times) or self._times[at] != time:
            self._times.insert(at, time)
            self._frees.insert(at, self._frees[at - 1])
        return at

    def _grow(self) -> bool:
        """Append the step at which the next slots come back; False if none do."""
        following, later = self._next, self._later
        time = following[0] if following is not None else NEVER
        if later and later[0][0] < time:
            time = later[0][0]
        if time == NEVER:
            return False
        free = self._frees[-1]
        while following is not None and following[0] <= time:
            free += following[1]
            following = next(self._ends, None)
        self._next = following
        while later and later[0][0] <= time:
            free += heapq.heappop(later)[1]
        self._times.append(time)
        self._frees.append(free)
        return True


def come_back(ends: "Iterable[ExpectedEnd]", now: float) -> Iterator[tuple[float, int]]:
    """Times and slots that running jobs release: at their expected end, overdue ones after the next second."""
    soonest = now + 1
    for at, slots, _ in ends:
        if at == NEVER:
            return
        yield (at if at > soonest else soonest), slots
