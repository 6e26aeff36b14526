"""Who may take from whom: which queues' jobs may be suspended or ended for those of another queue.

Either side may say so: the one that takes (PREEMPTIVE) or the one that gives (PREEMPTABLE), as long as the queue that
gives has the lower priority. The order is that of LSF: first the queues with the highest level of preference, then
those of the lowest priority.
"""

from dataclasses import dataclass

from lavad.core.policy import Policy, Queue


@dataclass(frozen=True, slots=True)
class Source:
    """A queue to take from. Smaller ``order`` is taken from first."""

    queue: str
    order: tuple[int, int]
    requeues: bool  # its jobs are ended and wait again, instead of being suspended


class Rights:
    """Of one policy. ``takers`` may take from others or save up slots, from ``victims`` somebody may take; with
    capacity pools all queues are both. ``sources`` is empty for queues that take from no other queue."""

    def __init__(self, policy: Policy) -> None:
        self._sources: dict[str, dict[str, Source]] = {}
        for taker in policy.queues:
            found = [_source(policy, taker, giver) for giver in policy.queues]
            some = sorted((one for one in found if one is not None), key=lambda one: (one.order, one.queue))
            if some:
                self._sources[taker.name] = {one.queue: one for one in some}
        pooled = frozenset(queue.name for queue in policy.queues) if policy.pools else frozenset()
        savers = frozenset(queue.name for queue in policy.queues if queue.slot_reserve_s > 0)
        self.takers = frozenset(self._sources) | pooled | savers
        self.victims = frozenset(name for sources in self._sources.values() for name in sources) | pooled

    def sources(self, queue: str) -> dict[str, Source]:
        """The queues that this one may take from, in order."""
        return self._sources.get(queue, {})


def _source(policy: Policy, taker: Queue, giver: Queue) -> Source | None:
    if giver.priority >= taker.priority:
        return None
    level = dict(taker.preempts).get(giver.name)
    gives = giver.is_preemptable and (not giver.preemptable_by or taker.name in giver.preemptable_by)
    if level is None and not gives:
        return None
    requeues = policy.preempts_by_requeue or "PREEMPT" in giver.terminate_when
    return Source(giver.name, (-(level or 0), giver.priority), requeues)
