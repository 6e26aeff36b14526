"""Tasks of a job of tasks: where each is, in which phase, and what the job as a whole has been through.

Replaced records, so that an attempt's history can be compared; only ``apply`` writes. Run numbers and the number of
restarts count over the life of the job, tasks are placed anew with each attempt. Phases are counted as they change: a
job of thousands of tasks is decided upon after each report.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lavad.core.model import Allocation, Launch
from lavad.core.model.task_rules import TaskEvent, TaskKey, TaskPhase, TaskRules
from lavad.core.model.task_values import Delayed, Replacement, RolePart, TaskHost, TaskRun, TaskTable, Verdict

ALIVE = frozenset({TaskPhase.STARTING, TaskPhase.RUNNING, TaskPhase.STOPPING})
ENDED = frozenset({TaskPhase.DONE, TaskPhase.EXITED})
JOB, ROLE, GROUP, TASK = "job", "role", "group", "task"  # scope of a restart


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
    ends_as: TaskEvent | None = None  # event that its end counts as; None: by its exit status
    joins: str = ""  # host on which it is to have a place when the growth is ready
    joined: int = 0  # version of the allocation with which it got its place, 0: with the dispatch
    leaves: bool = False  # its place was given up: it is not in the table, and has none when its run has ended
    was_on: str = ""  # lost host of its last run, if it has no place since
    not_before: float = 0.0  # its next run starts no earlier
    failures: int = 0  # in a row: runs that failed before they were stable
    left: str = ""  # host of its last run, where its place was given up since: the output is there
    place: int = -1  # of an ended task whose place it has: its devices are those of that index; -1: of its own

    @property
    def is_alive(self) -> bool:
        """True if a process of it runs, or is about to, or may be left."""
        return self.phase in ALIVE


class TaskList(dict[TaskKey, TaskRecord]):
    """Records in order of role and index, with sets and numbers of those in some phases.

    ``changed`` are those that the store has not taken yet.
    """

    __slots__ = ("alive", "changed", "counts", "held_back", "idle", "placed", "restarting", "unplaced", "waiting",
                 "waiting_alone")  # fmt: skip

    def __init__(self, given: Mapping[TaskKey, TaskRecord] | None = None) -> None:
        super().__init__()
        self.alive: set[TaskKey] = set()
        self.waiting: set[TaskKey] = set()  # with a place
        self.waiting_alone = 0  # of these, started without regard to others
        self.placed: set[TaskKey] = set()
        self.idle: set[TaskKey] = set()  # ended, with a place
        self.unplaced: dict[int, set[int]] = {}  # by role: indices of those that wait without a place
        self.counts: Counter[tuple[int, TaskPhase]] = Counter()
        self.restarting = 0  # alive, to be started anew
        self.held_back = 0  # alive, and others are started with it or not at all
        self.changed: set[TaskKey] = set()
        for key, record in (given or {}).items():
            self[key] = record

    def __setitem__(self, key: TaskKey, record: TaskRecord) -> None:
        before = self.get(key)
        if before is not None:
            self._count(key, before, -1)
        super().__setitem__(key, record)
        self._count(key, record, 1)
        self.changed.add(key)

    def _count(self, key: TaskKey, record: TaskRecord, step: int) -> None:
        phase = record.phase
        self.counts[key.role, phase] += step
        if record.host:
            (self.placed.add if step > 0 else self.placed.discard)(key)
        if phase in ENDED and record.host:
            (self.idle.add if step > 0 else self.idle.discard)(key)
        elif phase is TaskPhase.WAITING and not (record.host or record.joins):
            unplaced = self.unplaced.setdefault(key.role, set())
            (unplaced.add if step > 0 else unplaced.discard)(key.index)
        if phase is TaskPhase.WAITING and record.host:
            (self.waiting.add if step > 0 else self.waiting.discard)(key)
            self.waiting_alone += step * (not record.waits_for_all)
        elif phase in ALIVE:
            (self.alive.add if step > 0 else self.alive.discard)(key)
            self.restarting += step * record.again
            self.held_back += step * record.waits_for_all


@dataclass(slots=True)
class JobTasks:
    """Tasks of one job."""

    rules: TaskRules
    names: tuple[str, ...]  # of the roles
    sizes: tuple[int, ...]  # of each role: tasks in all
    least: tuple[int, ...]  # of each role: tasks without which the job does not start
    places: tuple[int, ...]  # of each role: tasks with a place at a time, at most
    records: TaskList = field(default_factory=TaskList)
    launches: tuple[Launch, ...] = ()  # of each role
    version: int = 0  # of the task table: raised when a place or port changes
    restarts: int = 0  # of the whole job, as far as they count
    restarts_in_place: dict[TaskKey, int] = field(default_factory=dict)  # by group (``group_of``)
    verdict: Verdict | None = None
    delayed: tuple[Delayed, ...] = ()
    autoscaled_at: float = 0.0  # last change of its size by its metric
    autoscale_error: str = ""  # why its metric has no answer
    replacement: Replacement | None = None  # that the job waits for, in place of lost hosts
    pauses: tuple[float, ...] = ()  # ends of pauses before restarts, soonest first
    wishes: tuple[int, ...] = ()  # of each role: the size that its user has set while it runs; empty: ``sizes``
    addresses: dict[str, str] = field(default_factory=dict)  # of its hosts, as their agents gave them
    # By task without a process of its own: the task whose process stands for it; and the other way round.
    stands_for: dict[TaskKey, TaskKey] = field(default_factory=dict)
    led: dict[TaskKey, tuple[TaskKey, ...]] = field(default_factory=dict)
    _table: tuple[int, TaskTable] = (-1, ())

    def of_role(self, role: int) -> Iterator[tuple[TaskKey, TaskRecord]]:
        """Tasks of one role, by index."""
        return (item for item in self.records.items() if item[0].role == role)

    def group_of(self, key: TaskKey) -> TaskKey:
        """Group of a task: its role, and its number there."""
        size = self.rules.roles[key.role].group
        return TaskKey(key.role, key.index // size if size else 0)

    def wanted(self, role: int) -> int:
        """Number of tasks that a role is to have, as its user wants it now. That of places at a time is another thing
        where tasks take turns."""
        is_by_turns = self.sizes[role] > self.places[role]
        return self.sizes[role] if is_by_turns or not self.wishes else self.wishes[role]

    def owed(self, role: int) -> int:
        """Number of a role's tasks that have yet to get a place: it asked for completions."""
        unplaced = len(self.records.unplaced.get(role, ()))
        if not unplaced or not self.rules.roles[role].completions:
            return 0
        return max(0, min(unplaced, self.wanted(role) - (self.sizes[role] - unplaced)))

    def on_host(self, host: str) -> list[TaskKey]:
        """Tasks with a place on that host."""
        return [key for key in sorted(self.records.placed) if self.records[key].host == host]

    def count(self, role: int, phases: Iterable[TaskPhase]) -> int:
        """Number of a role's tasks in these phases."""
        return sum(self.records.counts[role, phase] for phase in phases)

    def total(self, phase: TaskPhase) -> int:
        """Number of tasks in that phase."""
        return sum(self.records.counts[role, phase] for role in range(len(self.sizes)))

    def label(self, key: TaskKey) -> str:
        """Name of a task for users: ``worker[3]``."""
        return f"{self.names[key.role]}[{key.index}]"

    def is_held(self, key: TaskKey) -> bool:
        """True if the task has no command: it holds its slots for processes that others start in its place."""
        return bool(self.launches) and self.launches[key.role] is Launch.NONE

    def has_process(self, key: TaskKey) -> bool:
        """True if the task is started on its host, with a command."""
        return self.has_run(key) and not self.is_held(key)

    def has_run(self, key: TaskKey) -> bool:
        """True if processes of the task begin and end with a run of it; others are in the run of another task."""
        return key not in self.stands_for

    @property
    def displaced(self) -> tuple[TaskKey, ...]:
        """Tasks that wait for places in exchange for lost ones."""
        found = self.replacement.tasks if self.replacement is not None else ()
        return tuple([key for key in found if not self.records[key].host])

    def spare_places(self, allocation: Allocation) -> list[tuple[int, str]]:
        """Role and host of each place of an allocation that no task has, or is to have."""
        used = Counter((key.role, one.host or one.joins) for key, one in self.records.items())
        return [
            (role, share.host)
            for share in allocation
            for role, places in enumerate(share.tasks_by_role)
            for _ in range(places - used[role, share.host])
        ]

    @property
    def alive(self) -> list[TaskKey]:
        """Tasks of which a process runs, or is about to, or may be left."""
        return sorted(self.records.alive)

    @property
    def is_running(self) -> bool:
        """True if a process of any task may be left."""
        return any(self.has_run(key) for key in self.records.alive)

    def runs(self, tasks: Iterable[TaskKey]) -> tuple[TaskRun, ...]:
        """The newest runs of these tasks."""
        return tuple([TaskRun(key, self.records[key].run) for key in tasks])

    @property
    def table(self) -> TaskTable:
        """All placed tasks by host, in the order of roles and indices. Made once for each version."""
        if self._table[0] != self.version:
            self._table = self.version, self._made()
        return self._table[1]

    def _made(self) -> TaskTable:
        hosts: dict[str, dict[int, list[TaskKey]]] = {}
        for key in sorted(self.records.placed):
            record = self.records[key]
            if not record.leaves:
                hosts.setdefault(record.host, {}).setdefault(key.role, []).append(key)
        return tuple(
            [
                TaskHost(name, self.addresses.get(name, ""), tuple([self._part(*one) for one in roles.items()]))
                for name, roles in hosts.items()
            ]
        )

    def in_order(self, host: str, role: int) -> list[TaskKey]:
        """Tasks of a role that have their places on a host and keep them, in the order of their devices there."""
        part = next((part for one in self.table if one.host == host for part in one.parts if part.role == role), None)
        return [TaskKey(role, index) for index in part.indices] if part is not None else []

    def _part(self, role: int, keys: list[TaskKey]) -> RolePart:
        keys = sorted(keys, key=self._order_on_host)
        ports = tuple([port for key in keys for port in self.records[key].ports])
        return RolePart(role, tuple([key.index for key in keys]), ports)

    def _order_on_host(self, key: TaskKey) -> tuple[int, int]:
        record = self.records[key]
        return record.joined, key.index if record.place < 0 else record.place
