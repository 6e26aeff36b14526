"""Locks of hosts (lsadmin limlock, limunlock): a locked host takes no jobs, and those that it runs are suspended."""

from collections.abc import Iterator

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import SYSTEM, Decision
from lavad.core.decide.hosts import check_server
from lavad.core.decide.jobs.control import resumed, suspended
from lavad.core.model import HOLDING, LOCK, JobState
from lavad.core.model.reasons import Refused
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import Host, Job

REASON = "The execution host is locked by the administrator"
_CAN_STOP = HOLDING - {JobState.ZOMBI}


def lock(cluster: Cluster, command: c.LockHost, now: float) -> Decision:
    """Lock a host, or lock it for another time; its jobs are suspended."""
    host = check_server(cluster, command.host, command.caller)
    until = now + command.seconds if command.seconds else 0.0
    events: list[e.Event] = [e.HostLocked(now, command.host, command.caller.user, until)]
    for job, attempt in _jobs_on(cluster, host):
        if LOCK not in attempt.suspended:
            events += suspended(job, LOCK, REASON, SYSTEM, now)
    return Decision(events)


def unlock(cluster: Cluster, command: c.UnlockHost, now: float) -> Decision:
    """Unlock a host; its jobs go on, as far as no other host of theirs is locked."""
    host = check_server(cluster, command.host, command.caller)
    if host.lock is None:
        raise Refused(f"{command.host}: Host is not locked")
    return Decision(list(_unlocked(cluster, command.host, command.caller.user, now)))


def expired_locks(cluster: Cluster, now: float) -> list[e.Event]:
    """Unlock the hosts whose time is over."""
    over = [name for name in sorted(cluster.locked_hosts) if _is_over(cluster.hosts[name], now)]
    return [event for name in over for event in _unlocked(cluster, name, SYSTEM, now)]


def _is_over(host: Host, now: float) -> bool:
    return host.lock is not None and 0 < host.lock[1] <= now


def _unlocked(cluster: Cluster, name: str, by: str, now: float) -> Iterator[e.Event]:
    yield e.HostUnlocked(now, name, by)
    for job, attempt in _jobs_on(cluster, cluster.hosts[name]):
        others = (share.host for share in attempt.allocation if share.host != name)
        if LOCK in attempt.suspended and cluster.locked_hosts.isdisjoint(others):
            yield from resumed(job, LOCK, SYSTEM, now)


def _jobs_on(cluster: Cluster, host: Host) -> Iterator[tuple[Job, Attempt]]:
    for key in host.attempts:
        job = cluster.holder(key)
        if job is not None and job.attempt is not None and job.state in _CAN_STOP:
            yield job, job.attempt
