"""bkill of some tasks of a job, and bresume of an aborted one; all else is for jobs as a whole.

A task that is killed lost its place: the job's rules say what follows. Other signals are passed on.
"""

from collections.abc import Iterator
from dataclasses import replace

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core import task_events as t
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import Decision, is_owner
from lavad.core.decide.jobs import control
from lavad.core.decide.tasks import follow_up, machine
from lavad.core.model import FINAL, JobState, Key
from lavad.core.model import reasons as r
from lavad.core.model.reasons import Refused
from lavad.core.model.task_rules import TaskAction, TaskEvent, TaskKey, TaskPhase
from lavad.core.state.records import ArrayRecord, Job
from lavad.core.state.tasks import ALIVE, JobTasks

P = TaskPhase
_ENDING = (9, 2, 15)


def kill(cluster: Cluster, command: c.KillJob, now: float) -> Decision:
    """Kill (bkill): a whole job, or tasks of it by the terminate sequence."""
    if not command.target.role:
        return control.kill(cluster, command, now)
    if command.remove or command.as_done:
        raise Refused("Tasks of a job are ended by bkill without -r and -d")
    return _stopped(cluster, command.target, command.caller, now)


def signal(cluster: Cluster, command: c.SignalJob, now: float) -> Decision:
    """Send a signal (bkill -s): to a whole job, or to tasks of it. One that ends them is as bkill."""
    if not command.target.role:
        return control.signal(cluster, command, now)
    if command.signal in _ENDING:
        return _stopped(cluster, command.target, command.caller, now)
    by = command.caller.user
    found = _found(cluster, command.target, command.caller)
    events: list[e.Event] = [
        t.TasksSignalled(now, job.key, running, command.signal, by)
        for job, tasks, keys in found
        if (running := tuple([key for key in keys if tasks.records[key].phase in ALIVE and tasks.has_run(key)]))
    ]
    if not events:
        raise Refused("No such task of the job is running")
    return Decision(events)


def _stopped(cluster: Cluster, target: c.Target, caller: c.Caller, now: float) -> Decision:
    events: list[e.Event] = []
    for job, tasks, keys in _found(cluster, target, caller):
        reason = r.TERM_OWNER if is_owner(job, caller) else r.TERM_ADMIN
        left = tuple([key for key in keys if _can_be_stopped(tasks, key)])
        if left:
            events.append(t.TasksStopped(now, job.key, left, TaskEvent.EVICTED, reason, caller.user))
    if not events:
        raise Refused("No such task of the job is running")
    return Decision(events)


def _can_be_stopped(tasks: JobTasks, key: TaskKey) -> bool:
    """True if the task is alive, or waits for its start; one that shares the process of another goes with that.

    One that is being ended already keeps the reason for that: others may wait to be started anew with it.
    """
    record = tasks.records[key]
    is_own = key not in tasks.stands_for
    return is_own and bool(record.host) and record.phase in (P.WAITING, P.STARTING, P.RUNNING)


def _found(cluster: Cluster, target: c.Target, caller: c.Caller) -> Iterator[tuple[Job, JobTasks, tuple[TaskKey, ...]]]:
    """The running jobs of a target, with the tasks that it names."""
    record = control.find(cluster, replace(target, role="", task=-1), caller)
    rules, request = record.shared.tasks, record.shared.request
    numbers = {role.name: number for number, role in enumerate(request.roles)}
    if rules is None or target.role not in numbers:
        raise Refused(f"Job <{target.job}> has no role {target.role}")
    role = numbers[target.role]
    most = rules.roles[role].completions or request.roles[role].tasks_max
    if target.task >= most:
        raise Refused(f"Role {target.role} of job <{target.job}> has tasks 0 to {most - 1}")
    if isinstance(record, Job) and record.state in FINAL:
        raise Refused("Job has already finished")
    live = [job for job in control.live_of(record, target.indices) if job.tasks is not None]
    if not live:
        raise Refused("Job has not started yet")
    for job in live:
        assert job.tasks is not None
        keys = [key for key, _ in job.tasks.of_role(role) if target.task in (-1, key.index)]
        yield job, job.tasks, tuple(keys)


def resume(cluster: Cluster, command: c.ResumeJob, now: float) -> Decision:
    """Resume (bresume): an aborted job of tasks is dispatched anew, which counts as a restart of it."""
    record = cluster.jobs.get(command.target.job)
    if record is None or record.shared.tasks is None:
        return control.resume(cluster, command, now)
    record = control.find(cluster, command.target, command.caller)
    aborted = [job for job in _jobs_of(record, command.target) if _is_aborted(job)]
    resumed = [event for job in aborted for event in _resumed(job, job.key, now)]
    is_ending = any(job.attempt is not None for job in aborted)
    if is_ending:  # it need not be held any more when its tasks have ended
        return Decision(resumed)
    decision = control.resume(cluster, command, now)
    return Decision([*resumed, *decision.events], decision.orders, decision.reply)


def _jobs_of(record: Job | ArrayRecord, target: c.Target) -> list[Job]:
    return [record] if isinstance(record, Job) else list(control.live_of(record, target.indices))


def _is_aborted(job: Job) -> bool:
    verdict = job.tasks.verdict if job.tasks is not None else None
    is_leaving = job.attempt is not None and job.attempt.is_ending
    is_here = job.attempt is not None or job.state is JobState.PSUSP
    return verdict is not None and verdict.action is TaskAction.ABORT and is_here and not is_leaving


def _resumed(job: Job, key: Key, now: float) -> list[e.Event]:
    assert job.tasks is not None
    return [follow_up.event_of(step, key, now) for step in machine.resumed(job.tasks)]
