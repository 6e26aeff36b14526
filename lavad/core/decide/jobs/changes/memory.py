"""Change of a running job's memory reservation (bmod -R). Nothing else of its requirement can change."""

from dataclasses import replace

from lavad.core.apply.resize import may_change
from lavad.core.cluster import Cluster
from lavad.core.commands import Asked
from lavad.core.decide.jobs.request import known_request
from lavad.core.model import HostShare, RoleRequest, Shared
from lavad.core.model.demand import demand_of
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.queues import Queue
from lavad.core.scheduling.capacity.constraints import allowance_of
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import Job

_ONLY = "Job has already started: of its -R only the amount of rusage[mem=...] can be changed"


def with_other_memory(cluster: Cluster, job: Job, asked: Asked, queue: Queue, now: float) -> Shared:
    """The job's shared facts with the memory that it asks for on each host now.

    Raises:
        Refused: it asks for other changes, too; a host or a limit has too little left; or the job is being resized or
            lends its resources.
    """
    shared, attempt = job.shared, job.attempt
    assert attempt is not None, f"{job.key} holds no hosts"
    before = shared.request
    request, text = known_request(asked.roles, before.options, cluster.policy, cluster.table, queue, shared.from_host)
    old, new = before.single_role, request.single_role
    if old is None or new is None or request.alternatives or before.alternatives or old.resizable:
        raise Refused(_ONLY)
    if not _differ_in_memory_alone(old, new) or (request.same, request.cu) != (before.same, before.cu):
        raise Refused(_ONLY)
    if new.memory_mib != old.memory_mib:
        _check_room(cluster, attempt, new.memory_mib - old.memory_mib)
        _check_limits(cluster, attempt, shared, new.memory_mib - old.memory_mib, now)
    role = replace(old, memory_mib=new.memory_mib)
    return replace(shared, request=replace(before, roles=(role,)), requirement=text)


def _differ_in_memory_alone(old: RoleRequest, new: RoleRequest) -> bool:
    """True if the roles differ in memory only. Their sizes may differ: the queue has bounded those of the first."""
    return replace(new, memory_mib=old.memory_mib, tasks_min=old.tasks_min, tasks_max=old.tasks_max) == old


def _check_room(cluster: Cluster, attempt: Attempt, more_mib: int) -> None:
    if not may_change(attempt) or attempt.lends:
        raise Refused("Operation is in progress")
    for share in attempt.allocation:
        free = int(cluster.table.memory_free_mib[cluster.table.rows[share.host]])
        if share.host in attempt.unreleased and more_mib > max(0, free):
            raise Refused(f"{share.host}: {free} MB of memory are not reserved; the job would need {more_mib} MB more")


def _check_limits(cluster: Cluster, attempt: Attempt, shared: Shared, more_mib: int, now: float) -> None:
    more = tuple([HostShare(share.host, 0, more_mib) for share in attempt.allocation if more_mib > 0])
    demand = demand_of(shared)._replace(attempt=attempt.key)
    obstacle = allowance_of(cluster, now).why(demand, more) if more else None
    if obstacle is not None:
        raise Refused(obstacle.reason.text)
