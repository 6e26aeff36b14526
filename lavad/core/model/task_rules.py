"""Rules of a job of tasks: its own fate as a function of that of its tasks.

A job of tasks has roles whose tasks are started, watched and restarted one by one; all others have one command, whose
end is the job's. The events and actions are those of Volcano's lifecycle policies, under the names of the glossary.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

REPLACE_S = 300.0
PAUSE_MAX_S = 300.0
STABLE_S = 600.0


class TaskEvent(IntEnum):
    """Event of a task, a role or a host of a job. The numbers are those of the wire and of the store."""

    ANY = 1
    FAILED = 2
    EVICTED = 3
    PENDING = 4
    SUCCEEDED = 5
    ROLE_COMPLETED = 6
    ROLE_FAILED = 7
    HOST_LOST = 8
    HANGS = 9
    TIMEOUT = 10


class TaskAction(IntEnum):
    """Action of a lifecycle policy. The numbers are those of the wire and of the store."""

    IGNORE = 1
    RESTART_TASK = 2
    RESTART_ROLE = 3
    RESTART_JOB = 4
    ABORT = 5
    TERMINATE = 6
    COMPLETE = 7
    RESUME = 8
    RESTART_GROUP = 9


RESTARTS = frozenset(
    {TaskAction.RESTART_TASK, TaskAction.RESTART_GROUP, TaskAction.RESTART_ROLE, TaskAction.RESTART_JOB}
)


class TaskPhase(IntEnum):
    """State of a task. The numbers are those of the wire and of the store."""

    WAITING = 0
    STARTING = 1
    RUNNING = 2
    STOPPING = 3
    DONE = 4
    EXITED = 5


class InPlace(IntEnum):
    """Restart of a task whose process has ended, before any policy hears of it."""

    NEVER = 0
    ON_FAILURE = 1
    ALWAYS = 2


class Metric(IntEnum):
    """Metric that a role follows: what a script prints, or the slots that pending jobs of the queue ask for."""

    SCRIPT = 1
    PENDING = 2


class Autoscale(NamedTuple):
    """Rule for the size of a role. ``most`` 0: the role's maximum. ``target``: pending slots for each task."""

    role: int
    metric: Metric
    least: int = 0
    most: int = 0
    cooldown_s: float = 0.0
    target: int = 1


class TaskKey(NamedTuple):
    """A task of a job: the number of its role, and its index in that role from 0."""

    role: int
    index: int  # type: ignore[assignment]  # hides tuple.index, which has no use on a key


class Policy(NamedTuple):
    """Action for some events, or for some exit codes of a task.

    ``timeout_s``: the action waits for this long, and is dropped if the task runs again before.
    ``index``: of this task of the role only; -1: of all. ``is_counted``: its restarts count.
    """

    action: TaskAction
    events: frozenset[TaskEvent] = frozenset()
    exit_codes: frozenset[int] = frozenset()
    timeout_s: float = 0.0
    index: int = -1  # type: ignore[assignment]
    is_counted: bool = True


@dataclass(frozen=True, slots=True)
class RoleRules:
    """Rules of one role. The number and order are those of the request's roles."""

    policies: tuple[Policy, ...] = ()
    after: tuple[int, ...] = ()  # numbers of the roles that must be ready before
    after_any: bool = False
    after_done: tuple[int, ...] = ()  # numbers of the roles all of whose tasks must have succeeded before
    in_place: InPlace = InPlace.NEVER
    restarts_max: int = 0  # restarts in place of all its tasks together, or of those of a group
    group: int = 0  # tasks of a group, by their index; 0: all tasks of the role are one
    success_min: int = 0
    failed_enough: int = 0  # the job fails as soon as this number of its tasks has failed; 0: never
    succeeded_enough: int = 0  # the job is done as soon as this number of its tasks has succeeded; 0: never
    run_limit_s: float = 0.0  # of one task; 0: none
    completions: int = 0  # its tasks in all, each of which runs to its end; 0: those that have a place
    pause_s: float = 0.0  # this and those below: in place of the job's, if it is not 0
    pause_max_s: float = PAUSE_MAX_S
    stable_s: float = STABLE_S


@dataclass(frozen=True, slots=True)
class TaskRules:
    """Rules of a job of tasks. Equal ones are one object (interned with the job's shared attributes)."""

    roles: tuple[RoleRules, ...]
    policies: tuple[Policy, ...] = ()  # after those of the task's role
    restarts_max: int = 0  # of the whole job
    restarts_when_failed: bool = False
    success_min: int = 0
    succeeded_enough: int = 0  # 0: never
    needs_each: bool = False  # done when each role that has a ``succeeded_enough`` has reached it, not with the first
    final_codes: frozenset[int] = frozenset()  # exit codes after which the job is never restarted
    free_codes: frozenset[int] = frozenset()  # exit codes after which it always is, without counting
    ttl_s: float | None = None
    autoscale: Autoscale | None = None
    replace_s: float = REPLACE_S  # wait for other hosts in place of lost ones; 0: another attempt at once
    pause_s: float = 0.0  # before a failed task is started anew in place; doubled with each failure in a row
    pause_max_s: float = PAUSE_MAX_S
    stable_s: float = STABLE_S  # a run of this length ends a row of failures
