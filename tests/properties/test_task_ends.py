"""No slot of a task is given on while a process of the task lives: every way of starting one, by every end.

The real decisions of the master, the real book of each agent and the real runs of each shepherd, with processes, clock
and links of a model. Links deliver in order and late; processes heed SIGTERM after a while or not at all, and leave
children; a launcher fails; users scale down, remove, kill and start something in the place of tasks at any moment.
"""

import heapq
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from agents.attempts.task_book import TaskBook
from agents.shepherd.messages import Program, RunOrder, RunState
from agents.shepherd.tasks import runs as runs_module
from agents.shepherd.tasks.kept import Refusal
from agents.shepherd.tasks.runs import Host, Runs
from lavad.agent_links.task_orders import TaskMessages
from lavad.core import commands as c
from lavad.core.model import Key
from lavad.core.model.reasons import Refused
from lavad.core.model.task_rules import TaskAction, TaskEvent, TaskKey, TaskPhase
from lavad.core.model.task_values import TaskReport
from lavad.core.orders import Order, ReleaseOrder, ResizeOrder, TasksOrder, task_order
from lavad.core.state.tasks import ALIVE
from protos import agents_pb2 as pb
from tests.builders import ANN, a_host
from tests.task_jobs import NONE, TaskStory, a_policy, a_task_role, ports

SEEDS = 100 * int(os.environ.get("LAVA_EXAMPLES", "0")) or 50
INTERVAL_S = 5.0
TERM, KILL = 15, 9
LAUNCHER, WORKER = 0, 1
HOSTS = ("n1", "n2", "n3")


@dataclass(eq=False)
class Process:
    """One process: of a run's command, or of what was started in its place."""

    pid: int
    serial: int
    run: tuple[int, int, int]
    is_deaf: bool
    is_told: bool = False


@dataclass
class Machine:
    """A host: the agent's book, the shepherd's runs, and processes of a model."""

    world: "World"
    name: str
    book: TaskBook = field(default_factory=TaskBook)
    first: dict[int, int] = field(default_factory=dict)
    living: dict[int, Process] = field(default_factory=dict)

    def __post_init__(self) -> None:
        here = Host(self._spawn, lambda _: None, self._signal, self, self._over, self.first, self._tell, str)  # type: ignore[arg-type]
        self.runs = Runs(here, INTERVAL_S)

    def of(self, serials: Iterable[int], sessions: Mapping[int, int] | None = None) -> dict[int, list[int]]:
        """Processes by serial, as control groups know them."""
        return {serial: [pid for pid, one in self.living.items() if one.serial == serial] for serial in serials}

    def begin(self, serial: int, run: tuple[int, int, int]) -> int:
        """Start a process, which may leave a child behind."""
        pid, rng = next(self.world.pids), self.world.rng
        self.living[pid] = Process(pid, serial, run, rng.random() < 0.4)
        if rng.random() < 0.5:
            child = next(self.world.pids)
            self.living[child] = Process(child, serial, run, rng.random() < 0.4)
        self.first[pid] = serial
        return pid

    def _spawn(self, order: RunOrder, serial: int, _output: int) -> int:
        return self.begin(serial, (order.role, order.index, order.run))

    def _signal(self, number: int, serial: int) -> None:
        for one in [one for one in self.living.values() if one.serial == serial]:
            if number == KILL:
                assert one.is_told, f"{one} was killed without a word"
                self.world.later(0.01, lambda pid=one.pid: self.die(pid, KILL))  # type: ignore[misc]
            elif number == TERM:
                one.is_told = True
                if not one.is_deaf:
                    self.world.later(self.world.rng.uniform(0, 3), lambda pid=one.pid: self.die(pid, TERM))  # type: ignore[misc]

    def kill(self, pids: Iterable[int], number: int) -> None:
        """Send a signal to processes, as the kernel does."""
        for pid in list(pids):
            self.die(pid, number)

    def die(self, pid: int, status: int) -> None:
        """End a process; the shepherd reaps it."""
        if self.living.pop(pid, None) is None:
            return
        serial = self.first.pop(pid, 0)
        if serial and not self.runs.ended(serial, status, ""):
            self.runs.left(serial, pid)

    def _over(self, serial: int) -> None:
        assert not self.of([serial])[serial], f"a serial of {self.name} is over, and its processes are not"

    def start_beside(self, runs: tuple[tuple[int, int, int], ...]) -> None:
        """Start a process in the place of one of these runs, as ssh and blaunch do."""
        try:
            task = self.runs.place_of(runs)
        except Refusal:
            return
        serial = next(self.world.serials)
        run = next(one for one in runs if one[:2] == task)
        self.begin(serial, run)
        self.runs.joined(task, serial)

    def take(self, message: pb.TasksOrder) -> None:
        """Carry an order of the master out."""
        found = self.book.order(message)
        self.runs.stop(found.stop, message.reason)
        begun = [(run, Program("/bin/x", ("x",))) for run in found.start]
        begun += [(run, Program("", ())) for run in found.hold]
        self.runs.start([RunOrder(*run, "role", program, {}) for run, program in begun])
        self._report(found.say)

    def _tell(self, states: list[RunState]) -> None:
        self._report(self.book.take(states))

    def _report(self, states: Iterable[Any]) -> None:
        told = tuple(
            TaskReport(TaskKey(one.task.role, one.task.index), one.task.run, TaskPhase(one.phase), one.pid, one.started,
                       one.ended, one.status, one.reason)
            for one in states
        )  # fmt: skip
        if told:
            key = self.world.key
            self.world.send(self.name, lambda: self.world.do(c.ReportTasks(self.name, key, told)))


class World:
    """Three hosts and the master with one job: a launcher, and workers that hold their slots for its ranks."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.now = 1_000_000.0
        self.pids, self.serials, self._numbers = count(100), count(1), count()
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._links: dict[str, float] = defaultdict(float)
        self.story = TaskStory(*(a_host(name, 2) for name in HOSTS))
        self.key = Key(0, 0, 0)
        self.machines = {name: Machine(self, name) for name in HOSTS}

    def later(self, delay_s: float, action: Callable[[], object]) -> None:
        """Schedule an action after so many seconds."""
        heapq.heappush(self._events, (self.now + delay_s, next(self._numbers), action))

    def send(self, link: str, action: Callable[[], object]) -> None:
        """Deliver a message of a link in order, late."""
        at = self._links[link] = max(self._links[link], self.now + self.rng.uniform(0.001, 1.5))
        heapq.heappush(self._events, (at, next(self._numbers), action))

    def begin(self) -> None:
        """Start the job."""
        roles = (a_task_role("launcher"), a_task_role("worker", 1, 5, launch=self.rng.choice((NONE, NONE, 1))))
        trouble = a_policy(TaskEvent.FAILED, action=TaskAction.RESTART_JOB)
        self.key = self.story.begin(*roles, policies=[trouble], restarts_max=3)
        tasks, attempt = self.tasks, self.story.cluster.attempts[self.key]
        for name in HOSTS:
            self._deliver([task_order(attempt, tasks, name, [key for key in tasks.on_host(name)])])

    @property
    def tasks(self) -> Any:
        """The tasks of the job."""
        return self.story.tasks(self.key)

    def do(self, command: c.Command) -> None:
        """A step of the master, and its orders on their way."""
        self.story.now = max(self.story.now, self.now)
        try:
            orders = self.story.do(command).orders
        except Refused:
            return
        self._deliver(orders)

    def _deliver(self, orders: Iterable[Order]) -> None:
        for order in orders:
            match order:
                case TasksOrder():
                    message = pb.Orders()
                    TaskMessages().add(message, order)
                    machine, tasks = self.machines[order.host], message.orders[0].tasks
                    self.send(f"to {order.host}", lambda machine=machine, tasks=tasks: machine.take(tasks))  # type: ignore[misc]
                case ResizeOrder():
                    self.send(f"to {order.host}", lambda one=order: self._resized(one))  # type: ignore[misc]
                case ReleaseOrder():
                    self.send(f"to {order.host}", lambda one=order: self._release(one.host))  # type: ignore[misc]

    def _resized(self, order: ResizeOrder) -> None:
        found = ports(self.story, self.key, order.host)
        self.send(order.host, lambda: self.do(c.ReportResized(order.host, self.key, order.version, tasks=found)))

    def _release(self, name: str) -> None:
        machine = self.machines[name]
        machine.kill(list(machine.living), KILL)
        self.send(name, lambda: self.do(c.ReportReleased(name, self.key)))

    # -- what users and programs do

    def act(self) -> None:
        """Carry out a random action of a user, a launcher or a program of the job."""
        target, rng = c.Target(self.key.job), self.rng
        match rng.choice(("ssh", "ssh", "ssh", "host", "host", "scale", "remove", "kill", "fail", "exit")):
            case "ssh" | "host" as way:
                machine = self.machines[rng.choice(HOSTS)]
                runs = [run for run, _ in machine.book.running_here()]
                if runs:
                    machine.start_beside(tuple(runs) if way == "host" else (rng.choice(runs),))
            case "scale":
                self.do(c.ScaleJob(target, (("worker", rng.randint(1, 4)),), ANN, True))
            case "remove":
                self.do(c.ShrinkJob(target, f"worker-{rng.randint(0, 4)}", ANN))
            case "kill":
                self.do(c.KillJob(c.Target(self.key.job, None, "worker", rng.randint(0, 4)), ANN))
            case "fail":
                self._commands_end(1 << 8, LAUNCHER)
            case "exit" if rng.random() < 0.1:
                self._commands_end(0, LAUNCHER)

    def _commands_end(self, status: int, *roles: int) -> None:
        """Let the first processes of these roles' tasks end by themselves."""
        for machine in self.machines.values():
            for one in list(machine.living.values()):
                if one.run[0] in roles and one.pid in machine.first:
                    machine.die(one.pid, status)

    # -- time

    def run(self) -> None:
        """Let random actions happen, then let all end."""
        self.begin()
        for _ in range(self.rng.randint(5, 25)):
            self.later(self.rng.uniform(0, 60), self.act)
        for number in range(30):  # until no restart is left
            self.later(100 + 40 * number, lambda: self._commands_end(1 << 8, LAUNCHER))
            self.later(1400 + 40 * number, lambda: self._commands_end(0, LAUNCHER, WORKER))
        self._until(self.now + 2700)

    def _until(self, end: float) -> None:
        while self.now < end:
            due = min([end, *(machine.runs.next_at for machine in self.machines.values())])
            if self._events and self._events[0][0] <= due:
                self.now, _, action = heapq.heappop(self._events)
                action()
            else:
                self.now = max(self.now, due) + 1e-6
            for machine in self.machines.values():
                machine.runs.tick(self.now)
            self.check()

    def check(self) -> None:
        """No process lives beyond the task that it belongs to, as the master sees that."""
        attempt = self.story.cluster.attempts.get(self.key)
        for name, machine in self.machines.items():
            for one in machine.living.values():
                assert attempt is not None, f"{one} lives on {name}, and the job has ended"
                record = self.tasks.records[TaskKey(*one.run[:2])]
                is_its = record.phase in ALIVE and (record.host, record.run) == (name, one.run[2])
                assert is_its, f"{one} lives on {name}, and its task is {record}"


def _with_model(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    """Give the shepherds' runs the clock and the processes of the model."""

    def send(pids: Iterable[int], number: int) -> int:
        for machine in world.machines.values():
            machine.kill([pid for pid in pids if pid in machine.living], number)
        return 0

    monkeypatch.setattr(runs_module, "time", SimpleNamespace(monotonic=lambda: world.now, time=lambda: world.now))
    monkeypatch.setattr(runs_module, "processes", SimpleNamespace(send=send, stat=lambda _: None))


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_no_process_outlives_its_task(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither beside the next run of the task nor beside what gets its slots; each hears SIGTERM before SIGKILL."""
    for seed in range(first, first + 50):
        world = World(seed)
        _with_model(monkeypatch, world)
        try:
            world.run()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        assert not any(machine.living for machine in world.machines.values()), f"seed {seed}"
