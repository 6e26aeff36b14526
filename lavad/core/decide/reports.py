"""What agents report. A word about an attempt that is over, unknown or older is dropped; a repeated one changes nothing.

The silent drop is deliberate: agents repeat their newest report until they are told to forget, so anything stale here
has been answered before, or is answered by the forget order that goes with it.
"""

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core import reasons as r
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import Decision
from lavad.core.model import HOLDING, JobState, Key
from lavad.core.orders import ForgetOrder, ReleaseOrder
from lavad.core.records import Attempt, Job

S = JobState


def _held(cluster: Cluster, key: Key, host: str) -> Attempt | None:
    """The attempt, if that host still has a share in it."""
    attempt = cluster.attempts.get(key)
    return attempt if attempt is not None and host in attempt.unreleased else None


def _unknown(host: str, key: Key) -> Decision:
    """An attempt of which the master holds nothing on that host: end what there may be, and forget it."""
    return Decision(orders=[ReleaseOrder(host, key, "the master has no such attempt")])


def staged(cluster: Cluster, command: c.ReportStaged, now: float) -> Decision:
    """The launch goes out when the last host has answered: all or nothing."""
    attempt = _held(cluster, command.key, command.host)
    if attempt is None:
        return _unknown(command.host, command.key)
    if attempt.over:
        return Decision(orders=[ReleaseOrder(command.host, command.key, "the attempt is over")])
    if attempt.launched or command.host in attempt.staged:
        return Decision()
    decision = Decision([e.HostStaged(now, command.key, command.host)])
    if attempt.staged | {command.host} == {share.host for share in attempt.allocation}:
        decision.events.append(e.AttemptLaunched(now, command.key))
    return decision


def refused(cluster: Cluster, command: c.ReportRefused, now: float) -> Decision:
    """Nothing of the order runs on that host, so its share is free, and the job waits again unless it runs elsewhere."""
    attempt = _held(cluster, command.key, command.host)
    if attempt is None:
        return Decision(orders=[ForgetOrder(command.host, command.key)])
    released = e.HostReleased(now, command.key, command.host)
    job = cluster.holder(command.key)
    if job is None:
        return Decision([released])
    if job.state is S.RUN:  # a repeated launch was refused as too old: the job is long under way
        return Decision()
    if attempt.launched and len(attempt.allocation) > 1 and attempt.lead != command.host:
        return Decision([released, e.JobDoomed(now, command.key, f"{command.host} refused: {command.reason}")])
    avoid_until = now + cluster.policy.avoid_host_s if command.host_fault else 0.0
    reason = f"{command.host}: {command.reason}"
    return Decision(
        [
            released,
            e.JobRequeued(now, command.key, reason, False, command.host if command.host_fault else "", avoid_until),
        ]
    )


def started(cluster: Cluster, command: c.ReportStarted, now: float) -> Decision:
    """The lead host's command runs; other hosts' tasks do not make the job start."""
    attempt = _held(cluster, command.key, command.host)
    if attempt is None:
        return _unknown(command.host, command.key)
    job = cluster.holder(command.key)
    if job is None or command.host != attempt.lead:
        return Decision()
    events = _found(job, command.key, now)
    if job.state is S.STAGING or (job.state is S.UNKWN and job.resume_state is S.STAGING):
        at = min(command.at, now)
        events.append(e.JobStarted(at, command.key, command.pid, command.exec_home, command.exec_cwd))
    return Decision(events)


def _found(job: Job, key: Key, now: float) -> list[e.Event]:
    return [e.JobFound(now, key)] if job.state is S.UNKWN else []


def finished(cluster: Cluster, command: c.ReportFinished, now: float) -> Decision:
    """The command ended on the lead host: the job is over, whatever its other hosts still have to clear away."""
    attempt = _held(cluster, command.key, command.host)
    if attempt is None:
        return Decision(orders=[ForgetOrder(command.host, command.key)])
    decision = Decision()
    job = cluster.holder(command.key)
    if job is not None and job.state in HOLDING and command.host == attempt.lead:
        decision.events.extend(_end(cluster, job, attempt, command, now))
    if command.also_released:
        decision.events.append(e.HostReleased(now, command.key, command.host))
    return decision


def _end(cluster: Cluster, job: Job, attempt: Attempt, command: c.ReportFinished, now: float) -> list[e.Event]:
    at = min(command.at, now)  # a host's clock may run ahead
    reason = attempt.kill_reason or command.reason or attempt.doomed
    if attempt.doomed and job.shared.rerunnable and not attempt.kill_reason:
        return [e.JobRequeued(now, attempt.key, attempt.doomed)]
    return [
        e.JobFinished(
            at,
            attempt.key,
            command.status,
            reason if command.status or not attempt.kill_reason else "",
            command.cpu_s,
            command.memory_mib_max,
            command.pid,
            command.started_at,
            command.detail,
        )
    ]


def released(cluster: Cluster, command: c.ReportReleased, now: float) -> Decision:
    """Nothing is left there. A lead host that releases a job without having told its end has lost it."""
    attempt = _held(cluster, command.key, command.host)
    if attempt is None:
        return Decision(orders=[ForgetOrder(command.host, command.key)])
    events: list[e.Event] = [e.HostReleased(now, command.key, command.host)]
    job = cluster.holder(command.key)
    if job is not None and command.host == attempt.lead:
        events.append(lost(job, attempt, now, f"{command.host} released the job without telling its end"))
    return Decision(events)


def lost(job: Job, attempt: Attempt, now: float, why: str) -> e.Event:
    """The attempt is known not to run any more and how it ended is not known: again, if it may be; else EXIT."""
    if job.shared.rerunnable and not attempt.kill_reason:
        return e.JobRequeued(now, attempt.key, why)
    reason = attempt.kill_reason or r.TERM_HOST_LOST
    return e.JobFinished(
        now, attempt.key, r.EXIT_STATUS_LOST, reason, pid=attempt.pid, started_at=attempt.started_at, detail=why
    )
