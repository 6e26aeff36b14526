"""Tasks that shares of a job of tasks stand for."""

from collections.abc import Collection

from lavad.core.model import Allocation
from lavad.core.model.task_rules import TaskKey
from lavad.core.state.tasks import JobTasks


def on_host(tasks: JobTasks, host: str, role: int) -> list[TaskKey]:
    """A role's tasks on a host in the order of their devices, those last that are about to join."""
    return [*tasks.in_order(host, role), *[key for key, record in tasks.of_role(role) if record.joins == host]]


def joining(tasks: JobTasks, host: str) -> tuple[TaskKey, ...]:
    """Tasks that are about to join on a host."""
    return tuple([key for key, record in tasks.records.items() if record.joins == host])


def last_of(tasks: JobTasks, gives: Allocation) -> tuple[TaskKey, ...]:
    """Tasks that leave with these shares: the last of each role on each host."""
    found: list[TaskKey] = []
    for share in gives:
        for role, less in enumerate(share.tasks_by_role):
            here = on_host(tasks, share.host, role) if less else []
            found += here[len(here) - less :]
    return tuple(sorted(found))


def may_leave(tasks: JobTasks, gone: Collection[TaskKey]) -> bool:
    """True unless a task leaves whose process stands for others that stay."""
    return all(other in gone for key in gone for other in tasks.led.get(key, ()))
