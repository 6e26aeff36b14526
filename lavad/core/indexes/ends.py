"""When attempts are expected to give back what they hold: the future as far as run limits tell it.

Invariants: entries are in order of time; an attempt without a run limit is at ``NEVER``; an attempt that is over, and
only has hosts left to clear, is at the beginning of time. Kept up to date lazily: whoever asks hands over what changed.
"""

from bisect import bisect_left, insort
from typing import NamedTuple

from lavad.core.model import Key
from lavad.core.records import Attempt

NEVER = float("inf")
_AT_ONCE = 0.0
_SORT_FROM = 64  # so many changes at once are sorted in together instead of one by one,
_SORT_SHARE = 32  # unless that many times as many entries stay: then to go through them would take longer


class ExpectedEnd(NamedTuple):
    """Until when an attempt is expected to hold its hosts, and how many slots that are."""

    at: float
    slots: int
    key: Key


class ExpectedEnds:
    """Attempts in the order in which they are expected to end."""

    def __init__(self) -> None:
        self.entries: list[ExpectedEnd] = []
        self._by_key: dict[Key, ExpectedEnd] = {}

    def first(self) -> float:
        """When the next end is expected."""
        return self.entries[0].at if self.entries else NEVER

    def of(self, key: Key) -> ExpectedEnd | None:
        """What is expected of an attempt; None where nobody has entered it."""
        return self._by_key.get(key)

    def update(self, changed: dict[Key, ExpectedEnd | None]) -> None:
        """Enter new expectations; None: the attempt holds nothing any more."""
        if len(changed) >= max(_SORT_FROM, len(self.entries) // _SORT_SHARE):
            self._update_many(changed)
            return
        for key, entry in changed.items():
            old = self._by_key.pop(key, None)
            if old is not None:
                del self.entries[bisect_left(self.entries, old)]
            if entry is not None:
                insort(self.entries, entry)
                self._by_key[key] = entry

    def _update_many(self, changed: dict[Key, ExpectedEnd | None]) -> None:
        """What stays is in order already, so that sorting costs little more than going through it once."""
        kept = [entry for entry in self.entries if entry.key not in changed]
        for key, entry in changed.items():
            if entry is None:
                self._by_key.pop(key, None)
            else:
                self._by_key[key] = entry
                kept.append(entry)
        kept.sort()
        self.entries = kept


def expected_end(attempt: Attempt, run_limit_s: int, slots: int) -> ExpectedEnd:
    """What is known of an attempt: it ends by its run limit, counted from when it started or was sent off."""
    if attempt.over:
        at = _AT_ONCE
    elif run_limit_s:
        at = (attempt.started_at or attempt.dispatched_at) + run_limit_s
    else:
        at = NEVER
    return ExpectedEnd(at, slots, attempt.key)
