"""Simulated hosts: an agent with a journal, shepherds that outlive it, and the processes they really run.

They follow the rules of the protocol (protos/agents.proto) as the real agents do: journal first, then act; an attempt
is accepted at most once; an order older than its validity on the agent's own clock starts nothing; the last report is
kept and repeated until it is forgotten. Reality (what runs) is recorded in the ``History``, never taken from the
master.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Protocol

from lavad.core import commands as c
from lavad.core.model import Allocation, HostFacts, Key
from lavad.core.model.task_rules import TaskKey
from lavad.core.model.task_values import TaskReport
from lavad.core.notices import RevokeOrder
from lavad.core.orders import (
    CheckpointOrder,
    ForgetOrder,
    LaunchOrder,
    LimitsOrder,
    Order,
    ReleaseOrder,
    ResizeOrder,
    SignalOrder,
    StageOrder,
    TasksOrder,
)
from lavad.simulator.cluster.checkers import History, Process, Violation
from lavad.simulator.cluster.checkpoints import make_checkpoint
from lavad.simulator.cluster.host_notice import keep_lease, taken_away
from lavad.simulator.cluster.ledger import Entry, Shepherd
from lavad.simulator.cluster.tasks import TaskRunner

SIGINT, SIGKILL, SIGCONT, SIGSTOP = 2, 9, 18, 19
TERMINATE_STEP_S = 3.0
ENDED_BEFORE_START = 130 << 8
REPEAT_S = 5.0
HEARTBEAT_S = 5.0


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Behaviour of a job when it runs."""

    duration_s: float
    status: int
    each: bool = False  # its command is started on every host
    is_stubborn: bool = False  # ignores everything but KILL
    leftover_s: float = 0.0  # time until its leftover processes are killed
    # Of a job of tasks: run time, wait status and reason of some runs; nothing is drawn then.
    of_tasks: Mapping[tuple[TaskKey, int], tuple[float, int, str]] | None = None


class Surroundings(Protocol):
    """Interface of a host to the simulated world."""

    now: float
    rng: Random
    history: History
    order_validity_s: float

    def after(self, delay_s: float, action: Callable[[], None]) -> None:
        """Schedule an action."""

    def behaviour(self, key: Key) -> Behaviour:
        """Return the behaviour of the attempt's job."""

    def say(self, host: "SimulatedHost", reports: Sequence[c.AgentReport | c.NoticeTaken | c.ReportCheckpoint]) -> None:
        """Send reports to the master, if there is a session."""

    def hang_up(self, host: "SimulatedHost") -> None:
        """End the host's side of its session."""

    def peer(self, name: str) -> "SimulatedHost":
        """Return another host, for tasks that an attempt starts there."""


class SimulatedHost:
    """One host: its power, its agent, its shepherds. ``skew_s``: error of its wall clock."""

    def __init__(self, world: Surroundings, facts: HostFacts, skew_s: float) -> None:
        self.world = world
        self.facts = facts
        self.name = facts.name
        self.skew_s = skew_s
        self.clock_offset_s = world.rng.uniform(0, 1e6)
        self.heard_at, self.taken_at = (
            0.0,
            0.0,
        )  # on its own clock: send time of the message that the master answered last
        self.incarnation = 0
        self.is_agent_up = False
        self.is_stopped = False  # the agent got SIGSTOP
        self.journal: dict[Key, Entry] = {}
        self.shepherds: dict[Key, Shepherd] = {}
        self.exit_log: dict[Key, tuple[int, float]] = {}
        self.start_log: set[Key] = set()
        self._was_rebooted = False
        self._queue: list[Callable[[], None]] = []

    # -- the agent's life ------------------------------------------------------------------------------------------

    def start_agent(self) -> None:
        """Start the agent, which recovers every attempt from what it finds."""
        self.is_agent_up, self.is_stopped = True, False
        self.incarnation += 1
        self._queue.clear()
        for key in list(self.journal):
            self._reconcile(key, self.journal[key])
        self._was_rebooted = False
        self._later(HEARTBEAT_S, self._heartbeat)
        self._later(REPEAT_S, self._repeat)

    def kill_agent(self) -> None:
        """SIGKILL of the agent alone."""
        self.is_agent_up = False
        self.world.hang_up(self)

    def stop_agent(self) -> None:
        """SIGSTOP of the agent: messages wait in buffers."""
        self.is_stopped = True

    def continue_agent(self) -> None:
        """SIGCONT of the agent: it works through its buffers."""
        self.is_stopped = False
        queue, self._queue = self._queue, []
        for action in queue:
            self.act(self.incarnation, action)

    def lose_power(self) -> None:
        """Reset the host: everything that runs is gone; synced data stays."""
        self.is_agent_up, self._was_rebooted = False, True
        for shepherd in self.shepherds.values():
            if shepherd.tasks is not None:
                shepherd.tasks.end_all(SIGKILL)
            if shepherd.process is not None:
                self._process_ends(shepherd, SIGKILL)
        self.shepherds.clear()
        self.world.hang_up(self)

    def act(self, incarnation: int, action: Callable[[], None]) -> None:
        """Run an action as this agent: never if it has been replaced, later if it is stopped."""
        if not self.is_agent_up or incarnation != self.incarnation:
            return
        if self.is_stopped:
            self._queue.append(action)
        else:
            action()

    def _later(self, delay_s: float, action: Callable[[], None]) -> None:
        incarnation = self.incarnation
        self.world.after(delay_s, lambda: self.act(incarnation, action))

    def _heartbeat(self) -> None:
        self.world.say(self, [])
        self._later(HEARTBEAT_S, self._heartbeat)

    def _repeat(self) -> None:
        waiting = [
            entry.last
            for entry in self.journal.values()
            if entry.last is not None and (entry.state != "held" or not entry.is_launched)
        ]
        if waiting:
            self.world.say(self, waiting)
        self._later(REPEAT_S, self._repeat)

    def _reconcile(self, key: Key, entry: Entry) -> None:
        shepherd = self.shepherds.get(key)
        if entry.state == "over":
            return
        if shepherd is not None and not shepherd.is_over:
            entry.state = "held"
            entry.is_launched = entry.is_launched or shepherd.is_launched
            if shepherd.end is not None:
                self._tell_end(shepherd, False)
            elif shepherd.is_timed:
                entry.last = self._started_report(shepherd)
            if entry.version > 1 and shepherd.is_lead and (not entry.resized or entry.resized.version < entry.version):
                self._later(self.world.rng.uniform(0.01, 1.0), lambda: self._tell_job(key, entry.order.allocation))
        elif key in self.exit_log:
            status, at = self.exit_log[key]
            self._over(key, self._finished_report(key, status, at, True))
        elif key in self.start_log or (entry.is_launched and self._was_rebooted):
            self._over(key, self._finished_report(key, SIGKILL, self.world.now, True))
        elif entry.is_releasing:
            self._over(key, c.ReportReleased(self.name, key))
        else:
            self._over(
                key, c.ReportRefused(self.name, key, "this host's agent was restarted before the job was started")
            )

    # -- messages to the master ------------------------------------------------------------------------------------

    def own_clock(self) -> float:
        """Clock for the ages of orders."""
        return self.world.now + self.clock_offset_s

    def wall(self) -> float:
        """Time of day on this host's clock."""
        return self.world.now + self.skew_s

    def hello(self) -> c.AgentHello:
        """Build the first message of a session."""
        held = tuple(
            c.HeldAttempt(
                key,
                entry.last,
                entry.is_launched,
                entry.version,
                entry.resized,
                entry.limits,
                None,
                self._tasks_of(key),
            )
            for key, entry in self.journal.items()
        )
        return c.AgentHello(self.facts, self.incarnation, held)

    def _tasks_of(self, key: Key) -> tuple[TaskReport, ...]:
        shepherd = self.shepherds.get(key)
        return () if shepherd is None or shepherd.tasks is None else tuple(shepherd.tasks.states.values())

    def _started_report(self, shepherd: Shepherd) -> c.ReportStarted:
        assert shepherd.process is not None
        return c.ReportStarted(self.name, shepherd.key, 4711, shepherd.process.started + self.skew_s)

    def _finished_report(self, key: Key, status: int, at: float, released: bool) -> c.ReportFinished:
        shepherd = self.shepherds.get(key)
        reason, is_fenced = (shepherd.reason, shepherd.is_fenced) if shepherd is not None else ("", False)
        at += self.skew_s
        return c.ReportFinished(self.name, key, status, at, reason, also_released=released, lost=is_fenced)

    def _keep(self, key: Key, report: c.AgentReport) -> None:
        entry = self.journal[key]
        if isinstance(report, c.ReportFinished):
            report = report._replace(version=entry.version)
        elif not isinstance(report, c.ReportStarted | c.ReportTasks):
            report = replace(report, version=entry.version)
        entry.last = report
        self.world.say(self, [report])

    def _over(self, key: Key, report: c.AgentReport) -> None:
        if any(one.key == key for one in self.world.history.running[self.name]):
            raise Violation(f"{self.name} says that nothing is left of {key}, and something runs")
        self.journal[key].state = "over"
        self._keep(key, report)

    # -- orders ----------------------------------------------------------------------------------------------------

    def take_orders(self, orders: list[Order], echo: float) -> None:
        """Handle one message of the master; ``echo`` is this agent's own clock as the master last heard it."""
        age_s = self.own_clock() - echo
        self.heard_at = max(self.heard_at, echo)
        for order in orders:
            self._take(order, age_s)

    def _take(self, order: Order, age_s: float) -> None:
        if isinstance(order, RevokeOrder):
            taken_away(self, order.seconds)
            return self.world.say(self, [c.NoticeTaken(self.name, order.seconds)])
        is_stale = age_s > self.world.order_validity_s
        entry = self.journal.get(order.key)
        match order:
            case StageOrder():
                self._stage(order, entry, is_stale, age_s)
            case LaunchOrder():
                self._launch(order, entry, is_stale, age_s)
            case TasksOrder():
                self._order_tasks(order, entry, is_stale)
            case SignalOrder():
                self._signal(order, entry)
            case ReleaseOrder():
                self._release(order, entry)
            case ResizeOrder():
                self._resize(order, entry)
            case LimitsOrder():
                if entry is not None:
                    entry.limits = max(entry.limits, order.version)
            case CheckpointOrder():
                make_checkpoint(self, order)
            case ForgetOrder():
                if entry is not None and entry.state == "over":
                    self._forget(order.key)

    def _forget(self, key: Key) -> None:
        del self.journal[key]
        self.shepherds.pop(key, None)
        self.exit_log.pop(key, None)
        self.start_log.discard(key)

    def _stage(self, order: StageOrder, entry: Entry | None, is_stale: bool, age_s: float) -> None:
        if entry is not None and order.version > entry.version:
            if entry.state != "over":
                why = "what is left of the attempt is still being ended here"
                self.world.say(self, [c.ReportRefused(self.name, order.key, why, version=order.version)])
                return
            self._forget(order.key)  # the host left the attempt, and is to take part again
        elif entry is not None:
            if entry.last is not None:
                self.world.say(self, [entry.last])
            return
        if is_stale:
            report = c.ReportRefused(self.name, order.key, "the order is too old", version=order.version)
            self.world.say(self, [report])
            return
        entry = self.journal[order.key] = Entry(order, order.launch_now, age_s=age_s, version=order.version)
        self._later(self.world.rng.uniform(0.005, 0.3), lambda: self._hold(order, entry))

    def _hold(self, order: StageOrder, entry: Entry) -> None:
        if entry.state != "accepted":
            return
        if self.world.rng.random() < 0.01:
            self._over(order.key, c.ReportRefused(self.name, order.key, "no shepherd could be started", True))
            return
        share = next(share for share in order.allocation if share.host == self.name)
        hosts = tuple(share.host for share in order.allocation)
        shepherd = Shepherd(order.key, share, hosts[0] == self.name, hosts)
        self.shepherds[order.key] = shepherd
        self.world.history.staged.add((order.key, self.name))
        entry.state = "held"
        if order.lease_s:
            keep_lease(self, shepherd, order.lease_s)
        if order.setup.shared.tasks is not None:
            shepherd.tasks = TaskRunner(self, shepherd)
            ports = shepherd.tasks.ports(order.tasks)
            self._keep(order.key, c.ReportStaged(self.name, order.key, tasks=ports, address=self.name))
        elif entry.is_launched:
            self._start(shepherd)
        else:
            self._keep(order.key, c.ReportStaged(self.name, order.key))

    def _launch(self, order: LaunchOrder, entry: Entry | None, is_stale: bool, age_s: float) -> None:
        if entry is None:
            self.world.say(self, [c.ReportRefused(self.name, order.key, "the attempt is not staged on this host")])
        elif entry.is_launched or entry.is_releasing or entry.state == "over":
            if entry.last is not None:
                self.world.say(self, [entry.last])
        elif is_stale:
            if entry.state == "held":
                self._keep(order.key, c.ReportStaged(self.name, order.key, again=True))
        else:
            entry.is_launched, entry.age_s = True, age_s
            if isinstance(entry.last, c.ReportStaged):
                entry.last = replace(entry.last, again=False)
            if entry.state == "held":
                shepherd = self.shepherds[order.key]
                self.world.after(self.world.rng.uniform(0.001, 0.02), lambda: self._start(shepherd))

    def _order_tasks(self, order: TasksOrder, entry: Entry | None, is_stale: bool) -> None:
        shepherd = self.shepherds.get(order.key)
        if entry is None:
            self.world.say(self, [c.ReportRefused(self.name, order.key, "the attempt is not staged on this host")])
        elif entry.state == "held" and not entry.is_releasing and shepherd is not None and shepherd.tasks is not None:
            entry.is_launched = True
            shepherd.tasks.take(order, is_stale)
        elif entry.last is not None:
            self.world.say(self, [entry.last])

    def _signal(self, order: SignalOrder, entry: Entry | None) -> None:
        if entry is None or entry.state in ("ended", "over") or order.serial in entry.serials:
            return
        entry.serials.add(order.serial)
        if entry.state == "held":
            self.signal_shepherd(self.shepherds[order.key], order.signal, order.reason)
        elif order.signal in (0, SIGKILL):
            self._over(order.key, c.ReportFinished(self.name, order.key, ENDED_BEFORE_START, self.wall(), order.reason,
                                                   also_released=True))  # fmt: skip

    def _release(self, order: ReleaseOrder, entry: Entry | None) -> None:
        key = order.key
        if entry is None:
            self.world.say(self, [c.ReportReleased(self.name, key)])
        elif entry.state in ("accepted", "over"):
            self._over(key, c.ReportReleased(self.name, key))
        elif not entry.is_releasing:
            entry.is_releasing = True
            shepherd = self.shepherds[key]
            self.world.after(self.world.rng.uniform(0.01, 0.2), lambda: self.end(shepherd, SIGKILL))

    # -- resize ------------------------------------------------------------------------------------------------------

    def _resize(self, order: ResizeOrder, entry: Entry | None) -> None:
        if entry is None or entry.state != "held":
            return
        if order.version <= entry.version:
            if entry.resized is not None:
                self.world.say(self, [entry.resized])
            return
        before, entry.order = entry.order.allocation, entry.order._replace(allocation=order.allocation)
        entry.version = order.version
        self._let_shepherd_know(order.key, order.allocation)
        if (tasks := self.shepherds[order.key].tasks) is not None:
            self._later(self.world.rng.uniform(0.01, 0.2), lambda: self._say_ready(order, tasks))
        elif order.allocation[0].host == self.name:
            self._later(self.world.rng.uniform(0.01, 1.0), lambda: self._tell_job(order.key, before))

    def _let_shepherd_know(self, key: Key, allocation: Allocation) -> None:
        shepherd = self.shepherds[key]
        shepherd.peers = tuple(share.host for share in allocation)
        shepherd.share = next(share for share in allocation if share.host == self.name)
        if shepherd.process is not None and not shepherd.process.ended:
            self.world.history.resize(shepherd.process, shepherd.share.slots, self.facts.slots, self.facts.gpus)

    def _say_ready(self, order: ResizeOrder, tasks: TaskRunner) -> None:
        """Report the ports of the tasks that have, or are to have, a place here."""
        entry = self.journal.get(order.key)
        if entry is not None and entry.state == "held" and entry.version == order.version:
            ports = tasks.ports(order.tasks)
            entry.resized = c.ReportResized(self.name, order.key, order.version, tasks=ports)
            self.world.say(self, [entry.resized])

    def _tell_job(self, key: Key, before: Allocation) -> None:
        """Run the notification command; then the job uses its new hosts."""
        entry, shepherd = self.journal.get(key), self.shepherds.get(key)
        if entry is None or entry.state != "held" or shepherd is None:
            return
        new = [share.host for share in entry.order.allocation if share.host not in {one.host for one in before}]
        failed = bool(new) and self.world.rng.random() < 0.05
        if not failed and not shepherd.is_stopped and shepherd.process is not None:
            for name in new:
                self.world.after(self.world.rng.uniform(0.01, 0.1), lambda name=name: self._join_rank(shepherd, name))  # type: ignore[misc]
        entry.resized = c.ReportResized(self.name, key, entry.version, failed, "exit code 1" if failed else "")
        self.world.say(self, [entry.resized])

    def _join_rank(self, lead: Shepherd, name: str) -> None:
        """Start a task on a new host; an elastic job can also do without it."""
        there = self.world.peer(name)
        shepherd = there.shepherds.get(lead.key)
        is_ready = there.is_agent_up and not there.is_stopped and shepherd is not None and name in lead.peers
        if lead.end is not None or lead.is_over or not is_ready or shepherd is None:
            return
        entry = there.journal[lead.key]
        if shepherd.process is None and not shepherd.is_over and not shepherd.end and not entry.is_releasing:
            there._begin_process(shepherd, is_command=False)

    # -- shepherds, which act also while the agent is away -------------------------------------------------------------

    def _start(self, shepherd: Shepherd) -> None:
        if shepherd.is_over or shepherd.is_launched or self.shepherds.get(shepherd.key) is not shepherd:
            return
        shepherd.is_launched = True
        behaviour = self.world.behaviour(shepherd.key)
        if not (behaviour.each or shepherd.is_lead):
            return
        age_s = self.journal[shepherd.key].age_s
        self.world.history.check_launch(shepherd.key, shepherd.peers, age_s, self.world.order_validity_s)
        self._begin_process(shepherd, is_command=shepherd.is_lead)
        shepherd.is_timed = True
        length = 1.0 if shepherd.is_lead else self.world.rng.uniform(0.5, 1.5)
        shepherd.left_s, shepherd.resumed_at = length * behaviour.duration_s, self.world.now
        self._run_on(shepherd)
        if shepherd.is_lead and not behaviour.each:
            self._start_ranks(shepherd)
        self._as_agent(lambda: self._tell_started(shepherd))

    def _begin_process(self, shepherd: Shepherd, is_command: bool) -> None:
        self.start_log.add(shepherd.key)
        share = shepherd.share
        process = Process(shepherd.key, self.name, share.slots, share.gpus, self.world.now, is_command)
        process.is_stopped = shepherd.is_stopped
        shepherd.process = process
        self.world.history.start(process, self.facts.slots, self.facts.gpus)

    def _start_ranks(self, lead: Shepherd) -> None:
        """Start a task on each other host through that host's agent, as the command on the lead host does."""
        for name in lead.peers[1:]:
            self.world.after(self.world.rng.uniform(0.01, 0.1), lambda name=name: self._start_rank(lead, name))  # type: ignore[misc]

    def _start_rank(self, lead: Shepherd, name: str) -> None:
        there = self.world.peer(name)
        shepherd = there.shepherds.get(lead.key)
        if lead.end is not None or lead.is_over:
            return
        if not there.is_agent_up or there.is_stopped or shepherd is None or shepherd.is_over or shepherd.end:
            self.end(lead, 1 << 8)  # no task could be started there: the program ends
        elif shepherd.process is None:
            there._begin_process(shepherd, is_command=False)

    def _run_on(self, shepherd: Shepherd) -> None:
        started = shepherd.resumed_at
        self.world.after(shepherd.left_s, lambda: self._has_run(shepherd, started))

    def _has_run(self, shepherd: Shepherd, started: float) -> None:
        if not shepherd.is_stopped and shepherd.resumed_at == started and shepherd.end is None:
            self.end(shepherd, self.world.behaviour(shepherd.key).status if shepherd.is_lead else 0)

    def signal_shepherd(self, shepherd: Shepherd, number: int, reason: str) -> None:
        """Signal the processes of an attempt; 0 is the terminate sequence."""
        if shepherd.end is not None or shepherd.is_over:
            return
        if number == SIGSTOP and not shepherd.is_stopped:
            self._stop(shepherd)
        elif number == SIGCONT and shepherd.is_stopped:
            self._go_on(shepherd)
        elif number in (0, SIGKILL):
            self._terminate(shepherd, number, reason)

    def _stop(self, shepherd: Shepherd) -> None:
        shepherd.is_stopped = True
        if shepherd.tasks is not None:
            shepherd.tasks.pause(True)
        if shepherd.process is not None:
            shepherd.process.is_stopped = True
        if shepherd.is_timed:
            shepherd.left_s -= self.world.now - shepherd.resumed_at

    def _go_on(self, shepherd: Shepherd) -> None:
        shepherd.is_stopped, shepherd.resumed_at = False, self.world.now
        if shepherd.tasks is not None:
            shepherd.tasks.pause(False)
        if shepherd.process is not None:
            self.world.history.go_on(shepherd.process, self.facts.slots, self.facts.gpus)
        if shepherd.is_timed:
            self._run_on(shepherd)

    def _terminate(self, shepherd: Shepherd, number: int, reason: str) -> None:
        shepherd.reason = shepherd.reason or reason
        if shepherd.process is None:
            self.end(shepherd, ENDED_BEFORE_START)
        elif number == SIGKILL or not self.world.behaviour(shepherd.key).is_stubborn:
            status = SIGKILL if number == SIGKILL else SIGINT
            self.world.after(self.world.rng.uniform(0.001, 0.5), lambda: self.end(shepherd, status))
        else:
            self.world.after(2 * TERMINATE_STEP_S, lambda: self.end(shepherd, SIGKILL))

    def end(self, shepherd: Shepherd, status: int) -> None:
        """End all processes; leftovers are killed, and then the host's part is over."""
        if shepherd.end is not None or shepherd.is_over or self.shepherds.get(shepherd.key) is not shepherd:
            return
        shepherd.end = (status, self.world.now)
        if shepherd.tasks is not None:
            shepherd.tasks.end_all(status)
            if shepherd.tasks.states:
                self.exit_log[shepherd.key] = shepherd.end
        ran = shepherd.process is not None
        if ran:
            self.exit_log[shepherd.key] = shepherd.end
            self._process_ends(shepherd, status)
        leftover_s = self.world.behaviour(shepherd.key).leftover_s if ran else 0.0
        if leftover_s:
            self._as_agent(lambda: self._tell_end(shepherd, False))
            self.world.after(leftover_s, lambda: self._is_over(shepherd))
        else:
            self._is_over(shepherd)

    def _process_ends(self, shepherd: Shepherd, status: int) -> None:
        assert shepherd.process is not None
        self.world.history.stop(shepherd.process, self.world.now, status)
        if shepherd.is_lead and not self.world.behaviour(shepherd.key).each:
            for name in shepherd.peers[1:]:  # its tasks elsewhere lose their connection
                self.world.after(self.world.rng.uniform(0.1, 1.5), lambda name=name: self._rank_ends(shepherd, name))  # type: ignore[misc]
        elif not self.world.behaviour(shepherd.key).each and not shepherd.is_lead:
            lead = self.world.peer(shepherd.peers[0])
            self.world.after(
                self.world.rng.uniform(0.1, 1.0), lambda: self._lead_notices(lead, shepherd.key, self.name)
            )

    def _rank_ends(self, lead: Shepherd, name: str) -> None:
        there = self.world.peer(name)
        shepherd = there.shepherds.get(lead.key)
        if shepherd is not None and shepherd.process is not None:
            there.world.history.stop(shepherd.process, self.world.now, SIGKILL)

    def _lead_notices(self, lead: "SimulatedHost", key: Key, name: str) -> None:
        shepherd = lead.shepherds.get(key)
        if shepherd is not None and shepherd.process is not None and name in shepherd.peers:
            lead.end(shepherd, 1 << 8)  # a lost task ends the program, unless the job has released that host

    def _is_over(self, shepherd: Shepherd) -> None:
        if self.shepherds.get(shepherd.key) is shepherd:
            shepherd.is_over = True
            self._as_agent(lambda: self._tell_end(shepherd, True))

    def _as_agent(self, action: Callable[[], None]) -> None:
        self.act(self.incarnation, action)

    def _tell_started(self, shepherd: Shepherd) -> None:
        entry = self.journal.get(shepherd.key)
        if entry is not None and entry.state == "held" and shepherd.end is None:
            self._keep(shepherd.key, self._started_report(shepherd))

    def _tell_end(self, shepherd: Shepherd, is_over: bool) -> None:
        key = shepherd.key
        entry = self.journal.get(key)
        if entry is None or entry.state == "over" or shepherd.end is None:
            return
        status, at = shepherd.end
        finished = self._finished_report(key, status, at, is_over)
        if is_over and entry.is_releasing:
            self._over(key, c.ReportReleased(self.name, key))
        elif is_over:
            self._over(key, finished)
        elif entry.state == "held":
            entry.state = "ended"
            self._keep(key, finished)
