"""Tasks of one attempt of a job of tasks on this host: the newest table, and the newest run of each task. Pure.

Invariants: a run that is not newer than the newest one known is never started; a run whose end is ordered before its
start has ended here, and is never started; the shepherd's word about a run replaces what was assumed of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from agents.shepherd.messages import RunState
from protos.agents_pb2 import TasksOrder
from protos.common_pb2 import TASK_DONE, TASK_EXITED, TASK_RUNNING, RoleTasks, TaskHost, TaskRun, TaskState

# Wait status and reason of a run that was ended before its start.
ENDED_BEFORE_START = 130 << 8
NOT_STARTED = "The task was ended before it started."

TaskKey = tuple[int, int]  # role, index
Run = tuple[int, int, int]  # role, index, run


def run_of(message: TaskRun) -> Run:
    """Return a run as a tuple."""
    return (message.role, message.index, message.run)


def message_of(run: Run) -> TaskRun:
    """Return a run as on the wire."""
    return TaskRun(role=run[0], index=run[1], run=run[2])


class Decision(NamedTuple):
    """Consequences of an order on tasks."""

    start: tuple[Run, ...] = ()
    stop: tuple[Run, ...] = ()
    signalled: tuple[Run, ...] = ()
    say: tuple[TaskState, ...] = ()
    is_news: bool = False  # the order must be in the journal before it is acted upon
    hold: tuple[Run, ...] = ()  # as start, without a command


@dataclass(slots=True)
class Known:
    """The newest run of a task; its state is None while its start is on its way."""

    run: int
    state: TaskState | None = None
    is_held: bool = False  # it has no command
    is_ending: bool = False  # its end has been ordered

    @property
    def has_ended(self) -> bool:
        """True if its end is known."""
        return self.state is not None and self.state.phase != TASK_RUNNING


@dataclass(slots=True)
class TaskBook:
    """Tasks of one attempt, as far as this host was told of them."""

    version: int = 0  # of the table
    table: list[TaskHost] = field(default_factory=list)
    reserved: list[RoleTasks] = field(default_factory=list)  # ports of this host's tasks
    address: str = ""  # of this host, told with them
    known: dict[TaskKey, Known] = field(default_factory=dict)

    def order(self, order: TasksOrder, too_old: bool = False) -> Decision:
        """Take an order; with ``too_old``, or for want of its table, no run is started."""
        is_startable = not too_old and self._learn(order)
        begun: dict[bool, list[Run]] = {False: [], True: []}  # those with a command, those without
        stop = list[Run]()
        say = list[TaskState]()
        wanted = [(run_of(one), False) for one in order.start] + [(run_of(one), True) for one in order.hold]
        for run, is_held in wanted:
            known = self.known.get(run[:2])
            if known is not None and run[2] <= known.run:
                say += [known.state] if known.state is not None and run[2] == known.run else []
            elif is_startable:
                self.known[run[:2]] = Known(run[2], is_held=is_held)
                begun[is_held].append(run)
            else:
                say.append(TaskState(task=message_of(run), order_again=True))
        is_news = bool(begun[False] or begun[True])
        for run in map(run_of, order.stop):
            known = self.known.get(run[:2])
            if known is not None:
                known.is_ending = known.is_ending or known.run <= run[2]
            if known is not None and run[2] <= known.run:
                if run[2] == known.run:
                    say += [known.state] if known.has_ended and known.state is not None else []
                    stop += [] if known.has_ended else [run]
                continue
            if known is not None and not known.has_ended:
                stop.append((*run[:2], known.run))
            ended = _before_start(run, order.reason)
            self.known[run[:2]] = Known(run[2], ended)
            say.append(ended)
            is_news = True
        signalled = [run for run in map(run_of, order.signalled) if self._is_alive(run)]
        return Decision(tuple(begun[False]), tuple(stop), tuple(signalled), tuple(say), is_news, tuple(begun[True]))

    def _learn(self, order: TasksOrder) -> bool:
        """Keep a newer table; return True if that of the order is known then."""
        if order.table and order.version >= self.version:
            self.version, self.table = order.version, list(order.table)
        return order.version <= self.version

    def _is_alive(self, run: Run) -> bool:
        known = self.known.get(run[:2])
        return known is not None and known.run == run[2] and not known.has_ended

    def running_here(self) -> list[tuple[Run, bool]]:
        """Return the runs in whose place something may be started now; True for those without a command."""
        running = ((key, known) for key, known in sorted(self.known.items()) if known.state is not None)
        return [
            ((*key, known.run), known.is_held) for key, known in running if not (known.has_ended or known.is_ending)
        ]

    def is_held(self, run: Run) -> bool:
        """Return True if the newest run of that task is this one, and has no command."""
        known = self.known.get(run[:2])
        return known is not None and known.is_held and known.run == run[2]

    def run_of(self, task: TaskKey) -> int:
        """Return the newest run of a task; 0 for none."""
        return self.known[task].run if task in self.known else 0

    def pid_of(self, run: Run) -> int:
        """Return the first process of a run while it is alive; else 0."""
        known = self.known.get(run[:2])
        return known.state.pid if known is not None and known.state is not None and self._is_alive(run) else 0

    def take(self, states: Iterable[RunState]) -> list[TaskState]:
        """Take states from the shepherd; return those that are news."""
        news = []
        for state in map(state_message, states):
            key = (state.task.role, state.task.index)
            known = self.known.get(key)
            if known is None or known.run < state.task.run:
                self.known[key] = known = Known(state.task.run)
            if known.run > state.task.run:
                news += [state] if state.phase != TASK_RUNNING else []  # its end, while the next run waits for it
            elif not known.has_ended and known.state != state:
                known.state = state
                news.append(state)
        return news

    def adopt(self, states: Iterable[RunState]) -> None:
        """Take the states of a shepherd that outlived the last agent; starts that never reached it are forgotten."""
        for key in [key for key, known in self.known.items() if known.state is None]:
            del self.known[key]
        self.take(states)

    def restore(self, order: TasksOrder) -> None:
        """Replay an order from the journal."""
        self.order(order)

    def content(self) -> TasksOrder:
        """Return an order from which `restore` would rebuild this book, but for the states that the shepherd has."""
        order = TasksOrder(version=self.version, table=self.table)
        for key, known in self.known.items():
            unstarted = known.state is not None and known.state.detail == NOT_STARTED
            begun = order.hold if known.is_held else order.start
            (order.stop if unstarted else begun).append(message_of((*key, known.run)))
            if unstarted and known.state is not None:
                order.reason = known.state.reason
        return order

    def states(self) -> list[TaskState]:
        """Return the newest state of each task that was started or ended here."""
        return [known.state for known in self.known.values() if known.state is not None]

    def ports(self) -> set[int]:
        """Return the ports reserved for this attempt."""
        return {port for role in self.reserved for port in role.ports}


def _before_start(run: Run, reason: str) -> TaskState:
    return TaskState(
        task=message_of(run), phase=TASK_EXITED, status=ENDED_BEFORE_START, reason=reason, detail=NOT_STARTED
    )


def state_message(state: RunState) -> TaskState:
    """Return a shepherd's word about a run as on the wire."""
    phase = TASK_RUNNING if not state.ended else TASK_EXITED if state.status else TASK_DONE
    return TaskState(
        task=message_of((state.role, state.index, state.run)),
        phase=phase,
        pid=state.pid,
        started=state.started,
        ended=state.ended,
        status=state.status,
        reason=state.reason,
        detail=state.detail,
    )
