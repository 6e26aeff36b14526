"""Values about the tasks of a job that events, orders and reports carry."""

from typing import NamedTuple

from lavad.core.model.task_rules import TaskAction, TaskEvent, TaskKey, TaskPhase


class TaskRun(NamedTuple):
    """One start of a task; ``run`` counts its starts over the life of the job, from 1."""

    task: TaskKey
    run: int


class RolePart(NamedTuple):
    """A role's tasks on one host. Ports are those of each task in turn; none before the host has chosen them."""

    role: int
    indices: tuple[int, ...]
    ports: tuple[int, ...] = ()


class TaskHost(NamedTuple):
    """All tasks of a job on one host. ``address``: IP address by which the job's other hosts reach it."""

    host: str
    address: str
    parts: tuple[RolePart, ...]


TaskTable = tuple[TaskHost, ...]


class TaskReport(NamedTuple):
    """State of a task as its host reports it: RUNNING, DONE or EXITED.

    ``status`` is the raw wait status. ``order_again``: the start order came too late; nothing else is reported then.
    """

    task: TaskKey
    run: int
    phase: TaskPhase = TaskPhase.RUNNING
    pid: int = 0
    started: float = 0.0
    ended: float = 0.0
    status: int = 0
    reason: str = ""
    detail: str = ""  # a sentence, if it could not be started
    order_again: bool = False


class Delayed(NamedTuple):
    """Action of a policy with a timeout, due unless the task runs again before."""

    at: float
    action: TaskAction
    event: TaskEvent
    task: TaskKey


class Replacement(NamedTuple):
    """Wait of a job for places in exchange for those that it has lost with their hosts.

    ``tasks`` have no place until they get others; after ``until`` the job is dispatched anew instead.
    """

    tasks: tuple[TaskKey, ...]
    hosts: tuple[str, ...]  # that were lost
    until: float


class Verdict(NamedTuple):
    """Decision about the job as a whole; it takes effect when none of its tasks is alive.

    ``action``: COMPLETE, TERMINATE, ABORT, or RESTART_JOB for another attempt. ``status``: raw wait status of its end.
    """

    action: TaskAction
    status: int = 0
    reason: str = ""
    is_counted: bool = True
