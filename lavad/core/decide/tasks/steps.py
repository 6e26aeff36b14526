"""Steps of the lifecycle machine: each becomes one event of the job."""

from typing import NamedTuple

from lavad.core.model.task_rules import TaskEvent, TaskKey
from lavad.core.model.task_values import Delayed, Verdict


class Restart(NamedTuple):
    """Start these tasks anew, in place. ``scope``: job, role or task. ``in_place``: within a role's own restarts.

    ``cause``: the task whose end it follows, if the next run of that is to wait for longer each time.
    """

    scope: str
    tasks: tuple[TaskKey, ...]
    event: TaskEvent
    is_counted: bool = True
    in_place: bool = False
    cause: TaskKey | None = None


class Conclude(NamedTuple):
    """End all tasks; then the verdict takes effect."""

    verdict: Verdict


class Delay(NamedTuple):
    """Keep an action until its time."""

    delayed: Delayed


class Drop(NamedTuple):
    """Forget delayed actions."""

    delayed: tuple[Delayed, ...]


Step = Restart | Conclude | Delay | Drop
