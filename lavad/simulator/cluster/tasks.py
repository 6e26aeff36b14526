"""Tasks of one attempt on a simulated host: each run is started once at most, and its state is kept until the end.

They live as long as the shepherd. Behaviour is drawn when a run starts: some fail, most end well.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lavad.core import commands as c
from lavad.core.model.task_rules import TaskAction, TaskEvent, TaskKey, TaskPhase, TaskRules
from lavad.core.model.task_values import RolePart, TaskReport
from lavad.core.orders import TasksOrder
from lavad.core.state.attempts import Attempt
from lavad.simulator.cluster.checkers import History, Process

if TYPE_CHECKING:
    from lavad.simulator.cluster.fleet import SimulatedHost
    from lavad.simulator.cluster.ledger import Shepherd

ENDED_BEFORE_START = 130 << 8
SIGTERM = 15
PORT = 20000
RETRY_S = 1.0  # of a task whose job is suspended


def is_restarted_whole(rules: TaskRules | None) -> bool:
    """True if a job of tasks restarts all of it whatever its tasks lose: they run together or not at all. Tasks that
    take turns never do."""
    if rules is None or any(role.policies or role.completions for role in rules.roles):
        return False
    events = {event for one in rules.policies if one.action is TaskAction.RESTART_JOB for event in one.events}
    return events >= {TaskEvent.FAILED, TaskEvent.EVICTED, TaskEvent.HOST_LOST}


def is_partial_gang(attempt: Attempt, history: History) -> bool:
    """True if tasks of a gang run while others of it have failed, or were lost, or do not start."""
    tasks = attempt.tasks
    mine = [one for here in history.running.values() for one in here if one.key == attempt.key]
    if tasks is None or not is_restarted_whole(tasks.rules) or not mine or any(one.is_stopped for one in mine):
        return False
    runs = {history.generations[id(one)] for one in mine}
    well = [one for one in history.processes if one.key[:2] == attempt.key[:2] and one.ended and not one.status]
    done = {history.tasks[id(one)] for one in well if history.generations[id(one)] in runs}
    return not {history.tasks[id(one)] for one in mine} | done >= set(tasks.records)


@dataclass(slots=True)
class _Running:
    run: int
    process: Process


class TaskRunner:
    """Starts, ends and reports tasks."""

    def __init__(self, host: "SimulatedHost", shepherd: "Shepherd") -> None:
        self._host = host
        self._shepherd = shepherd
        self._newest: dict[TaskKey, int] = {}  # accepted runs
        self._running: dict[TaskKey, _Running] = {}
        self.states: dict[TaskKey, TaskReport] = {}

    def ports(self, parts: tuple[RolePart, ...]) -> tuple[RolePart, ...]:
        """One port for each task."""
        return tuple(
            [part._replace(ports=tuple([PORT + 100 * part.role + index for index in part.indices])) for part in parts]
        )

    def take(self, order: TasksOrder, is_stale: bool) -> None:
        """Carry out an order; a run that is not newer than the one known here is not started."""
        for task, run in order.start:
            if run <= self._newest.get(task, 0):
                if task in self.states:
                    self._tell(self.states[task])
            elif is_stale:
                self._tell(TaskReport(task, run, order_again=True))
            else:
                self._accept(task, run)
        for task, run in order.hold:
            self._hold(task, run)
        for task, run in order.stop:
            self._stop(task, run, order.reason)

    def _hold(self, task: TaskKey, run: int) -> None:
        """Hold a task without a command: what is started in its place ends with it."""
        if run > self._newest.get(task, 0):
            self._newest[task] = run
            self._set(TaskReport(task, run, TaskPhase.RUNNING, started=self._host.wall()))

    def _accept(self, task: TaskKey, run: int) -> None:
        self._newest[task] = run
        world = self._host.world
        world.after(world.rng.uniform(0.001, 0.3), lambda: self._start(task, run))

    def _start(self, task: TaskKey, run: int) -> None:
        known, shepherd, world = self.states.get(task), self._shepherd, self._host.world
        is_ended = known is not None and known.run >= run
        if shepherd.is_over or shepherd.end is not None or self._newest[task] != run or is_ended:
            return
        if task in self._running or shepherd.is_stopped:
            world.after(RETRY_S, lambda: self._start(task, run))
            return
        share, facts = shepherd.share, self._host.facts
        process = Process(shepherd.key, self._host.name, share.slots, share.gpus, world.now, False)
        self._running[task] = _Running(run, process)
        self._host.start_log.add(shepherd.key)
        is_gang = is_restarted_whole(self._host.journal[shepherd.key].order.setup.shared.tasks)
        world.history.start_task(process, task, run, shepherd.peers, facts.slots, facts.gpus, is_gang)
        self._set(TaskReport(task, run, TaskPhase.RUNNING, 4711, self._host.wall()))
        length_s, status, reason = self._drawn(task, run)
        world.after(length_s, lambda: self._runs_out(task, run, status, reason))

    def _drawn(self, task: TaskKey, run: int) -> tuple[float, int, str]:
        """Run time, wait status and reason of a run."""
        rng, behaviour = self._host.world.rng, self._host.world.behaviour(self._shepherd.key)
        if behaviour.of_tasks is not None:
            return behaviour.of_tasks.get((task, run), (behaviour.duration_s, behaviour.status, ""))
        status = behaviour.status if rng.random() < 0.3 else 0
        return behaviour.duration_s * rng.uniform(0.5, 1.5), status, ""

    def _runs_out(self, task: TaskKey, run: int, status: int, reason: str) -> None:
        known = self._running.get(task)
        if known is None or known.run != run:
            return
        if self._shepherd.is_stopped:
            self._host.world.after(RETRY_S, lambda: self._runs_out(task, run, status, reason))
        else:
            self._end(task, status, reason)

    def _stop(self, task: TaskKey, run: int, reason: str) -> None:
        world = self._host.world
        if task in self._running:
            world.after(world.rng.uniform(0.001, 0.5), lambda: self._killed(task, run, reason))
        elif task in self.states and self.states[task].run >= run:
            self._tell(self.states[task])
        else:
            self._newest[task] = max(run, self._newest.get(task, 0))
            self._set(TaskReport(task, run, TaskPhase.EXITED, status=ENDED_BEFORE_START, reason=reason))

    def _killed(self, task: TaskKey, run: int, reason: str) -> None:
        known = self._running.get(task)
        if known is not None and known.run <= run:
            self._end(task, SIGTERM, reason)

    def _end(self, task: TaskKey, status: int, reason: str = "") -> None:
        known, host = self._running.pop(task), self._host
        host.world.history.stop(known.process, host.world.now, status)
        phase = TaskPhase.EXITED if status else TaskPhase.DONE
        began = self.states[task].started
        self._set(TaskReport(task, known.run, phase, 4711, began, host.wall(), status, reason))

    def end_all(self, status: int) -> None:
        """End all tasks with the host's part of the attempt; those accepted and not started will not be."""
        for task in list(self._running):
            self._end(task, status)
        for task, run in self._newest.items():
            if task not in self.states or self.states[task].run < run:
                self._set(TaskReport(task, run, TaskPhase.EXITED, status=ENDED_BEFORE_START))

    def pause(self, is_stopped: bool) -> None:
        """Suspend or resume the processes that run."""
        for known in self._running.values():
            if is_stopped:
                known.process.is_stopped = True
            else:
                self._host.world.history.go_on(known.process, self._host.facts.slots, self._host.facts.gpus)

    def _set(self, state: TaskReport) -> None:
        self.states[state.task] = state
        self._tell(state)

    def _tell(self, state: TaskReport) -> None:
        """Report a state, if the agent is there; a later one has it in its hello."""
        report = c.ReportTasks(self._host.name, self._shepherd.key, (state,))
        self._host.act(self._host.incarnation, lambda: self._host.world.say(self._host, [report]))
