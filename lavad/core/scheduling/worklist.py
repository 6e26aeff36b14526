"""What the scheduler remembers between slices and passes, and who is to be looked at in the next one.

Buckets come back when what they wait for may have come about: room on a host, a limit that has fallen, a promise that
is void, their turn in a queue that is served in order.
"""

import heapq
from collections.abc import Container
from typing import TYPE_CHECKING

from lavad.core.cluster import Cluster
from lavad.core.model.windows import next_change
from lavad.core.scheduling.backfill.gate import Refusal
from lavad.core.scheduling.backfill.reservations import ReservationTable
from lavad.core.scheduling.capacity.advance_reservations import ReservedCapacity
from lavad.core.scheduling.capacity.headroom import Headroom
from lavad.core.scheduling.elastic import ElasticGrowth
from lavad.core.scheduling.placement.place import MinimumNeed, smallest_need
from lavad.core.scheduling.preemption.pool_reclaim import PoolUsers
from lavad.core.scheduling.preemption.preempt import Preemptor
from lavad.core.scheduling.queueing.blocked import BlockedBuckets
from lavad.core.scheduling.queueing.due_queue import DueQueue
from lavad.core.scheduling.queueing.fairshare import FairshareSelector, ShareQueue
from lavad.core.scheduling.queueing.limit_waiters import LimitWaiters
from lavad.core.scheduling.queueing.ordering import Rank, Ranking, Turn
from lavad.core.scheduling.queueing.refused_sizes import Chunk, RefusedSizes
from lavad.core.state.limits import Counter
from lavad.core.state.pending import Bucket, BucketKey

if TYPE_CHECKING:
    from lavad.core.model import Request
    from lavad.core.model.policy import Policy
    from lavad.core.state.fairshare import Account, Tree

_NEEDS_KEPT = 10_000
_WORK_OF_LISTING = 4  # hosts that could be looked at while one bucket is entered in its lane


class Worklist:
    """What the scheduler remembers between slices and passes: buckets to look at, and buckets that wait for room.

    ``plain`` is the lane of all buckets in queues without shares, ``lanes`` are those of the accounts of the others.
    ``grown`` are the hosts whose room grew and that not all blocked buckets have been compared with yet, ``vain`` those
    buckets that found nothing on them: without it a slice would begin with the same ones again. ``barred`` are
    heaps of buckets whose queue starts jobs strictly in order, and that wait for its head; ``limited`` are those that
    wait for a limit. ``is_under_way``: the pass has begun in an earlier slice.
    """

    def __init__(self) -> None:
        self.due: set[BucketKey] = set()
        self._unlisted: list[BucketKey] = []  # after a new beginning: still to be added, the newest first
        self._unnoted: set[BucketKey] = set()  # due ones without a place in their lane: on the short way nobody asks
        self.plain = ShareQueue(0)
        self.lanes: dict[tuple[Account, int], ShareQueue] = {}
        self.contests: dict[tuple[Tree, int], FairshareSelector] = {}  # of the slice under way
        self.grown: set[int] = set()
        self.vain: set[BucketKey] = set()
        self.hopeless = RefusedSizes()
        self.barred: dict[str, list[tuple[Rank, BucketKey]]] = {}
        self.limited = LimitWaiters()
        self.blocked = BlockedBuckets()
        self.book = ReservationTable()
        self.takers = Preemptor()
        self.delays: list[tuple[float, BucketKey]] = []  # when another alternative of a blocked bucket will do
        self.tenants: PoolUsers | None = None  # of this slice, where there are capacity pools
        self.growers = ElasticGrowth()
        self.is_under_way = False
        self.easy_ranks: dict[str, int] | None = None  # by queue, if the rules allow the short way of ``easy``; else {}
        self.reached: dict[BucketKey, tuple[Rank, int]] = {}  # blocked ones whose jobs are still to get reservations
        self.headroom: Headroom | None = None
        self.withheld: ReservedCapacity | None = None  # of this slice, where there are advance reservations
        self._reserved_version = 0
        self._windows_change_at = 0.0
        self._needs: dict[Chunk | Request, MinimumNeed] = {}
        self._reordered: set[str] = set()  # queues whose order changes with time while reservations depend on it
        self.ranking: Ranking
        self.policy: Policy | None = None  # under which all this was found out

    def gather(self, cluster: Cluster, now: float) -> None:
        """Take over what has changed since the last look. Under other rules all that was known means nothing."""
        if cluster.policy is not self.policy or cluster.reserved.version != self._reserved_version:
            self.look_at_everything(cluster, now)
            cluster.pending.fresh = set()
        self.withheld = ReservedCapacity(cluster, now) if cluster.reserved.by_name else None
        self.contests = {}
        fresh, cluster.pending.fresh = cluster.pending.fresh, set()
        changed, cluster.table.changed = cluster.table.changed, set()
        self.tenants = PoolUsers(cluster) if cluster.pools else None
        self.ranking.renew(now, self.tenants)
        self.grown |= changed
        if changed:
            self.vain.clear()
            self.hopeless.clear()
        if cluster.limits:
            self._gather_limited(cluster, now)
        else:  # a host that did not know a user was the only limit, and is one no more
            self.headroom = None
        for key in fresh:
            self._add_fresh(cluster, key)
        if cluster.resizable:
            self.growers.gather(cluster, bool(changed or cluster.touched), now)
        if self.takers.waiting or cluster.lenders:
            for key in self.takers.gather(cluster, changed, cluster.touched, now):
                self._add(cluster, key)
        if cluster.table.moved:
            self._gather_moved(cluster)
        while self.delays and self.delays[0][0] <= now:
            self._add(cluster, heapq.heappop(self.delays)[1])
        self._gather_promised(cluster, changed, now)

    def _gather_moved(self, cluster: Cluster) -> None:
        """Buckets that wait for a load, or for a resource of the site, are looked at when that has changed."""
        moved, cluster.table.moved = cluster.table.moved, set()
        for key in self.blocked.watching(moved):
            self._add(cluster, key)

    def _gather_limited(self, cluster: Cluster, now: float) -> None:
        """The first buckets that wait for a limit that has fallen; where limits have come or gone by the clock, all."""
        limits = cluster.limits
        self.headroom = Headroom(limits, cluster.table, now)
        if limits.windows and now >= self._windows_change_at:
            is_known, self._windows_change_at = (
                bool(self._windows_change_at),
                next_change(limits.windows, limits.zone, now),
            )
            if is_known:
                self.look_at_everything(cluster, now)
        fallen, limits.fallen = limits.fallen, set()
        for counter in fallen:
            for lane in self.limited.fall(counter):
                self.call_limited(cluster, counter, lane)

    def call_limited(self, cluster: Cluster, counter: Counter, lane: ShareQueue) -> None:
        """It is the next one's turn of those that wait for this limit in this lane, if there may be enough for it."""
        assert self.headroom is not None
        left = self.headroom.left(counter)
        while (key := self.limited.pop(counter, lane, left)) is not None:
            if key in cluster.pending.buckets and key not in self.due:
                self._add(cluster, key)
                self.limited.call(key, counter)
                return

    def _gather_promised(self, cluster: Cluster, changed: set[int], now: float) -> None:
        """Buckets held back for others are looked at when room appears, or when what was promised may have changed."""
        book, has_room = self.book, bool(changed)
        touched, cluster.touched = cluster.touched, set()
        lost, cluster.table.lost = cluster.table.lost, set()
        is_other = book.promises.look_again(cluster, changed, lost, touched, book.ends, now) or bool(lost)
        is_other = is_other or book.are_moved(cluster, touched)
        left, cluster.pending.left = cluster.pending.left, set()
        book.note(touched)
        is_less = book.drop_departed(cluster, left)
        if self.headroom is not None and book.reservations:
            is_less = self._drop_limited(cluster, self.headroom) or is_less
        if book.held:
            is_later = not self.is_under_way and book.has_overdue(cluster, now)
            if is_less or is_later or is_other:
                self.call_held(cluster)
            elif has_room:
                self.call_held(cluster, by_slots=True)
        if is_less:
            for queue in self.barred:
                self.call_next(cluster, queue)
        is_new = bool(self.due) and not self.is_under_way
        if self._reordered and (has_room or is_less or is_new) and cluster.table.slots_open:
            self._gather_reordered(cluster)

    def call_held(self, cluster: Cluster, by_slots: bool = False) -> None:
        """What was held back for others is looked at again; ``by_slots``: but for what waits for room on some host."""
        for key in [key for key in self.book.held if not (by_slots and key in self.blocked)]:
            self._add(cluster, key)

    def call_held_behind(self, cluster: Cluster, rank: Rank, asked: Container[BucketKey]) -> bool:
        """The same of those that go after that rank, and were not ``asked`` in this slice; True when there are any."""
        buckets, found = cluster.pending.buckets, []
        for key in self.book.held:
            bucket = buckets.get(key) if key not in asked else None
            own = self.ranking.of(key, bucket.head()) if bucket is not None else None
            if own is not None and (own > rank or self.ranking.tree_of(key) is not None):
                found.append(key)
        for key in found:
            self._add(cluster, key)
        return bool(found)

    def note_due(self, cluster: Cluster) -> None:
        """Whoever is due stands in a lane: a slice on the long way is under way."""
        while self._unnoted:
            self._enter(cluster, self._unnoted.pop())

    def _drop_limited(self, cluster: Cluster, headroom: Headroom) -> bool:
        """Take away reservations of jobs that a limit forbids to start by now; True when there were any."""
        kept = []
        for one in self.book.reservations:
            consumer = cluster.limits.consumer(one.key.kind.user, one.key.queue, one.key.kind.project)
            counter = headroom.blocking(consumer, one.key.request)
            if counter is None:
                kept.append(one)
            elif one.key in self.blocked or one.key in self.book.held:
                self.wait_for_limit(cluster, one.key, counter)
        is_less = len(kept) < len(self.book.reservations)
        self.book.write(kept, self.book.full)
        return is_less

    def wait_for_limit(self, cluster: Cluster, key: BucketKey, counter: Counter) -> None:
        """What waited for room waits for a limit now."""
        self.blocked.discard(key)
        self.book.held.discard(key)
        bucket = cluster.pending.buckets.get(key)
        rank = self.ranking.of(key, bucket.head()) if bucket is not None else None
        if rank is not None:
            self.set_aside(key, Refusal.LIMITED, rank, counter)

    def _gather_reordered(self, cluster: Cluster) -> None:
        """Where ranks change as time goes by and reservations depend on them, all that waits is looked at anew."""
        names = self._reordered
        self.book.write([one for one in self.book.reservations if one.key.queue not in names], self.book.full - names)
        for key in [key for key in cluster.pending.buckets if key.queue in names]:
            self._add(cluster, key)

    def lane_of(self, key: BucketKey) -> ShareQueue:
        """Where the bucket competes."""
        tree = self.ranking.tree_of(key)
        account = self.ranking.account_of(key) if tree is not None else None
        if tree is None or account is None:
            return self.plain
        priority = self.ranking.cluster.policy.by_name[key.queue].priority
        lane = self.lanes.get((account, priority))
        if lane is None:
            lane = self.lanes[account, priority] = ShareQueue(len(self.lanes) + 1, tree, account, priority)
        return lane

    def set_aside(self, key: BucketKey, refusal: Refusal, rank: Rank, counter: Counter | None = None) -> None:
        """The bucket's first job can't start now."""
        if refusal is Refusal.PROMISED:
            self.book.held.add(key)
        elif refusal is Refusal.PROMISED_THERE:
            self.book.held.add(key)
            self._block(key, rank)
        elif refusal is Refusal.POOL:
            self.takers.waiting.add(key)
        elif refusal is Refusal.NO_ROOM:
            self._block(key, rank)
        elif counter is not None and refusal in (Refusal.LIMITED, Refusal.LIMITED_THERE):
            self.limited.add(counter, self.lane_of(key), rank, key)
            if refusal is Refusal.LIMITED_THERE:
                self.blocked.add(key, self.need_of(key), rank, self.lane_of(key).number)
        else:
            heapq.heappush(self.barred.setdefault(key.queue, []), (rank, key))

    def _block(self, key: BucketKey, rank: Rank) -> None:
        """It waits for room on a host, or for an alternative that holds after a while."""
        self._note_delays(key, rank)
        self.blocked.add(key, self.need_of(key), rank, self.lane_of(key).number)

    def _note_delays(self, key: BucketKey, rank: Rank) -> None:
        for one in key.request.alternatives:
            submitted_at = self.ranking.cluster.jobs[rank.job].submitted_at
            if submitted_at + one.delay_s > self.ranking.now:
                heapq.heappush(self.delays, (submitted_at + one.delay_s, key))

    def need_of(self, key: BucketKey) -> MinimumNeed:
        """What a blocked job of that bucket waits for. Tasks of one size wait for the same, whoever asks."""
        need = self._needs.get(key.chunk or key.request)
        if need is None:
            if len(self._needs) >= _NEEDS_KEPT:
                self._needs.clear()
            need = self._needs[key.chunk or key.request] = smallest_need(key.request)
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
            queue = cluster.policy.by_name[key.queue]
            is_behind = queue.name in self._reordered or (rank is not None and self.book.is_behind(queue, rank))
            may_take = key.queue in cluster.rights.takers or key.reservation
            if rank is not None and is_behind and not may_take:
                self.book.held.discard(key)
                self.limited.discard(key)
                self.blocked.add(key, self.need_of(key), rank, self.lane_of(key).number)
                return
        self._add(cluster, key)

    def _add(self, cluster: Cluster, key: BucketKey) -> None:
        """The bucket is to be looked at, unless its queue starts nothing."""
        self.blocked.discard(key)
        self.book.held.discard(key)
        if self.reached:
            self.reached.pop(key, None)
        if self.easy_ranks:  # then nobody waits for a limit, and ranks may never be asked for
            self.due.add(key)
            self._unnoted.add(key)
            return
        self.limited.discard(key)
        self._enter(cluster, key)

    def _enter(self, cluster: Cluster, key: BucketKey) -> None:
        """The bucket is due, and stands in its lane."""
        bucket = cluster.pending.buckets.get(key)
        rank = self.ranking.of(key, bucket.head()) if bucket is not None else None
        if rank is not None:
            self.due.add(key)
            self._note(rank, key)
        else:
            self.due.discard(key)

    def _note(self, rank: Rank, key: BucketKey) -> None:
        """The due bucket stands in its lane with this rank."""
        lane = self.lane_of(key)
        lane.order.push((*rank, key))
        if self.contests and lane is not self.plain:
            self.contest_of(lane).enter(lane)

    def contest_of(self, lane: ShareQueue) -> FairshareSelector:
        """Where the lane competes in this slice."""
        assert lane.tree is not None
        contest = self.contests.get((lane.tree, lane.priority))
        if contest is None:
            contest = self.contests[lane.tree, lane.priority] = FairshareSelector(self.ranking, lane.tree, self.blocked)
        return contest

    def look_at_everything(self, cluster: Cluster, now: float = 0.0) -> None:
        """Forget what is known to be blocked: every bucket is due. ``now`` hardly matters: ranks are checked later."""
        self.policy = cluster.policy
        self._reserved_version = cluster.reserved.version
        self.due, self.barred, self.limited = set(), {}, LimitWaiters()
        self.plain, self.lanes, self.contests = ShareQueue(0), {}, {}
        self.blocked, self.book = BlockedBuckets(), ReservationTable()
        self.hopeless.clear()
        self.takers.look_at_everything(cluster)
        self.is_under_way, self.reached = False, {}
        self.easy_ranks = None
        self.ranking = Ranking(cluster, now)
        self._reordered = {queue.name for queue in cluster.policy.queues if self.ranking.is_reordered(queue)}
        self._unlisted, self._unnoted = list(reversed(cluster.pending.buckets)), set()
        cluster.table.watched = self.blocked.watched

    def list_some(self, cluster: Cluster, steps: int) -> bool:
        """Enter due buckets in their lanes; True when some are left for the next slice.

        Nothing may start before all are there: who goes first is not known before.
        """
        for _ in range(max(1, steps // _WORK_OF_LISTING)):
            if self._unlisted:
                self._list_next(cluster)
            elif self._unnoted:
                self._enter(cluster, self._unnoted.pop())
            else:
                return False
        return bool(self._unlisted or self._unnoted)

    def due_at_once(self, cluster: Cluster, most: int) -> set[BucketKey] | None:
        """All due buckets, whether they stand in their lanes or not; None when they are more than that."""
        if len(self._unlisted) + len(self.due) > most:
            return None
        while self._unlisted:
            self._list_next(cluster)
        return self.due

    def _list_next(self, cluster: Cluster) -> None:
        key = self._unlisted.pop()
        if key not in self.due:
            self._add(cluster, key)

    def clear_lanes(self) -> None:
        """Nobody who is due stands in a lane any more."""
        if self.plain.order:
            self.plain.order = DueQueue()
        self._unnoted = set(self.due)

    def due_bucket(self, cluster: Cluster, turn: Turn) -> Bucket | None:
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
            self._note(rank, key)
        return None

    def end_slice(self, is_complete: bool) -> None:
        """All hosts that had grown were compared with all blocked buckets, or the next slice goes on with that."""
        self.is_under_way = not is_complete
        if is_complete:
            self.grown.clear()
            self.vain.clear()

    def is_unfinished(self, cluster: Cluster) -> bool:
        """Is there something to look at after all buckets have been?"""
        return bool(self.takers.grown or (cluster.resizable and self.growers.is_due))

    def has_work(self, cluster: Cluster, now: float) -> bool:
        """Is there anything a pass would look at?"""
        has_room = cluster.table.changed or self.grown
        return bool(
            cluster.pending.fresh
            or self.due
            or (has_room and (self.book.held or self.blocked.may_fit(cluster.table.slots_open)))
            or self._unlisted
            or cluster.policy is not self.policy
            or cluster.reserved.version != self._reserved_version
            or (cluster.table.lost and self.book.held)
            or cluster.table.moved
            or (self.delays and self.delays[0][0] <= now)
            or self.book.concerns(cluster.pending.left)
            or self.takers.has_work(cluster, now)
            or self.growers.has_work(cluster, now)
            or (cluster.limits.fallen and self.limited)
            or (cluster.limits.windows and self._windows_change_at <= now)
            or self.book.are_moved(cluster, cluster.touched)
            or (self.book.held and self.book.has_overdue(cluster, now))
        )

    @property
    def has_due(self) -> bool:
        """Is some bucket noted in a lane?"""
        return bool(self.plain.order) or any(lane.order for lane in self.lanes.values())
