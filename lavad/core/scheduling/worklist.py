"""Worklist: the scheduler's state between slices and passes, with the buckets to examine next.

Buckets return to it when what they wait for may have come: free resources, a limit whose usage has fallen, a void
reservation, or the head of a queue in strict order.
"""

import heapq
from collections.abc import Container, Set
from typing import TYPE_CHECKING

from lavad.core.cluster_view import ClusterView
from lavad.core.model.windows import next_change
from lavad.core.scheduling.backfill.reservations import ReservationTable
from lavad.core.scheduling.budget import WORK_OF_LISTING
from lavad.core.scheduling.capacity.allowance import NO_CONSTRAINTS
from lavad.core.scheduling.capacity.constraint import Obstacle, Refusal
from lavad.core.scheduling.capacity.constraints import allowance_of
from lavad.core.scheduling.capacity.headroom import Headroom
from lavad.core.scheduling.capacity.pools import PoolUsers
from lavad.core.scheduling.elastic import ElasticGrowth
from lavad.core.scheduling.placement.place import MinimumNeed, smallest_need
from lavad.core.scheduling.preemption.preempt import Preemptor
from lavad.core.scheduling.queueing.blocked import BlockedBuckets
from lavad.core.scheduling.queueing.due_queue import DueQueue
from lavad.core.scheduling.queueing.fairshare import AbsoluteSelector, FairshareSelector, Selector, ShareQueue
from lavad.core.scheduling.queueing.limit_waiters import LimitWaiters
from lavad.core.scheduling.queueing.ordering import QueueEntry, Rank, Ranking
from lavad.core.scheduling.queueing.refused_sizes import RefusedSizes, TaskSize
from lavad.core.scheduling.replacement import LostHosts
from lavad.core.state.changes import Changes
from lavad.core.state.limits import Counter
from lavad.core.state.pending import Bucket, BucketKey
from lavad.core.state.records import place_of

if TYPE_CHECKING:
    from lavad.core.model import Request
    from lavad.core.model.policy import Policy
    from lavad.core.state.fairshare import Account, Tree

_NEEDS_KEPT = 10_000


class Worklist:
    """State of the scheduler between slices and passes: due buckets, and blocked or deferred ones.

    ``plain`` is the share queue of all buckets without fairshare, ``share_queues`` are those of the accounts.
    ``freed_hosts`` are the rows of hosts with which not all blocked buckets have been compared yet, ``tried`` the
    buckets already tried on them: otherwise each slice would begin with the same ones. ``behind_heads`` are heaps of
    buckets that wait for the head of their queue under strict order; ``limited`` are those that wait for a limit.
    ``is_under_way``: the pass began in an earlier slice.
    """

    def __init__(self) -> None:
        self.due: set[BucketKey] = set()
        self._unlisted: list[BucketKey] = []  # to be added after a full rescan, newest first
        self._unnoted: set[BucketKey] = set()  # due ones in no share queue: the fast path needs none
        self.plain = ShareQueue(0)
        self.share_queues: dict[tuple[Account, int], ShareQueue] = {}
        self.selectors: dict[tuple[Tree, int], Selector] = {}  # of the slice under way
        self.freed_hosts: set[int] = set()
        self.tried: set[BucketKey] = set()
        self.refused_sizes = RefusedSizes()
        self.behind_heads: dict[str, list[tuple[Rank, BucketKey]]] = {}
        self.limited = LimitWaiters()
        self.blocked = BlockedBuckets()
        self.reservation_table = ReservationTable()
        self.preemptor = Preemptor()
        self.delays: list[tuple[float, BucketKey]] = []  # time at which another alternative of a blocked bucket applies
        self.elastic_growth = ElasticGrowth()
        self.lost_hosts = LostHosts()
        self.is_under_way = False
        self.easy_ranks: dict[str, int] | None = None  # by queue, if the policy allows the fast path ``easy``; else {}
        self.reached: dict[BucketKey, tuple[Rank, int]] = {}  # blocked ones with more jobs to get reservations
        self.allowance = NO_CONSTRAINTS  # of this slice
        self._reserved_version = 0
        self._windows_change_at = 0.0
        self._needs: dict[TaskSize | Request, MinimumNeed] = {}
        self._reordered: set[str] = set()  # queues with reservations whose order changes with time
        self.ranking: Ranking
        self.policy: Policy | None = None  # under which this state was computed

    def gather(self, cluster: ClusterView, changes: Changes, now: float) -> None:
        """Take over the changes of the cluster since the last call; a new policy marks everything due."""
        changed_buckets = changes.changed_buckets
        if self._is_outdated(cluster):
            self.look_at_everything(cluster, now)
            changed_buckets = frozenset()
        self.allowance = allowance_of(cluster, now)
        self.selectors = {}
        self.ranking.renew(now, self.pool_users)
        self.freed_hosts |= changes.freed_hosts
        if changes.freed_hosts:
            self.tried.clear()
            self.refused_sizes.clear()
        if cluster.limits or cluster.budgets or changes.relaxed_limits:  # the last limit of a job group may be gone
            self._gather_limited(cluster, changes.relaxed_limits, now)
        for key in changed_buckets:
            self._add_fresh(cluster, key)
        if cluster.resizable or cluster.replacing:
            self.elastic_growth.gather(changes, now)
        if cluster.replacing:
            self.lost_hosts.gather(changes, now)
        if self.preemptor.waiting or cluster.lenders:
            for key in self.preemptor.gather(cluster, changes, now):
                self._add(cluster, key)
        if changes.changed_values:
            for key in self.blocked.watching(changes.changed_values):
                self._add(cluster, key)
        while self.delays and self.delays[0][0] <= now:
            self._add(cluster, heapq.heappop(self.delays)[1])
        self._gather_reservations(cluster, changes, now)

    def _is_outdated(self, cluster: ClusterView) -> bool:
        """True if another policy or advance reservation invalidates all results."""
        return cluster.policy is not self.policy or cluster.reserved.version != self._reserved_version

    def _gather_limited(self, cluster: ClusterView, relaxed_limits: Set[Counter], now: float) -> None:
        """Release the first waiters of limits whose usage has fallen; mark all due if a time window has changed, or if
        a budget's period has begun."""
        limits = cluster.limits
        if (limits.windows or cluster.budgets) and now >= self._windows_change_at:
            change_at = min(next_change(limits.windows, limits.zone, now), cluster.budgets.turns_at(now))
            is_known, self._windows_change_at = bool(self._windows_change_at), change_at
            if is_known:
                self.look_at_everything(cluster, now)
        for counter in relaxed_limits:
            for share_queue in self.limited.fall(counter):
                self.requeue_limited(cluster, counter, share_queue)

    def requeue_limited(self, cluster: ClusterView, counter: Counter, share_queue: ShareQueue) -> None:
        """Release the next waiter for this limit in this share queue, if enough may be left for it."""
        headroom = self.allowance.part(Headroom)
        left = headroom.left(counter) if headroom is not None else float("inf")
        while (key := self.limited.pop(counter, share_queue, left)) is not None:
            if key in cluster.pending.buckets and key not in self.due:
                self._add(cluster, key)
                self.limited.call(key, counter)
                return

    def _gather_reservations(self, cluster: ClusterView, changes: Changes, now: float) -> None:
        """Requeue deferred buckets if resources were freed or reservations may have changed."""
        reservation_table, has_room = self.reservation_table, bool(changes.freed_hosts)
        is_other = reservation_table.host_reservations.look_again(cluster, changes, reservation_table.ends, now)
        is_other = is_other or bool(changes.closed_hosts)
        is_other = is_other or reservation_table.are_moved(cluster, changes.changed_attempts)
        reservation_table.note(changes.changed_attempts)
        is_less = reservation_table.drop_departed(cluster, changes.shrunk_buckets)
        if self.allowance and reservation_table.reservations:
            is_less = self._drop_limited(cluster) or is_less
        if reservation_table.deferred:
            is_later = not self.is_under_way and reservation_table.has_overdue(cluster, now)
            if is_less or is_later or is_other:
                self.requeue_deferred(cluster)
            elif has_room:
                self.requeue_deferred(cluster, by_slots=True)
        if is_less:
            for queue in self.behind_heads:
                self.requeue_next(cluster, queue)
        is_new = bool(self.due) and not self.is_under_way
        if self._reordered and (has_room or is_less or is_new) and cluster.table.slots_open:
            self._gather_reordered(cluster)

    def requeue_deferred(self, cluster: ClusterView, by_slots: bool = False) -> None:
        """Requeue deferred buckets; with ``by_slots`` only those not blocked on hosts."""
        for key in [key for key in self.reservation_table.deferred if not (by_slots and key in self.blocked)]:
            self._add(cluster, key)

    def requeue_deferred_behind(self, cluster: ClusterView, rank: Rank, asked: Container[BucketKey]) -> bool:
        """Requeue deferred buckets behind this rank that were not ``asked`` in this slice; True if there are any."""
        buckets, found = cluster.pending.buckets, []
        for key in self.reservation_table.deferred:
            bucket = buckets.get(key) if key not in asked else None
            own = self.ranking.of(key, bucket.head()) if bucket is not None else None
            if own is not None and (own > rank or self.ranking.tree_of(key) is not None):
                found.append(key)
        for key in found:
            self._add(cluster, key)
        return bool(found)

    def note_due(self, cluster: ClusterView) -> None:
        """Enter all due buckets in their share queues, for a slice on the plain path."""
        while self._unnoted:
            self._enter(cluster, self._unnoted.pop())

    def _drop_limited(self, cluster: ClusterView) -> bool:
        """Drop reservations of jobs that a constraint forbids by now; True if there were any."""
        kept = []
        for one in self.reservation_table.reservations:
            obstacle = self.allowance.why(one.key.demand)
            if obstacle is None:
                kept.append(one)
            elif one.key in self.blocked or one.key in self.reservation_table.deferred:
                self.wait_for(cluster, one.key, obstacle)
        is_less = len(kept) < len(self.reservation_table.reservations)
        self.reservation_table.write(kept, self.reservation_table.full)
        return is_less

    @property
    def pool_users(self) -> PoolUsers | None:
        """Use of capacity pools in this slice; None where there are no pools."""
        return self.allowance.part(PoolUsers)

    def wait_for(self, cluster: ClusterView, key: BucketKey, obstacle: Obstacle) -> None:
        """Let a blocked or deferred bucket wait for the end of an obstacle instead."""
        self.blocked.discard(key)
        self.reservation_table.deferred.discard(key)
        bucket = cluster.pending.buckets.get(key)
        rank = self.ranking.of(key, bucket.head()) if bucket is not None else None
        if rank is not None:
            self.set_aside(key, obstacle.refusal, rank, obstacle.counter)

    def _gather_reordered(self, cluster: ClusterView) -> None:
        """Mark all buckets due in queues with reservations whose ranks change with time."""
        names = self._reordered
        self.reservation_table.write(
            [one for one in self.reservation_table.reservations if one.key.queue not in names],
            self.reservation_table.full - names,
        )
        for key in [key for key in cluster.pending.buckets if key.queue in names]:
            self._add(cluster, key)

    def share_queue_of(self, key: BucketKey) -> ShareQueue:
        """Share queue of the bucket."""
        tree = self.ranking.tree_of(key)
        account = self.ranking.account_of(key) if tree is not None else None
        if tree is None or account is None:
            return self.plain
        priority = self.ranking.cluster.policy.by_name[key.queue].served_at
        share_queue = self.share_queues.get((account, priority))
        if share_queue is None:
            share_queue = self.share_queues[account, priority] = ShareQueue(
                len(self.share_queues) + 1, tree, account, priority, self.ranking.absolute.get(key.queue)
            )
        return share_queue

    def set_aside(self, key: BucketKey, refusal: Refusal, rank: Rank, counter: Counter | None = None) -> None:
        """Defer the bucket by the reason for which its first job was refused."""
        if refusal is Refusal.RESERVED:
            self.reservation_table.deferred.add(key)
        elif refusal is Refusal.RESERVED_THERE:
            self.reservation_table.deferred.add(key)
            self._block(key, rank)
        elif refusal is Refusal.FORBIDDEN:
            self.preemptor.waiting.add(key)
        elif refusal is Refusal.NO_ROOM:
            self._block(key, rank)
        elif counter is not None and refusal in (Refusal.LIMITED, Refusal.LIMITED_THERE):
            self.limited.add(counter, self.share_queue_of(key), rank, key)
            if refusal is Refusal.LIMITED_THERE:
                self.blocked.add(key, self.need_of(key), rank, self.share_queue_of(key).number)
        else:
            heapq.heappush(self.behind_heads.setdefault(key.queue, []), (rank, key))

    def _block(self, key: BucketKey, rank: Rank) -> None:
        """Block the bucket until hosts are freed, or until a delayed alternative applies."""
        self._note_delays(key, rank)
        self.blocked.add(key, self.need_of(key), rank, self.share_queue_of(key).number)

    def _note_delays(self, key: BucketKey, rank: Rank) -> None:
        for one in key.request.alternatives:
            submitted_at = self.ranking.cluster.jobs[place_of(rank.job)[0]].submitted_at
            if submitted_at + one.delay_s > self.ranking.now:
                heapq.heappush(self.delays, (submitted_at + one.delay_s, key))

    def need_of(self, key: BucketKey) -> MinimumNeed:
        """Minimum need of the bucket's jobs; requests of one task size share it."""
        need = self._needs.get(key.task_size or key.request)
        if need is None:
            if len(self._needs) >= _NEEDS_KEPT:
                self._needs.clear()
            need = self._needs[key.task_size or key.request] = smallest_need(key.request)
        return need

    def requeue_next(self, cluster: ClusterView, queue: str) -> None:
        """Requeue the next bucket of a queue in strict order, as its head has started or left."""
        waiting = self.behind_heads.get(queue)
        while waiting:
            _, key = heapq.heappop(waiting)
            if key in cluster.pending.buckets and key not in self.due:
                self._add(cluster, key)
                return

    def _add_fresh(self, cluster: ClusterView, key: BucketKey) -> None:
        """Add a new or changed bucket; block it at once if it requests more slots than are free."""
        if key.request.slots_min > cluster.table.slots_open and key in cluster.pending.buckets and key not in self.due:
            rank = self.ranking.of(key, cluster.pending.buckets[key].head())
            queue = cluster.policy.by_name[key.queue]
            is_behind = queue.name in self._reordered or (
                rank is not None and self.reservation_table.is_behind(queue, rank)
            )
            may_take = key.queue in cluster.preemption_rules.preemptors or key.reservation
            if rank is not None and is_behind and not may_take:
                self.reservation_table.deferred.discard(key)
                self.limited.discard(key)
                self.blocked.add(key, self.need_of(key), rank, self.share_queue_of(key).number)
                return
        self._add(cluster, key)

    def _add(self, cluster: ClusterView, key: BucketKey) -> None:
        """Make the bucket due, unless its queue starts no jobs."""
        self.blocked.discard(key)
        self.reservation_table.deferred.discard(key)
        if self.reached:
            self.reached.pop(key, None)
        if self.easy_ranks:  # then no bucket waits for a limit, and ranks may never be needed
            self.due.add(key)
            self._unnoted.add(key)
            return
        self.limited.discard(key)
        self._enter(cluster, key)

    def _enter(self, cluster: ClusterView, key: BucketKey) -> None:
        """Make the bucket due and enter it in its share queue."""
        bucket = cluster.pending.buckets.get(key)
        rank = self.ranking.of(key, bucket.head()) if bucket is not None else None
        if rank is not None:
            self.due.add(key)
            self._note(rank, key)
        else:
            self.due.discard(key)

    def _note(self, rank: Rank, key: BucketKey) -> None:
        """Enter the due bucket in its share queue with this rank."""
        share_queue = self.share_queue_of(key)
        share_queue.order.push((*rank, key))
        if self.selectors and share_queue is not self.plain:
            self.selector_of(share_queue).enter(share_queue)

    def selector_of(self, share_queue: ShareQueue) -> Selector:
        """Selection in which the share queue takes part in this slice."""
        assert share_queue.tree is not None
        selector = self.selectors.get((share_queue.tree, share_queue.priority))
        if selector is None:
            kind = FairshareSelector if share_queue.absolute is None else AbsoluteSelector
            selector = kind(self.ranking, share_queue.tree, self.blocked)
            self.selectors[share_queue.tree, share_queue.priority] = selector
        return selector

    def look_at_everything(self, cluster: ClusterView, now: float = 0.0) -> None:
        """Mark every bucket due, and discard all results. ``now`` hardly matters: ranks are checked later."""
        self.policy = cluster.policy
        self._reserved_version = cluster.reserved.version
        self.due, self.behind_heads, self.limited = set(), {}, LimitWaiters()
        self.plain, self.share_queues, self.selectors = ShareQueue(0), {}, {}
        self.blocked, self.reservation_table = BlockedBuckets(), ReservationTable()
        self.refused_sizes.clear()
        self.preemptor.look_at_everything(cluster)
        self.is_under_way, self.reached = False, {}
        self.easy_ranks = None
        self.ranking = Ranking(cluster, now)
        self._reordered = {queue.name for queue in cluster.policy.queues if self.ranking.is_reordered(queue)}
        self._unlisted, self._unnoted = list(cluster.pending.buckets)[::-1], set()

    def list_some(self, cluster: ClusterView, steps: int) -> bool:
        """Enter due buckets in their share queues; True if some are left for the next slice.

        No job may start before all are entered, because the order is not known before.
        """
        for _ in range(max(1, steps // WORK_OF_LISTING)):
            if self._unlisted:
                self._list_next(cluster)
            elif self._unnoted:
                self._enter(cluster, self._unnoted.pop())
            else:
                return False
        return bool(self._unlisted or self._unnoted)

    def due_at_once(self, cluster: ClusterView, most: int) -> set[BucketKey] | None:
        """All due buckets, entered in their share queues or not; None if there are more than ``most``."""
        if len(self._unlisted) + len(self.due) > most:
            return None
        while self._unlisted:
            self._list_next(cluster)
        return self.due

    def _list_next(self, cluster: ClusterView) -> None:
        key = self._unlisted.pop()
        if key not in self.due:
            self._add(cluster, key)

    def clear_share_queues(self) -> None:
        """Remove all due buckets from their share queues."""
        if self.plain.order:
            self.plain.order = DueQueue()
        self._unnoted = set(self.due)

    def due_bucket(self, cluster: ClusterView, entry: QueueEntry) -> Bucket | None:
        """Bucket of an entry popped from its share queue; None if outdated: then it is entered again if due."""
        key = entry[4]
        if key not in self.due:
            return None  # entered twice and served already
        bucket = cluster.pending.buckets.get(key)
        if bucket is not None and entry[1:4] == bucket.head():  # its rank has not changed
            return bucket
        rank = self.ranking.of(key, bucket.head()) if bucket is not None else None
        if bucket is None or rank is None:
            self.due.discard(key)
        elif rank == entry[:4]:
            return bucket
        else:
            self._note(rank, key)
        return None

    def end_slice(self, is_complete: bool) -> None:
        """End a slice; if complete, all blocked buckets have been compared with all freed hosts."""
        self.is_under_way = not is_complete
        if is_complete:
            self.freed_hosts.clear()
            self.tried.clear()

    def is_unfinished(self, cluster: ClusterView) -> bool:
        """True if resumption or growth is still to be examined after all buckets."""
        return bool(self.preemptor.freed_hosts or self.elastic_growth.is_unfinished(cluster))

    def has_work(self, cluster: ClusterView, now: float) -> bool:
        """True if the worklist waits for one of the cluster's changes, or has work of its own."""
        return self._has_own_work(cluster, now) or self._awaits(cluster, cluster.changes)

    def _has_own_work(self, cluster: ClusterView, now: float) -> bool:
        """True if something is left to examine, or due by now."""
        return bool(
            self.due
            or self._unlisted
            or self._is_outdated(cluster)
            or (self.freed_hosts and self._may_use_room(cluster))
            or (self.delays and self.delays[0][0] <= now)
            or self.preemptor.has_work(cluster, now)
            or self.elastic_growth.has_work(cluster, now)
            or self.lost_hosts.has_work(cluster, now)
            or ((cluster.limits.windows or cluster.budgets) and self._windows_change_at <= now)
            or (self.reservation_table.deferred and self.reservation_table.has_overdue(cluster, now))
        )

    def _awaits(self, cluster: ClusterView, changes: Changes) -> bool:
        """True if one of these changes matters. A pass after any change would examine nothing more, but cost time."""
        table = self.reservation_table
        return bool(
            changes.changed_buckets
            or changes.changed_values
            or (changes.freed_hosts and self._may_use_room(cluster))
            or (changes.closed_hosts and table.deferred)
            or (changes.relaxed_limits and self.limited)
            or (changes.may_free and (self.preemptor.is_waiting(cluster) or cluster.resizable or cluster.replacing))
            or table.concerns(changes.shrunk_buckets)
            or table.are_moved(cluster, changes.changed_attempts)
        )

    def _may_use_room(self, cluster: ClusterView) -> bool:
        """True if a deferred bucket, or a blocked one by its slots, may use freed resources."""
        return bool(self.reservation_table.deferred) or self.blocked.may_fit(cluster.table.slots_open)

    @property
    def has_due(self) -> bool:
        """True if a share queue has a due bucket."""
        return bool(self.plain.order) or any(share_queue.order for share_queue in self.share_queues.values())
