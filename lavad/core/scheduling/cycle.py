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
from lavad.core.scheduling.backfill import Gate, Refusal
from lavad.core.scheduling.blocked import BlockedBuckets
from lavad.core.scheduling.ordering import Rank, rank_of
from lavad.core.scheduling.placement import is_single_host, smallest_need
from lavad.core.scheduling.reservation import Book
from lavad.core.scheduling.room import Room

_LAST = Rank(2**62, 0, 0.0, 0)


class Agenda:
    """What the scheduler remembers between slices and passes: buckets to look at, and buckets that wait for room.

    ``due`` maps a bucket to the only hosts worth a look (those whose room grew since nothing fitted), or to None for all.
    ``order`` is a heap of due buckets by the rank they had when they became due; a rank is checked when its turn comes.
    """

    def __init__(self) -> None:
        self.due: dict[BucketKey, frozenset[int] | None] = {}
        self.order: list[tuple[Rank, BucketKey]] = []
        self.blocked = BlockedBuckets()
        self.book = Book()

    def gather(self, cluster: Cluster, now: float) -> None:
        """Take over what has changed since the last look."""
        fresh, cluster.pending.fresh = cluster.pending.fresh, set()
        changed, cluster.table.changed = cluster.table.changed, set()
        grown = frozenset(changed)
        if grown:
            for key, rows in self.due.items():  # left over from the last slice: hosts that grew meanwhile count too
                if rows is not None:
                    self.due[key] = rows | grown
        for key in self.blocked.woken_by(cluster.table, changed):
            self.blocked.discard(key)
            self._add(cluster, key, grown if is_single_host(key.request) else None)
        for key in fresh:
            self.blocked.discard(key)
            self._add(cluster, key, None)
        self._gather_promised(cluster, bool(changed), now)

    def _gather_promised(self, cluster: Cluster, has_room: bool, now: float) -> None:
        """Buckets held back for others are looked at when room appears, or when what was promised may have changed."""
        touched, cluster.touched = cluster.touched, set()
        left, cluster.pending.left = cluster.pending.left, set()
        self.book.note(touched)
        is_less = self.book.drop_departed(cluster, left)
        if has_room or is_less or self.book.ends.first() <= now:
            held, self.book.held = self.book.held, set()
            for key in held:
                self._add(cluster, key, None)
        if self.book.full and (is_less or self.book.concerns(self.due)):  # whoever is next may get the reservation
            for key in [key for key in cluster.pending.buckets if key.queue in self.book.full]:
                self.blocked.discard(key)
                self._add(cluster, key, None)

    def set_aside(self, key: BucketKey, refusal: Refusal) -> None:
        """The bucket's first job can't start now."""
        if refusal is Refusal.PROMISED:
            self.book.held.add(key)
        elif refusal is Refusal.NO_ROOM:
            self.blocked.add(key, smallest_need(key.request))

    def _add(self, cluster: Cluster, key: BucketKey, rows: frozenset[int] | None) -> None:
        bucket = cluster.pending.buckets.get(key)
        rank = rank_of(cluster.policy, key, bucket.head()) if bucket is not None else None
        if rank is not None:
            self.due[key] = rows
            heapq.heappush(self.order, (rank, key))

    def look_at_everything(self, cluster: Cluster) -> None:
        """Forget what is known to be blocked: every bucket is due."""
        self.due, self.order, self.blocked, self.book = {}, [], BlockedBuckets(), Book()
        for key in cluster.pending.buckets:
            self._add(cluster, key, None)

    def next_due(self, cluster: Cluster) -> tuple[Rank, Bucket] | None:
        """The due bucket that goes first, taken off the heap; None when there is none."""
        while self.order:
            noted, key = heapq.heappop(self.order)
            bucket = cluster.pending.buckets.get(key)
            if key not in self.due:
                continue  # noted twice and served already
            rank = rank_of(cluster.policy, key, bucket.head()) if bucket is not None else None
            if bucket is None or rank is None:
                del self.due[key]
            elif rank == noted:
                return rank, bucket
            else:
                heapq.heappush(self.order, (rank, key))
        return None

    def has_work(self, cluster: Cluster) -> bool:
        """Is there anything a pass would look at?"""
        return bool(
            self.due
            or cluster.pending.fresh
            or (cluster.table.changed and (len(self.blocked) or self.book.held))
            or self.book.concerns(cluster.pending.left)
        )


class _Cursor:
    """Walks a bucket's jobs and array elements in order, without changing anything."""

    __slots__ = ("_walk", "index", "job", "key", "rank", "run_limit_s")

    def __init__(self, cluster: Cluster, bucket: Bucket) -> None:
        self.key = bucket.key
        self._walk = _walk(cluster, bucket)

    def advance(self) -> bool:
        """Step to the next job; False at the end, or where the queue starts nothing."""
        found = next(self._walk, None)
        if found is None:
            return False
        self.rank, self.job, self.index, self.run_limit_s = found
        return True


def _walk(cluster: Cluster, bucket: Bucket) -> Iterator[tuple[Rank, int, int, int]]:
    for entry in bucket:
        rank = rank_of(cluster.policy, bucket.key, entry)
        if rank is None:
            return
        record = cluster.jobs[entry.job]
        run_limit_s = record.shared.run_limit_s
        if isinstance(record, ArrayRecord):
            for index in islice(record.pending, record.room()):
                yield rank, entry.job, index, run_limit_s
        else:
            yield rank, entry.job, 0, run_limit_s


class _Slice:
    """One slice under way: its room, its starts, and how far each bucket has been walked."""

    def __init__(self, cluster: Cluster, agenda: Agenda, now: float) -> None:
        self.cluster = cluster
        self.agenda = agenda
        self.room = Room(cluster.table)
        self.gate = Gate(cluster, agenda.book, self.room, agenda.due, now)
        self.starts: list[Start] = []
        self.under_way: list[tuple[Rank, BucketKey, _Cursor]] = []  # a heap, beside the agenda's
        self.begun: set[BucketKey] = set()
        self.steps = 0

    def next_cursor(self) -> tuple[BucketKey, _Cursor] | None:
        """The bucket that goes first, of those just begun and those of the agenda."""
        order = self.agenda.order
        if self.under_way and (not order or self.under_way[0][0] < order[0][0]):
            _, key, cursor = heapq.heappop(self.under_way)
            return key, cursor
        found = self.agenda.next_due(self.cluster)
        if found is None:
            return self.next_cursor() if self.under_way else None
        key = found[1].key
        if key in self.begun:  # noted twice: its cursor is under way
            return self.next_cursor()
        self.begun.add(key)
        cursor = _Cursor(self.cluster, found[1])
        if not cursor.advance():
            del self.agenda.due[key]
            return self.next_cursor()
        only_rows = self.agenda.due[key]
        if only_rows is not None:
            self.room.narrow(key.request, only_rows)
        return key, cursor

    def serve(self, key: BucketKey, cursor: _Cursor) -> None:
        """Start jobs of one bucket until another goes first, nothing fits, or it is empty."""
        limit = self._next_rank()
        while cursor.rank < limit:
            self.room.work += 1
            allocation = self.gate.place(cursor)
            if allocation is None and not self._goes_on(key, cursor):
                return
            if allocation is None:
                continue
            self.starts.append(Start(cursor.job, cursor.index, allocation, "in order"))
            if not cursor.advance():
                del self.agenda.due[key]
                return
            if self.room.work >= self.steps:
                break
        heapq.heappush(self.under_way, (cursor.rank, key, cursor))

    def _goes_on(self, key: BucketKey, cursor: _Cursor) -> bool:
        """The first job of the bucket was refused: is its next one to be asked for, only to be given a reservation?"""
        self.agenda.set_aside(key, self.gate.refusal)
        if self.gate.wants_more(key) and cursor.advance():
            return True
        del self.agenda.due[key]
        return False

    def _next_rank(self) -> Rank:
        ranks = [heap[0][0] for heap in (self.under_way, self.agenda.order) if heap]
        return min(ranks, default=_LAST)

    def run(self, steps: int) -> Plan:
        """Until so many hosts were looked at, or nothing is due."""
        self.steps = steps
        while self.room.work < steps:
            found = self.next_cursor()
            if found is None:
                break
            self.serve(*found)
        self.gate.close()
        for rank, key, _ in self.under_way:  # to be begun again in the next slice, after the starts were applied
            heapq.heappush(self.agenda.order, (rank, key))
        return Plan(tuple(self.starts), not self.agenda.due, self.room.work)


def slice_pass(cluster: Cluster, agenda: Agenda, steps: int, now: float) -> Plan:
    """Say which jobs to start, as far as ``steps`` hosts looked at. The plan must be applied before the next slice."""
    agenda.gather(cluster, now)
    return _Slice(cluster, agenda, now).run(steps)
