"""Queues that may preempt others, and the running attempts that can be preempted.

PREEMPTION of either queue may allow it, of the preemptive (PREEMPTIVE) or of the preemptable one (PREEMPTABLE), as long
as the preemptable queue has the lower priority. As in LSF, queues of the highest preference come first, then those of
the lowest priority. Attempts are kept in order of start, only for queues that another may preempt; ``version`` grows
with each change, so that a search that found no victims is repeated only after it has grown.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass

from lavad.core.model import JobState, Key
from lavad.core.model.policy import Policy
from lavad.core.model.rules.queues import Queue
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import Job

_Entry = tuple[float, Key]


class PreemptableJobs:
    """Running attempts of preemptable queues."""

    def __init__(self, queues: frozenset[str]) -> None:
        self.queues = queues
        self.version = 0
        self.slots: dict[str, int] = dict.fromkeys(queues, 0)
        self._entries: dict[str, list[_Entry]] = {name: [] for name in queues}
        self._known: dict[Key, tuple[str, _Entry, int]] = {}

    def note(self, job: Job) -> None:
        """Add the job's attempt if its state makes it preemptable; else remove it."""
        attempt = job.attempt
        if not self.queues or attempt is None:
            return
        if job.state is JobState.RUN and not attempt.is_ending:
            self.add(job.shared.queue, attempt)
        else:
            self.discard(attempt)

    def add(self, queue: str, attempt: Attempt) -> None:
        """Add a running attempt that is not being ended."""
        if queue not in self.queues or attempt.key in self._known:
            return
        entry = (attempt.started_at, attempt.key)
        self._known[attempt.key] = (queue, entry, attempt.slots)
        insort(self._entries[queue], entry)
        self.slots[queue] += attempt.slots
        self.version += 1

    def discard(self, attempt: Attempt) -> None:
        """Remove an attempt that does not run any more, or is being ended."""
        known = self._known.pop(attempt.key, None)
        if known is None:
            return
        queue, entry, slots = known
        entries = self._entries[queue]
        del entries[bisect_left(entries, entry)]
        self.slots[queue] -= slots
        self.version += 1

    def resized(self, attempt: Attempt) -> None:
        """Note another allocation of the attempt, or that it may be shrunk again."""
        known = self._known.get(attempt.key)
        if known is not None:
            queue, entry, slots = known
            self._known[attempt.key] = (queue, entry, attempt.slots)
            self.slots[queue] += attempt.slots - slots
            self.version += 1

    def newest_first(self, queue: str) -> Iterator[Key]:
        """Attempts of a queue, the one with the least run time first."""
        for _, key in reversed(self._entries[queue]):
            yield key

    def entries(self, queue: str) -> list[_Entry]:
        """(start, key) of the attempts of a queue, the earliest first."""
        return self._entries[queue]

    def __contains__(self, key: Key) -> bool:
        return key in self._known

    def __len__(self) -> int:
        return len(self._known)


@dataclass(frozen=True, slots=True)
class PreemptionSource:
    """A queue that may be preempted. Smaller ``order`` is preempted first."""

    queue: str
    order: tuple[int, int]
    requeues: bool  # its jobs are requeued instead of suspended


class PreemptionRules:
    """Preemption rules of one policy. ``preemptors`` may preempt or reserve slots, ``victims`` may be preempted; with
    capacity pools all queues are both. ``sources`` is empty for queues that may not preempt."""

    def __init__(self, policy: Policy) -> None:
        self._sources: dict[str, dict[str, PreemptionSource]] = {}
        for taker in policy.queues:
            found = [_source(policy, taker, giver) for giver in policy.queues]
            some = sorted((one for one in found if one is not None), key=lambda one: (one.order, one.queue))
            if some:
                self._sources[taker.name] = {one.queue: one for one in some}
        pooled = frozenset(queue.name for queue in policy.queues) if policy.pools else frozenset()
        savers = frozenset(queue.name for queue in policy.queues if queue.slot_reserve_s > 0)
        self.preemptors = frozenset(self._sources) | pooled | savers
        self.victims = frozenset(name for sources in self._sources.values() for name in sources) | pooled

    def sources(self, queue: str) -> dict[str, PreemptionSource]:
        """Queues that this one may preempt, in order."""
        return self._sources.get(queue, {})


def _source(policy: Policy, taker: Queue, giver: Queue) -> PreemptionSource | None:
    if giver.priority >= taker.priority:
        return None
    level = dict(taker.preempts).get(giver.name)
    gives = giver.is_preemptable and (not giver.preemptable_by or taker.name in giver.preemptable_by)
    if level is None and not gives:
        return None
    requeues = policy.preempts_by_requeue or "PREEMPT" in giver.terminate_when
    return PreemptionSource(giver.name, (-(level or 0), giver.priority), requeues)
