"""The future of EASY backfilling: when the one job that holds a reservation can begin, and what is left beside it then.

So much tells whether another job may go first, and it takes a walk over the ends of what runs up to that moment. Where
several jobs hold reservations, or slots are set apart for a time, ``profile`` keeps all of the future instead.
"""

from collections.abc import Iterable

from lavad.core.indexes.ends import ExpectedEnd
from lavad.core.scheduling.profile import NEVER


class Shadow:
    """``at``: when the job can begin at the latest, as far as that is known; ``spare``: slots that it leaves then."""

    __slots__ = ("at", "spare")

    def __init__(self, now: float, free: int, wanted: int, ends: Iterable[ExpectedEnd]) -> None:
        """``ends``: of all that runs, in order of time; what is overdue is expected at the next moment."""
        at, soonest = now, now + 1
        for end, slots, _ in ends:
            end = end if end > soonest else soonest
            if (free >= wanted and end > at) or end == NEVER:
                break
            free += slots
            at = end
        self.at = at if free >= wanted else NEVER
        self.spare = free - wanted

    def most(self, end: float, free: int) -> int:
        """So many of the slots that are free now a job may have until then."""
        return free if end <= self.at or free < self.spare else self.spare

    def take(self, end: float, slots: int) -> None:
        """A job takes them."""
        if end > self.at:
            self.spare -= slots
