"""Scheduling pass: take the best bucket's first job, place it or defer its bucket, until no bucket is left.

A pass costs buckets plus starts, not jobs. It runs in slices: each slice's plan is applied before the next command, and
the worklist carries the rest over. A pass examines only buckets that are new, or whose minimum need fits a host with
freed resources. ``look_at_everything`` makes it examine all of them, and must lead to the same starts (a property
test).
"""

from dataclasses import replace

from lavad.core.cluster_view import ClusterView
from lavad.core.model.allocation import slots_of
from lavad.core.plan import Plan, Preempt, ReserveSlots, Start, Starts
from lavad.core.scheduling.backfill.gate import BackfillGate
from lavad.core.scheduling.capacity.constraint import Refusal
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.fast import easy
from lavad.core.scheduling.fast.single_task import WORK_OF_A_START, SingleTaskStarts
from lavad.core.scheduling.placement.place import is_single_host
from lavad.core.scheduling.preemption.preempt import PreemptOutcome
from lavad.core.scheduling.queueing.blocked_columns import NOBODY_WOKEN, UnblockedBuckets
from lavad.core.scheduling.queueing.cursor import JobCursor
from lavad.core.scheduling.queueing.fairshare import First, ShareQueue
from lavad.core.scheduling.queueing.ordering import Turn
from lavad.core.scheduling.worklist import Worklist
from lavad.core.state.changes import Changes
from lavad.core.state.pending import Bucket, BucketKey

_ITS_TURN_IS_OVER: First = (float("-inf"),)
_OF_CONSTRAINTS = frozenset({Refusal.LIMITED, Refusal.LIMITED_THERE, Refusal.FORBIDDEN})
_NOTHING = Starts()


class _Slice:
    """Slice under way: its free resources, its starts, and a cursor for each bucket begun.

    The next candidate comes from two sources, whichever is first: due buckets of the worklist, and blocked buckets that
    a freed host might fit. A bucket that has begun stays due with the rank of its next job, so that the next slice
    finds it there; ``left`` is the entry of the one served last, not pushed back yet. With fairshare each account has
    both sources for itself, and accounts compete first.
    """

    def __init__(
        self, cluster: ClusterView, worklist: Worklist, unblocked: dict[int, UnblockedBuckets], steps: int, now: float
    ) -> None:
        self.cluster = cluster
        self.worklist = worklist
        self.steps = steps
        self.room = FreeResources(cluster.table)
        self.starts: list[Start] = []
        self.gate = BackfillGate(
            worklist.ranking,
            worklist.reservation_table,
            worklist.blocked,
            self.room,
            worklist.allowance,
            self.starts,
        )
        self.share_queue = worklist.plain  # the share queue served now
        self.left: Turn | None = None  # of that share queue
        self.begun: dict[BucketKey, JobCursor] = {}
        self.refused: set[BucketKey] = set()
        self.is_cut = False  # the plan must be applied before anything else is decided
        self.found: Preempt | ReserveSlots | None = None  # for a blocked job, in a slice without starts
        self.now = now
        self.pool_users = worklist.pool_users
        self.is_shared = bool(worklist.share_queues)
        self.straight = SingleTaskStarts(cluster, worklist, self.room, self.gate, self.starts)
        self._deal_out(unblocked)

    def _deal_out(self, unblocked: dict[int, UnblockedBuckets]) -> None:
        """Distribute unblocked buckets to their share queues, and enter share queues with candidates for selection."""
        worklist = self.worklist
        self.is_anything_woken = bool(unblocked)
        worklist.plain.unblocked = unblocked.get(0, NOBODY_WOKEN)
        for share_queue in worklist.share_queues.values():
            share_queue.unblocked = unblocked.get(share_queue.number, NOBODY_WOKEN)
            if share_queue.order or share_queue.unblocked:
                worklist.contest_of(share_queue).enter(share_queue)

    @property
    def has_woken(self) -> bool:
        """True if an unblocked bucket has not been examined yet."""
        share_queues = self.worklist.share_queues.values()
        return bool(self.worklist.plain.unblocked) or (
            self.is_shared and any(share_queue.unblocked for share_queue in share_queues)
        )

    def run(self) -> Plan:
        """Serve candidates until the work budget of the slice is spent, or none is left."""
        while not self._is_over():
            if self.straight.may_run:
                self.left = self.straight.run(self.left, self.begun, self.steps)
            found = self._next()
            if found is None:
                break
            self._serve(*found)
        if self.left is not None:
            self.share_queue.order.push(self.left)
        self.gate.close()
        if self.gate.limited:
            self._put_limited_aside()
        for key in self.refused & self.worklist.due:
            self.worklist.reached[key] = self.begun[key].place
        has_woken = self.has_woken
        if not has_woken:
            self.worklist.grown.clear()
            self.worklist.vain.clear()
        is_complete = not (self.worklist.due or has_woken or self.worklist.is_unfinished(self.cluster))
        self.worklist.is_under_way = not is_complete
        if self.found is not None:
            return replace(self.found, steps=self.room.work)
        return Starts(tuple(self.starts), is_complete, self.room.work, self.cluster.version)

    def _is_over(self) -> bool:
        return self.is_cut or self.room.work >= self.steps or self.gate.waits_for_ends(self.steps)

    def _put_limited_aside(self) -> None:
        """Let buckets whose reservation a constraint forbids wait for that instead of resources."""
        worklist = self.worklist
        for key, obstacle in self.gate.limited:
            if key not in worklist.due and (key in worklist.blocked or key in worklist.reservation_table.held):
                worklist.wait_for(self.cluster, key, obstacle)
        worklist.call_held(self.cluster)  # their reserved slots are free again

    def _next(self) -> tuple[BucketKey, JobCursor] | None:
        """First bucket in scheduling order, with its cursor on its first job; None if there is none."""
        ranks = self.worklist.blocked
        while True:
            if self.is_shared:
                self._choose_lane()
            share_queue, left, self.left = self.share_queue, self.left, None
            order = share_queue.order
            if share_queue.unblocked:
                if left is not None:
                    order.push(left)
                self._drop_vain_wakes(share_queue)
                if share_queue.unblocked and (not order or ranks.rank(share_queue.unblocked.first) < order.first[:4]):
                    found = self._take_woken(share_queue)
                    if found is not None:
                        return found
                    continue
                if not order and share_queue is not self.worklist.plain:
                    continue
                if not order:
                    return None
                turn = order.pop()
            elif left is not None:
                turn = order.push_pop(left)
            elif order:
                turn = order.pop()
            else:
                return None
            found = self._begin(turn)
            if found is not None:
                return found

    def _choose_lane(self) -> None:
        """Select the share queue to serve; the common one if no account has an earlier candidate."""
        if self.left is not None:
            self.share_queue.order.push(self.left)
            self.left = None
        blocked = self.worklist.blocked
        if self.is_anything_woken and not any(self.room.slots(row) > 0 for row in self.worklist.grown):
            self._drop_all_wakes()
        self.share_queue = self.worklist.plain
        self._drop_vain_wakes(self.share_queue)
        first = self.share_queue.first(blocked)
        for selector in self.worklist.contests.values():
            share_queue = selector.winner()
            if share_queue is not None and share_queue.first(blocked) < first:
                self.share_queue, first = share_queue, share_queue.first(blocked)

    def _drop_all_wakes(self) -> None:
        """Drop all unblocked candidates, which stay blocked: the freed hosts have no free slots left."""
        self.is_anything_woken = False
        self.worklist.plain.unblocked = NOBODY_WOKEN
        for share_queue in self.worklist.share_queues.values():
            share_queue.unblocked = NOBODY_WOKEN

    def _drop_vain_wakes(self, share_queue: ShareQueue) -> None:
        """Drop unblocked candidates that no longer fit any host with newly freed resources."""
        if share_queue.unblocked and not any(self.room.slots(row) > 0 for row in self.worklist.grown):
            share_queue.unblocked = NOBODY_WOKEN
        while share_queue.unblocked and not self._may_fit(share_queue.unblocked.first):
            share_queue.unblocked.pop()

    def _may_fit(self, place: int) -> bool:
        blocked, room = self.worklist.blocked, self.room
        need = blocked.need(place)
        if blocked.key(place) is None or need.slots_in_all > self.gate.slots_open:
            return False
        if not need.memory_mib and not need.gpus:
            return any(room.slots(row) >= need.slots for row in self.worklist.grown)
        grown = [room.free(row) for row in self.worklist.grown]
        return any(
            free.slots >= need.slots and free.memory_mib >= need.memory_mib and free.gpus.bit_count() >= need.gpus
            for free in grown
        )

    def _take_woken(self, share_queue: ShareQueue) -> tuple[BucketKey, JobCursor] | None:
        key = self.worklist.blocked.key(share_queue.unblocked.pop())
        bucket = self.cluster.pending.buckets.get(key) if key is not None else None
        if key is None or bucket is None:
            if key is not None:
                self.worklist.blocked.discard(key)
            return None
        self.worklist.blocked.discard(key)
        self.worklist.limited.discard(key)
        self.worklist.reservation_table.held.discard(key)
        self.worklist.due.add(key)
        found = self._begin_bucket(bucket)
        if found is not None and is_single_host(key.request) and not self.gate.is_checked(key):
            self.room.narrow(key.request, self.worklist.grown)
        return found

    def _begin(self, turn: Turn) -> tuple[BucketKey, JobCursor] | None:
        """Due bucket of this entry with its cursor; None if the entry is outdated or the bucket was served."""
        key = turn[4]
        cursor = self.begun.get(key) or self._taken_over(key)
        if cursor is not None:
            return (key, cursor) if cursor.rank == turn[:4] and key in self.worklist.due else None
        if key in self.worklist.reached:
            return self._resume(key)
        bucket = self.worklist.due_bucket(self.cluster, turn)
        return self._begin_bucket(bucket) if bucket is not None else None

    def _taken_over(self, key: BucketKey) -> JobCursor | None:
        """Take over the cursor of a bucket from the single-task fast path."""
        cursor = self.straight.cursor(key)
        if cursor is not None and cursor.advance():
            self.begun[key] = cursor
            return cursor
        return None

    def _resume(self, key: BucketKey) -> tuple[BucketKey, JobCursor] | None:
        """Resume a blocked bucket whose first jobs got reservations in an earlier slice, at the job after them."""
        reached = self.worklist.reached.pop(key)
        bucket = self.cluster.pending.buckets.get(key)
        if bucket is None or key not in self.worklist.due:
            return None
        cursor = self.begun[key] = JobCursor(self.worklist.ranking, bucket)
        self.refused.add(key)
        while cursor.advance():
            if cursor.place >= reached:
                return key, cursor
        self.worklist.due.discard(key)
        return None

    def _begin_bucket(self, bucket: Bucket) -> tuple[BucketKey, JobCursor] | None:
        if bucket.key in self.begun:  # entered twice: its cursor is under way
            return None
        cursor = self.begun[bucket.key] = JobCursor(self.worklist.ranking, bucket)
        if self.worklist.limited.called:
            self._call_limited(bucket.key)
        if not cursor.advance():
            self.worklist.due.discard(bucket.key)
            return None
        return bucket.key, cursor

    def _call_limited(self, key: BucketKey) -> None:
        """Release the next waiter of the share queue, as this bucket waited for the same limit and is served now."""
        counter = self.worklist.limited.called.pop(key, None)
        if counter is not None:
            self.worklist.call_limited(self.cluster, counter, self.worklist.lane_of(key))

    def _serve(self, key: BucketKey, cursor: JobCursor) -> None:
        """Start jobs of one bucket until another goes first, one does not fit, or it is empty."""
        limit = self._next_rank()
        room, gate, account = self.room, self.gate, self.share_queue.account
        while True:
            room.work += WORK_OF_A_START
            allocation = gate.place(cursor)
            if gate.is_upset and self.worklist.call_held_behind(self.cluster, cursor.rank, self.refused):
                self.worklist.note_due(self.cluster)
                limit = self._next_rank()
            if gate.is_paused:
                self.left = (*cursor.rank, key)
                self.is_cut = True
                return
            if allocation is None:
                if self._takes(key) and self._takes_over(key, cursor):
                    return
                if not self._goes_on(key, cursor):
                    return
            else:
                self.starts.append(Start(cursor.job, cursor.index, allocation, gate.reason))
                if self.worklist.barred:
                    self.worklist.call_next(self.cluster, key.queue)
                    limit = self._next_rank()
                if account is not None:
                    self.worklist.ranking.take(account, slots_of(allocation), cursor.run_limit_s)
                    limit = _ITS_TURN_IS_OVER
                if not cursor.advance():
                    self.worklist.due.discard(key)
                    return
            if cursor.rank > limit or room.work >= self.steps:
                self.left = (*cursor.rank, key)
                return

    def _takes(self, key: BucketKey) -> bool:
        is_taker = key.queue in self.cluster.preemption_rules.takers or key.reservation
        return bool(is_taker) and self.gate.refusal is Refusal.NO_ROOM

    def _takes_over(self, key: BucketKey, cursor: JobCursor) -> bool:
        """Try preemption, in a slice that has decided nothing else; True if the bucket is served by it."""
        takers = self.worklist.takers
        while (outcome := self._attempted(cursor)) is PreemptOutcome.WAITING:
            if not cursor.advance():
                self.worklist.set_aside(key, Refusal.NO_ROOM, cursor.rank)
                self.worklist.vain.add(key)
                self.worklist.due.discard(key)
                return True
        if outcome is PreemptOutcome.NOTHING:
            return False
        self.left = (*cursor.rank, key)
        self.is_cut = True
        self.found, takers.found = takers.found, None
        return True

    def _attempted(self, cursor: JobCursor) -> PreemptOutcome:
        takers = self.worklist.takers
        is_new = cursor.key not in takers.waiting and not takers.is_being_cleared(self.cluster, cursor)
        if self.starts and is_new:
            return PreemptOutcome.FOUND  # provisional: the next slice searches for victims
        return self.worklist.takers.attempt(self.cluster, cursor, self.now, self.pool_users, self.gate.keeps_slots)

    def _next_rank(self) -> First:
        """Rank of the first job of all other buckets."""
        share_queue, blocked = self.share_queue, self.worklist.blocked
        first = share_queue.first(blocked)
        if self.worklist.contests and share_queue.account is None:
            winners = [selector.winner() for selector in self.worklist.contests.values()]
            first = min([first, *(one.first(blocked) for one in winners if one is not None)])
        return first

    def _goes_on(self, key: BucketKey, cursor: JobCursor) -> bool:
        """Defer a refused bucket; True if its next job is to be tried as well, for a reservation only."""
        if key not in self.refused:
            self.refused.add(key)
            self.worklist.set_aside(key, self.gate.refusal, cursor.rank, self.gate.counter)
            self.worklist.vain.add(key)
            if self.gate.refusal is Refusal.NO_ROOM:
                self.straight.note_refused(key)
        if self.gate.refusal not in _OF_CONSTRAINTS and self.gate.wants_more(key) and cursor.advance():
            return True
        self.worklist.due.discard(key)
        return False


def plan_slice(cluster: ClusterView, changes: Changes, worklist: Worklist, steps: int, now: float) -> Plan:
    """Plan the next slice, at a cost of about ``steps`` hosts examined, from the changes since the last one."""
    worklist.gather(cluster, changes, now)
    turns = easy.turns_of(cluster, worklist)
    if turns:
        return easy.EasyPass(cluster, worklist, steps, now).run(turns)
    if turns is not None:
        worklist.clear_lanes()
        worklist.end_slice(is_complete=True)
        return _NOTHING
    if worklist.list_some(cluster, steps):
        return Starts((), False, steps)
    ahead = worklist.takers.ahead(cluster, now)
    if ahead is not None:
        return ahead
    if worklist.reservation_table.enter_some(cluster, steps):
        return Starts((), False, steps)
    unblocked = worklist.blocked.woken_by(cluster.table, worklist.grown, worklist.vain, bool(worklist.share_queues))
    if not any(unblocked.values()) and not worklist.has_due:
        worklist.end_slice(is_complete=True)
        return (
            worklist.takers.behind(cluster, now)
            or worklist.elastic_growth.behind(cluster, worklist.reservation_table, now)
            or _NOTHING
        )
    return _Slice(cluster, worklist, unblocked, steps, now).run()
