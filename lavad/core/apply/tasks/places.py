"""Places of a job's tasks: determined by the allocation alone, so that a restored cluster has the same.

Each role's tasks get indices from 0 in the order of the allocation. Tasks of the maximum that have no place wait
without one.
"""

from collections.abc import Iterator

from lavad.core.model import Allocation, Launch, Shared
from lavad.core.model.task_rules import TaskKey, TaskPhase
from lavad.core.model.task_values import RolePart
from lavad.core.state.tasks import ALIVE, JobTasks, TaskRecord


def new_tasks(shared: Shared) -> JobTasks:
    """Tasks of a job that has not been dispatched."""
    rules, roles = shared.tasks, shared.request.roles
    assert rules is not None, "a job without rules of tasks has none"
    return JobTasks(
        rules,
        tuple([role.name for role in roles]),
        tuple([role.tasks_max for role in roles]),
        tuple([role.tasks_min for role in roles]),
        launches=tuple([role.launch for role in roles]),
    )


def placed(before: JobTasks | None, shared: Shared, allocation: Allocation) -> JobTasks:
    """Tasks of a job that is dispatched: all wait, with their places in the allocation.

    Runs and restarts go on counting from those of the attempts before.
    """
    tasks = new_tasks(shared)
    hosts = {TaskKey(part.role, index): name for name, part in parts_of(allocation) for index in part.indices}
    runs = {key: record.run for key, record in before.records.items()} if before is not None else {}
    for role, size in enumerate(tasks.sizes):
        for key in (TaskKey(role, index) for index in range(size)):
            tasks.records[key] = TaskRecord(host=hosts.get(key, ""), run=runs.get(key, 0))
    if before is not None:
        tasks.version, tasks.restarts = before.version, before.restarts
        tasks.restarts_in_place = dict(before.restarts_in_place)
    tasks.version += 1
    find_leads(tasks)
    return tasks


def parts_of(allocation: Allocation) -> Iterator[tuple[str, RolePart]]:
    """Each role's tasks on each host of an allocation."""
    first: dict[int, int] = {}
    for share in allocation:
        for role, count in enumerate(share.tasks_by_role):
            if count:
                at = first.get(role, 0)
                first[role] = at + count
                yield share.host, RolePart(role, tuple(range(at, at + count)))


def find_leads(tasks: JobTasks) -> None:
    """Find the tasks whose process stands for others: the first of a role, or of a role on each host."""
    firsts: dict[tuple[int, str], TaskKey] = {}
    led: dict[TaskKey, list[TaskKey]] = {}
    for key, record in tasks.records.items():
        launch = tasks.launches[key.role]
        if record.host and launch in (Launch.FIRST, Launch.HOST):
            first = firsts.setdefault((key.role, record.host if launch is Launch.HOST else ""), key)
            if first != key:
                led.setdefault(first, []).append(key)
    tasks.led = {key: tuple(others) for key, others in led.items()}
    tasks.stands_for = {other: key for key, others in tasks.led.items() for other in others}


def reserved(tasks: JobTasks, host: str, address: str, parts: tuple[RolePart, ...]) -> None:
    """Note the address of a host, and the ports that it has reserved for its tasks."""
    if address:
        tasks.addresses[host] = address
    for part in parts:
        each = len(part.ports) // len(part.indices) if part.indices else 0
        for place, index in enumerate(part.indices):
            key = TaskKey(part.role, index)
            record = tasks.records.get(key)
            if record is not None and record.host == host:
                ports = part.ports[place * each : (place + 1) * each]
                tasks.records[key] = record._replace(ports=ports)
    tasks.version += 1


def left(tasks: JobTasks) -> None:
    """Take their places from all tasks: the job waits for another attempt."""
    for key, record in list(tasks.records.items()):
        tasks.records[key] = TaskRecord(run=record.run, status=record.status, reason=record.reason)
    tasks.version += 1
    tasks.addresses, tasks.delayed = {}, ()
    tasks.led, tasks.stands_for = {}, {}


def renewed(tasks: JobTasks) -> None:
    """Forget what an ended job has been through, but its runs: it is to run again."""
    left(tasks)
    tasks.restarts, tasks.restarts_in_place, tasks.verdict = 0, {}, None


def closed(tasks: JobTasks, at: float, reason: str) -> None:
    """End what has not ended: the job has."""
    for key, record in list(tasks.records.items()):
        if record.phase not in ALIVE and record.phase is not TaskPhase.WAITING:
            continue
        why = record.stopped or reason
        ended = at if record.phase in ALIVE else 0.0
        tasks.records[key] = record._replace(
            phase=TaskPhase.EXITED, ended=ended, reason=why, again=False, waits_for_all=False
        )
    tasks.delayed = ()
