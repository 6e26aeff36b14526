"""Scheduling order: queue priority, then the account (with fairshare), then job priority, then the queue's own order.

Accounts are selected in ``fairshare``; the rest is here. Under APS_PRIORITY the absolute priority takes the place of
the job priority, and accounts are no level of their own: the share of a user is part of the value.

A queue's order is that of submission, or by slowdown: the job goes first whose expected slowdown, (wait + run limit)
over run limit, is largest, so that short jobs wait for a short time and long ones for a long time. That is highest
response ratio next (Brinch Hansen, "An analysis of response ratio scheduling", IFIP Congress 1971) with run limits as
run times; in backfilling it is known as largest expansion factor first (Srinivasan et al., "Selective reservation
strategies for backfill job scheduling", JSSPP 2002). The wait of jobs put off by it is bounded: once the job submitted
first has waited longer than the whole cluster would need to clear the queue, with a margin, it goes before all others.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from lavad.core.cluster_view import ClusterView
from lavad.core.model import JobState
from lavad.core.model.demand import Demand
from lavad.core.model.priorities.job_order import JobOrder
from lavad.core.model.rules.queues import Queue
from lavad.core.model.tuples import new as _new
from lavad.core.scheduling.queueing.eligibility import obstacle
from lavad.core.state.fairshare import Account, Tree
from lavad.core.state.pending import BucketKey, PendingEntry
from lavad.core.state.records import place_of

UNKNOWN_RUN_S = 86_400  # assumed run time of jobs without a run limit
PATIENCE = 1.2  # longest wait, in multiples of the time the cluster needs for the queue's pending work
PATIENCE_S_MIN = 3600.0
_FIRST = float("-inf")
_UNKNOWN = 2**62  # not the priority of any queue
_AHEAD = 1 << 24  # larger than any difference of queue priorities

# Of a job's wait and run limit in seconds; smaller first.
SCORES: Mapping[JobOrder, Callable[[float, float], float]] = {
    JobOrder.SLOWDOWN: lambda wait_s, run_s: -(wait_s + run_s) / run_s,
}


class Rank(NamedTuple):
    """Order of a pending job, smaller first. Queues of equal priority, or of one group, are served together."""

    queue: int
    job_priority: float
    position: float
    job: int


QueueEntry = tuple[int, float, float, int, BucketKey]  # a rank and its bucket; flat, for fast comparison in heaps


class Adviser(Protocol):
    """Policy that lets jobs go before all others, regardless of their queues."""

    def is_owed(self, demand: Demand) -> bool:
        """True if the job goes before all others: what is released for it must not be given to them first."""


class Ranking:
    """Ranks under one policy, at successive moments."""

    def __init__(self, cluster: ClusterView, now: float, adviser: Adviser | None = None) -> None:
        self.cluster = cluster
        self._adviser = adviser
        self.now = now
        self._queues = cluster.policy.by_name
        self._promoted: dict[str, int] = {}  # by queue, the job that has waited too long, or 0
        self._trees = cluster.shares.trees
        self.absolute = cluster.absolute.rules
        self._priorities: dict[Account, float] = {}
        self.steady: dict[str, int | None] = {}  # by queue, results of ``steady_queue``
        self._taken: dict[Account, list[int]] = {}  # slots and committed slot-seconds of starts decided since

    def renew(self, now: float, adviser: Adviser | None) -> None:
        """Set the present time, and discard everything that depends on time or on starts since."""
        self.now = now
        if adviser is not self._adviser:
            self._adviser = adviser
            self.steady.clear()
        self._promoted.clear()
        self._priorities.clear()
        self._taken.clear()

    @property
    def is_advised(self) -> bool:
        """True if starts change which jobs of a bucket go before all others."""
        return self._adviser is not None

    def steady_queue(self, key: BucketKey) -> int | None:
        """Queue part of the bucket's ranks, if the rest follows from its entries alone and time changes nothing.

        None: each rank has to be computed.
        """
        if key.deadline:
            return None
        name = key.queue
        found = self.steady.get(name, _UNKNOWN)
        if found == _UNKNOWN:
            queue = self._queues.get(name)
            is_steady = queue is not None and queue.starts_jobs and not queue.has_windows
            is_steady = is_steady and queue is not None and not queue.order.is_scored
            is_alone = name not in self._trees and self._adviser is None
            found = self.steady[name] = -queue.served_at if queue is not None and is_steady and is_alone else None
        return found

    def of(self, key: BucketKey, entry: PendingEntry) -> Rank | None:
        """Rank of a bucket's entry; None if its queue does not start jobs."""
        steady = self.steady_queue(key)
        if steady is not None and not key.reservation:
            return _new(Rank, (steady, *entry))
        queue = self._queues.get(key.queue)
        if queue is None or not queue.starts_jobs or self._is_kept_back(queue, key):
            return None
        if self._trees and queue.name in self._trees and self.account_of(key) is None:
            return None  # the user's share was removed after the submission
        place = self._score(queue, key, entry) if queue.order.is_scored else entry.position
        rank = Rank(-queue.served_at, entry.rank, place, entry.job)
        is_owed = self._adviser is not None and self._adviser.is_owed(key.demand)
        return rank._replace(queue=rank.queue - _AHEAD) if is_owed else rank

    def _is_kept_back(self, queue: Queue, key: BucketKey) -> bool:
        if not key.deadline and not queue.has_windows and not key.reservation:
            return False
        if key.reservation and not self.cluster.reserved.holds(self.cluster, key.reservation, self.now):
            return True
        return obstacle(self.cluster, queue, key.run_limit_s, key.deadline, self.now) is not None

    # -- fairshare ---------------------------------------------------------------------------------------------------

    def tree_of(self, key: BucketKey) -> Tree | None:
        """Share tree by which accounts of the bucket's queue compete; None without fairshare, and where an absolute
        priority orders the jobs that leaves the shares out."""
        tree = self._trees.get(key.queue)
        rule = self.absolute.get(key.queue) if tree is not None and self.absolute else None
        return tree if rule is None or rule.has_share else None

    def account_of(self, key: BucketKey) -> Account | None:
        """Account to which the bucket's jobs are charged."""
        return self.cluster.shares.account_of(key.queue, key.kind.user, key.kind.user_group)

    def priority(self, tree: Tree, account: Account) -> float:
        """Dynamic priority of the account, with the starts decided since."""
        found = self._priorities.get(account)
        if found is None:
            slots, committed_s = self._taken.get(account, (0, 0))
            found = self._priorities[account] = tree.priority(account, self.now, slots, committed_s)
        return found

    def take(self, account: Account, slots: int, run_limit_s: int) -> None:
        """Charge a start to the account."""
        for one in account.chain():
            taken = self._taken.setdefault(one, [0, 0])
            taken[0] += slots
            taken[1] += slots * run_limit_s
            self._priorities.pop(one, None)

    def is_reordered(self, queue: Queue) -> bool:
        """True if reservations must be remade in each pass, because the order of the queue changes with time."""
        is_shared = queue.name in self._trees and (queue.backfill_depth > 0 or queue.in_order)
        return is_shared or queue.order.is_scored

    # -- by a score --------------------------------------------------------------------------------------------------

    def _score(self, queue: Queue, key: BucketKey, entry: PendingEntry) -> float:
        """Place of the job in the order of its queue, smaller first; the one that is overdue has the first."""
        promoted = self._promoted.get(queue.name)
        if promoted is None:
            promoted = self._promoted[queue.name] = self._overdue(queue)
        if entry.job == promoted:
            return _FIRST
        return SCORES[queue.order](self._wait_s(entry), key.run_limit_s or UNKNOWN_RUN_S)

    def _wait_s(self, entry: PendingEntry) -> float:
        return self.now - self.cluster.jobs[place_of(entry.job)[0]].submitted_at

    def _overdue(self, queue: Queue) -> int:
        """Job of the queue that was submitted first, if it has waited too long; else 0."""
        buckets = self.cluster.pending.buckets
        heads = (bucket.head() for key, bucket in buckets.items() if key.queue == queue.name)
        oldest = max(heads, key=lambda entry: (self._wait_s(entry), -entry.job), default=None)
        if oldest is None or self._wait_s(oldest) <= PATIENCE_S_MIN:
            return 0
        work_slot_s = self.cluster.counters.work_by_queue[queue.name, JobState.PEND]
        patience_s = PATIENCE * work_slot_s / max(1, self.cluster.table.slots_usable())
        return oldest.job if self._wait_s(oldest) > patience_s else 0
