"""Tasks of a job of tasks: where each is, in which phase, and what the job as a whole has been through.

Replaced records, so that an attempt's history can be compared; only ``apply`` writes. Run numbers and the number of
restarts count over the life of the job, tasks are placed anew with each attempt.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from lavad.core.model.task_rules import TaskAction, TaskEvent, TaskKey, TaskPhase, TaskRules

ALIVE = frozenset({TaskPhase.STARTING, TaskPhase.RUNNING, TaskPhase.STOPPING})
ENDED = frozenset({TaskPhase.DONE, TaskPhase.EXITED})
JOB, ROLE, TASK = "job", "role", "task"  # scope of a restart


class TaskRecord(NamedTuple):
    """One task. ``again``: it is started anew when its present run has ended. ``waits_for_all``: and when no other such
    task is alive. ``status`` is the raw wait status of its last run."""

    phase: TaskPhase = TaskPhase.WAITING
    host: str = ""  # empty: without a place
    run: int = 0  # of its newest start, 0 before the first
    ports: tuple[int, ...] = ()
    pid: int = 0
    started: float = 0.0
    ended: float = 0.0
    status: int = 0
    reason: str = ""
    again: bool = False
    waits_for_all: bool = False
    stopped: str = ""  # why its end was ordered; empty: it was not

    @property
    def is_alive(self) -> bool:
        """True if a process of it runs, or is about to, or may be left."""
        return self.phase in ALIVE


class Delayed(NamedTuple):
    """Action of a policy with a timeout, due unless the task runs again before."""

    at: float
    action: TaskAction
    event: TaskEvent
    task: TaskKey


class Verdict(NamedTuple):
    """Decision about the job as a whole; it takes effect when none of its tasks is alive.

    ``action``: COMPLETE, TERMINATE, ABORT, or RESTART_JOB for another attempt. ``status``: raw wait status of its end.
    """

    action: TaskAction
    status: int = 0
    reason: str = ""
    is_counted: bool = True


@dataclass(slots=True)
class JobTasks:
    """Tasks of one job."""

    rules: TaskRules
    names: tuple[str, ...]  # of the roles
    sizes: tuple[int, ...]  # of each role: tasks wanted at most
    least: tuple[int, ...]  # of each role: tasks without which the job does not start
    records: dict[TaskKey, TaskRecord] = field(default_factory=dict)  # in order of role and index
    version: int = 0  # of the task table: raised when a place or port changes
    restarts: int = 0  # of the whole job, as far as they count
    restarts_in_place: dict[int, int] = field(default_factory=dict)  # by role
    verdict: Verdict | None = None
    delayed: tuple[Delayed, ...] = ()
    addresses: dict[str, str] = field(default_factory=dict)  # of its hosts, as their agents gave them

    def of_role(self, role: int) -> Iterator[tuple[TaskKey, TaskRecord]]:
        """Tasks of one role, by index."""
        return (item for item in self.records.items() if item[0].role == role)

    def count(self, role: int, phases: Iterable[TaskPhase]) -> int:
        """Number of a role's tasks in these phases."""
        wanted = frozenset(phases)
        return sum(record.phase in wanted for _, record in self.of_role(role))

    def label(self, key: TaskKey) -> str:
        """Name of a task for users: ``worker[3]``."""
        return f"{self.names[key.role]}[{key.index}]"

    @property
    def alive(self) -> list[TaskKey]:
        """Tasks of which a process runs, or is about to, or may be left."""
        return [key for key, record in self.records.items() if record.is_alive]
