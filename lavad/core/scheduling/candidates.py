"""Candidates of one slice in scheduling order, wherever they come from.

There are two sources: due buckets of the worklist, and blocked buckets that a freed host might fit. With fairshare each
account has both for itself, and accounts compete first. A bucket that has begun stays due with the rank of its next
job, so that the next slice finds it there.
"""

from lavad.core.cluster_view import ClusterView
from lavad.core.scheduling.backfill.gate import BackfillGate
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.fast.single_task import SingleTaskStarts
from lavad.core.scheduling.placement.place import is_single_host
from lavad.core.scheduling.queueing.blocked_columns import NONE_UNBLOCKED, UnblockedBuckets
from lavad.core.scheduling.queueing.cursor import JobCursor
from lavad.core.scheduling.queueing.fairshare import First, ShareQueue
from lavad.core.scheduling.queueing.ordering import QueueEntry
from lavad.core.scheduling.worklist import Worklist
from lavad.core.state.pending import Bucket, BucketKey

Candidate = tuple[BucketKey, JobCursor]  # a bucket, with its cursor on its next job


class Candidates:
    """Candidates of a slice, with a cursor for each bucket begun.

    ``share_queue`` is the one served now, ``left`` the entry of its bucket served last, not pushed back yet.
    ``refused`` are the buckets refused in this slice.
    """

    def __init__(
        self,
        cluster: ClusterView,
        worklist: Worklist,
        unblocked: dict[int, UnblockedBuckets],
        room: FreeResources,
        gate: BackfillGate,
        single_tasks: SingleTaskStarts,
    ) -> None:
        self.cluster = cluster
        self.worklist = worklist
        self.room = room
        self.gate = gate
        self.single_tasks = single_tasks
        self.share_queue = worklist.plain
        self.left: QueueEntry | None = None
        self.begun: dict[BucketKey, JobCursor] = {}
        self.refused: set[BucketKey] = set()
        self.is_shared = bool(worklist.share_queues)
        self._distribute(unblocked)

    def _distribute(self, unblocked: dict[int, UnblockedBuckets]) -> None:
        """Distribute unblocked buckets to their share queues, and enter share queues with candidates for selection."""
        worklist = self.worklist
        self.is_any_unblocked = bool(unblocked)
        worklist.plain.unblocked = unblocked.get(0, NONE_UNBLOCKED)
        for share_queue in worklist.share_queues.values():
            share_queue.unblocked = unblocked.get(share_queue.number, NONE_UNBLOCKED)
            if share_queue.order or share_queue.unblocked:
                worklist.selector_of(share_queue).enter(share_queue)

    @property
    def has_unblocked(self) -> bool:
        """True if an unblocked bucket has not been examined yet."""
        share_queues = self.worklist.share_queues.values()
        return bool(self.worklist.plain.unblocked) or (
            self.is_shared and any(share_queue.unblocked for share_queue in share_queues)
        )

    def start_single_tasks(self, steps: int) -> None:
        """Let the fast path start jobs of single tasks, where it applies; the bucket it served last comes next."""
        if self.single_tasks.may_run:
            self.left = self.single_tasks.run(self.left, self.begun, steps)

    def next(self) -> Candidate | None:
        """First bucket in scheduling order, with its cursor on its first job; None if there is none."""
        while True:
            if self.is_shared:
                self._choose_share_queue()
            share_queue, order = self.share_queue, self.share_queue.order
            left, self.left = self.left, None
            if share_queue.unblocked:
                if left is not None:
                    order.push(left)
                self._drop_useless_unblocked(share_queue)
                if self._is_unblocked_first(share_queue):
                    found = self._take_unblocked(share_queue)
                elif order:
                    found = self._begin(order.pop())
                elif share_queue is self.worklist.plain:
                    return None
                else:
                    continue
            elif left is not None:
                found = self._begin(order.push_pop(left))
            elif order:
                found = self._begin(order.pop())
            else:
                return None
            if found is not None:
                return found

    def _is_unblocked_first(self, share_queue: ShareQueue) -> bool:
        """True if an unblocked bucket goes before all due ones of the share queue."""
        unblocked, order = share_queue.unblocked, share_queue.order
        if not unblocked:
            return False
        return not order or self.worklist.blocked.rank(unblocked.first) < order.first[:4]

    def _choose_share_queue(self) -> None:
        """Select the share queue to serve; the common one if no account has an earlier candidate."""
        if self.left is not None:
            self.share_queue.order.push(self.left)
            self.left = None
        blocked = self.worklist.blocked
        if self.is_any_unblocked and not any(self.room.slots(row) > 0 for row in self.worklist.freed_hosts):
            self._drop_all_unblocked()
        self.share_queue = self.worklist.plain
        self._drop_useless_unblocked(self.share_queue)
        first = self.share_queue.first(blocked)
        for selector in self.worklist.selectors.values():
            share_queue = selector.winner()
            if share_queue is not None and (place := share_queue.place(blocked)) < first:
                self.share_queue, first = share_queue, place

    def _drop_all_unblocked(self) -> None:
        """Drop all unblocked candidates, which stay blocked: the freed hosts have no free slots left."""
        self.is_any_unblocked = False
        self.worklist.plain.unblocked = NONE_UNBLOCKED
        for share_queue in self.worklist.share_queues.values():
            share_queue.unblocked = NONE_UNBLOCKED

    def _drop_useless_unblocked(self, share_queue: ShareQueue) -> None:
        """Drop unblocked candidates that no longer fit any host with newly freed resources."""
        if share_queue.unblocked and not any(self.room.slots(row) > 0 for row in self.worklist.freed_hosts):
            share_queue.unblocked = NONE_UNBLOCKED
        while share_queue.unblocked and not self._may_fit(share_queue.unblocked.first):
            share_queue.unblocked.pop()

    def _may_fit(self, place: int) -> bool:
        blocked, room = self.worklist.blocked, self.room
        need = blocked.need(place)
        if blocked.key(place) is None or need.slots_in_all > self.gate.slots_open:
            return False
        if not need.memory_mib and not need.gpus:
            return any(room.slots(row) >= need.slots for row in self.worklist.freed_hosts)
        freed_hosts = [room.free(row) for row in self.worklist.freed_hosts]
        return any(
            free.slots >= need.slots and free.memory_mib >= need.memory_mib and free.gpus.bit_count() >= need.gpus
            for free in freed_hosts
        )

    def _take_unblocked(self, share_queue: ShareQueue) -> Candidate | None:
        key = self.worklist.blocked.key(share_queue.unblocked.pop())
        bucket = self.cluster.pending.buckets.get(key) if key is not None else None
        if key is None or bucket is None:
            if key is not None:
                self.worklist.blocked.discard(key)
            return None
        self.worklist.blocked.discard(key)
        self.worklist.limited.discard(key)
        self.worklist.reservation_table.deferred.discard(key)
        self.worklist.due.add(key)
        found = self._begin_bucket(bucket)
        if found is not None and is_single_host(key.request) and not self.gate.is_checked(key):
            self.room.narrow(key.request, self.worklist.freed_hosts)
        return found

    def _begin(self, entry: QueueEntry) -> Candidate | None:
        """Due bucket of this entry with its cursor; None if the entry is outdated or the bucket was served."""
        key = entry[4]
        cursor = self.begun.get(key) or self._taken_over(key)
        if cursor is not None:
            return (key, cursor) if cursor.rank == entry[:4] and key in self.worklist.due else None
        if key in self.worklist.reached:
            return self._resume(key)
        bucket = self.worklist.due_bucket(self.cluster, entry)
        return self._begin_bucket(bucket) if bucket is not None else None

    def _taken_over(self, key: BucketKey) -> JobCursor | None:
        """Take over the cursor of a bucket from the single-task fast path."""
        cursor = self.single_tasks.cursor(key)
        if cursor is not None and cursor.advance():
            self.begun[key] = cursor
            return cursor
        return None

    def _resume(self, key: BucketKey) -> Candidate | None:
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

    def _begin_bucket(self, bucket: Bucket) -> Candidate | None:
        if bucket.key in self.begun:  # entered twice: its cursor is under way
            return None
        cursor = self.begun[bucket.key] = JobCursor(self.worklist.ranking, bucket)
        if self.worklist.limited.called:
            self._requeue_limited(bucket.key)
        if not cursor.advance():
            self.worklist.due.discard(bucket.key)
            return None
        return bucket.key, cursor

    def _requeue_limited(self, key: BucketKey) -> None:
        """Release the next waiter of the share queue, as this bucket waited for the same limit and is served now."""
        counter = self.worklist.limited.called.pop(key, None)
        if counter is not None:
            self.worklist.requeue_limited(self.cluster, counter, self.worklist.share_queue_of(key))

    def next_rank(self) -> First:
        """Rank of the first job of all other buckets."""
        share_queue, blocked = self.share_queue, self.worklist.blocked
        first = share_queue.first(blocked)
        if self.worklist.selectors and share_queue.account is None:
            winners = [selector.winner() for selector in self.worklist.selectors.values()]
            first = min([first, *(one.place(blocked) for one in winners if one is not None)])
        return first

    def put_back(self, key: BucketKey, cursor: JobCursor) -> None:
        """Keep a bucket due with its next job; it may be served again."""
        self.left = (*cursor.rank, key)

    def close(self) -> bool:
        """Hand all candidates that are left over to the next slice; True if there are none."""
        worklist = self.worklist
        if self.left is not None:
            self.share_queue.order.push(self.left)
        for key in self.refused & worklist.due:
            worklist.reached[key] = self.begun[key].place
        if not self.has_unblocked:
            worklist.freed_hosts.clear()
            worklist.tried.clear()
        return not (worklist.due or self.has_unblocked or worklist.is_unfinished(self.cluster))
