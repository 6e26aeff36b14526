"""Cursor over one bucket's jobs and array elements in scheduling order; it changes nothing."""

import heapq
from collections.abc import Container
from itertools import islice

from lavad.core.model.tuples import new as _new
from lavad.core.scheduling.queueing.blocked import BlockedBuckets
from lavad.core.scheduling.queueing.ordering import Rank, Ranking
from lavad.core.state.pending import Bucket
from lavad.core.state.records import ArrayRecord, place_of


class JobCursor:
    """Cursor on one job of a bucket; it starts before the first, or after ``passed`` entries.

    Elements of an array come by index and share a rank, but where an adviser puts some of them ahead of others: those
    that are within their pool's entitlement. Job records are read only where a result depends on them: of a
    million jobs most are not in the processor's caches.
    """

    __slots__ = ("_at", "_bucket", "_elements", "_queue", "_ranking", "index", "job", "key", "rank")

    rank: Rank
    job: int
    index: int

    def __init__(self, ranking: Ranking, bucket: Bucket, passed: int = 0) -> None:
        self.key = bucket.key
        self._ranking = ranking
        self._bucket = bucket
        self._queue = ranking.steady_queue(bucket.key)
        self._at = passed  # number of entries passed
        self._elements: islice[int] | None = None  # of the array it stands on

    def advance(self) -> bool:
        """Move to the next job; False at the end, or if the queue starts no jobs."""
        if self._elements is not None and self._advance_in_array():
            return True
        bucket = self._bucket
        while self._at < len(bucket):
            entry = bucket.at(self._at)
            queue = self._queue
            rank = self._ranking.of(self.key, entry) if queue is None else _new(Rank, (queue, *entry))
            if rank is None:
                return False
            self._at += 1
            self.rank, self.job, self.index = rank, entry.job, 0
            if entry.job not in bucket.arrays or self._begin_array():
                return True
        return False

    def _begin_array(self) -> bool:
        """Move to the first element of the array that its entry is for, or to the one that waits by itself."""
        self.job, self.index = place_of(self.job)
        if self.index:
            return True
        record = self._ranking.cluster.jobs[self.job]
        assert isinstance(record, ArrayRecord), f"job {self.job} is no array"
        self._elements = islice(record.pending, record.room())
        return self._advance_in_array()

    def _advance_in_array(self) -> bool:
        assert self._elements is not None
        index = next(self._elements, None)
        if index is None:
            self._elements = None
            return False
        if self._ranking.is_advised:
            rank = self._ranking.of(self.key, self._bucket.at(self._at - 1))
            if rank is None:
                return False
            self.rank = rank
        self.index = index
        return True

    @property
    def run_limit_s(self) -> int:
        """Run limit of the job in seconds; 0 for none."""
        return self._ranking.cluster.bearer(self.job, self.index).shared.run_limit_s

    @property
    def place(self) -> tuple[Rank, int]:
        """Position of the job in the order of all candidates."""
        return self.rank, self.index


def blocked_in_order(ranking: Ranking, blocked: BlockedBuckets, queues: Container[str]) -> list[tuple[Rank, JobCursor]]:
    """Heap of the blocked buckets of these queues, each with a cursor on its first job."""
    found = []
    for place in blocked.of_queues(queues):
        key = blocked.key(place)
        bucket = ranking.cluster.pending.buckets.get(key) if key is not None else None
        if bucket is not None:
            cursor = JobCursor(ranking, bucket)
            if cursor.advance():
                found.append((cursor.rank, cursor))
    heapq.heapify(found)
    return found
