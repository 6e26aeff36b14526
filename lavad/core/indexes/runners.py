"""Attempts that run and could be asked to make room, by queue, in the order in which they started.

Kept only for queues that somebody may take from, so that nothing is paid for where nobody may. ``version`` grows with
every change: whoever found no victims need not look again before it has grown.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator

from lavad.core.model import JobState, Key
from lavad.core.records import Attempt, Job

_Entry = tuple[float, Key]


class Runners:
    """Running attempts of some queues."""

    def __init__(self, queues: frozenset[str]) -> None:
        self.queues = queues
        self.version = 0
        self.slots: dict[str, int] = dict.fromkeys(queues, 0)
        self._entries: dict[str, list[_Entry]] = {name: [] for name in queues}
        self._known: dict[Key, tuple[str, _Entry, int]] = {}

    def note(self, job: Job) -> None:
        """Enter whether the job may be a victim as far as its state goes."""
        attempt = job.attempt
        if not self.queues or attempt is None:
            return
        if job.state is JobState.RUN and not attempt.is_ending:
            self.add(job.shared.queue, attempt)
        else:
            self.discard(attempt)

    def add(self, queue: str, attempt: Attempt) -> None:
        """The attempt runs and nobody has told it to end."""
        if queue not in self.queues or attempt.key in self._known:
            return
        entry = (attempt.started_at, attempt.key)
        self._known[attempt.key] = (queue, entry, attempt.slots)
        insort(self._entries[queue], entry)
        self.slots[queue] += attempt.slots
        self.version += 1

    def discard(self, attempt: Attempt) -> None:
        """It runs no more, or is to end."""
        known = self._known.pop(attempt.key, None)
        if known is None:
            return
        queue, entry, slots = known
        entries = self._entries[queue]
        del entries[bisect_left(entries, entry)]
        self.slots[queue] -= slots
        self.version += 1

    def resized(self, attempt: Attempt) -> None:
        """It has another allocation now, or can be asked again for a part of it."""
        known = self._known.get(attempt.key)
        if known is not None:
            queue, entry, slots = known
            self._known[attempt.key] = (queue, entry, attempt.slots)
            self.slots[queue] += attempt.slots - slots
            self.version += 1

    def newest_first(self, queue: str) -> Iterator[Key]:
        """Those of a queue, the one with the least run time first."""
        for _, key in reversed(self._entries[queue]):
            yield key

    def entries(self, queue: str) -> list[_Entry]:
        """(start, key) of those of a queue, the earliest first."""
        return self._entries[queue]

    def __contains__(self, key: Key) -> bool:
        return key in self._known

    def __len__(self) -> int:
        return len(self._known)
