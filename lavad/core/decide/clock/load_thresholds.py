"""Load thresholds: suspend and resume whole jobs as their hosts' load changes, one at a time, so that each can show its
effect."""

from collections.abc import Iterator

from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import SYSTEM
from lavad.core.decide.jobs.control import resumed, suspended
from lavad.core.model import LOAD, SUSPENDED, JobState, Key
from lavad.core.model import reasons as r
from lavad.core.model.rules.queues import Queue
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import Host, Job


def load_events(cluster: Cluster, now: float) -> list[e.Event]:
    """Suspend or resume one job on each host beyond a threshold, or on which jobs are suspended for load. Settled hosts
    are skipped."""
    events: list[e.Event] = []
    seen: set[Key] = set()
    for name in sorted(cluster.hosts_to_check):
        host = cluster.hosts[name]
        jobs = sorted(_jobs_on(cluster, host, seen), key=lambda one: _standing(*one))
        changed = _next_change(cluster, host, jobs, now)
        if changed is not None:
            seen.add(changed[0])
            events += changed[1]
        elif not any(LOAD in attempt.suspended or _why(cluster, host, job, queue) for job, attempt, queue in jobs):
            cluster.hosts_to_check.discard(name)
    return events


def _next_change(
    cluster: Cluster, host: Host, jobs: list[tuple[Job, Attempt, Queue]], now: float
) -> tuple[Key, list[e.Event]] | None:
    """Suspend the job of lowest rank on a host beyond a threshold; else resume the one of highest rank that may."""
    for job, attempt, queue in jobs:
        why = _why(cluster, host, job, queue)
        if why and not attempt.is_ending and not _is_left_alone(cluster, host, jobs):
            return attempt.key, _stopped(job, attempt, queue, why, now)
    for job, attempt, queue in reversed(jobs):
        if LOAD in attempt.suspended and job.state in SUSPENDED and _may_go_on(cluster, attempt, queue):
            return attempt.key, resumed(job, LOAD, SYSTEM, now, "the load has fallen")
    return None


def _why(cluster: Cluster, host: Host, job: Job, queue: Queue) -> str:
    return cluster.load_rules.why_stop(cluster.table, host.row, queue) if job.state is JobState.RUN else ""


def _jobs_on(cluster: Cluster, host: Host, seen: set[Key]) -> Iterator[tuple[Job, Attempt, Queue]]:
    for key in host.attempts:
        job = cluster.holder(key) if key not in seen else None
        queue = cluster.policy.queue(job.shared.queue) if job is not None else None
        if job is not None and queue is not None:
            yield job, cluster.attempts[key], queue


def _standing(job: Job, attempt: Attempt, queue: Queue) -> tuple[int, float, Key]:
    """Rank for suspension: lowest queue first, then the newest job."""
    return queue.priority, -attempt.started_at, job.key


def _is_left_alone(cluster: Cluster, host: Host, jobs: list[tuple[Job, Attempt, Queue]]) -> bool:
    """True if the host is idle (no terminal in use) and runs a single job: the load is its own, so it is not
    suspended."""
    is_idle = cluster.table.values("it")[host.row] > 0
    return bool(is_idle) and sum(job.state is JobState.RUN for job, _, _ in jobs) == 1


def _stopped(job: Job, attempt: Attempt, queue: Queue, why: str, now: float) -> list[e.Event]:
    if "LOAD" in queue.terminate_when:
        return [e.JobSignalled(now, attempt.key, 0, SYSTEM, r.TERM_LOAD, LOAD)]
    return suspended(job, LOAD, why, SYSTEM, now)


def _may_go_on(cluster: Cluster, attempt: Attempt, queue: Queue) -> bool:
    """True if all hosts of the job allow it: a job is suspended and resumed as a whole."""
    rows = [cluster.hosts[share.host].row for share in attempt.allocation]
    return all(cluster.load_rules.may_resume(cluster.table, row, queue) for row in rows)
