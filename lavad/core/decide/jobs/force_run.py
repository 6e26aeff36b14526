"""Forced start (brun): an administrator dispatches a pending job now, on hosts of his choice, beyond all limits and as
a whole.

The hosts must still answer, be servers and have free GPUs. A host or compute unit that a job has exclusively is not
shared.
"""

from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import Decision
from lavad.core.decide.jobs.control import find
from lavad.core.events import AttemptDispatched
from lavad.core.model import FINAL, Allocation, HostShare, JobState, Key, Request, RoleRequest
from lavad.core.model.host_config import NO_CHECKPOINTS, NO_COMMANDS, NO_COPIES
from lavad.core.model.reasons import (
    EXCLUSIVE,
    LACKS_CHECKPOINTS,
    LACKS_COMMANDS,
    LACKS_COPIES,
    RUNNING_EXCLUSIVE,
    Refused,
)
from lavad.core.state.hosts.compute_units import kept_type, unit_mates
from lavad.core.state.records import ArrayRecord, Host, Job


def force(cluster: Cluster, command: c.ForceJob, now: float) -> Decision:
    """Dispatch the job on the hosts named, whatever its pending reason."""
    if not command.caller.is_administrator:
        raise Refused("User permission denied")
    record = find(cluster, command.target, command.caller)
    key = _next_attempt(record, command.target)
    allocation = _allocation(cluster, cluster.bearer(key.job, key.index), command.hosts)
    reason = f"forced by {command.caller.user}"
    is_single = len(allocation) == 1 and record.shared.tasks is None
    return Decision([AttemptDispatched(now, key, allocation, is_single, reason, command.is_unconstrained)])


def _next_attempt(record: Job | ArrayRecord, target: c.Target) -> Key:
    if isinstance(record, Job):
        state, index, before = record.state, 0, record.attempts
    else:
        if target.indices is None or len(target.indices) != 1:
            raise Refused("Name one element of the array, such as 123[4]")
        index = target.indices.first()
        known, before = record.state_of(index), record.attempts.get(index, 0)
        if known is None:
            raise Refused("No matching job found")
        state = known
    if state is JobState.PSUSP:
        raise Refused("The job is suspended; resume it first")
    if state in FINAL:
        raise Refused("Job has already finished")
    if state is not JobState.PEND:
        raise Refused("Job has already started")
    return Key(record.id, index, before + 1)


def _allocation(cluster: Cluster, record: Job | ArrayRecord, named: tuple[tuple[str, int], ...]) -> Allocation:
    role = record.shared.request.single_role
    if role is None:
        raise Refused("A job of several roles can't be forced")
    hosts = [(_host(cluster, name), tasks) for name, tasks in named]
    _check_alone(cluster, record.shared.request, [host for host, _ in hosts])
    _check_commands(cluster, record, [host for host, _ in hosts])
    tasks = _spread(role, hosts)
    return tuple(_share(cluster, host, role, count) for (host, _), count in zip(hosts, tasks, strict=True) if count)


def _host(cluster: Cluster, name: str) -> Host:
    host = cluster.hosts.get(name)
    if host is None:
        raise Refused(f"{name}: Bad host name, host group name or cluster name")
    if not host.facts.server:
        raise Refused(f"{name} runs no jobs")
    if not host.is_connected or host.is_silent:
        raise Refused(f"{name}: Unable to contact execution host")
    return host


_LACKS = (
    (NO_COMMANDS, LACKS_COMMANDS), (NO_COPIES, LACKS_COPIES), (NO_CHECKPOINTS, LACKS_CHECKPOINTS),
)  # fmt: skip


def _check_commands(cluster: Cluster, record: Job | ArrayRecord, hosts: list[Host]) -> None:
    """Refuse hosts that would leave out the commands or copies before and after the job, or its checkpoints."""
    avoids = cluster.pending.request_of(record.shared).avoids
    for host in hosts:
        avoided = avoids & host.facts.exclusive_resources
        for name, lacks in _LACKS:
            if name in avoided:
                raise Refused(f"{host.facts.name}: {lacks.text}")


def _check_alone(cluster: Cluster, request: Request, hosts: list[Host]) -> None:
    """Refuse hosts or compute units that a job has exclusively, and hosts in use if this job asks for exclusive use."""
    table, kind = cluster.table, kept_type(request)
    for host in hosts:
        name, row = host.facts.name, host.row
        if table.taken_whole[row] or row in table.kept:
            raise Refused(f"{name}: {RUNNING_EXCLUSIVE.text}")
        mates = unit_mates(table, (row,), kind) if kind is not None else {row} if request.exclusive else set()
        if any(cluster.hosts[table.names[mate]].attempts for mate in mates):
            raise Refused(f"{name}: {EXCLUSIVE.text}")


def _spread(role: RoleRequest, hosts: list[tuple[Host, int]]) -> list[int]:
    """Tasks on each host: the number given there; else as many as the host has slots for, the rest on the last host."""
    left, counts = role.tasks_min, []
    is_counted = any(asked for _, asked in hosts)
    for host, asked in hosts:
        most = asked if is_counted else max(1, host.facts.slots // role.slots_per_task)
        counts.append(min(left, most))
        left -= counts[-1]
    if left and is_counted:
        raise Refused(f"The job needs {role.tasks_min} slots; {role.tasks_min - left} were named")
    counts[-1] += left
    return counts


def _share(cluster: Cluster, host: Host, role: RoleRequest, tasks: int) -> HostShare:
    wanted = role.gpus * tasks if role.gpus_per_task else role.gpus
    free = int(cluster.table.gpu_free[host.row])
    gpus = [number for number in range(host.facts.gpus) if free >> number & 1][:wanted]
    if len(gpus) < wanted:
        raise Refused(f"{host.facts.name}: Not enough GPUs on the hosts")
    return HostShare(host.facts.name, tasks * role.slots_per_task, role.memory_mib, tuple(gpus), (tasks,))
