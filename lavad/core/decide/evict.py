"""Eviction of jobs from a host that will be taken away (badmin hclose -revoke, or a notice that the host itself gives).

The host is closed, and all that runs there has the time of the notice. An elastic job goes on with its other hosts: its
lists change first, then its tasks there are told to end. A job of tasks that can't do that has its tasks there evicted,
and its rules say what follows. Any other job is requeued as a whole, or ended if it may not run again. What is left at
the end of the notice is killed by the host itself.
"""

from collections.abc import Iterator

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core import task_events as t
from lavad.core.cluster import Cluster
from lavad.core.decide import reports
from lavad.core.decide.decision import SYSTEM, Decision, denial
from lavad.core.decide.jobs import resize
from lavad.core.decide.tasks.growth_end import give_growth_up
from lavad.core.model import Key
from lavad.core.model import reasons as r
from lavad.core.model.host_config import BY_HOST
from lavad.core.model.reasons import Refused
from lavad.core.model.task_rules import TaskEvent, TaskPhase
from lavad.core.orders import TERMINATE
from lavad.core.plan import Shrink
from lavad.core.state.attempts import Attempt
from lavad.core.state.hosts.revocable import tolerates
from lavad.core.state.records import Host, Job
from lavad.core.state.tasks import JobTasks

NOTICE_MAX_S = 7 * 86400.0
SAME_S = 1.0  # two ends of a host's own notice that differ by less are the same, repeated
KILLED_S = 2.0  # for a host to kill what is left
LISTS_SHARE = 0.5  # of the notice, at most, for a job to adapt before its processes are told to end
_STOPPABLE = (TaskPhase.WAITING, TaskPhase.STARTING, TaskPhase.RUNNING)


def revoke(cluster: Cluster, command: c.RevokeHost, now: float) -> Decision:
    """Revoke a host (badmin hclose -revoke)."""
    host = cluster.hosts.get(command.host)
    if not command.caller.is_administrator:
        raise Refused(denial(command.caller))
    if host is None or not host.facts.server:
        raise Refused(f"{command.host}: Bad host name, host group name or cluster name")
    if not 0 < command.notice_s <= NOTICE_MAX_S:
        raise Refused("A notice is longer than 0 seconds, and at most a week")
    return _revoked(cluster, host, now + command.notice_s, command.caller.user, command.comment, now)


def noticed(cluster: Cluster, command: c.HostNoticed, now: float) -> Decision:
    """Take a host's own notice, or its withdrawal. A repeated one changes nothing; what an administrator has said about
    the host, before or since, stays."""
    host = cluster.hosts.get(command.host)
    if host is None:
        return Decision()
    if command.notice_s < 0:
        return Decision([e.HostOpened(now, command.host, BY_HOST, "")] if host.noticed_at else [])
    until = now + min(command.notice_s, NOTICE_MAX_S)
    if host.noticed_at and host.noticed_at <= until + SAME_S:
        return Decision()
    return _revoked(cluster, host, until, BY_HOST, command.text, now)


def _revoked(cluster: Cluster, host: Host, until: float, by: str, comment: str, now: float) -> Decision:
    name = host.facts.name
    decision = Decision([e.HostRevoked(now, name, by, until, comment)])
    for key in list(host.attempts):
        attempt = cluster.attempts[key]
        job = cluster.holder_of(attempt)
        if job is not None and not attempt.is_ending:
            decision.events += _evicted(cluster, job, attempt, name, until, now)
    return decision


def _evicted(cluster: Cluster, job: Job, attempt: Attempt, host: str, until: float, now: float) -> list[e.Event]:
    """Events by which one attempt leaves the host."""
    why = f"host {host} is revoked"
    if attempt.is_leaving(host):
        return []
    if attempt.is_growing_to(host):
        return give_growth_up(attempt, now, now, why)
    if not attempt.launched:
        return [e.HostReleased(now, attempt.key, host, assumed=True), e.JobRequeued(now, attempt.key, why, False)]
    if smaller := _without(cluster, attempt, host, until, why, now):
        return smaller
    if attempt.tasks is not None:
        return _tasks_evicted(attempt.key, attempt.tasks, host, why, now)
    if job.shared.rerunnable or tolerates(job.shared):
        return [e.JobDoomed(now, attempt.key, why, again=True)]
    return [e.JobSignalled(now, attempt.key, TERMINATE, SYSTEM, r.TERM_REVOKED)]


def _without(cluster: Cluster, attempt: Attempt, host: str, until: float, why: str, now: float) -> list[e.Event]:
    """Events that shrink an elastic job by the host; none if it needs the host."""
    gives = tuple(share for share in attempt.allocation if share.host == host)
    within_s = LISTS_SHARE * (until - now)
    return resize.shrink_attempt(cluster, Shrink(attempt.key, gives, why), now, SYSTEM, within_s=within_s)


def _tasks_evicted(key: Key, tasks: JobTasks, host: str, why: str, now: float) -> list[e.Event]:
    here = tuple(
        [one for one in tasks.on_host(host) if one not in tasks.stands_for and tasks.records[one].phase in _STOPPABLE]
    )
    return [t.TasksStopped(now, key, here, TaskEvent.EVICTED, why)] if here else []


def taken_away(cluster: Cluster, now: float) -> Iterator[e.Event]:
    """Events for the attempts of a host that is gone: silent, after the end of a notice that it has taken.

    It has killed what was left, in contact or not, so nothing runs there. One that has not said that it knows of the
    notice may run on. One host each time: two of them may share a job.
    """
    for name, host in cluster.hosts.items():
        if 0 < host.told_end <= now - KILLED_S and host.is_silent and host.attempts:
            why = f"host {name} was taken away"
            for key in list(host.attempts):
                attempt = cluster.attempts[key]
                job = cluster.holder_of(attempt)
                if job is None:
                    yield e.HostReleased(now, key, name, assumed=True)
                else:
                    yield from reports.part_gone(cluster, job, attempt, name, now, why).events
            return


def notice_taken(cluster: Cluster, command: c.NoticeTaken, now: float) -> Decision:
    """Note until when at most a host lets run what it has. It may have taken an older notice, with an earlier end, and
    the newest since: that counts for nothing."""
    host = cluster.hosts.get(command.host)
    until = now + command.seconds
    if host is None or not host.leaves_at or command.seconds < 0 or until < host.leaves_at:
        return Decision()
    return Decision([e.HostToldEnd(now, command.host, until)])
