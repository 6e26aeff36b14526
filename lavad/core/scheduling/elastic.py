"""Elastic growth: running jobs grow into free resources that no pending job waits for. So do jobs that have used their
spares.

Growth is examined when a pass has nothing else to do and resources have become free. Jobs grow in the order in which
they would start, each as far as it may and fits. It costs O(running resizable jobs + blocked buckets). While a pending
job holds a reservation no job grows: free resources may be reserved for it. While a pending job of the same queue, or a
more urgent one, waits for room that the cluster has, the free resources are its own as they come together, so that a
growth never delays it. A job with tasks that have yet to run is no elastic one: it grows before the pending jobs of its
queue, which would have to wait for it if it had found room for all at the start.
"""

import heapq
from collections.abc import Iterator
from dataclasses import replace
from math import inf

from lavad.core.apply.resize import lacks_spares, may_change, resizable_role
from lavad.core.cluster_view import ClusterView
from lavad.core.language.requirements.parsed import wants_of
from lavad.core.language.requirements.parts import sizes_of
from lavad.core.model import Allocation, HostShare, JobState, Key, Request, RoleRequest
from lavad.core.model.allocation import is_divisible, tasks_of
from lavad.core.model.demand import Demand, demand_of
from lavad.core.plan import Grow, Resize
from lavad.core.scheduling.backfill.reservations import ReservationTable
from lavad.core.scheduling.capacity.allowance import NO_CONSTRAINTS, Allowance
from lavad.core.scheduling.capacity.constraints import allowance_of
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.placement.feasibility import choices_on_usable
from lavad.core.scheduling.placement.growth import further_tasks
from lavad.core.scheduling.placement.place import share_of
from lavad.core.scheduling.placement.span import TaskDistributor, live_rows
from lavad.core.scheduling.placement.within_limits import CappedResources
from lavad.core.scheduling.queueing.blocked import BlockedBuckets
from lavad.core.state.attempts import Attempt
from lavad.core.state.changes import Changes
from lavad.core.state.tasks import JobTasks

Sizes = tuple[int, ...]  # number of tasks of each role

_NEVER = float("inf")
_REASON = "into idle room"
_LOOK_AGAIN_S = 2.0  # after pending jobs kept one from growing: they may be killed, which frees nothing
_LOOKED_AT = 32  # pending jobs that wait for room and might not be able to run at all
NOT_FIRST = 1  # a role number above 0: amounts per job were taken with the first host


class ElasticGrowth:
    """Retry state of elastic growth between passes."""

    def __init__(self) -> None:
        self.is_due = True
        self.is_owed_due = True
        self.retry_at = _NEVER  # end of the shortest delay after a failed growth

    def has_work(self, cluster: ClusterView, now: float) -> bool:
        """True if growth is still to be examined, or to be tried again by now."""
        return _may_any_grow(cluster) and (self.is_due or self.is_owed_due or self.retry_at <= now)

    def is_unfinished(self, cluster: ClusterView) -> bool:
        """True if growth is still to be examined after all buckets."""
        return self.is_due and _may_any_grow(cluster)

    def gather(self, changes: Changes, now: float) -> None:
        """Take over changes of the cluster."""
        if changes.may_free or self.retry_at <= now:
            self.is_due = self.is_owed_due = True

    def ahead(self, cluster: ClusterView, reservation_table: ReservationTable, now: float) -> Resize | None:
        """Plan of the growths for tasks that have yet to run, before pending jobs of the same queue; None if there are
        none."""
        if not self.is_owed_due:
            return None
        self.is_owed_due = False
        if not any(map(_owes, cluster.resizable.values())) or reservation_table.reservations:
            return None
        pending = {key.queue for key, bucket in cluster.pending.buckets.items() if bucket}
        first = max((_served_at(cluster, queue) for queue in pending), default=-inf)
        owing = [one for one in self._candidates(cluster, now) if _owes(one[0])]
        return self._plan(cluster, [one for one in owing if -_order(cluster, one[0].key)[0] >= first], now)

    def behind(
        self, cluster: ClusterView, reservation_table: ReservationTable, blocked: BlockedBuckets, now: float
    ) -> Resize | None:
        """Plan of the growths that fit; None if no job can grow. ``blocked`` are the jobs that wait for room."""
        if not self.is_due:
            return None
        self.is_due, self.retry_at = False, _NEVER
        if not _may_any_grow(cluster) or not cluster.table.slots_open or reservation_table.reservations:
            return None
        return self._plan(cluster, list(self._behind_pending(cluster, blocked, now)), now)

    def _plan(self, cluster: ClusterView, candidates: list[tuple[Attempt, Sizes]], now: float) -> Resize | None:
        allowance = allowance_of(cluster, now) if candidates else NO_CONSTRAINTS
        if allowance:
            return self._behind_others(cluster, candidates, allowance, now)
        room, grows = FreeResources(cluster.table), []
        for attempt, more in candidates:
            additions = _additions(cluster, room, attempt, more)
            if additions:
                grows.append(Grow(attempt.key, additions, _REASON))
        return Resize(grows=tuple(grows)) if grows else None

    def _behind_pending(
        self, cluster: ClusterView, blocked: BlockedBuckets, now: float
    ) -> Iterator[tuple[Attempt, Sizes]]:
        """Candidates that go before all pending jobs that wait for room."""
        waiting: float | None = None
        for attempt, more in self._candidates(cluster, now):
            if waiting is None:
                waiting = most_urgent_waiting(cluster, blocked)
            if -_order(cluster, attempt.key)[0] > waiting:
                yield attempt, more
            else:
                self.retry_at = min(self.retry_at, now + _LOOK_AGAIN_S)

    @staticmethod
    def _behind_others(
        cluster: ClusterView, candidates: list[tuple[Attempt, Sizes]], allowance: Allowance, now: float
    ) -> Resize | None:
        """Plan the growth of one job under constraints, halved until it is allowed."""
        for attempt, more in candidates:
            demand = _demand_of(cluster, attempt, now)
            while any(more):
                additions = _additions(cluster, _room_for(cluster, allowance, demand), attempt, more)
                if additions and allowance.why(demand, additions) is None:
                    return Resize(grows=(Grow(attempt.key, additions, _REASON),))
                more = _half(more) if additions else ()
        return None

    def _candidates(self, cluster: ClusterView, now: float) -> Iterator[tuple[Attempt, Sizes]]:
        """Attempts that may grow now, with the number of tasks of each role; by queue priority, then oldest job."""
        short = {
            key: attempt
            for key, attempt in cluster.replacing.items()
            if lacks_spares(attempt, cluster.jobs[key.job].shared.request)
        }
        found = {**cluster.resizable, **short} if short else cluster.resizable
        for key in sorted(found, key=lambda key: _order(cluster, key)):
            attempt = found[key]
            more = wanted(cluster, attempt)
            if not any(more):
                continue
            if attempt.resizing.retry_at > now:
                self.retry_at = min(self.retry_at, attempt.resizing.retry_at)
            else:
                yield attempt, more


def _owes(attempt: Attempt) -> bool:
    tasks = attempt.tasks
    return tasks is not None and any(tasks.owed(role) for role in range(len(tasks.sizes)))


def _served_at(cluster: ClusterView, queue: str) -> float:
    found = cluster.policy.queue(queue)
    return found.served_at if found is not None else -inf


def _may_any_grow(cluster: ClusterView) -> bool:
    return bool(cluster.resizable or cluster.replacing)


def most_urgent_waiting(cluster: ClusterView, blocked: BlockedBuckets) -> float:
    """Priority of the most urgent queue of which a job waits for room that usable hosts have; -inf if there is none.

    Others wait for something else than room.
    """
    priorities = {queue.name: queue.served_at for queue in cluster.policy.queues}
    pending = (key for key in blocked if cluster.pending.buckets.get(key))
    waiting = heapq.nlargest(_LOOKED_AT, pending, lambda key: priorities.get(key.queue, 0))
    for key in waiting:
        if choices_on_usable(cluster.table, key.request):
            return priorities.get(key.queue, 0)
    return -inf


def _demand_of(cluster: ClusterView, attempt: Attempt, now: float) -> Demand:
    """Demand of a running job until its run limit."""
    shared = cluster.jobs[attempt.key.job].shared
    left_s = max(1, round(attempt.started_at + shared.run_limit_s - now)) if shared.run_limit_s else 0
    return demand_of(shared)._replace(run_limit_s=left_s, attempt=attempt.key)


def _room_for(cluster: ClusterView, allowance: Allowance, demand: Demand) -> FreeResources:
    """Free resources as far as the job may have them."""
    room, ceilings = FreeResources(cluster.table), allowance.limit(demand).on_hosts
    return room if ceilings is None else CappedResources(room, ceilings)


def _order(cluster: ClusterView, key: Key) -> tuple[int, int]:
    queue = cluster.policy.queue(cluster.jobs[key.job].shared.queue)
    return -(queue.served_at if queue else 0), key.job


def _half(more: Sizes) -> Sizes:
    """Half as many tasks in all, of the first roles first."""
    left, found = sum(more) // 2, list[int]()
    for tasks in more:
        found.append(min(tasks, left))
        left -= found[-1]
    return tuple(found)


def wanted(cluster: ClusterView, attempt: Attempt) -> Sizes:
    """Number of tasks of each role by which an attempt would grow; none while it is being resized or does not run."""
    job = cluster.holder(attempt.key)
    if job is None or job.state is not JobState.RUN or not may_change(attempt):
        return ()
    if attempt.tasks is not None and attempt.tasks.replacement is not None:
        return ()  # it gets places for all tasks that it lacks, or none
    request, change = job.shared.request, attempt.resizing
    if request.is_of_tasks:
        sizes = sizes_of(attempt.allocation, len(request.roles))
        most = change.wishes or [role.tasks_max for role in request.roles]
        more = [max(0, wish - size) for wish, size in zip(most, sizes, strict=True)]
        return tuple(more if attempt.tasks is None else _for_those_left(attempt.tasks, more))
    role = resizable_role(request)
    return (max(0, min(role.tasks_max, change.wish or role.tasks_max) - tasks_of(attempt.allocation)),)


def _for_those_left(tasks: JobTasks, more: list[int]) -> Iterator[int]:
    """Numbers of further tasks, no more than those that have yet to run where a role has a number of completions."""
    for role, rule, one in zip(range(len(more)), tasks.rules.roles, more, strict=True):
        yield min(one, tasks.owed(role)) if rule.completions else one


def _additions(cluster: ClusterView, room: FreeResources, attempt: Attempt, wanted: Sizes) -> Allocation:
    """Up to ``wanted`` tasks, first on the attempt's own hosts, then on others; taken from ``room``."""
    request = cluster.pending.request_of(cluster.jobs[attempt.key.job].shared)
    if request.is_of_tasks:
        closed = frozenset([share.host for share in attempt.booked if attempt.share_on(share.host) is None])
        return further_tasks(room, request, attempt.allocation, closed, wanted)
    role, (more,) = resizable_role(request), wanted
    found: list[HostShare] = []
    for share in attempt.allocation if is_divisible(role) else ():
        tasks = _more_here(room, role, share, more)
        if tasks:
            room.free(room.table.rows[share.host]).slots -= tasks * role.slots_per_task
            found.append(HostShare(share.host, tasks * role.slots_per_task, 0, (), (tasks,)))
            more -= tasks
    if more and not role.one_host:
        found += _on_new_hosts(room, request, attempt, more)
    return tuple(found)


def _more_here(room: FreeResources, role: RoleRequest, share: HostShare, more: int) -> int:
    row = room.table.rows[share.host]
    if not room.table.is_open(row):
        return 0
    if role.ptile:
        more = min(more, role.ptile - sum(share.tasks_by_role))
    return max(0, min(more, room.free(row).slots // role.slots_per_task))


def _on_new_hosts(room: FreeResources, request: Request, attempt: Attempt, more: int) -> Allocation:
    """Shares on further hosts, distributed as on the first ones; hosts still releasing the attempt are left out."""
    role = replace(resizable_role(request), tasks_min=1, tasks_max=more)
    wanted = replace(request, roles=(role,))
    names, held = room.table.names, {share.host for share in attempt.booked}
    filler = TaskDistributor(room, role, wants_of(role), NOT_FIRST, False, set())
    rows = room.candidates(wanted, wanted.roles, 0, 0).all_rows()
    filler.fill(live_rows(filler, [row for row in rows if names[row] not in held]))
    return tuple([share_of(room.table, part.row, [part], 1) for part in filler.chosen])
