"""Decisions that follow for a job of tasks from the news of its tasks: one at a time, each in the state that the one
before leaves.

The lifecycle machine says the steps; here they become events, due tasks are started, and the verdict takes effect when
no process of the job is left. A job that is being killed or requeued as a whole starts nothing any more.
"""

from collections.abc import Iterable

from lavad.core import events as e
from lavad.core import task_events as t
from lavad.core.apply.tasks.queue_wait import queued_at
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import Decision
from lavad.core.decide.tasks import machine, replacement
from lavad.core.decide.tasks.steps import Conclude, Delay, Drop, Restart, Step
from lavad.core.model import Key
from lavad.core.model import reasons as r
from lavad.core.model.task_rules import TaskAction, TaskEvent, TaskKey, TaskPhase
from lavad.core.model.task_values import Verdict
from lavad.core.state.attempts import Attempt
from lavad.core.state.hosts.revocable import tolerates
from lavad.core.state.records import Job
from lavad.core.state.tasks import ENDED, JobTasks

_ENDS = frozenset({TaskEvent.FAILED, TaskEvent.SUCCEEDED, TaskEvent.EVICTED, TaskEvent.TIMEOUT})
HELD_FOR_NONE = "all tasks with a command have ended"
ATTEMPTS_MAX = 100  # of a rerunnable job that loses its hosts each time


def follow_up(cluster: Cluster, now: float) -> Decision | None:
    """The next decision about a job with news; None when there is none left."""
    while cluster.task_news:
        key = next(iter(cluster.task_news))
        news = cluster.task_news[key]
        job = cluster.element(*key)
        decision = None
        if job is not None and job.tasks is not None and job.attempt is not None:
            if news:
                return _about(cluster, job, job.attempt, job.tasks, *news.popleft(), now)
            decision = _settled(cluster, job, job.attempt, job.tasks, now)
        if decision is None:
            del cluster.task_news[key]
        else:
            return decision
    return None


def _events_of(
    cluster: Cluster, steps: Iterable[Step], job: Job, attempt: Attempt, tasks: JobTasks, now: float
) -> list[e.Event]:
    """Events of the machine's steps."""
    found: list[e.Event] = []
    for step in steps:
        if isinstance(step, Restart):
            found += replacement.restart(cluster, job, attempt, tasks, step, now)
        else:
            found.append(event_of(step, attempt.key, now))
    return found


def event_of(step: Conclude | Delay | Drop, key: Key, now: float) -> e.Event:
    """Event of a step that concerns no place of a task."""
    match step:
        case Conclude():
            return t.TasksConcluded(now, key, step.verdict)
        case Delay():
            return t.TaskActionDelayed(now, key, step.delayed)
        case Drop():
            return t.TaskActionsDropped(now, key, step.delayed)


def _about(
    cluster: Cluster, job: Job, attempt: Attempt, tasks: JobTasks, task: TaskKey, event: TaskEvent | None, now: float
) -> Decision:
    """Decide upon one piece of news."""
    if attempt.is_ending:
        return Decision()
    if event is None:
        return Decision(_events_of(cluster, machine.runs(tasks, task), job, attempt, tasks, now))
    if event is TaskEvent.PENDING:
        waiting = [key for key, record in tasks.records.items() if record.phase is TaskPhase.WAITING]
        since = queued_at(job.array or job)
        return Decision(_events_of(cluster, machine.waits(tasks, waiting, since, now), job, attempt, tasks, now))
    if event is TaskEvent.HOST_LOST and task in tasks.displaced:
        return Decision()  # restarted with others that were lost before it
    if event in _ENDS and tasks.records[task].phase not in ENDED:
        return Decision()  # what followed from the end of another has started it anew: this one is part of that
    steps = _placed(cluster, tasks, machine.happened(tasks, task, event, now))
    is_lost = event is TaskEvent.HOST_LOST or (event is TaskEvent.EVICTED and _is_revoked(cluster, tasks, task))
    if is_lost and not steps and tasks.verdict is None:
        bears = job.shared.rerunnable or (event is TaskEvent.EVICTED and tolerates(job.shared))
        steps = _without_place(bears, attempt, tasks, task)
    return Decision(_events_of(cluster, steps, job, attempt, tasks, now))


def _placed(cluster: Cluster, tasks: JobTasks, steps: list[Step]) -> list[Step]:
    """The steps, with another attempt in place of a restart on a host that will be taken away."""
    return [_elsewhere(cluster, tasks, one) if isinstance(one, Restart) else one for one in steps]


def _elsewhere(cluster: Cluster, tasks: JobTasks, step: Restart) -> Step:
    leaving = next((key for key in step.tasks if _is_revoked(cluster, tasks, key)), None)
    if leaving is None:
        return step
    record = tasks.records[leaving]
    reason = f"host {record.host} of task {tasks.label(leaving)} is revoked"
    return Conclude(Verdict(TaskAction.RESTART_JOB, record.status, reason, step.is_counted and not step.in_place))


def _is_revoked(cluster: Cluster, tasks: JobTasks, key: TaskKey) -> bool:
    host = cluster.hosts.get(tasks.records[key].host)
    return host is not None and host.leaves_at > 0


def _without_place(bears: bool, attempt: Attempt, tasks: JobTasks, task: TaskKey) -> list[Step]:
    """Another attempt of a job that ``bears`` one, whose rules say nothing about lost hosts."""
    if not (bears and attempt.key.attempt < ATTEMPTS_MAX):
        return []
    record = tasks.records[task]
    reason = f"{tasks.label(task)} lost its host"
    return [Conclude(Verdict(TaskAction.RESTART_JOB, record.status, reason, is_counted=False))]


def _settled(cluster: Cluster, job: Job, attempt: Attempt, tasks: JobTasks, now: float) -> Decision | None:
    """The next decision that the present state calls for; None if there is none."""
    if not attempt.launched:
        return None
    if freed := _freed(attempt, tasks):
        return Decision([t.PartsFreed(now, attempt.key, freed)])
    if attempt.is_ending:
        return None if tasks.is_running else _ended(attempt, now)
    if tasks.verdict is not None:
        return None if tasks.is_running else _effect(attempt, tasks, tasks.verdict, now)
    if mended := replacement.mend(cluster, job, attempt, tasks, now):
        return Decision(mended)
    if passed_on := _passed_on(cluster, tasks):
        return Decision([t.PlacesPassedOn(now, attempt.key, passed_on)])
    steps = _placed(cluster, tasks, machine.expired(tasks, now) or machine.unreplaced(tasks, now))
    if not steps and not attempt.suspended:
        due = tuple([key for key in machine.due(tasks, now) if key not in tasks.stands_for])
        if due:
            return Decision([t.TasksOrdered(now, attempt.key, due)])
    if not steps and (held := _held_to_the_end(tasks)):
        return Decision([t.TasksStopped(now, attempt.key, held, TaskEvent.SUCCEEDED, HELD_FOR_NONE)])
    steps = steps or _placed(cluster, tasks, machine.at_end(tasks))
    return Decision(_events_of(cluster, steps, job, attempt, tasks, now)) if steps else None


def _passed_on(cluster: Cluster, tasks: JobTasks) -> tuple[tuple[TaskKey, TaskKey], ...]:
    return tuple([one for one in machine.next_places(tasks) if not _is_revoked(cluster, tasks, one[0])])


def _freed(attempt: Attempt, tasks: JobTasks) -> tuple[str, ...]:
    """Hosts on which no task is left of those that were to leave."""
    change = attempt.resizing
    if not change.leaving or not change.is_told:
        return ()
    busy = {record.host for record in map(tasks.records.__getitem__, tasks.records.alive) if record.leaves}
    hosts = dict.fromkeys(share.host for share in change.leaving)
    return tuple([host for host in hosts if host not in busy and host not in change.freed])


def _held_to_the_end(tasks: JobTasks) -> tuple[TaskKey, ...]:
    """Running tasks without a command when all those with one have ended, and none is to be started."""
    is_over = not any(tasks.has_process(key) for key in tasks.records.alive)
    if not is_over or machine.is_to_go_on(tasks):
        return ()
    return tuple([key for key in tasks.alive if tasks.records[key].phase is TaskPhase.RUNNING and tasks.has_run(key)])


# -- the end of an attempt ---------------------------------------------------------------------------------------------


def _effect(attempt: Attempt, tasks: JobTasks, verdict: Verdict, now: float) -> Decision:
    """Let the verdict take effect: none of the job's processes is left."""
    if verdict.action in (TaskAction.COMPLETE, TaskAction.TERMINATE):
        status = 0 if verdict.action is TaskAction.COMPLETE else verdict.status or machine.FAILED_STATUS
        reason = verdict.reason if status else ""
        return Decision([_finished(attempt, now, status, reason, detail=verdict.reason)])
    is_held = verdict.action is TaskAction.ABORT
    why = f"aborted: {verdict.reason}" if is_held else f"restarted ({tasks.restarts}): {verdict.reason}"
    if not attempt.unreleased:
        return Decision([e.JobRequeued(now, attempt.key, why, is_held)])
    return Decision([e.JobDoomed(now, attempt.key, why, again=True, hold=is_held)])


def _ended(attempt: Attempt, now: float) -> Decision | None:
    """End the job that was killed. An attempt that is to be repeated is over when all hosts have released it."""
    if attempt.kill_reason:
        status = 0 if attempt.kill_reason in r.RECORDED_DONE else r.EXIT_STATUS_KILLED
        return Decision([_finished(attempt, now, status, attempt.kill_reason if status else "")])
    return None


def _finished(attempt: Attempt, now: float, status: int, reason: str = "", detail: str = "") -> e.Event:
    return e.JobFinished(
        now, attempt.key, status, reason, pid=attempt.pid, started_at=attempt.started_at, detail=detail
    )
