"""One scheduling pass: the best bucket's first job is placed or its bucket is put aside, until no bucket is left.

A pass costs buckets plus starts, not jobs. It runs in slices: each slice's plan is applied before the next command, and
the agenda carries what is left. A pass looks only at buckets that are new, or whose smallest need fits a host where
room has appeared; ``look_at_everything`` makes it look at all of them, and must lead to the same starts (a property
test).
"""

import heapq

from lavad.core.cluster import Cluster
from lavad.core.indexes.pending import Bucket, BucketKey
from lavad.core.model import Allocation, Request
from lavad.core.plan import Plan, Saving, Start, Takeover
from lavad.core.policy import JobOrder, Policy
from lavad.core.scheduling.backfill import Gate, Refusal
from lavad.core.scheduling.blocked import BlockedBuckets
from lavad.core.scheduling.elastic import Growers
from lavad.core.scheduling.ordering import Rank, Ranking
from lavad.core.scheduling.placement import Need, is_single_host, smallest_need
from lavad.core.scheduling.reclaim import Tenants
from lavad.core.scheduling.reservation import Book
from lavad.core.scheduling.room import Room
from lavad.core.scheduling.takeover import Attempted, Takers
from lavad.core.scheduling.walk import Cursor

_Turn = tuple[int, float, float, int, BucketKey]  # a rank and whose it is; flat, because heaps compare so often
_LAST = (2.0**62, 0.0, 0.0)
_NEEDS_KEPT = 10_000
_WORK_OF_A_START = 8  # hosts that could be looked at in the time that a start takes besides


class Agenda:
    """What the scheduler remembers between slices and passes: buckets to look at, and buckets that wait for room.

    ``order`` is a heap of due buckets by the rank they had when they became due; a rank is checked when its turn comes.
    ``grown`` are the hosts whose room grew and that not all blocked buckets have been compared with yet, ``vain`` those
    buckets that found nothing on them: without it a slice would begin with the same ones again. ``barred`` are
    heaps of buckets whose queue starts jobs strictly in order, and that wait for its head.
    """

    def __init__(self) -> None:
        self.due: set[BucketKey] = set()
        self.order: list[_Turn] = []
        self.grown: set[int] = set()
        self.vain: set[BucketKey] = set()
        self.barred: dict[str, list[tuple[Rank, BucketKey]]] = {}
        self.blocked = BlockedBuckets()
        self.book = Book()
        self.takers = Takers()
        self.delays: list[tuple[float, BucketKey]] = []  # when another alternative of a blocked bucket will do
        self.tenants: Tenants | None = None  # of this slice, where there are capacity pools
        self.growers = Growers()
        self._needs: dict[Request, Need] = {}
        self.ranking: Ranking
        self.policy: Policy | None = None  # under which all this was found out

    def gather(self, cluster: Cluster, now: float) -> None:
        """Take over what has changed since the last look. Under other rules all that was known means nothing."""
        if cluster.policy is not self.policy:
            self.look_at_everything(cluster)
        fresh, cluster.pending.fresh = cluster.pending.fresh, set()
        changed, cluster.table.changed = cluster.table.changed, set()
        self.tenants = Tenants(cluster) if cluster.pools else None
        self.ranking = Ranking(cluster, now, self.tenants)
        self.grown |= changed
        if changed:
            self.vain.clear()
        for key in fresh:
            self._add_fresh(cluster, key)
        self.growers.gather(cluster, bool(changed or cluster.touched), now)
        for key in self.takers.gather(cluster, changed, cluster.touched, now):
            self._add(cluster, key)
        self._gather_moved(cluster)
        while self.delays and self.delays[0][0] <= now:
            self._add(cluster, heapq.heappop(self.delays)[1])
        self._gather_promised(cluster, bool(changed), now)

    def _gather_moved(self, cluster: Cluster) -> None:
        """Buckets that wait for a load, or for a resource of the site, are looked at when that has changed."""
        moved, cluster.table.moved = cluster.table.moved, set()
        if moved:
            for key in self.blocked.watching(moved):
                self._add(cluster, key)
        cluster.table.watched = self.blocked.watched

    def _gather_promised(self, cluster: Cluster, has_room: bool, now: float) -> None:
        """Buckets held back for others are looked at when room appears, or when what was promised may have changed."""
        touched, cluster.touched = cluster.touched, set()
        left, cluster.pending.left = cluster.pending.left, set()
        self.book.note(touched)
        is_less = self.book.drop_departed(cluster, left)
        if has_room or is_less or self.book.ends.first() <= now:
            held, self.book.held = self.book.held, set()
            for key in held:
                self._add(cluster, key)
        if is_less:
            for queue in self.barred:
                self.call_next(cluster, queue)
        if (has_room or is_less or self.due) and cluster.table.slots_open:
            self._gather_reordered(cluster)

    def _gather_reordered(self, cluster: Cluster) -> None:
        """Where ranks change as time goes by, everything that waits is looked at anew."""
        names = {queue.name for queue in cluster.policy.queues if queue.order is not JobOrder.SUBMISSION}
        if not names:
            return
        self.book.write([one for one in self.book.reservations if one.key.queue not in names], self.book.full - names)
        for key in [key for key in cluster.pending.buckets if key.queue in names]:
            self._add(cluster, key)

    def set_aside(self, key: BucketKey, refusal: Refusal, rank: Rank) -> None:
        """The bucket's first job can't start now."""
        if refusal is Refusal.PROMISED:
            self.book.held.add(key)
        elif refusal is Refusal.POOL:
            self.takers.waiting.add(key)
        elif refusal is Refusal.NO_ROOM:
            for one in key.request.alternatives:
                submitted_at = self.ranking.cluster.jobs[rank.job].submitted_at
                if submitted_at + one.delay_s > self.ranking.now:
                    heapq.heappush(self.delays, (submitted_at + one.delay_s, key))
            self.blocked.add(key, self._need_of(key.request), rank)
        else:
            heapq.heappush(self.barred.setdefault(key.queue, []), (rank, key))

    def _need_of(self, request: Request) -> Need:
        need = self._needs.get(request)
        if need is None:
            if len(self._needs) >= _NEEDS_KEPT:
                self._needs.clear()
            need = self._needs[request] = smallest_need(request)
        return need

    def call_next(self, cluster: Cluster, queue: str) -> None:
        """The head of a queue in order has started or is gone: it is the next one's turn."""
        waiting = self.barred.get(queue)
        while waiting:
            _, key = heapq.heappop(waiting)
            if key in cluster.pending.buckets and key not in self.due:
                self._add(cluster, key)
                return

    def _add_fresh(self, cluster: Cluster, key: BucketKey) -> None:
        """A bucket that came or changed; one that asks for more slots than there are is blocked at once."""
        if key.request.slots_min > cluster.table.slots_open and key in cluster.pending.buckets and key not in self.due:
            rank = self.ranking.of(key, cluster.pending.buckets[key].head())
            takes = key.queue in cluster.rights.takers
            if rank is not None and not takes and self.book.is_behind(cluster.policy.by_name[key.queue], rank):
                self.book.held.discard(key)
                self.blocked.add(key, self._need_of(key.request), rank)
                return
        self._add(cluster, key)

    def _add(self, cluster: Cluster, key: BucketKey) -> None:
        """The bucket is to be looked at, unless its queue starts nothing."""
        self.blocked.discard(key)
        self.book.held.discard(key)
        bucket = cluster.pending.buckets.get(key)
        rank = self.ranking.of(key, bucket.head()) if bucket is not None else None
        if rank is not None:
            self.due.add(key)
            heapq.heappush(self.order, (*rank, key))

    def look_at_everything(self, cluster: Cluster) -> None:
        """Forget what is known to be blocked: every bucket is due."""
        self.policy = cluster.policy
        self.due, self.order, self.barred = set(), [], {}
        self.blocked, self.book = BlockedBuckets(), Book()
        self.takers.look_at_everything(cluster)
        self.ranking = Ranking(cluster, 0.0)  # of no consequence: ranks are checked when their turn comes
        for key in cluster.pending.buckets:
            self._add(cluster, key)

    def due_bucket(self, cluster: Cluster, turn: _Turn) -> Bucket | None:
        """The bucket that was taken off the heap; None when it has no turn now: then it is noted anew if it is due."""
        key = turn[4]
        if key not in self.due:
            return None  # noted twice and served already
        bucket = cluster.pending.buckets.get(key)
        if bucket is not None and turn[1:4] == bucket.head():  # its rank is still what was noted
            return bucket
        rank = self.ranking.of(key, bucket.head()) if bucket is not None else None
        if bucket is None or rank is None:
            self.due.discard(key)
        elif rank == turn[:4]:
            return bucket
        else:
            heapq.heappush(self.order, (*rank, key))
        return None

    def is_unfinished(self, cluster: Cluster) -> bool:
        """Is there something to look at after all buckets have been?"""
        return bool(self.takers.grown or (cluster.resizable and self.growers.is_due))

    def has_work(self, cluster: Cluster, now: float) -> bool:
        """Is there anything a pass would look at?"""
        has_room = bool(cluster.table.changed or self.grown)
        return bool(
            self.due
            or cluster.policy is not self.policy
            or cluster.pending.fresh
            or (has_room and (len(self.blocked) or self.book.held))
            or cluster.table.moved
            or (self.delays and self.delays[0][0] <= now)
            or self.book.concerns(cluster.pending.left)
            or self.takers.has_work(cluster, now)
            or self.growers.has_work(cluster, now)
        )


class _Slice:
    """One slice under way: its room, its starts, and how far each bucket has been walked.

    The next job comes from two places, whichever goes first: due buckets of the agenda, and blocked buckets that one of
    the grown hosts might fit. A bucket that has begun stands among the due ones with the rank of its next job, so that
    the next slice finds it there; ``left`` is the one that was served last, not entered yet.
    """

    def __init__(self, cluster: Cluster, agenda: Agenda, woken: list[int], steps: int, now: float) -> None:
        self.cluster = cluster
        self.agenda = agenda
        self.steps = steps
        self.room = Room(cluster.table)
        self.gate = Gate(agenda.ranking, agenda.book, agenda.blocked, self.room)
        self.starts: list[Start] = []
        self.left: _Turn | None = None
        self.begun: dict[BucketKey, Cursor] = {}
        self.refused: set[BucketKey] = set()
        self.is_cut = False  # a job is about to take room from others: what was decided so far must be applied first
        self.takeover: Takeover | None = None
        self.saving: Saving | None = None
        self.now = now
        self.tenants = agenda.tenants
        self.woken = woken

    def run(self) -> Plan:
        """Until so many hosts were looked at, or nothing is due."""
        while self.room.work < self.steps and not self.is_cut:
            found = self._next()
            if found is None:
                break
            self._serve(*found)
        if self.left is not None:
            heapq.heappush(self.agenda.order, self.left)
        self.gate.close()
        if not self.woken:
            self.agenda.grown.clear()
            self.agenda.vain.clear()
        is_complete = not (self.agenda.due or self.woken or self.agenda.is_unfinished(self.cluster))
        return Plan(tuple(self.starts), is_complete, self.room.work, self.takeover, saving=self.saving)

    def _next(self) -> tuple[BucketKey, Cursor] | None:
        """The bucket that goes first, with its cursor on its first job; None when there is none."""
        order, ranks = self.agenda.order, self.agenda.blocked
        while True:
            left, self.left = self.left, None
            if self.woken:
                if left is not None:
                    heapq.heappush(order, left)
                self._drop_vain_wakes()
                if self.woken and (not order or ranks.rank(self.woken[-1]) < order[0][:3]):
                    found = self._take_woken()
                    if found is not None:
                        return found
                    continue
                if not order:
                    return None
                turn = heapq.heappop(order)
            elif left is not None:
                turn = heapq.heappushpop(order, left)
            elif order:
                turn = heapq.heappop(order)
            else:
                return None
            found = self._begin(turn)
            if found is not None:
                return found

    def _drop_vain_wakes(self) -> None:
        """Pass over blocked buckets that none of the grown hosts fits any more: they stay blocked."""
        while self.woken and not self._may_fit(self.woken[-1]):
            self.woken.pop()

    def _may_fit(self, place: int) -> bool:
        blocked, room = self.agenda.blocked, self.room
        need = blocked.need(place)
        if blocked.key(place) is None or need.slots_in_all > self.gate.slots_open:
            return False
        if not need.memory_mib and not need.gpus:
            return any(room.slots(row) >= need.slots for row in self.agenda.grown)
        grown = [room.free(row) for row in self.agenda.grown]
        return any(
            free.slots >= need.slots and free.memory_mib >= need.memory_mib and free.gpus.bit_count() >= need.gpus
            for free in grown
        )

    def _take_woken(self) -> tuple[BucketKey, Cursor] | None:
        key = self.agenda.blocked.key(self.woken.pop())
        bucket = self.cluster.pending.buckets.get(key) if key is not None else None
        if key is None or bucket is None:
            if key is not None:
                self.agenda.blocked.discard(key)
            return None
        self.agenda.blocked.discard(key)
        self.agenda.due.add(key)
        found = self._begin_bucket(bucket)
        if found is not None and is_single_host(key.request):
            self.room.narrow(key.request, self.agenda.grown)
        return found

    def _begin(self, turn: _Turn) -> tuple[BucketKey, Cursor] | None:
        """The due bucket, with its cursor where it was noted; None when that has changed, or was served already."""
        key = turn[4]
        cursor = self.begun.get(key)
        if cursor is not None:
            return (key, cursor) if cursor.rank == turn[:4] and key in self.agenda.due else None
        bucket = self.agenda.due_bucket(self.cluster, turn)
        return self._begin_bucket(bucket) if bucket is not None else None

    def _begin_bucket(self, bucket: Bucket) -> tuple[BucketKey, Cursor] | None:
        if bucket.key in self.begun:  # noted twice: its cursor is under way
            return None
        cursor = self.begun[bucket.key] = Cursor(self.agenda.ranking, bucket)
        if not cursor.advance():
            self.agenda.due.discard(bucket.key)
            return None
        return bucket.key, cursor

    def _serve(self, key: BucketKey, cursor: Cursor) -> None:
        """Start jobs of one bucket until another goes first, nothing fits, or it is empty."""
        limit = self._next_rank()
        room, gate = self.room, self.gate
        while True:
            room.work += _WORK_OF_A_START
            allocation = gate.place(cursor) if self.tenants is None else self._place_in_pool(self.tenants, cursor)
            if allocation is None:
                if self._takes(key) and self._takes_over(key, cursor):
                    return
                if not self._goes_on(key, cursor):
                    return
            else:
                self.starts.append(Start(cursor.job, cursor.index, allocation, gate.reason))
                if self.agenda.barred:
                    self.agenda.call_next(self.cluster, key.queue)
                    limit = self._next_rank()
                if not cursor.advance():
                    self.agenda.due.discard(key)
                    return
            if cursor.rank[:3] > limit or room.work >= self.steps:
                self.left = (*cursor.rank, key)
                return

    def _place_in_pool(self, tenants: Tenants, cursor: Cursor) -> Allocation | None:
        """Where the job starts now, if its pool and the others' let it."""
        key = cursor.key
        if not tenants.admits(key):
            self.gate.refusal = Refusal.POOL
            return None
        allocation = self.gate.place(cursor)
        if allocation is None:
            return None
        if not tenants.admits_there(key, allocation, self.starts):
            self.gate.refusal = Refusal.POOL
            self.is_cut = True  # its room is taken in this slice; the next one begins afresh
            return None
        tenants.note(key, allocation)
        return allocation

    def _takes(self, key: BucketKey) -> bool:
        return key.queue in self.cluster.rights.takers and self.gate.refusal is Refusal.NO_ROOM

    def _takes_over(self, key: BucketKey, cursor: Cursor) -> bool:
        """Let the job take room from others, in a slice that has decided nothing else; True: its bucket is served."""
        takers = self.agenda.takers
        while (outcome := self._attempted(cursor)) is Attempted.WAITING:
            if not cursor.advance():
                self.agenda.set_aside(key, Refusal.NO_ROOM, cursor.rank)
                self.agenda.due.discard(key)
                return True
        if outcome is Attempted.NOTHING:
            return False
        self.left = (*cursor.rank, key)
        self.is_cut = True
        self.takeover, takers.takeover = takers.takeover, None
        self.saving, takers.saving = takers.saving, None
        return True

    def _attempted(self, cursor: Cursor) -> Attempted:
        takers = self.agenda.takers
        is_new = cursor.key not in takers.waiting and not takers.is_being_cleared(self.cluster, cursor)
        if self.starts and is_new:
            return Attempted.FOUND  # or not: the next slice will see
        return self.agenda.takers.attempt(self.cluster, cursor, self.now, self.tenants)

    def _next_rank(self) -> tuple[float, ...]:
        """Rank of the first job of all other buckets."""
        order = self.agenda.order
        first = order[0][:3] if order else _LAST
        return min(first, self.agenda.blocked.rank(self.woken[-1])) if self.woken else first

    def _goes_on(self, key: BucketKey, cursor: Cursor) -> bool:
        """A job of the bucket was refused: is its next one to be asked for, only to be given a reservation?"""
        if key not in self.refused:
            self.refused.add(key)
            self.agenda.set_aside(key, self.gate.refusal, cursor.rank)
            self.agenda.vain.add(key)
        if self.gate.wants_more(key) and cursor.advance():
            return True
        self.agenda.due.discard(key)
        return False


def slice_pass(cluster: Cluster, agenda: Agenda, steps: int, now: float) -> Plan:
    """Say which jobs to start, as far as ``steps`` hosts looked at. The plan must be applied before the next slice."""
    agenda.gather(cluster, now)
    ahead = agenda.takers.ahead(cluster)
    if ahead is not None:
        return ahead
    woken = agenda.blocked.woken_by(cluster.table, agenda.grown)
    if agenda.vain:
        woken = [place for place in woken if agenda.blocked.key(place) not in agenda.vain]
    if not woken and not agenda.order:
        agenda.grown.clear()
        agenda.vain.clear()
        return agenda.takers.behind(cluster) or agenda.growers.behind(cluster, agenda.book, now) or Plan()
    return _Slice(cluster, agenda, woken, steps, now).run()
