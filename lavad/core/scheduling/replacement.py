"""Replacement of lost hosts: places for the tasks of running jobs that have lost theirs, before any pending job.

Such a job holds all its other hosts meanwhile, so it comes first. It gets places for all tasks that it lacks, or none:
two jobs that are short of hosts never wait for each other. It costs O(jobs that lost hosts), when something was freed.
"""

from lavad.core.apply.resize import is_to_grow
from lavad.core.cluster_view import ClusterView
from lavad.core.language.requirements.parts import sizes_of
from lavad.core.model.demand import demand_of
from lavad.core.plan import Grow, Resize
from lavad.core.scheduling.capacity.constraints import allowance_of
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.placement.growth import further_tasks
from lavad.core.scheduling.placement.within_limits import CappedResources
from lavad.core.state.attempts import Attempt
from lavad.core.state.changes import Changes

_NEVER = float("inf")
_REASON = "in place of lost hosts"


class LostHosts:
    """State of the search for replacements between passes."""

    def __init__(self) -> None:
        self.is_due = True
        self.retry_at = _NEVER  # end of the shortest delay after a host that failed to be staged
        self._tried: set[Attempt] = set()  # since the last change

    def has_work(self, cluster: ClusterView, now: float) -> bool:
        """True if a job is to be given other hosts by now."""
        return bool(cluster.replacing) and (self.is_due or self.retry_at <= now)

    def gather(self, changes: Changes, now: float) -> None:
        """Take over changes of the cluster."""
        if changes.may_free or self.retry_at <= now:
            self.is_due = True
            self._tried.clear()

    def ahead(self, cluster: ClusterView, now: float) -> Resize | None:
        """Plan of the replacement for one job; None if there is none."""
        if not self.is_due or not cluster.replacing:
            return None
        self.retry_at = _NEVER
        for attempt in cluster.replacing.values():
            if attempt not in self._tried and self._lacks(cluster, attempt, now):
                self._tried.add(attempt)
                grow = _replaced(cluster, attempt, now)
                if grow is not None:
                    return Resize(grows=(grow,))
        self.is_due = False
        return None

    def _lacks(self, cluster: ClusterView, attempt: Attempt, now: float) -> bool:
        job, tasks = cluster.holder(attempt.key), attempt.tasks
        if job is None or tasks is None or tasks.verdict is not None or not is_to_grow(job, attempt):
            return False
        if not any(not tasks.records[key].joins for key in tasks.displaced):
            return False
        if attempt.resizing.retry_at > now:
            self.retry_at = min(self.retry_at, attempt.resizing.retry_at)
            return False
        return True


def _replaced(cluster: ClusterView, attempt: Attempt, now: float) -> Grow | None:
    """Growth by places for all tasks that the attempt lacks; None if there is not enough room that it may have."""
    shared, tasks = cluster.jobs[attempt.key.job].shared, attempt.tasks
    if tasks is None or tasks.replacement is None:
        return None
    request = cluster.pending.request_of(shared)
    waiting = [key for key in tasks.displaced if not tasks.records[key].joins]
    more = [sum(key.role == role for key in waiting) for role in range(len(request.roles))]
    left_s = max(1, round(attempt.started_at + shared.run_limit_s - now)) if shared.run_limit_s else 0
    demand = demand_of(shared)._replace(run_limit_s=left_s, attempt=attempt.key)
    allowance = allowance_of(cluster, now)
    ceilings = allowance.limit(demand).on_hosts if allowance else None
    stay = {share.host for share in attempt.allocation}
    closed = frozenset([share.host for share in attempt.booked if share.host not in stay])
    lost = closed.union(name for name in tasks.replacement.hosts if name in cluster.table.rows)
    for avoided in (lost, closed):  # a host that was lost is taken again only if there is no other
        room = FreeResources(cluster.table)
        capped = room if ceilings is None else CappedResources(room, ceilings)
        additions = further_tasks(capped, request, attempt.allocation, avoided, more)
        if list(sizes_of(additions, len(more))) == more:
            is_allowed = not allowance or allowance.why(demand, additions) is None
            return Grow(attempt.key, additions, _REASON) if is_allowed else None
    return None
