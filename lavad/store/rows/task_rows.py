"""Rows of jobs of tasks: the tasks that a step has changed, and lines for the job's history.

Only failures and what follows from them have lines; a line names a few of many tasks.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from lavad.core import task_events as t
from lavad.core.model.task_rules import TaskEvent, TaskKey
from lavad.core.state.records import ArrayRecord
from lavad.core.state.tasks import JobTasks
from lavad.store.rows import values as v
from lavad.store.rows.task_values import job_row, task_row

if TYPE_CHECKING:
    from lavad.core.cluster import Cluster
    from lavad.store.writer.batch import Batch

NAMED_MAX = 5  # tasks named in one line


def add_rows(batch: "Batch", cluster: "Cluster", job: int, index: int) -> None:
    """Add the rows of a job's changed tasks to the batch."""
    tasks, attempt = _tasks_of(cluster, job, index)
    if tasks is None:
        return
    changed = tasks.records.changed
    for key in changed:
        batch.tasks[job, index, *key] = task_row(job, index, attempt, key, tasks.records[key])
    changed.clear()
    batch.task_jobs[job, index] = job_row(job, index, tasks)


def _tasks_of(cluster: "Cluster", job: int, index: int) -> tuple[JobTasks | None, int]:
    """Return the tasks of a job or element, and the number of its newest attempt."""
    found = cluster.element(job, index)
    if found is not None:
        return found.tasks, found.attempts
    array = cluster.jobs[job]
    assert isinstance(array, ArrayRecord), f"job {job} is not an array"
    return array.tasks.get(index), array.attempts.get(index, 0)


def lines(cluster: "Cluster", event: t.TaskJobEvent) -> Iterator[tuple[str, str]]:
    """Yield kind and detail of the history lines of an event."""
    tasks, _ = _tasks_of(cluster, event.key.job, event.key.index)
    if tasks is None:
        return
    match event:
        case t.TasksReported(states=states, failed=failed):
            for state in [one for one in states if one.task in failed][:NAMED_MAX]:
                name = tasks.label(state.task)
                yield "task failed", v.detail(task=name, status=state.status, host=event.host, reason=state.reason)
            if len(failed) > NAMED_MAX:
                yield "tasks failed", v.detail(count=len(failed) - NAMED_MAX, host=event.host)
        case t.TasksLost(host=host, reason=reason):
            yield "tasks lost", v.detail(host=host, reason=reason)
        case t.TasksStopped(event=TaskEvent.SUCCEEDED):  # they had no command: nothing is lost with them
            return
        case t.TasksStopped(tasks=keys, by=by, reason=reason):
            yield "tasks stopped", v.detail(tasks=_named(tasks, keys), by=by, reason=reason)
        case t.TasksRestarted():
            yield "tasks restarted", _restart(tasks, event)
        case t.ReplacementAwaited(replacement=awaited):
            hosts, names = ", ".join(awaited.hosts), _named(tasks, awaited.tasks)
            yield "replacement awaited", v.detail(hosts=hosts, tasks=names, seconds=round(awaited.until - event.at))
        case t.SparesTaken(places=places):
            hosts = ", ".join(dict.fromkeys(host for _, host in places))
            yield "spares taken", v.detail(hosts=hosts, tasks=_named(tasks, [key for key, _ in places]))
        case t.TasksConcluded(verdict=verdict):
            yield "tasks concluded", v.detail(action=verdict.action.name, reason=verdict.reason)
        case t.AutoscaleNoted(error=error) if error:
            yield "autoscale failed", v.detail(reason=error)
        case t.TasksSignalled(tasks=keys, by=by, signal=signal):
            yield "tasks signalled", v.detail(tasks=_named(tasks, keys), by=by, signal=signal)


def _named(tasks: JobTasks, keys: Iterable[TaskKey]) -> str:
    names = [tasks.label(key) for key in keys]
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more


def _restart(tasks: JobTasks, event: t.TasksRestarted) -> str:
    first, role = event.tasks[0], event.tasks[0].role
    group = tasks.group_of(first)
    what = {
        "job": "Job",
        "role": f"Role {tasks.names[role]}",
        "group": f"Group {group.index} of role {tasks.names[role]}",
    }.get(event.scope, f"Task {tasks.label(first)}")
    count, most = tasks.restarts, tasks.rules.restarts_max
    if event.in_place:
        count, most = tasks.restarts_in_place.get(group, 0), tasks.rules.roles[role].restarts_max
    pause = round(event.not_before - event.at) if event.not_before else 0
    counted = count if event.is_counted else 0
    return v.detail(what=what, count=counted, most=most, event=event.event.name, pause=pause)
