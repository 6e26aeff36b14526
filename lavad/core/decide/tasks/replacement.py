"""Replacement of lost hosts of a running job of tasks: what follows from a restart of tasks without places.

The job keeps its other hosts, and what may run there goes on. Its idle places (spares) are taken at once, unless their
host is silent or will be taken away; for the rest it waits until the scheduler finds it another host, or its time for
that is over. An elastic job whose minima are left does without the rest, and grows later. Spares that were used or lost
are held anew when there is room that no pending job waits for: the job grows back to its size.
"""

from collections import Counter

from lavad.core import events as e
from lavad.core import task_events as t
from lavad.core.apply.resize import has_minima
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import SYSTEM
from lavad.core.decide.tasks import machine
from lavad.core.decide.tasks.growth_end import give_growth_up
from lavad.core.decide.tasks.steps import Restart
from lavad.core.language.requirements.parts import is_elastic, is_tied, keeps_first_host
from lavad.core.model import Allocation, Request
from lavad.core.model.task_rules import TaskAction, TaskKey
from lavad.core.model.task_values import Replacement, Verdict
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import Job
from lavad.core.state.tasks import JobTasks

TABLE_S = 1.0  # for the hosts of a job of tasks to have a new table before tasks that leave are ended


def restart(cluster: Cluster, job: Job, attempt: Attempt, tasks: JobTasks, step: Restart, now: float) -> list[e.Event]:
    """Events of a restart in place. One that needs places which the job cannot get back is another attempt."""
    lost = tuple([key for key in step.tasks if _is_lost(tasks, key)])
    if not lost:
        return [_restarted(attempt, tasks, step, step.tasks, now)]
    left, request = _left(attempt, tasks, lost), job.shared.request
    spared = _spared(cluster, tasks, left, lost)
    gone = tuple([key for key in lost if key not in spared])
    if gone and is_elastic(request) and left and has_minima(request, left) and _keeps_lead(attempt, request):
        stay = tuple([key for key in step.tasks if key not in gone])
        restarted = [_restarted(attempt, tasks, step, stay, now)] if stay else []
        awaited = [t.ReplacementAwaited(now, attempt.key, _awaited(tasks, spared, now))] if spared else []
        return [*restarted, *awaited, *_without(attempt, left, gone, now)]
    if not _may_wait(attempt, tasks, left, gone, request):
        why = machine.told(tasks, lost[0], step.event)
        return [t.TasksConcluded(now, attempt.key, Verdict(TaskAction.RESTART_JOB, 0, why, step.is_counted))]
    restarted = [_restarted(attempt, tasks, step, step.tasks, now)]
    return [*restarted, t.ReplacementAwaited(now, attempt.key, _awaited(tasks, lost, now))]


def _is_lost(tasks: JobTasks, key: TaskKey) -> bool:
    """True unless the task has a place, or has passed it on and waits for one as others of its role do."""
    record = tasks.records[key]
    is_owed = bool(tasks.rules.roles[key.role].completions) and not record.was_on
    return not (record.host or is_owed)


def _restarted(attempt: Attempt, tasks: JobTasks, step: Restart, keys: tuple[TaskKey, ...], now: float) -> e.Event:
    not_before, failures = machine.pause(tasks, step.cause, now)
    not_before = max(not_before, machine.spaced(tasks, step, now))
    return t.TasksRestarted(
        now, attempt.key, step.scope, keys, step.event, step.is_counted, step.in_place, step.cause, not_before, failures
    )


def _left(attempt: Attempt, tasks: JobTasks, lost: tuple[TaskKey, ...] = ()) -> Allocation:
    """The allocation without the hosts that were lost, whether they have released it or are about to."""
    gone = {tasks.records[key].was_on for key in lost}
    if tasks.replacement is not None:
        gone.update(tasks.replacement.hosts)
    gone.difference_update([record.host for record in tasks.records.values()])  # that have joined anew
    return tuple([one for one in attempt.allocation if one.host in attempt.unreleased and one.host not in gone])


def _keeps_lead(attempt: Attempt, request: Request) -> bool:
    return attempt.lead in attempt.unreleased or not keeps_first_host(request)


def _may_wait(attempt: Attempt, tasks: JobTasks, left: Allocation, gone: tuple[TaskKey, ...], request: Request) -> bool:
    """True if other hosts may take the place of the lost ones while the job keeps the rest; ``gone``: lost tasks for
    which it has no spares."""
    if not left or is_tied(request) or not _keeps_lead(attempt, request):
        return False
    return tasks.rules.replace_s > 0 or not gone


def _spares(cluster: Cluster, tasks: JobTasks, left: Allocation) -> list[tuple[int, str]]:
    """Idle places that may be used now, with their roles."""
    return [(role, host) for role, host in tasks.spare_places(left) if _is_sound(cluster, host)]


def _is_sound(cluster: Cluster, name: str) -> bool:
    host = cluster.hosts.get(name)
    return host is not None and host.is_in_contact and not host.leaves_at


def _spared(cluster: Cluster, tasks: JobTasks, left: Allocation, lost: tuple[TaskKey, ...]) -> tuple[TaskKey, ...]:
    """Those of the lost tasks for which the job has spares."""
    free = Counter(role for role, _ in _spares(cluster, tasks, left))
    free.subtract(key.role for key in tasks.displaced if not tasks.records[key].joins and key not in lost)
    found = list[TaskKey]()
    for key in lost:
        if free[key.role] > 0:
            free[key.role] -= 1
            found.append(key)
    return tuple(found)


def _awaited(tasks: JobTasks, lost: tuple[TaskKey, ...], now: float) -> Replacement:
    """All places that the job lacks now. Each loss begins the time anew."""
    before = tasks.replacement
    known, hosts = (before.tasks, before.hosts) if before is not None else ((), ())
    more = [tasks.records[key].was_on for key in lost]
    together = tuple(sorted({*known, *lost}))
    return Replacement(together, tuple(dict.fromkeys([*hosts, *more])), now + max(tasks.rules.replace_s, TABLE_S))


def _without(attempt: Attempt, left: Allocation, gone: tuple[TaskKey, ...], now: float) -> list[e.Event]:
    """Events that leave lost hosts out of the allocation."""
    stay = {share.host for share in left}
    lost = [share.host for share in attempt.allocation if share.host not in stay]
    events = give_growth_up(attempt, now, now, "a host was lost") if attempt.resizing.growth else []
    version, reason = attempt.version + bool(events) + 1, f"{', '.join(lost)} lost" if lost else "spares are taken"
    return [*events, e.AttemptResized(now, attempt.key, left, version, now + TABLE_S, SYSTEM, reason, gone=gone)]


def mend(cluster: Cluster, job: Job, attempt: Attempt, tasks: JobTasks, now: float) -> list[e.Event]:
    """Events that bring the allocation of a job that has lost hosts up to date, with its spares for lost places."""
    if tasks.replacement is None:
        return _without_lost_spares(job, attempt, tasks, now)
    if not (left := _left(attempt, tasks)):
        return []
    waiting = [key for key in tasks.displaced if not tasks.records[key].joins]
    places: list[tuple[TaskKey, str]] = []
    for role, host in _spares(cluster, tasks, left) if waiting else ():
        key = next((key for key in waiting if key.role == role), None)
        if key is not None:
            waiting.remove(key)
            places.append((key, host))
    if not places and len(left) == len(attempt.allocation):
        return []
    resized = _without(attempt, left, (), now)
    return [*resized[:-1], *([t.SparesTaken(now, attempt.key, tuple(places))] if places else []), resized[-1]]


def _without_lost_spares(job: Job, attempt: Attempt, tasks: JobTasks, now: float) -> list[e.Event]:
    """Events that leave hosts out of the allocation that had nothing but idle places, and are lost."""
    request = job.shared.request
    if not any(role.spares for role in request.roles):
        return []
    left = _left(attempt, tasks)
    is_complete = len(left) == len(attempt.allocation)
    return [] if is_complete or not has_minima(request, left) else _without(attempt, left, (), now)
