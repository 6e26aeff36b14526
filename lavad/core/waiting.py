"""How many jobs may wait: of one user, of a group, of all; and how many do.

Counted as the tally enters moves, so that a submit costs the limits that match its user and nothing else. Where no such
limit is configured nothing is counted.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from lavad.core.limits import user_rows
from lavad.core.policy import Policy

_SCOPES_KEPT = 100_000


@dataclass(frozen=True, slots=True)
class WaitingLimit:
    """At most so many waiting jobs and slots of all that count under ``scope``; None: no limit."""

    scope: str
    jobs: int | None
    slots: int | None


class Waiting:
    """Waiting jobs and slots, for every scope that has a limit."""

    def __init__(self, policy: Policy) -> None:
        self.jobs: Counter[str] = Counter()
        self.slots: Counter[str] = Counter()
        self._rows = [row for row in user_rows(policy) if _is_limited(row[1].pending_jobs, row[1].pending_slots)]
        self._of_all = (
            [WaitingLimit("", policy.pending_jobs, policy.pending_slots)]
            if _is_limited(policy.pending_jobs, policy.pending_slots)
            else []
        )
        self._known: dict[str, tuple[WaitingLimit, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._rows or self._of_all)

    def limits(self, user: str) -> tuple[WaitingLimit, ...]:
        """Those that count for this user's jobs: his own, his groups', everybody's."""
        found = self._known.get(user)
        if found is None:
            if len(self._known) >= _SCOPES_KEPT:
                self._known.clear()
            rows = [
                WaitingLimit(f"user {user}" if not is_group else f"group {name}", row.pending_jobs, row.pending_slots)
                for name, row, users, is_group, _ in self._rows
                if user in users
            ]
            found = self._known[user] = (*rows, *self._of_all)
        return found

    def add(self, user: str, jobs: int, slots: int) -> None:
        """So many of the user's jobs began to wait or, negative, wait no more."""
        for limit in self.limits(user):
            self.jobs[limit.scope] += jobs
            self.slots[limit.scope] += slots

    def adopt(self, jobs: Mapping[str, int], slots: Mapping[str, int]) -> None:
        """Count anew, from what each user has waiting."""
        self.jobs.clear()
        self.slots.clear()
        for user, count in jobs.items():
            self.add(user, count, slots.get(user, 0))


def _is_limited(jobs: int | None, slots: int | None) -> bool:
    return jobs is not None or slots is not None
