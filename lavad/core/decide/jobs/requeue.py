"""Requeue of jobs: by brequeue, or by exit value (bsub -Q, else the queue's REQUEUE_EXIT_VALUES).

Job id and place in the queue are kept. A running job is ended first and is pending only when every host has released
it, so two attempts do not overlap. The exception is a job in UNKWN whose hosts hold no lease: its user accepts by the
requeue that silent hosts may still run it; it is ended there when they are back.
"""

from dataclasses import replace

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.decide.contact import named, silent_hosts, when_back
from lavad.core.decide.decision import Decision, is_owner
from lavad.core.decide.jobs.control import find, live_of, shown, states_of, told_of, waiting_of, why_nothing
from lavad.core.language.exit_values import parse
from lavad.core.model import FINAL, JobState
from lavad.core.model import reasons as r
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import Refused
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import ArrayRecord, Job

S = JobState


def requeue(cluster: Cluster, command: c.RequeueJob, now: float) -> Decision:
    """Requeue (brequeue): running and ended elements of the target in the states asked for."""
    record = find(cluster, command.target, command.caller)
    single = command.target.indices.first() if command.target.indices else 0
    if command.migrates and not cluster.bearer(record.id, single).shared.rerunnable:
        raise Refused("The job is neither rerunnable (bsub -r) nor checkpointable")
    by, hold, indices = command.caller.user, command.hold, command.target.indices
    reason = r.TERM_REQUEUE_OWNER if is_owner(record, command.caller) else r.TERM_REQUEUE_ADMIN
    decision = Decision(reply=told_of(cluster, command.target, _requeued, {S.UNKWN} & command.states, now))
    if command.states & _ALIVE:
        for job in live_of(record, indices):
            assert job.attempt is not None
            if job.state in command.states:
                away = job.attempt.lead if command.migrates and not command.may_stay else ""
                decision.events += ended_and_requeued(cluster, job, job.attempt, reason, by, hold, now, away)
    revived = _revivable(cluster, record, indices, command.states)
    if revived:
        decision.events.append(e.JobRevived(now, record.id, revived, by, hold))
    waiting = waiting_of(record, indices, S.PEND) if hold and S.PEND in command.states else Ranges()
    if waiting:
        decision.events.append(e.PendingHeld(now, record.id, waiting, by))
    if not decision.events:
        raise Refused(_why_not(record, indices, command.states))
    return decision


_ALIVE = frozenset({S.STAGING, S.RUN, S.USUSP, S.SSUSP, S.UNKWN})


def _requeued(cluster: Cluster, attempt: Attempt, now: float) -> str:
    silent = silent_hosts(cluster, attempt)
    if silent and attempt.lease_s:
        return f"{named(silent)} silent: it runs again {when_back(cluster, attempt, silent, now)}"
    return f"{named(silent)} silent: what runs there may go on, and is killed when the host is back" if silent else ""


def ended_and_requeued(
    cluster: Cluster, job: Job, attempt: Attempt, reason: str, by: str, hold: bool, now: float, away: str
) -> list[e.Event]:
    """Events that end an attempt, so that its job runs again, ``away`` from a host; none if it is being ended."""
    is_unknown = job.state is S.UNKWN and not attempt.lease_s
    if attempt.kill_reason or (attempt.is_ending and not is_unknown):
        return []
    if not attempt.launched or (is_unknown and attempt.unreleased <= {*silent_hosts(cluster, attempt)}):
        return [e.JobRequeued(now, attempt.key, reason, hold, exclude_host=away)]
    doom = e.JobDoomed(now, attempt.key, reason, again=True, hold=hold, exclude_host=away, by=by)
    return [replace(doom, leaves_silent=is_unknown)]


def _revivable(
    cluster: Cluster, record: Job | ArrayRecord, indices: Ranges | None, states: frozenset[JobState]
) -> Ranges:
    """Ended elements that are still in memory; of an array also those killed before they started."""
    wanted = states & FINAL
    if not wanted:
        return Ranges()
    if isinstance(record, Job):
        return Ranges([range(1)]) if record.state in wanted else Ranges()
    chosen = record.indices if indices is None else indices
    return Ranges.from_sorted(
        index
        for index in chosen
        if record.state_of(index) in wanted and ((record.id, index) in cluster.finished or index in record.killed)
    )


def _why_not(record: Job | ArrayRecord, indices: Ranges | None, states: frozenset[JobState]) -> str:
    found = states_of(record, indices)
    if isinstance(record, Job) and record.state in (S.PEND, S.PSUSP):
        return "Job has not started yet"
    if isinstance(record, Job) and record.state not in FINAL | states:
        wanted = ", ".join(sorted({shown(state) for state in states}))
        return f"The job is {found}; only jobs in {wanted} are requeued by this request"
    return why_nothing(record, indices)


def by_exit_code(cluster: Cluster, job: Job, attempt: Attempt, status: int) -> tuple[bool, bool]:
    """Requeue by exit code: True if the job is requeued, and True if it is to avoid its host."""
    if status & 0x7F or job.shared.special.interactive:
        return False, False  # ended by a signal, or its client has the exit code
    queue = cluster.policy.queue_for(job.shared.queue, job.shared.application)
    values = job.shared.special.requeue_exit_values or (queue.defaults.requeue_exit_values if queue is not None else "")
    if not values:
        return False, False
    most = queue.requeue_limit if queue is not None else None
    if most is not None and attempt.key.attempt > most:
        return False, False
    rules, code = parse(values), status >> 8 & 0xFF
    return code in rules.codes, code in rules.excluding


def is_success(cluster: Cluster, job: Job, status: int) -> bool:
    """True if the exit code is one of SUCCESS_EXIT_VALUES; a signal never is."""
    queue = cluster.policy.queue_for(job.shared.queue, job.shared.application)
    values = job.shared.special.success_exit_values or (queue.defaults.success_exit_values if queue is not None else "")
    return bool(values) and not status & 0x7F and (status >> 8 & 0xFF) in parse(values).codes
