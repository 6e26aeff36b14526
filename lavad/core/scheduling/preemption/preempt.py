"""Preemption by pending jobs: attempts, their plans, and the resumption of suspended victims.

Suspended victims lend their resources: only jobs that may preempt them can use these, and a victim resumes as soon as
its resources are free of borrowers on all its hosts. Resources of requeued or shrunk victims are claimed: what they
release is kept until the claim is complete, and then the job starts. Without preemption rules nothing here is examined.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple

from lavad.core.cluster_view import ClusterView
from lavad.core.model import Allocation, JobState, Key
from lavad.core.model.demand import demand_of
from lavad.core.plan import DropClaim, DropClaims, Preempt, ReserveSlots, Resume, Shrink, Start, StartClaimed
from lavad.core.scheduling.capacity.constraint import Obstacle
from lavad.core.scheduling.capacity.constraints import allowance_of
from lavad.core.scheduling.capacity.pools import PoolUsers
from lavad.core.scheduling.preemption.lent_resources import UnclaimedResources, is_within_reach, shares_of
from lavad.core.scheduling.preemption.pool_entitlement import is_entitled_to, most_slots
from lavad.core.scheduling.preemption.pool_reclaim import LentByPools
from lavad.core.scheduling.preemption.reservation_suspend import is_needed, suspend_for_reservation
from lavad.core.scheduling.preemption.slot_reserve import may_save, save
from lavad.core.scheduling.preemption.victim import PreemptionMode, Victim, lends, lent_part
from lavad.core.scheduling.preemption.victim_search import VictimSet, clear
from lavad.core.scheduling.queueing.cursor import JobCursor
from lavad.core.scheduling.queueing.eligibility import obstacle
from lavad.core.state.attempts import Attempt
from lavad.core.state.changes import Changes
from lavad.core.state.pending import BucketKey
from lavad.core.state.preemptable import PreemptionSource
from lavad.core.state.records import ArrayRecord, Claim, Job

_NEVER = float("inf")


class PreemptOutcome(Enum):
    """Outcome of a preemption attempt."""

    FOUND = "a takeover is planned"
    WAITING = "the job's room is being cleared already"
    NOTHING = "nobody may be asked, or it would not help"


class Preemptor:
    """Blocked buckets that may preempt, and the rows with newly freed resources on which suspended jobs may resume."""

    def __init__(self) -> None:
        self.waiting: set[BucketKey] = set()
        self.retry_at = _NEVER  # end of the shortest PREEMPT_DELAY still running
        self.freed_hosts: set[int] = set()
        self.found: Preempt | ReserveSlots | None = None  # by the last attempt
        self._planned: tuple[Preempt | None, int] = (None, 0)  # the last plan, with the version of the preemptable jobs

    # -- changes -----------------------------------------------------------------------------------------------------

    def has_work(self, cluster: ClusterView, now: float) -> bool:
        """True if a resumption is still to be examined, or a preemption to be tried again by now."""
        return self.is_waiting(cluster) and (bool(self.freed_hosts) or self.retry_at <= now)

    def is_waiting(self, cluster: ClusterView) -> bool:
        """True if freed resources could allow a preemption, a start in cleared resources, or a resumption."""
        return bool(self.waiting or cluster.lenders or cluster.claims)

    def gather(self, cluster: ClusterView, changes: Changes, now: float) -> list[BucketKey]:
        """Take over changes of the cluster; return the buckets that should try again."""
        if cluster.lenders:
            self.freed_hosts |= changes.freed_hosts
        if not self.waiting or not (changes.may_free or self.retry_at <= now):
            return []
        again, self.waiting, self.retry_at = list(self.waiting), set(), _NEVER
        return again

    def look_at_everything(self, cluster: ClusterView) -> None:
        """Discard all results, so that everything is examined again."""
        self.waiting, self.retry_at = set(), _NEVER
        self.freed_hosts = {
            cluster.hosts[share.host].row for one in cluster.lenders.values() for share in one.allocation
        }

    # -- before all candidates ---------------------------------------------------------------------------------------

    def ahead(self, cluster: ClusterView, now: float) -> DropClaims | StartClaimed | None:
        """Plan to drop void claims, else to start the jobs whose claims are cleared; None if there are none."""
        if not cluster.claims:
            return None
        drops = tuple(
            DropClaim(one.job, one.index, why)
            for one in cluster.claims.values()
            if (why := why_void(cluster, one, now))
        )
        if drops:
            return DropClaims(drops)
        cleared = [one for one in cluster.claims.values() if not one.is_partial and is_cleared(cluster, one)]
        if allowance_of(cluster, now):
            cleared = cleared[:1]  # the next one is checked with this one's usage counted
        starts = tuple(Start(one.job, one.index, one.allocation, one.reason) for one in cleared)
        return StartClaimed(starts) if starts else None

    # -- after all candidates ----------------------------------------------------------------------------------------

    def behind(self, cluster: ClusterView, now: float) -> Resume | None:
        """Plan to resume suspended jobs whose resources are free again, by queue priority, then earliest start."""
        if not self.freed_hosts:
            return None
        freed_hosts, self.freed_hosts = self.freed_hosts, set()
        found: dict[Key, Job] = {}
        names = cluster.table.names
        for row in freed_hosts if cluster.lenders else ():
            host = cluster.hosts.get(names[row])  # None: removed since
            for key in host.attempts if host is not None else ():
                job = cluster.holder(key) if key in cluster.lenders else None
                if job is not None and job.state is JobState.SSUSP:
                    found[key] = job
        unclaimed = UnclaimedResources(cluster)
        in_order = sorted(found, key=lambda key: _resume_order(cluster, found[key]))
        resumes = tuple([key for key in in_order if fits_again(cluster, unclaimed, key, now)])
        return Resume(resumes) if resumes else None

    # -- for one candidate -------------------------------------------------------------------------------------------

    def attempt(
        self,
        cluster: ClusterView,
        cursor: JobCursor,
        now: float,
        pool_users: PoolUsers | None,
        keeps_slots: Callable[[JobCursor], bool],
    ) -> PreemptOutcome:
        """Preempt or gather free slots for a job that did not fit; ``found`` is the result.

        Args:
            keeps_slots: true if the job may keep free slots idle; called only in queues with SLOT_RESERVE.
        """
        key = cursor.key
        if self.is_being_cleared(cluster, cursor):
            return PreemptOutcome.WAITING
        if key.request.exclusive or key in self.waiting:
            return PreemptOutcome.NOTHING
        if key.reservation:
            clearing = suspend_for_reservation(cluster, cursor, now)
            words = _Words("suspending", f"suspended for advance reservation {key.reservation},", "")
            takeover = _takeover(cursor, clearing, words) if clearing is not None else None
        else:
            takeover = self._takeover_from_others(cluster, cursor, now, pool_users)
            if takeover is None and may_save(cluster, key):
                has_saved = (cursor.job, cursor.index) in cluster.claims
                if (has_saved or keeps_slots(cursor)) and self._save(cluster, cursor, now):
                    return PreemptOutcome.FOUND
        planned, self._planned = self._planned, (takeover, cluster.preemptable.version)
        if takeover is None or planned == self._planned:  # no victims, or the same plan was refused before
            self.waiting.add(key)
            return PreemptOutcome.NOTHING
        self.found = takeover
        return PreemptOutcome.FOUND

    def _takeover_from_others(
        self, cluster: ClusterView, cursor: JobCursor, now: float, pool_users: PoolUsers | None
    ) -> Preempt | None:
        found = self._preempt(cluster, cursor, now)
        if found is not None and _is_allowed(cluster, cursor, found, now):
            return found
        found = _reclaim(cluster, cursor, pool_users) if pool_users is not None else None
        return found if found is not None and _is_allowed(cluster, cursor, found, now) else None

    @staticmethod
    def is_being_cleared(cluster: ClusterView, cursor: JobCursor) -> bool:
        """True if victims are already clearing resources for the job."""
        claim = cluster.claims.get((cursor.job, cursor.index))
        return claim is not None and not claim.is_partial

    def _save(self, cluster: ClusterView, cursor: JobCursor, now: float) -> bool:
        """Gather free slots for the job, or start it in those it has; True if there is something to do."""
        found = save(cluster, cursor, now)
        if found is None:
            return False
        if isinstance(found, Start):
            claim = cluster.claims.get((cursor.job, cursor.index))
            given = claim.allocation if claim is not None else ()
            if _obstacle(cluster, cursor, found.allocation, given, now) is not None:
                return False
            self.found = Preempt(found)
        else:
            self.found = found
            self.waiting.add(cursor.key)
        return True

    def _preempt(self, cluster: ClusterView, cursor: JobCursor, now: float) -> Preempt | None:
        sources = cluster.preemption_rules.sources(cursor.key.queue)
        if not sources:
            return None
        due = self._may_from(cluster, cursor)
        if due > now:
            self.retry_at = min(self.retry_at, due)
            return None
        clearing = self._clear(cluster, cursor, sources, now)
        return _takeover(cursor, clearing, _PREEMPTING) if clearing is not None else None

    @staticmethod
    def _may_from(cluster: ClusterView, cursor: JobCursor) -> float:
        """Time from which the job may preempt (PREEMPT_DELAY)."""
        delay_s = cluster.policy.by_name[cursor.key.queue].preempt_delay_s
        delay_s = cluster.policy.preempt_delay_s if delay_s is None else delay_s
        return cluster.jobs[cursor.job].submitted_at + delay_s

    @staticmethod
    def _clear(
        cluster: ClusterView, cursor: JobCursor, sources: dict[str, PreemptionSource], now: float
    ) -> VictimSet | None:
        lenders = [key for key in cluster.lenders if _queue_of(cluster, key) in sources]
        lent = sum(cluster.lenders[key].slots for key in lenders)
        at_most = cluster.table.slots_open + lent + sum(cluster.preemptable.slots[name] for name in sources)
        if cursor.key.request.slots_min > at_most:
            return None
        elastic = to_be_shrunk(cluster, sources, now)
        return clear(cluster, cursor.key.request, lenders, candidates(cluster, sources, now), elastic=elastic)


def _is_allowed(cluster: ClusterView, cursor: JobCursor, plan: Preempt, now: float) -> bool:
    """True if all constraints allow the job its new resources; those that others release to it count as free."""
    leaving = (*plan.suspends, *plan.requeues, *cluster.lenders)
    given = tuple(share for key in leaving for share in shares_of(cluster, key))
    given += tuple(share for one in plan.shrinks for share in one.gives)
    return _obstacle(cluster, cursor, plan.start.allocation, given, now) is None


def _obstacle(
    cluster: ClusterView, cursor: JobCursor, allocation: Allocation, given: Allocation, now: float
) -> Obstacle | None:
    """Return the first obstacle to the job on this allocation.

    Usage of its victims still counts with limits, and so do the claims of other jobs.
    """
    allowance = allowance_of(cluster, now)
    for (job, index), claim in cluster.claims.items():
        if (job, index) != (cursor.job, cursor.index) and not claim.is_partial:
            allowance.take_claim(demand_of(cluster.bearer(job, index).shared), claim.allocation)
    shared = cluster.bearer(cursor.job, cursor.index).shared
    return allowance.why(demand_of(shared)._replace(given=given), allocation)


def _queue_of(cluster: ClusterView, key: Key) -> str:
    return cluster.bearer(key.job, key.index).shared.queue


def _reclaim(cluster: ClusterView, cursor: JobCursor, pool_users: PoolUsers) -> Preempt | None:
    """Reclaim resources lent by the job's pool, if the job stays within the pool's own."""
    key = cursor.key
    demand = key.demand
    if not pool_users.is_owed(demand):
        return None
    number, lent = pool_users.number_of(demand), LentByPools(cluster)
    clearing = clear(
        cluster,
        key.request,
        (),
        lent.borrowers(number),
        lent.leave_enough(number),
        lent.elastic(number),
        most_slots(cluster, number),
    )
    if clearing is None or not is_entitled_to(cluster, number, clearing):
        return None
    for_pool = f"reclaimed for pool {cluster.pools.pools[number].name} by"
    return _takeover(cursor, clearing, _Words("reclaiming", for_pool, for_pool))


class _Words(NamedTuple):
    """Log words: why the job starts, why victims are requeued or suspended, and why victims shrink."""

    verb: str
    taken: str
    shrunk: str


_PREEMPTING = _Words("preempting", "preempted by", "to make room for")


def _takeover(cursor: JobCursor, clearing: VictimSet, words: _Words) -> Preempt:
    name = f"job {cursor.job}[{cursor.index}]" if cursor.index else f"job {cursor.job}"
    return Preempt(
        Start(cursor.job, cursor.index, clearing.allocation, _why(clearing, words.verb)),
        tuple(one.key for one in clearing.victims if one.way is PreemptionMode.SUSPEND),
        tuple(one.key for one in clearing.victims if one.way is PreemptionMode.REQUEUE),
        f"{words.taken} {name}",
        tuple(
            Shrink(one.key, one.gives, f"{words.shrunk} {name}")
            for one in clearing.victims
            if one.way is PreemptionMode.SHRINK
        ),
    )


def _why(clearing: VictimSet, verb: str) -> str:
    shrunk = [f"job {_name(one.key)}" for one in clearing.victims if one.way is PreemptionMode.SHRINK]
    others = [f"job {_name(one.key)}" for one in clearing.victims if one.way is not PreemptionMode.SHRINK]
    parts = [f"{doing} {', '.join(names)}" for doing, names in ((verb, others), ("shrinking", shrunk)) if names]
    return ", ".join(parts) or "in room that others leave or lend"


def _name(key: Key) -> str:
    return f"{key.job}[{key.index}]" if key.index else str(key.job)


def candidates(cluster: ClusterView, sources: dict[str, PreemptionSource], now: float) -> Iterator[Victim]:
    """Victims in LSF's order: queues by preference, then the shortest run time first."""
    lent = lends(cluster)
    for source in sources.values():
        for key in cluster.preemptable.newest_first(source.queue):
            attempt = cluster.attempts[key]
            if not may_be_preempted(cluster, attempt, now):
                continue
            shares = shares_of(cluster, key)
            gives = shares if source.requeues else tuple(lent_part(share, lent) for share in shares)
            yield Victim(key, PreemptionMode.REQUEUE if source.requeues else PreemptionMode.SUSPEND, gives)


def to_be_shrunk(cluster: ClusterView, sources: dict[str, PreemptionSource], now: float) -> list[Key]:
    """Elastic jobs of these queues, in the same order. Past preemptions do not count: the job keeps running."""
    rank = {name: number for number, name in enumerate(sources)}
    found = []
    for key, attempt in cluster.resizable.items():
        queue = _queue_of(cluster, key)
        if queue in sources and key in cluster.preemptable and may_be_asked(cluster, attempt, now):
            found.append((-rank[queue], attempt.started_at, key))
    return [key for _, _, key in sorted(found, reverse=True)]


def may_be_preempted(cluster: ClusterView, attempt: Attempt, now: float) -> bool:
    """True if the job itself may be preempted, MAX_JOB_PREEMPT included."""
    most = cluster.policy.preemptions_max
    if most and attempt.preemptions + attempt.key.attempt - 1 >= most:
        return False
    return may_be_asked(cluster, attempt, now)


def may_be_asked(cluster: ClusterView, attempt: Attempt, now: float) -> bool:
    """True if the attempt is not exclusive, not protected by its run or finish time, and on hosts that all respond."""
    policy = cluster.policy
    run_s = now - attempt.started_at
    if attempt.takes_whole_hosts or (policy.no_preempt_run_s and run_s >= policy.no_preempt_run_s):
        return False
    limit_s = cluster.bearer(attempt.key.job, attempt.key.index).shared.run_limit_s
    if policy.no_preempt_finish_s and limit_s and limit_s - run_s <= policy.no_preempt_finish_s:
        return False
    return is_within_reach(cluster, attempt)


def is_cleared(cluster: ClusterView, claim: Claim) -> bool:
    """True if all resources of a claim are free, after those of earlier claims."""
    return UnclaimedResources(cluster, before=claim).holds(claim.allocation)


def why_void(cluster: ClusterView, claim: Claim, now: float) -> str:
    """Reason why a claim cannot lead to a start any more; empty if it can."""
    if not may_start(cluster, claim.job, claim.index):
        return "the job no longer waits"
    for share in claim.allocation:
        if not cluster.table.is_open(cluster.hosts[share.host].row):
            return f"{share.host} takes no jobs any more"
    return "" if claim.is_partial else _why_not_now(cluster, claim, now)


def _why_not_now(cluster: ClusterView, claim: Claim, now: float) -> str:
    """Reason why the job could not start there now: its queue, its deadline, or a limit reached since; else empty."""
    shared = cluster.bearer(claim.job, claim.index).shared
    kept_back = obstacle(cluster, cluster.policy.queue(shared.queue), shared.run_limit_s, shared.terminate_at, now)
    if kept_back is not None:
        return "its queue or its deadline keeps it from being started now"
    demand = demand_of(shared)._replace(given=claim.allocation)
    found = allowance_of(cluster, now).why(demand, claim.allocation)
    if found is None:
        return ""
    is_limit = found.counter is not None
    return f"{'a limit has' if is_limit else 'what others may have has'} been reached since its room was claimed"


def may_start(cluster: ClusterView, job: int, index: int) -> bool:
    """True if the job or element is pending and its array allows another start."""
    record = cluster.jobs.get(job)
    if isinstance(record, ArrayRecord):
        return record.has_startable(index)
    return record is not None and not index and record.may_start


def fits_again(cluster: ClusterView, unclaimed: UnclaimedResources, key: Key, now: float) -> bool:
    """True if the resources lent by a suspended job are free on all its hosts; ``unclaimed`` then has them no more."""
    lends = cluster.attempts[key].lends
    wanted = tuple(lent_part(share, lends) for share in shares_of(cluster, key))
    if not unclaimed.holds(wanted):
        return False
    if cluster.reserved and is_needed(cluster, unclaimed, key, wanted, now):
        return False
    unclaimed.take(wanted)
    return True


def _resume_order(cluster: ClusterView, job: Job) -> tuple[int, float, Key]:
    queue = cluster.policy.queue(job.shared.queue)
    assert job.attempt is not None, f"{job.key} is suspended without an attempt"
    return -(queue.priority if queue else 0), job.attempt.started_at, job.key
