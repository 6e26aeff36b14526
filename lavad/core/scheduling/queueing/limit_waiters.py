"""Buckets that wait for a limit: not looked at until what is in use of it falls, and then one after the other.

For each limit there is one heap a lane, in the order of the lane. When the limit has fallen the first of each is
called; the next is called when the first has its turn, and only as long as there may be enough left for any of them.
Those that had their turn in vain stand back until the limit falls again.
"""

import heapq

from lavad.core.scheduling.queueing.fairshare import ShareQueue
from lavad.core.scheduling.queueing.ordering import Rank
from lavad.core.state.limits import Counter, least_of
from lavad.core.state.pending import BucketKey

_TINY = 1e-9


class _Queue:
    """Those of one limit. ``least`` is no more than the least that any of them needs."""

    __slots__ = ("back", "heaps", "least")

    def __init__(self) -> None:
        self.back: list[tuple[ShareQueue, Rank, BucketKey]] = []
        self.heaps: dict[ShareQueue, list[tuple[Rank, BucketKey]]] = {}
        self.least = float("inf")


class LimitWaiters:
    """Which buckets wait for which limit. ``called`` are those that are due now because that limit has fallen."""

    def __init__(self) -> None:
        self.called: dict[BucketKey, Counter] = {}
        self._limits: dict[BucketKey, Counter] = {}
        self._queues: dict[Counter, _Queue] = {}

    def __len__(self) -> int:
        return len(self._limits)

    def add(self, counter: Counter, lane: ShareQueue, rank: Rank, key: BucketKey) -> None:
        """The bucket, whose first job has that rank, waits for this limit."""
        self._limits[key] = counter
        queue = self._queues.setdefault(counter, _Queue())
        queue.least = min(queue.least, least_of(counter.rule, key.request))
        queue.back.append((lane, rank, key))

    def discard(self, key: BucketKey) -> None:
        """The bucket is to be looked at, or waits for something else."""
        self._limits.pop(key, None)

    def call(self, key: BucketKey, counter: Counter) -> None:
        """The bucket is due; when its turn comes the next one is to follow."""
        self.called[key] = counter

    def fall(self, counter: Counter) -> list[ShareQueue]:
        """The limit has fallen; the lanes in which some bucket waits for it."""
        queue = self._queues.get(counter)
        if queue is None:
            return []
        for lane, rank, key in queue.back:
            heapq.heappush(queue.heaps.setdefault(lane, []), (rank, key))
        queue.back.clear()
        return list(queue.heaps)

    def pop(self, counter: Counter, lane: ShareQueue, left: float) -> BucketKey | None:
        """The first of the lane that waits for this limit, which has so much left; None when none of them can go."""
        queue = self._queues.get(counter)
        if queue is None or left + _TINY < queue.least:
            return None
        heap = queue.heaps.get(lane, [])
        while heap:
            _, key = heapq.heappop(heap)
            if self._limits.get(key) is counter:
                return key
        queue.heaps.pop(lane, None)
        if not queue.heaps and not queue.back:
            del self._queues[counter]
        return None
