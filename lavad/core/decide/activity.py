"""Decisions about the activity of a job on its hosts.

A job hangs if all hosts with processes of it say that their parts are inactive, each for the time that the job's rule
names: so all of them were at the same time, whatever their clocks. It is told, the stacks of its processes are saved,
and then its lifecycle policy for that acts, if it has one. Without one nothing is done: a warning may be wrong.
"""

from collections.abc import Iterator, Set

from lavad.core import activity_events as a
from lavad.core import commands as c
from lavad.core import events as e
from lavad.core import task_events as t
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import Decision
from lavad.core.decide.tasks.policies import policy_for
from lavad.core.model import JobState
from lavad.core.model.task_rules import TaskEvent, TaskKey, TaskPhase
from lavad.core.orders import STACKS_S
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import Job
from lavad.core.state.tasks import JobTasks

MARGIN_S = 15.0  # for the hosts' answers about stacks to arrive


def reported(cluster: Cluster, command: c.ReportActivity, now: float) -> Decision:
    """Take over a host's report; the job may hang by it, or be active again."""
    attempt = cluster.attempts.get(command.key)
    job = cluster.holder_of(attempt) if attempt is not None else None
    if attempt is None or job is None or command.host not in attempt.unreleased or attempt.is_ending:
        return Decision()
    return Decision([*_part(job, attempt, command, now), *_use(attempt, command, now)])


def _part(job: Job, attempt: Attempt, command: c.ReportActivity, now: float) -> Iterator[e.Event]:
    activity, is_inactive = attempt.activity, command.inactive_s > 0
    if is_inactive is not (command.host in activity.inactive):
        yield a.PartActivity(now, attempt.key, command.host, command.inactive_s)
    if not is_inactive:
        if activity.hang is not None:
            yield a.JobActive(now, attempt.key)
    elif activity.hang is None and _hangs(job, attempt, {*activity.inactive, command.host}):
        yield _hang(job, attempt, command.inactive_s, now)


def _hang(job: Job, attempt: Attempt, inactive_s: float, now: float) -> e.Event:
    due = now + STACKS_S + MARGIN_S if _task_that_hangs(job) is not None else 0.0
    return a.JobHangs(now, attempt.key, inactive_s, due)


def late_hangs(cluster: Cluster, now: float) -> Iterator[e.Event]:
    """Events of jobs whose last active parts have ended, on which no report follows."""
    changed, cluster.parts_changed = cluster.parts_changed, set()
    for key in sorted(changed):
        attempt = cluster.attempts.get(key)
        job = cluster.holder_of(attempt) if attempt is not None else None
        if attempt is None or job is None or attempt.is_ending or attempt.activity.hang is not None:
            continue
        inactive = attempt.activity.inactive
        if _hangs(job, attempt, inactive.keys()):
            yield _hang(job, attempt, now - max(inactive.values()), now)


def _use(attempt: Attempt, command: c.ReportActivity, now: float) -> Iterator[e.Event]:
    """Events of a host without processes of the job; of a job of tasks only if a task of it is to run there."""
    if (command.unused_s > 0) is (command.host in attempt.activity.unused):
        return
    if not command.unused_s or attempt.tasks is None or _is_to_be_used(attempt.tasks, command.host):
        yield a.HostUnused(now, attempt.key, command.host, command.unused_s)


def _is_to_be_used(tasks: JobTasks, host: str) -> bool:
    """True if tasks are running there by the table; one that waits for others, or has ended, is no fault."""
    return any(tasks.records[key].phase is TaskPhase.RUNNING for key in tasks.on_host(host))


def _hangs(job: Job, attempt: Attempt, inactive: Set[str]) -> bool:
    if job.state is not JobState.RUN or attempt.suspended or not attempt.launched:
        return False
    hosts = attempt.unreleased if job.tasks is None else _hosts_of(job.tasks)
    return bool(hosts) and hosts <= inactive


def _hosts_of(tasks: JobTasks) -> frozenset[str]:
    """Hosts of the running processes of a job of tasks; none while any of them is being started or ended."""
    records = [tasks.records[key] for key in tasks.records.alive if tasks.has_process(key)]
    is_steady = all(record.phase is TaskPhase.RUNNING for record in records)
    return frozenset([record.host for record in records]) if is_steady else frozenset()


def _task_that_hangs(job: Job) -> TaskKey | None:
    """The task at whose hang the job's policy acts: the first that a policy names; None if none does."""
    if job.tasks is None or job.tasks.verdict is not None:
        return None
    rules = job.tasks.rules
    return next((key for key in job.tasks.alive if policy_for(rules, key, TaskEvent.HANGS) is not None), None)


def stacks_saved(cluster: Cluster, command: c.ReportStacks, now: float) -> Decision:
    """Take over where a host has saved stacks; with the last host's the job's policy acts."""
    attempt = cluster.attempts.get(command.key)
    job = cluster.holder_of(attempt) if attempt is not None else None
    hang = attempt.activity.hang if attempt is not None else None
    if attempt is None or job is None or hang is None or command.number != hang.number:
        return Decision()
    answered = {host for host, _ in hang.stacks}
    if command.host in answered or command.host not in attempt.unreleased:
        return Decision()
    events: list[e.Event] = [a.StacksSaved(now, attempt.key, command.host, command.path, command.words)]
    if hang.due and attempt.unreleased <= answered | {command.host}:
        events += _act(job, attempt, now)
    return Decision(events)


def hang_events(cluster: Cluster, now: float) -> Iterator[e.Event]:
    """Events of policies that have waited long enough for stacks."""
    for key in [key for key, due in cluster.hanging.items() if due <= now]:
        attempt = cluster.attempts.get(key)
        job = cluster.holder_of(attempt) if attempt is not None else None
        if attempt is None or job is None or attempt.is_ending:
            del cluster.hanging[key]
        else:
            yield from _act(job, attempt, now)


def _act(job: Job, attempt: Attempt, now: float) -> list[e.Event]:
    task = _task_that_hangs(job)
    return [t.HangEnded(now, attempt.key, task)] if task is not None else [a.JobActive(now, attempt.key)]
