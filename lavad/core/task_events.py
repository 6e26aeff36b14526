"""Events of the tasks of a job. A step of the lifecycle machine becomes one of them."""

from typing import NamedTuple

from lavad.core.model import Key
from lavad.core.model.task_rules import TaskEvent, TaskKey
from lavad.core.model.task_values import Delayed, Replacement, RolePart, TaskReport, Verdict


class TasksReported(NamedTuple):
    """States of tasks changed by a host's report; without a host those of tasks that have no process.

    ``failed`` are those that have failed by themselves.
    """

    at: float
    key: Key
    host: str
    states: tuple[TaskReport, ...]
    failed: tuple[TaskKey, ...] = ()


class TasksLost(NamedTuple):
    """All tasks of a host are lost with it; they have no place any more."""

    at: float
    key: Key
    host: str
    reason: str


class TasksOrdered(NamedTuple):
    """Waiting tasks are started: the next run of each is ordered."""

    at: float
    key: Key
    tasks: tuple[TaskKey, ...]


class TasksStopped(NamedTuple):
    """Tasks are ended, by a user or for a limit. The end of each counts as ``event``."""

    at: float
    key: Key
    tasks: tuple[TaskKey, ...]
    event: TaskEvent
    reason: str
    by: str = ""


class TasksRestarted(NamedTuple):
    """Tasks are ended if they are alive, and started anew, those that have places on the same hosts. ``scope``: job,
    role or task.

    ``in_place``: a restart by the role's own rule, which does not count as one of the job. ``not_before``: end of a
    pause before it, after the ``cause`` has failed ``failures`` times in a row.
    """

    at: float
    key: Key
    scope: str
    tasks: tuple[TaskKey, ...]
    event: TaskEvent
    is_counted: bool = True
    in_place: bool = False
    cause: TaskKey | None = None
    not_before: float = 0.0
    failures: int = 0


class ReplacementAwaited(NamedTuple):
    """Tasks that have lost their places wait for others, until the job is dispatched anew instead."""

    at: float
    key: Key
    replacement: Replacement


class SparesTaken(NamedTuple):
    """Places of the job that are idle are for these tasks, which have lost theirs. Their hosts are yet to make them
    ready."""

    at: float
    key: Key
    places: tuple[tuple[TaskKey, str], ...]  # task and host


class PlacesPassedOn(NamedTuple):
    """Ended tasks leave their places to others of their role, which had none."""

    at: float
    key: Key
    places: tuple[tuple[TaskKey, TaskKey], ...]  # the ended task, the next one


class TasksConcluded(NamedTuple):
    """The job's fate is decided: its tasks are ended, and then the verdict takes effect."""

    at: float
    key: Key
    verdict: Verdict


class TaskActionDelayed(NamedTuple):
    """An action is kept until its time."""

    at: float
    key: Key
    delayed: Delayed


class TaskActionsDropped(NamedTuple):
    """Delayed actions are void, or have been taken."""

    at: float
    key: Key
    delayed: tuple[Delayed, ...]


class TasksSignalled(NamedTuple):
    """A user sent a signal to some tasks; one that does not end them."""

    at: float
    key: Key
    tasks: tuple[TaskKey, ...]
    signal: int
    by: str


class HangEnded(NamedTuple):
    """The stacks of a job that hangs are saved, or were waited for: its policy for hangs acts, at that task."""

    at: float
    key: Key
    task: TaskKey


class ResizeAcknowledged(NamedTuple):
    """A host has the newest allocation: its tasks have the new lists, those that join have ports."""

    at: float
    key: Key
    host: str
    tasks: tuple[RolePart, ...] = ()


class PartsFreed(NamedTuple):
    """The tasks that were leaving these hosts have ended: what they held is free, or is to be released."""

    at: float
    key: Key
    hosts: tuple[str, ...]


class AutoscaleNoted(NamedTuple):
    """The metric of an elastic job has changed its size, or has no answer any more because of ``error``."""

    at: float
    key: Key
    error: str = ""
    is_change: bool = False


class JobForgotten(NamedTuple):
    """An ended job was removed from memory after the time that it asked for; the store has it."""

    at: float
    job: int


class RestartedInQueue(NamedTuple):
    """A policy has restarted a job that waits in its queue; of an array each element that was never dispatched.

    Each uses up one of its restarts, and its wait begins anew, at ``since``; there are several if the master was away.
    """

    at: float
    job: int
    since: float
    times: int
    reason: str


TaskJobEvent = (
    TasksReported
    | TasksLost
    | TasksOrdered
    | TasksStopped
    | TasksRestarted
    | ReplacementAwaited
    | SparesTaken
    | PlacesPassedOn
    | TasksConcluded
    | TaskActionDelayed
    | TaskActionsDropped
    | TasksSignalled
    | HangEnded
    | ResizeAcknowledged
    | PartsFreed
    | AutoscaleNoted
)
