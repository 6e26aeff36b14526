"""Scheduling pass, from its first stage to its last.

A pass takes the jobs in order and starts what may start. It runs in slices: each slice ends in one plan, which is
applied before the next command, and the worklist carries the rest over to the next slice. ``STAGES`` are the stages of
a slice; the first that has a plan ends it. The stage of most plans is ``_Starts``:

    candidates in order -> eligible -> allowance -> placement -> reservation and backfill -> start, or wait for a change

A pass costs buckets plus starts, not jobs, and examines only buckets that are new, or whose minimum need fits a host
with freed resources. ``look_at_everything`` makes it examine all of them, and must lead to the same starts (a property
test). ``cycle.md`` beside this file is a flow chart of a pass.
"""

from dataclasses import replace
from typing import NamedTuple

from lavad.core.cluster_view import ClusterView
from lavad.core.model import Allocation
from lavad.core.model.allocation import slots_of
from lavad.core.plan import Plan, Preempt, ReserveSlots, Start, Starts
from lavad.core.scheduling.backfill.gate import BackfillGate
from lavad.core.scheduling.budget import WORK_OF_A_START
from lavad.core.scheduling.candidates import Candidates
from lavad.core.scheduling.capacity.constraint import Refusal
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.fast import easy
from lavad.core.scheduling.fast.single_task import SingleTaskStarts
from lavad.core.scheduling.preemption.preempt import PreemptOutcome
from lavad.core.scheduling.queueing.blocked_columns import UnblockedBuckets
from lavad.core.scheduling.queueing.cursor import JobCursor
from lavad.core.scheduling.queueing.fairshare import First
from lavad.core.scheduling.worklist import Worklist
from lavad.core.state.changes import Changes
from lavad.core.state.pending import BucketKey

_ITS_TURN_IS_OVER: First = (float("-inf"),)
_OF_CONSTRAINTS = frozenset({Refusal.LIMITED, Refusal.LIMITED_THERE, Refusal.FORBIDDEN})
_NOTHING = Starts()


class _Slice(NamedTuple):
    """Input of each stage; ``steps`` is the work budget, in hosts examined."""

    cluster: ClusterView
    worklist: Worklist
    steps: int
    now: float


def plan_slice(cluster: ClusterView, changes: Changes, worklist: Worklist, steps: int, now: float) -> Plan:
    """Plan the next slice, at a cost of about ``steps`` hosts examined, from the changes since the last one."""
    worklist.gather(cluster, changes, now)
    one = _Slice(cluster, worklist, steps, now)
    for stage in STAGES:
        plan = stage(one)
        if plan is not None:
            return plan
    return _NOTHING


# -- stages, in order --------------------------------------------------------------------------------------------------


def _replace_lost_hosts(one: _Slice) -> Plan | None:
    """Give other hosts to a running job that has lost some, and holds the rest meanwhile."""
    return one.worklist.lost_hosts.ahead(one.cluster, one.now)


def _place_owed_tasks(one: _Slice) -> Plan | None:
    """Grow running jobs by tasks that have yet to run."""
    return one.worklist.elastic_growth.ahead(one.cluster, one.worklist.reservation_table, one.now)


def _backfill_slots_only(one: _Slice) -> Plan | None:
    """Take the fast path of EASY backfilling, where it applies; it then replaces all other stages."""
    entries = easy.entries_of(one.cluster, one.worklist)
    if entries is None:
        return None
    if entries:
        return easy.EasyPass(one.cluster, one.worklist, one.steps, one.now).run(entries)
    one.worklist.clear_share_queues()
    one.worklist.end_slice(is_complete=True)
    return _NOTHING


def _rank_new_buckets(one: _Slice) -> Plan | None:
    """Enter due buckets in scheduling order; while some are left, nothing may start."""
    return Starts((), False, one.steps) if one.worklist.list_some(one.cluster, one.steps) else None


def _start_preemptors(one: _Slice) -> Plan | None:
    """Start jobs whose claimed resources have been released, and drop void claims."""
    return one.worklist.preemptor.ahead(one.cluster, one.now)


def _predict_ends(one: _Slice) -> Plan | None:
    """Enter expected ends that reservations need; while some are left, nothing may start."""
    return Starts((), False, one.steps) if one.worklist.reservation_table.enter_some(one.cluster, one.steps) else None


def _start_candidates(one: _Slice) -> Plan | None:
    """Start pending jobs, or preempt for one; None if there is no candidate."""
    cluster, worklist = one.cluster, one.worklist
    unblocked = worklist.blocked.unblocked_by(
        cluster.table, worklist.freed_hosts, worklist.tried, bool(worklist.share_queues)
    )
    if any(unblocked.values()) or worklist.has_due:
        return _Starts(one, unblocked).run()
    worklist.end_slice(is_complete=True)
    return None


def _resume_suspended(one: _Slice) -> Plan | None:
    """Resume preempted jobs in resources that no pending job takes."""
    return one.worklist.preemptor.behind(one.cluster, one.now)


def _grow_elastic(one: _Slice) -> Plan | None:
    """Grow running elastic jobs into resources that no other job takes."""
    work = one.worklist
    return work.elastic_growth.behind(one.cluster, work.reservation_table, work.blocked, one.now)


STAGES = (
    _replace_lost_hosts,
    _place_owed_tasks,
    _backfill_slots_only,
    _rank_new_buckets,
    _start_preemptors,
    _predict_ends,
    _start_candidates,
    _resume_suspended,
    _grow_elastic,
)


class _Starts:
    """Stage of pending jobs: serves candidates in order, until there is none or the work budget is spent."""

    def __init__(self, one: _Slice, unblocked: dict[int, UnblockedBuckets]) -> None:
        self.cluster, self.worklist, self.steps, self.now = one
        worklist = one.worklist
        self.room = FreeResources(one.cluster.table)
        self.starts: list[Start] = []
        self.gate = BackfillGate(
            worklist.ranking,
            worklist.reservation_table,
            worklist.blocked,
            self.room,
            worklist.allowance,
            self.starts,
        )
        self.single_tasks = SingleTaskStarts(one.cluster, worklist, self.room, self.gate, self.starts)
        self.candidates = Candidates(one.cluster, worklist, unblocked, self.room, self.gate, self.single_tasks)
        self.limit: First = _ITS_TURN_IS_OVER  # rank of the first job of all other buckets
        self.is_cut = False  # the plan must be applied before anything else is decided
        self.found: Preempt | ReserveSlots | None = None  # for a blocked job, in a slice without starts

    def run(self) -> Plan:
        """Serve candidates and return the plan."""
        while not self._is_over():
            self.candidates.start_single_tasks(self.steps)
            candidate = self.candidates.next()
            if candidate is None:
                break
            self._serve(*candidate)
        self.gate.close()
        if self.gate.limited:
            self._put_limited_aside()
        is_complete = self.candidates.close()
        self.worklist.is_under_way = not is_complete
        if self.found is not None:
            return replace(self.found, steps=self.room.work)
        return Starts(tuple(self.starts), is_complete, self.room.work, self.cluster.version)

    def _is_over(self) -> bool:
        return self.is_cut or self.room.work >= self.steps or self.gate.waits_for_ends(self.steps)

    def _serve(self, key: BucketKey, cursor: JobCursor) -> None:
        """Serve jobs of one bucket until another goes first, one has to wait, or it is empty."""
        self.limit = self.candidates.next_rank()
        while self._serve_first(key, cursor):
            if cursor.rank > self.limit or self.room.work >= self.steps:
                self.candidates.put_back(key, cursor)
                return

    def _serve_first(self, key: BucketKey, cursor: JobCursor) -> bool:
        """Let one job start or wait; True if the next job of its bucket may be served."""
        self.room.work += WORK_OF_A_START
        allocation = self.gate.place(cursor)
        if self.gate.is_upset and self.worklist.requeue_deferred_behind(
            self.cluster, cursor.rank, self.candidates.refused
        ):
            self.worklist.note_due(self.cluster)
            self.limit = self.candidates.next_rank()
        if self.gate.is_paused:
            self._cut(key, cursor)
            return False
        if allocation is not None:
            return self._start(key, cursor, allocation)
        return not (self._may_preempt(key) and self._preempts(key, cursor)) and self._goes_on(key, cursor)

    def _start(self, key: BucketKey, cursor: JobCursor, allocation: Allocation) -> bool:
        """Start the job; True if its bucket has another one."""
        self.starts.append(Start(cursor.job, cursor.index, allocation, self.gate.reason))
        if self.worklist.behind_heads:
            self.worklist.requeue_next(self.cluster, key.queue)
            self.limit = self.candidates.next_rank()
        account = self.candidates.share_queue.account
        if account is not None:
            self.worklist.ranking.take(account, slots_of(allocation), cursor.run_limit_s)
            self.limit = _ITS_TURN_IS_OVER
        if cursor.advance():
            return True
        self.worklist.due.discard(key)
        return False

    def _cut(self, key: BucketKey, cursor: JobCursor) -> None:
        """End the slice; this job is the next candidate."""
        self.candidates.put_back(key, cursor)
        self.is_cut = True

    # -- a job that has to wait ----------------------------------------------------------------------------------------

    def _goes_on(self, key: BucketKey, cursor: JobCursor) -> bool:
        """Defer a refused bucket; True if its next job is to be tried as well, for a reservation only."""
        if key not in self.candidates.refused:
            self.candidates.refused.add(key)
            self.worklist.set_aside(key, self.gate.refusal, cursor.rank, self.gate.counter)
            self.worklist.tried.add(key)
            if self.gate.refusal is Refusal.NO_ROOM:
                self.single_tasks.note_refused(key)
        if self.gate.refusal not in _OF_CONSTRAINTS and self.gate.wants_more(key) and cursor.advance():
            return True
        self.worklist.due.discard(key)
        return False

    def _may_preempt(self, key: BucketKey) -> bool:
        """True if jobs of this bucket may preempt others, or reserve slots, for want of resources."""
        may_preempt = key.queue in self.cluster.preemption_rules.preemptors or key.reservation
        return bool(may_preempt) and self.gate.refusal is Refusal.NO_ROOM

    def _preempts(self, key: BucketKey, cursor: JobCursor) -> bool:
        """Try preemption, in a slice that has decided nothing else; True if the bucket is served by it."""
        preemptor = self.worklist.preemptor
        while (outcome := self._attempted(cursor)) is PreemptOutcome.WAITING:
            if not cursor.advance():
                self.worklist.set_aside(key, Refusal.NO_ROOM, cursor.rank)
                self.worklist.tried.add(key)
                self.worklist.due.discard(key)
                return True
        if outcome is PreemptOutcome.NOTHING:
            return False
        self._cut(key, cursor)
        self.found, preemptor.found = preemptor.found, None
        return True

    def _attempted(self, cursor: JobCursor) -> PreemptOutcome:
        preemptor = self.worklist.preemptor
        is_new = cursor.key not in preemptor.waiting and not preemptor.is_being_cleared(self.cluster, cursor)
        if self.starts and is_new:
            return PreemptOutcome.FOUND  # provisional: the next slice searches for victims
        return preemptor.attempt(self.cluster, cursor, self.now, self.worklist.pool_users, self.gate.keeps_slots)

    def _put_limited_aside(self) -> None:
        """Let buckets whose reservation a constraint forbids wait for that instead of resources."""
        worklist = self.worklist
        for key, obstacle in self.gate.limited:
            if key not in worklist.due and (key in worklist.blocked or key in worklist.reservation_table.deferred):
                worklist.wait_for(self.cluster, key, obstacle)
        worklist.requeue_deferred(self.cluster)  # their reserved slots are free again
