"""Requests for checkpoints (bchkpnt, bmig), and what hosts report of them.

A request stays open until the first host of the job has told how the checkpoint ended; until then the order is said
again in each session of the host, which knows it by its number. One that the job ends by stays open until that end.
"""

from lavad.core import activity_events as a
from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.decide.contact import is_in_contact
from lavad.core.decide.decision import Decision
from lavad.core.decide.jobs.control import find, live_of, states_of, why_nothing
from lavad.core.decide.jobs.requeue import requeue
from lavad.core.decide.jobs.submit import modify
from lavad.core.language.requirements import host_list
from lavad.core.model import JobState
from lavad.core.model import reasons as r
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import Refused
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import ArrayRecord, Job

S = JobState
_RUNNING = (S.RUN, S.USUSP, S.SSUSP)


def checkpoint(
    cluster: Cluster, command: c.CheckpointJob, now: float, migrates: bool = False, may_stay: bool = False
) -> Decision:
    """Make a checkpoint of a running job, or of the running elements of the target; they ``migrate`` with it."""
    record = find(cluster, command.target, command.caller)
    if not record.shared.special.checkpointable:
        raise Refused("Job is not checkpointable")
    decision, refusal = Decision(), ""
    for job in live_of(record, command.target.indices):
        try:
            decision.events.append(asked(cluster, job, command, now, migrates, may_stay))
        except Refused as error:
            refusal = str(error)
    if not decision.events:
        raise Refused(refusal or _why_not(record, command.target.indices))
    return decision


def requeued(cluster: Cluster, command: c.RequeueJob, now: float) -> Decision:
    """Requeue (brequeue, bmig): a checkpointable job migrates by a checkpoint, any other begins anew."""
    record = cluster.jobs.get(command.target.job)
    if not command.migrates or record is None or not record.shared.special.checkpointable:
        decision = requeue(cluster, command, now)
    else:
        asked_for = c.CheckpointJob(command.target, command.caller, command.force)
        decision = checkpoint(cluster, asked_for, now, migrates=True, may_stay=command.may_stay)
    if command.migrates and not command.may_stay and record is not None:
        _check_elsewhere(cluster, record, command)
    return decision


def _check_elsewhere(cluster: Cluster, record: Job | ArrayRecord, command: c.RequeueJob) -> None:
    """Refuse a migration after which the job would wait for ever: it keeps away from each host that it has left."""
    live = live_of(record, command.target.indices)
    left = {job.attempt.lead for job in live if job.attempt is not None and job.state in command.states}
    words = (*record.shared.request.hosts, *(f"~{host}" for host in sorted(left)))
    if not host_list.chosen(words, list(cluster.hosts), cluster.policy.host_groups).ranks:
        raise Refused("The job has left all other hosts that it may use; name one of them with bmig -m")


def migrated(cluster: Cluster, command: c.MigrateJob, now: float) -> Decision:
    """Migrate to certain hosts (bmig -m), which are the job's from now on; both are refused, or none."""
    words = command.changed.job.shared.request.hosts
    known = [*cluster.policy.known_hosts, *cluster.hosts]
    if not any(host in cluster.hosts for host in host_list.chosen(words, known, cluster.policy.host_groups).ranks):
        raise Refused(f"{words[0] if words else ''}: Bad host name, host group name or cluster name")
    moved = requeued(cluster, command.moved, now)
    changed = modify(cluster, command.changed, now)
    return Decision([*changed.events, *moved.events], reply=moved.reply)


def asked(
    cluster: Cluster, job: Job, command: c.CheckpointJob, now: float, migrates: bool = False, may_stay: bool = False
) -> e.Event:
    """Event of a request.

    Raises:
        Refused: a sentence says why no checkpoint of the job can be made now.
    """
    attempt = check_can_be_made(cluster, job)
    ends = command.ends or migrates
    return a.CheckpointAsked(now, attempt.key, command.caller.user, command.force, ends, migrates, may_stay)


def check_can_be_made(cluster: Cluster, job: Job) -> Attempt:
    """Return the job's attempt, if a checkpoint of it can be made now.

    Raises:
        Refused: a sentence says why not.
    """
    attempt = job.attempt
    if attempt is None or job.state is S.STAGING:
        raise Refused("Job has not started yet")
    if job.state not in _RUNNING or not is_in_contact(cluster, attempt, attempt.lead):
        raise Refused("Unable to contact execution host")
    if attempt.is_ending:
        raise Refused("The job is being ended")
    if attempt.checkpoints.open is not None:
        raise Refused("A checkpoint of the job is being made")
    return attempt


def _why_not(record: Job | ArrayRecord, indices: Ranges | None) -> str:
    is_waiting = states_of(record, indices) in (S.PEND.name, S.PSUSP.name, f"{S.PEND.name}, {S.PSUSP.name}")
    return "Job has not started yet" if is_waiting else why_nothing(record, indices)


def reported(cluster: Cluster, command: c.ReportCheckpoint, now: float) -> Decision:
    """Take over how a checkpoint ended; the same may be reported again."""
    attempt = cluster.attempts.get(command.key)
    job = cluster.holder_of(attempt) if attempt is not None else None
    if attempt is None or job is None or command.host != attempt.lead or not _is_news(attempt, command):
        return Decision()
    made = (command.number, command.began, command.error, command.ends, command.action)
    ended = a.CheckpointEnded(now, attempt.key, *made)
    is_moved = attempt.checkpoints.migrates and command.ends and not (command.error or attempt.is_ending)
    if not is_moved:
        return Decision([ended])
    away = attempt.checkpoints.avoided(attempt.lead)
    return Decision([ended, e.JobDoomed(now, attempt.key, r.MIGRATED, again=True, exclude_host=away)])


def _is_news(attempt: Attempt, command: c.ReportCheckpoint) -> bool:
    """True for one that began after all known ones, or is the answer to the open request: clocks may be set back."""
    found = attempt.checkpoints
    if found.open is not None and found.open.number == command.number:
        return command.began != found.known
    return command.number <= found.number and command.began > found.known
