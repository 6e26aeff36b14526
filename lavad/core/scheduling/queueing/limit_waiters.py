"""Buckets that wait for a limit: skipped until its usage falls, and then released one after the other.

Each limit has one heap for each share queue, in its order. When the usage has fallen the first bucket of each is
released; the next one follows when the first is served, and only while enough may be left for any of them. Buckets
refused again wait until the usage falls once more.
"""

import heapq

from lavad.core.scheduling.queueing.fairshare import ShareQueue
from lavad.core.scheduling.queueing.ordering import Rank
from lavad.core.state.limits import Counter, least_of
from lavad.core.state.pending import BucketKey

_TINY = 1e-9


class _Queue:
    """Waiters of one limit. ``least`` is a lower bound of what any of them needs."""

    __slots__ = ("back", "heaps", "least")

    def __init__(self) -> None:
        self.back: list[tuple[ShareQueue, Rank, BucketKey]] = []
        self.heaps: dict[ShareQueue, list[tuple[Rank, BucketKey]]] = {}
        self.least = float("inf")


class LimitWaiters:
    """Buckets waiting for limits. ``called`` are those due now because the usage of that limit has fallen."""

    def __init__(self) -> None:
        self.called: dict[BucketKey, Counter] = {}
        self._limits: dict[BucketKey, Counter] = {}
        self._queues: dict[Counter, _Queue] = {}

    def __len__(self) -> int:
        return len(self._limits)

    def add(self, counter: Counter, share_queue: ShareQueue, rank: Rank, key: BucketKey) -> None:
        """Add a bucket, whose first job has this rank, as waiter for this limit."""
        self._limits[key] = counter
        queue = self._queues.setdefault(counter, _Queue())
        queue.least = min(queue.least, least_of(counter.rule, key.request))
        queue.back.append((share_queue, rank, key))

    def discard(self, key: BucketKey) -> None:
        """Remove a bucket that is due or waits for something else."""
        self._limits.pop(key, None)

    def call(self, key: BucketKey, counter: Counter) -> None:
        """Mark the bucket as released; when it is served the next one follows."""
        self.called[key] = counter

    def fall(self, counter: Counter) -> list[ShareQueue]:
        """Requeue the waiters of a limit whose usage has fallen; return the share queues that have some."""
        queue = self._queues.get(counter)
        if queue is None:
            return []
        for share_queue, rank, key in queue.back:
            heapq.heappush(queue.heaps.setdefault(share_queue, []), (rank, key))
        queue.back.clear()
        return list(queue.heaps)

    def pop(self, counter: Counter, share_queue: ShareQueue, left: float) -> BucketKey | None:
        """First waiter of the share queue for this limit; None if there is none, or ``left`` is too little."""
        queue = self._queues.get(counter)
        if queue is None or left + _TINY < queue.least:
            return None
        heap = queue.heaps.get(share_queue, [])
        while heap:
            _, key = heapq.heappop(heap)
            if self._limits.get(key) is counter:
                return key
        queue.heaps.pop(share_queue, None)
        if not queue.heaps and not queue.back:
            del self._queues[counter]
        return None
