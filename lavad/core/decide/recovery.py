"""Recovery of attempts that hosts hold or have ended and the database lacks: commits were lost, or an older backup was
restored, and an administrator has had master and hosts agree anew.

They are entered as if they had been submitted and dispatched when they began, but no earlier than the last dispatch or
start that is known of the job; their hosts' reports are then handled as usual. Nothing is entered that could run a
second time: of an array that the database lacks, elements that no host reports are held.
"""

from collections.abc import Iterator

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import Decision
from lavad.core.model import JobState, Key
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import FOUND_ON_HOST
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import ArrayRecord, Job

BY = "lavad"
_WAITING = (JobState.PEND, JobState.PSUSP)


def is_unheard(cluster: Cluster, key: Key) -> bool:
    """True if the attempt is newer than the state in memory."""
    record = cluster.jobs.get(key.job)
    if record is None:
        return any(key.job in lost for lost in cluster.lost_jobs)
    job = cluster.element(key.job, key.index)
    if job is not None:
        return key.attempt > job.attempts and job.end is None
    return isinstance(record, ArrayRecord) and key.attempt > record.attempts.get(key.index, 0) and _waits(record, key)


def is_left(cluster: Cluster, key: Key) -> bool:
    """True if the attempt is unknown here and newer than the state in memory: it is left to run to its end."""
    record = cluster.jobs.get(key.job)
    if record is None:
        return any(key.job in lost for lost in cluster.lost_jobs)
    job = cluster.element(key.job, key.index)
    known = job.attempts if job is not None else 0
    if isinstance(record, ArrayRecord):
        known = max(known, record.attempts.get(key.index, 0))
    return bool(cluster.lost_jobs) and key.attempt > known


def _waits(array: ArrayRecord, key: Key) -> bool:
    return array.state_of(key.index) in _WAITING


def waits_unheard(cluster: Cluster, key: Key) -> bool:
    """True if the attempt is newer than the state of its job, which is pending and would run a second time."""
    record = cluster.jobs.get(key.job)
    if record is None or not is_unheard(cluster, key):
        return False
    job = cluster.element(key.job, key.index)
    return job.state is JobState.PEND if job is not None else isinstance(record, ArrayRecord) and _waits(record, key)


def recover(cluster: Cluster, command: c.RecoverAttempt, now: float) -> Decision:
    """Enter one attempt, so that its host's reports find it. The reply is True if the attempt is known now."""
    key = command.key
    if key in cluster.attempts:
        return Decision(reply=True)
    if not is_unheard(cluster, key) or not command.allocation:
        return Decision(reply=False)
    if key.job not in cluster.jobs and command.job is None:
        return Decision(reply=False)
    return Decision(list(_events(cluster, command, now)), reply=True)


def _events(cluster: Cluster, command: c.RecoverAttempt, now: float) -> Iterator[e.Event]:
    key, job = command.key, cluster.element(command.key.job, command.key.index)
    at = _begun_at(cluster, command, job, now)
    if key.job not in cluster.jobs and command.job is not None:
        yield e.JobSubmitted(min(command.submitted_at or at, at), command.job)
    elif job is not None and job.attempt is not None:
        yield from _without_older(job, job.attempt, at, now)
    if _is_held(cluster, command, job):
        yield e.PendingFreed(at, key.job, Ranges.of(key.index) if key.index else Ranges(), BY)
    # As launched, whichever host reports it first: a host that was never told to launch is told so now.
    yield e.AttemptDispatched(
        at, key, command.allocation, launch_now=True, reason=FOUND_ON_HOST, lease_s=command.lease_s
    )
    if len(command.allocation) > 1:
        yield from (e.HostStaged(now, key, share.host) for share in command.allocation)


def _begun_at(cluster: Cluster, command: c.RecoverAttempt, job: Job | None, now: float) -> float:
    """Return the start of the attempt, bounded by the known times of its job: the host's clock may be wrong."""
    record = cluster.jobs.get(command.key.job)
    earliest = record.submitted_at if record is not None else command.submitted_at
    if job is not None and job.attempt is not None:
        earliest = max(earliest, job.attempt.dispatched_at, job.attempt.started_at)
    return min(max(command.started_at or now, earliest), now)


def _without_older(job: Job, attempt: Attempt, at: float, now: float) -> Iterator[e.Event]:
    """Events that end the known attempt: there was a later one, which began at ``at``."""
    for host in sorted(attempt.unreleased):
        yield e.HostReleased(now, attempt.key, host)
    if job.state not in _WAITING:
        yield e.JobRequeued(at, attempt.key, FOUND_ON_HOST)


def _is_held(cluster: Cluster, command: c.RecoverAttempt, job: Job | None) -> bool:
    record = cluster.jobs.get(command.key.job)
    if record is None:
        return command.job is not None and command.job.hold
    if isinstance(record, ArrayRecord) and job is None:
        return command.key.index in record.held
    return job is not None and job.state is JobState.PSUSP
