"""Events of the tasks of a job: one function each. Nothing is decided here.

What happens to a task by itself (it ended, its host was lost) is noted as news of its job, upon which the lifecycle
machine decides in the same step. A task without a process of its own is as the task whose process stands for it.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from lavad.core import task_events as t
from lavad.core.apply.tasks import activity
from lavad.core.apply.tasks.places import join_no_more, pass_on, placed, take_spares, unplace
from lavad.core.apply.tasks.queue_wait import taken_along
from lavad.core.cluster import Cluster
from lavad.core.model.reasons import EXIT_STATUS_LOST
from lavad.core.model.task_rules import TaskAction, TaskEvent, TaskKey, TaskPhase
from lavad.core.model.task_values import TaskReport
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import Job
from lavad.core.state.tasks import ALIVE, ENDED, TASK, JobTasks, TaskRecord

E, P = TaskEvent, TaskPhase


def note(cluster: Cluster, job: Job, *news: tuple[TaskKey, TaskEvent | None]) -> None:
    """Note news of a job's tasks (without an event: it runs), or just that its state is to be looked at."""
    cluster.task_news.setdefault((job.id, job.index), deque()).extend(news)


def begin(cluster: Cluster, job: Job, attempt: Attempt) -> None:
    """Place the tasks of a job that is dispatched."""
    job.tasks = attempt.tasks = placed(job.tasks, job.shared, attempt.allocation)
    job.tasks.restarts += taken_along(job)
    note(cluster, job, (TaskKey(0, 0), E.PENDING))


def _of(cluster: Cluster, event: t.TaskJobEvent) -> tuple[Job, JobTasks]:
    job = cluster.element(event.key.job, event.key.index)
    assert job is not None, f"{event.key} is unknown"
    assert job.tasks is not None, f"{event.key} has no tasks"
    note(cluster, job)
    return job, job.tasks


def _set(tasks: JobTasks, key: TaskKey, record: TaskRecord) -> None:
    """Set a task's record, and those of the tasks that its process stands for."""
    tasks.records[key] = record
    for other in tasks.led.get(key, ()):
        known = tasks.records[other]
        tasks.records[other] = record._replace(host=known.host, ports=known.ports, joined=known.joined, pid=0)


def _ended(record: TaskRecord, phase: TaskPhase, at: float, status: int = 0, reason: str = "") -> TaskRecord:
    return record._replace(phase=phase, ended=at, status=status, reason=reason, again=False, waits_for_all=False)


# -- reports -----------------------------------------------------------------------------------------------------------


def _reported(cluster: Cluster, event: t.TasksReported) -> None:
    job, tasks = _of(cluster, event)
    for state in event.states:
        record = tasks.records.get(state.task)
        if record is not None and state.run >= record.run:
            if state.phase in ENDED and record.is_alive and not record.stopped:
                cluster.exit_rates.note_task_end(job, record.host, state, event.at)
            _take(cluster, job, tasks, state, record._replace(run=state.run))
    if job.attempt is not None:
        activity.look_at_parts(cluster, job.attempt)


def _take(cluster: Cluster, job: Job, tasks: JobTasks, state: TaskReport, record: TaskRecord) -> None:
    """Take over a task's state. An end that was ordered is no news, unless it counts as an event."""
    key = state.task
    if record.leaves and state.phase is not P.RUNNING:
        tasks.records[key] = record
        unplace(tasks, key)
        return
    if state.phase is P.RUNNING:
        phase = P.STOPPING if record.phase is P.STOPPING else P.RUNNING
        _set(tasks, key, record._replace(phase=phase, pid=state.pid, started=state.started))
        if phase is P.RUNNING:
            note(cluster, job, (key, None))
        return
    if tasks.is_held(key):
        state = _of_held(tasks, record, state)
    known = record._replace(pid=state.pid or record.pid, started=state.started or record.started)
    reason = state.reason or record.stopped
    if record.again:
        waiting = _ended(known, P.WAITING, state.ended, state.status, reason)
        _set(tasks, key, waiting._replace(waits_for_all=record.waits_for_all))
        return
    _set(tasks, key, _ended(known, state.phase, state.ended, state.status, reason))
    if record.ends_as is not None:
        note(cluster, job, (key, record.ends_as))
    elif state.reason.startswith("TERM_RUNLIMIT"):  # of its role; its exit status says nothing about that
        note(cluster, job, (key, E.TIMEOUT))
    elif not record.stopped:
        note(cluster, job, (key, E.SUCCEEDED if state.phase is P.DONE else E.FAILED))


def _of_held(tasks: JobTasks, record: TaskRecord, state: TaskReport) -> TaskReport:
    """The end of a task without a command, which has no exit status: it is as what ended it."""
    is_well = record.ends_as is E.SUCCEEDED or (
        tasks.verdict is not None and tasks.verdict.action is TaskAction.COMPLETE
    )
    if is_well:
        return state._replace(phase=P.DONE, status=0)
    status = state.status or (0 if record.ends_as is None else EXIT_STATUS_LOST)
    return state._replace(phase=P.EXITED, status=status)


def _lost(cluster: Cluster, event: t.TasksLost) -> None:
    """Tasks of a lost host have failed and have no place; those that had ended keep their ends.

    One that was to be restarted in place still is: it waits. What was to join there is to join elsewhere.
    """
    job, tasks = _of(cluster, event)
    for key in tasks.on_host(event.host):
        record = tasks.records[key]
        if record.leaves:
            unplace(tasks, key)
            continue
        _forget_lead(tasks, key)
        lost = record._replace(host="", was_on=event.host, ports=(), pid=0)
        if record.again or (record.phase is P.WAITING and record.run):
            lost = _ended(lost, P.WAITING, event.at, EXIT_STATUS_LOST, event.reason)
            lost = lost._replace(waits_for_all=record.waits_for_all)
        elif record.phase in ALIVE or record.phase is P.WAITING:
            lost = _ended(lost, P.EXITED, event.at, EXIT_STATUS_LOST, event.reason)
        tasks.records[key] = lost
        if record.phase in ALIVE or record.phase is P.WAITING:
            note(cluster, job, (key, E.HOST_LOST))
    join_no_more(tasks, event.host)
    tasks.addresses.pop(event.host, None)
    tasks.version += 1


def _forget_lead(tasks: JobTasks, key: TaskKey) -> None:
    """Part a lost task from the process that stood for it; the tasks that its own stood for are lost with it."""
    lead = tasks.stands_for.pop(key, None)
    if lead is not None:
        tasks.led[lead] = tuple([other for other in tasks.led[lead] if other != key])
        return
    for other in tasks.led.pop(key, ()):
        del tasks.stands_for[other]
        record = tasks.records[other]
        if record.is_alive:
            tasks.records[other] = _ended(record, P.EXITED, record.ended, EXIT_STATUS_LOST, "its first task was lost")


# -- decisions ---------------------------------------------------------------------------------------------------------


def _ordered(cluster: Cluster, event: t.TasksOrdered) -> None:
    _, tasks = _of(cluster, event)
    tasks.pauses = tuple([at for at in tasks.pauses if at > event.at])
    for key in event.tasks:
        record = tasks.records[key]
        phase, started = (P.RUNNING, event.at) if tasks.is_held(key) else (P.STARTING, 0.0)
        ordered = TaskRecord(
            phase, record.host, record.run + 1, record.ports, started=started, joined=record.joined,
            failures=record.failures, place=record.place,
        )  # fmt: skip
        _set(tasks, key, ordered)


def _stopped(cluster: Cluster, event: t.TasksStopped) -> None:
    job, tasks = _of(cluster, event)
    for key in event.tasks:
        record = tasks.records[key]
        if record.phase in ALIVE and tasks.has_run(key):
            stopping = record._replace(phase=P.STOPPING, again=False, waits_for_all=False)
            _set(tasks, key, stopping._replace(stopped=event.reason, ends_as=event.event))
        elif record.phase in ALIVE or record.phase is P.WAITING:
            _set(tasks, key, _ended(record, P.EXITED, event.at, EXIT_STATUS_LOST, event.reason))
            note(cluster, job, (key, event.event))


def _restarted(cluster: Cluster, event: t.TasksRestarted) -> None:
    _, tasks = _of(cluster, event)
    activity.forget_parts(cluster, cluster.attempts[event.key])
    waits = event.scope != TASK
    for key in event.tasks:
        if key in tasks.stands_for:
            continue
        record = tasks.records[key]
        if record.phase in ALIVE and tasks.has_run(key):
            changed = record._replace(phase=P.STOPPING, again=True, stopped=f"restarted: {event.event.name}")
        else:
            changed = record._replace(phase=P.WAITING, again=False, stopped="")
        failures = event.failures if key == event.cause else record.failures
        _set(
            tasks,
            key,
            changed._replace(waits_for_all=waits, ends_as=None, not_before=event.not_before, failures=failures),
        )
    if event.not_before:
        tasks.pauses = tuple(sorted({*tasks.pauses, event.not_before}))
        cluster.timed_tasks[event.key.job, event.key.index] = None
    if event.in_place:
        group = tasks.group_of(event.tasks[0])
        tasks.restarts_in_place[group] = tasks.restarts_in_place.get(group, 0) + 1
    elif event.is_counted:
        tasks.restarts += 1
    if event.scope != TASK:  # as new pods of a recreated job: none of them has been restarted yet
        for group in {tasks.group_of(key) for key in event.tasks}:
            tasks.restarts_in_place.pop(group, None)


def _spares_taken(cluster: Cluster, event: t.SparesTaken) -> None:
    _, tasks = _of(cluster, event)
    take_spares(tasks, event.places)


def _passed_on(cluster: Cluster, event: t.PlacesPassedOn) -> None:
    _, tasks = _of(cluster, event)
    pass_on(tasks, event.places)


def _concluded(cluster: Cluster, event: t.TasksConcluded) -> None:
    _, tasks = _of(cluster, event)
    verdict = tasks.verdict = event.verdict
    tasks.restarts += verdict.action is TaskAction.RESTART_JOB and verdict.is_counted
    tasks.delayed, tasks.pauses, tasks.replacement = (), (), None
    for key in list(tasks.records.alive):
        record = tasks.records[key]
        if tasks.has_run(key):
            end = record._replace(phase=P.STOPPING, again=False, waits_for_all=False, ends_as=None)
            _set(tasks, key, end._replace(stopped=record.stopped or verdict.reason or "the job has ended"))


def _delayed(cluster: Cluster, event: t.TaskActionDelayed) -> None:
    job, tasks = _of(cluster, event)
    tasks.delayed = (*tasks.delayed, event.delayed)
    cluster.timed_tasks[job.id, job.index] = None


def _dropped(cluster: Cluster, event: t.TaskActionsDropped) -> None:
    _, tasks = _of(cluster, event)
    tasks.delayed = tuple([one for one in tasks.delayed if one not in event.delayed])


def _hang_ended(cluster: Cluster, event: t.HangEnded) -> None:
    job, _ = _of(cluster, event)
    activity.forget_parts(cluster, cluster.attempts[event.key])
    note(cluster, job, (event.task, E.HANGS))


def _signalled(cluster: Cluster, event: t.TasksSignalled) -> None:
    """Nothing changes: the order follows from the event."""


def _autoscale_noted(cluster: Cluster, event: t.AutoscaleNoted) -> None:
    _, tasks = _of(cluster, event)
    tasks.autoscale_error = event.error
    tasks.autoscaled_at = event.at if event.is_change else tasks.autoscaled_at


HANDLERS: dict[type, Callable[[Cluster, Any], None]] = {
    t.TasksReported: _reported,
    t.TasksLost: _lost,
    t.TasksOrdered: _ordered,
    t.TasksStopped: _stopped,
    t.TasksRestarted: _restarted,
    t.SparesTaken: _spares_taken,
    t.PlacesPassedOn: _passed_on,
    t.TasksConcluded: _concluded,
    t.TaskActionDelayed: _delayed,
    t.TaskActionsDropped: _dropped,
    t.TasksSignalled: _signalled,
    t.AutoscaleNoted: _autoscale_noted,
    t.HangEnded: _hang_ended,
}
