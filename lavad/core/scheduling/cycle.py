"""One scheduling pass: the best bucket's first job is placed or its bucket is put aside, until no bucket is left.

A pass costs buckets plus starts, not jobs. It runs in slices: each slice's plan is applied before the next command, and
the agenda carries what is left. A pass looks only at buckets that are new, or whose smallest need fits a host where room
has appeared; ``look_at_everything`` makes it look at all of them, and must lead to the same starts (a property test).
"""

import heapq
from collections.abc import Iterator
from itertools import islice

from lavad.core.cluster import Cluster
from lavad.core.indexes.pending import Bucket, BucketKey
from lavad.core.plan import Plan, Start
from lavad.core.records import ArrayRecord
from lavad.core.scheduling.blocked import BlockedBuckets
from lavad.core.scheduling.ordering import Rank, rank_of
from lavad.core.scheduling.placement import Room, place, smallest_need


class Agenda:
    """What the scheduler remembers between slices and passes: buckets to look at, and buckets that wait for room."""

    def __init__(self) -> None:
        self.due: set[BucketKey] = set()
        self.blocked = BlockedBuckets()

    def gather(self, cluster: Cluster) -> None:
        """Take over what has changed since the last look."""
        fresh, cluster.pending.fresh = cluster.pending.fresh, set()
        changed, cluster.table.changed = cluster.table.changed, set()
        self.due |= fresh
        self.due.update(self.blocked.woken_by(cluster.table, changed))
        for key in self.due:
            self.blocked.discard(key)

    def look_at_everything(self, cluster: Cluster) -> None:
        """Forget what is known to be blocked: every bucket is due."""
        self.due = set(cluster.pending.buckets)
        self.blocked = BlockedBuckets()

    def has_work(self, cluster: Cluster) -> bool:
        """Is there anything a pass would look at?"""
        return bool(self.due or cluster.pending.fresh or (cluster.table.changed and len(self.blocked)))


class _Cursor:
    """Walks a bucket's jobs and array elements in order, without changing anything."""

    __slots__ = ("_walk", "index", "job", "key", "rank")

    def __init__(self, cluster: Cluster, bucket: Bucket) -> None:
        self.key = bucket.key
        self._walk = _walk(cluster, bucket)

    def advance(self) -> bool:
        """Step to the next job; False at the end, or where the queue starts nothing."""
        for rank, self.job, self.index in self._walk:
            self.rank = rank
            return True
        return False


def _walk(cluster: Cluster, bucket: Bucket) -> Iterator[tuple[Rank, int, int]]:
    for entry in bucket:
        rank = rank_of(cluster.policy, bucket.key, entry)
        if rank is None:
            return
        record = cluster.jobs[entry.job]
        if isinstance(record, ArrayRecord):
            for index in islice(record.pending, record.room()):
                yield rank, entry.job, index
        else:
            yield rank, entry.job, 0


def slice_pass(cluster: Cluster, agenda: Agenda, steps: int) -> Plan:
    """Look at up to ``steps`` jobs and say which of them to start. The plan must be applied before the next slice."""
    agenda.gather(cluster)
    room = Room(cluster.table)
    heap = _ranked(cluster, agenda)
    starts: list[Start] = []
    looked = 0
    while heap and looked < steps:
        cursor = heap[0][1]
        looked += 1
        allocation = place(room, cursor.key.request)
        if allocation is None:
            agenda.blocked.add(cursor.key, smallest_need(cursor.key.request))
            heapq.heappop(heap)
            continue
        starts.append(Start(cursor.job, cursor.index, allocation, "in order"))
        if cursor.advance():
            heapq.heapreplace(heap, (cursor.rank, cursor))
        else:
            heapq.heappop(heap)
    agenda.due = {cursor.key for _, cursor in heap}
    return Plan(tuple(starts), not heap, looked)


def _ranked(cluster: Cluster, agenda: Agenda) -> list[tuple[Rank, _Cursor]]:
    """Due buckets by the rank of their first job. Ranks hold the job's number, so no two are equal."""
    heap = []
    for key in agenda.due:
        bucket = cluster.pending.buckets.get(key)
        if bucket is not None:
            cursor = _Cursor(cluster, bucket)
            if cursor.advance():
                heap.append((cursor.rank, cursor))
    heapq.heapify(heap)
    return heap
