"""Whole cluster in virtual time, from one seed: the real core as master, simulated hosts, a network that fails.

The master of this world commits, then sends: replies and orders leave when the events before them are durable, and a
crash loses what is not. After a crash the cluster is restored from what a database would hold, no more. A session is a
connection: in order, but it breaks at any time and loses messages in flight; messages may come twice, and a partition
delays them. The same seed gives the same history, bit for bit.
"""

import hashlib
import heapq
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from random import Random
from typing import Any

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core import invariants
from lavad.core.apply.events import apply_event
from lavad.core.cluster import Cluster
from lavad.core.model import FINAL, HostFacts, JobState, Key
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import NotNow, Refused
from lavad.core.orders import Order
from lavad.core.passes import slice_pass
from lavad.core.plan import Plan, Start, Starts
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.placement.place import place
from lavad.core.scheduling.worklist import Worklist
from lavad.core.state.attempts import JobEnd
from lavad.core.state.pending import Bucket
from lavad.core.state.records import ArrayRecord, place_of
from lavad.core.step import Outcome, step
from lavad.simulator.cluster.checkers import Alone, Ended, History
from lavad.simulator.cluster.fleet import Behaviour, SimulatedHost
from lavad.simulator.cluster.reservation_check import Overbooked
from lavad.simulator.cluster.restart import reborn
from lavad.simulator.cluster.site_policy import a_policy
from lavad.simulator.cluster.tasks import is_partial_gang

BEGIN = 1_000_000_000.0
NEVER_STARTED = JobEnd(0.0, 0)
WELCOME_S = 15.0
LONG_PARTITION_S = 10.0  # both ends then give the connection up


@dataclass(frozen=True, slots=True)
class Message:
    """Message of a session, either way."""

    hello: c.AgentHello | None = None
    reports: tuple[c.AgentReport | c.NoticeTaken | c.ReportCheckpoint, ...] = ()
    orders: tuple[Order, ...] = ()
    clock: float = 0.0  # sent_monotonic upwards, echo_monotonic downwards


@dataclass(slots=True)
class Line:
    """One direction of a session: in order, late, sometimes twice."""

    waiting: deque[tuple[float, Message]] = field(default_factory=deque)
    last_due: float = 0.0


@dataclass(slots=True)
class Session:
    """One connection of one agent."""

    number: int
    host: SimulatedHost
    incarnation: int
    up: Line = field(default_factory=Line)
    down: Line = field(default_factory=Line)
    is_open_at_agent: bool = True
    is_open_at_master: bool = True
    has_opened: bool = False  # the master has seen the hello
    is_welcome: bool = False  # the agent has had a message from the master
    echo: float = 0.0


@dataclass(slots=True)
class Batch:
    """Events being written, and the messages to send once they are durable."""

    events: list[e.Event] = field(default_factory=list)
    speak: list[Callable[[], None]] = field(default_factory=list)


class Master:
    """The core with a durable log, sessions and a pacer. ``durable`` is the cluster as the disk has it."""

    def __init__(self, world: "World", policy: Policy) -> None:
        self.world = world
        self.cluster = Cluster(policy)
        self.durable = Cluster(policy)
        self.worklist = Worklist()
        self.overbooked = Overbooked()
        self.life = 0  # number of starts: actions planned before a restart do not happen
        self.is_up = False
        self.links: dict[str, Session] = {}
        self.steps = 0
        self.log = hashlib.sha256()
        self._piled = Batch()
        self._flying: Batch | None = None
        self._is_pass_due = False

    # -- life --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Restore the durable state and serve."""
        self.life += 1
        now = self.world.now
        self.cluster, self.durable = reborn(self.durable), reborn(self.durable)
        self.cluster.term = self.durable.term = self.life
        self.cluster.begin(now)
        self.durable.begin(now)
        self.worklist = Worklist()
        self.worklist.look_at_everything(self.cluster)
        self._piled, self._flying, self._is_pass_due = Batch(), None, False
        self.is_up = True
        invariants.check(self.cluster)
        self._later(1.0, self._tick)
        self.wake()

    def crash(self) -> None:
        """SIGKILL of the master: a commit in progress reaches the disk or not, and no reply is sent either way."""
        self.is_up = False
        if self._flying is not None and self.world.rng.random() < 0.5:
            self._make_durable(self._flying.events)
        self.links.clear()
        self.world.break_all()

    def _later(self, delay_s: float, action: Callable[[], None]) -> None:
        life = self.life
        self.world.after(delay_s, lambda: action() if self.is_up and self.life == life else None)

    def _tick(self) -> None:
        self.post([c.Tick(), c.EndLeases()])
        self.wake()
        self._later(1.0, self._tick)

    # -- commands ----------------------------------------------------------------------------------------------------

    def execute(self, command: c.Command, reply: Callable[[Any], None]) -> None:
        """Execute one command; reply when it is durable.

        Raises:
            Refused, NotNow: at once.
        """
        outcome = self._step(command)
        self._commit(outcome, lambda: reply(outcome.reply))

    def ask(self, command: c.Command, reply: Callable[[Any], None] = lambda _: None) -> None:
        """Execute one command whose sender ignores refusals and a master that is down."""
        if self.is_up:
            with suppress(Refused, NotNow):
                self.execute(command, reply)

    def post(self, commands: Iterable[c.Command]) -> None:
        """Execute commands that need no replies, as one batch."""
        together = Outcome()
        for command in commands:
            outcome = self._step(command)
            together.events.extend(outcome.events)
            together.orders.extend(outcome.orders)
        self._commit(together, lambda: None)

    def _step(self, command: c.Command) -> Outcome:
        outcome = step(self.cluster, command, self.world.now)
        self.steps += 1
        if outcome.events and self.steps % self.world.check_every == 0:
            invariants.check(self.cluster)
            self.overbooked.check(self.cluster, self.world.now)
        return outcome

    def _commit(self, outcome: Outcome, reply: Callable[[], None]) -> None:
        def speak() -> None:
            self._send(outcome.orders)
            reply()

        if outcome.events:
            self.wake()
        if not outcome.events and not self._piled.events:
            if self._flying is None:
                self._later(0.0, speak)
            else:
                self._flying.speak.append(speak)
            return
        self._piled.events.extend(outcome.events)
        self._piled.speak.append(speak)
        if self._flying is None:
            self._write()

    def _write(self) -> None:
        batch = self._flying = self._piled
        self._piled = Batch()
        rng = self.world.rng
        slow = self.world.faults and rng.random() < 0.002
        self._later(rng.uniform(3.0, 12.0) if slow else rng.uniform(0.001, 0.02), lambda: self._written(batch))

    def _written(self, batch: Batch) -> None:
        self._make_durable(batch.events)
        self._flying = None
        if self._piled.speak:
            self._write()
        for speak in batch.speak:
            speak()

    @property
    def all_is_written(self) -> bool:
        """True if nothing is waiting to be written."""
        return self._flying is None and not self._piled.events

    def _make_durable(self, events: list[e.Event]) -> None:
        for event in events:
            apply_event(self.durable, event)
            self.log.update(repr(event).encode())
            if isinstance(event, e.JobSubmitted):
                self.world.history.limits[event.job.id] = event.job.array_limit
                self.world.behaviours[event.job.id] = self.world.behaviour_of_request[event.job.request_id]

    # -- scheduling --------------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Note that a job may be able to start."""
        if not self._is_pass_due and self.worklist.has_work(self.cluster, self.world.now):
            self._is_pass_due = True
            self._later(self.world.rng.uniform(0.0, 0.005), self._plan)

    def _plan(self) -> None:
        if self.world.faults and self.world.rng.random() < 0.1:
            self._plan_besides()
        plan = slice_pass(self.cluster, self.worklist, self.world.rng.choice((1, 2, 8, 64, 1024)), self.world.now)
        lag_s = self.world.rng.uniform(0.0, 0.5) if self.world.faults and self.world.rng.random() < 0.1 else 0.0
        if lag_s:
            self._later(lag_s, lambda: self._apply_plan(plan, True))
        else:
            self._apply_plan(plan, False)

    def _plan_besides(self) -> None:
        """Make a careless scheduler's plan of the present state and apply it later: plan verification must catch it."""
        starts = [start for bucket in self.cluster.pending.buckets.values() for start in self._careless(bucket)]

        def apply() -> None:
            self.execute(c.ApplyPlan(Starts(tuple(starts))), lambda _: None)
            self.worklist.look_at_everything(self.cluster)
            self.wake()

        self._later(self.world.rng.uniform(0.0, 0.5), apply)

    def _careless(self, bucket: Bucket) -> Iterable[Start]:
        """Yield starts of a bucket's first job, or an array's first elements, as if each were alone in the cluster."""
        job, element = place_of(bucket.head().job)
        record = self.cluster.jobs[job]
        indices = islice(record.pending, 3) if isinstance(record, ArrayRecord) and not element else (element,)
        for index in indices:
            allocation = place(FreeResources(self.cluster.table), bucket.key.request)
            if allocation is not None:
                yield Start(record.id, index, allocation, "careless")

    def _apply_plan(self, plan: Plan, is_late: bool) -> None:
        def applied(dropped: int) -> None:
            if dropped:
                self.worklist.look_at_everything(self.cluster)
                self.wake()

        if not plan.is_empty:
            self.execute(c.ApplyPlan(plan), applied)
        if is_late:
            self.worklist.look_at_everything(self.cluster)  # changes made meanwhile may pass for planned ones
        self._is_pass_due = False
        self.wake()

    # -- sessions ----------------------------------------------------------------------------------------------------

    def _send(self, orders: list[Order]) -> None:
        by_host: dict[str, list[Order]] = {}
        for order in orders:
            by_host.setdefault(order.host, []).append(order)
        for host, some in by_host.items():
            session = self.links.get(host)
            if session is not None:
                self.world.send(session, session.down, Message(orders=tuple(some), clock=session.echo))

    def receive(self, session: Session, message: Message) -> None:
        """Handle a message of an agent."""
        name = session.host.name
        if message.hello is not None:
            self._open(session, message)
            return
        if not session.has_opened:
            return
        session.echo = message.clock
        if self.cluster.heard(name, self.world.now):
            self.post([c.AgentHeard(name)])
        if message.reports:
            self.post(message.reports)
        self.world.send(session, session.down, Message(clock=session.echo))

    def _open(self, session: Session, message: Message) -> None:
        if session.has_opened:
            return  # the same hello twice: the second has no effect
        assert message.hello is not None
        older = self.links.get(session.host.name)
        if older is not None:
            older.is_open_at_master = False
        self.links[session.host.name] = session
        session.has_opened, session.echo = True, message.clock
        self.world.send(session, session.down, Message())
        self.post([message.hello])

    def session_over(self, session: Session) -> None:
        """End the master's side of a connection."""
        if self.links.get(session.host.name) is session:
            del self.links[session.host.name]
            if self.is_up:
                self.post([c.AgentGone(session.host.name, session.incarnation)])


class World:
    """Virtual time, the network, the hosts, the users and the faults."""

    def __init__(
        self, seed: int, hosts: int = 5, faults: bool = True, check_every: int = 1, policy: Policy | None = None
    ) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.began = self.now = BEGIN
        self.faults = faults
        self.check_every = check_every
        self.history = History()
        self.alone = Alone("part of {} has been left running")
        self.torn = Alone("part of {} has been left suspended")
        self.behaviours: dict[int, Behaviour] = {}
        self.behaviour_of_request: dict[bytes, Behaviour] = {}
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._blocked: set[tuple[str, str]] = set()  # host and direction
        self._sessions: dict[str, Session] = {}  # as the agents see them
        policy = policy or a_policy(seed, 0.0 if seed % 3 else 30.0)  # of three seeds one has leases
        self.history.requeues = policy.preempts_by_requeue or bool(policy.pools)
        self.history.has_leases = bool(policy.fence_after_s)
        self.order_validity_s = policy.order_validity_s
        self.hosts = {name: self._a_host(name) for name in (f"n{number}" for number in range(1, hosts + 1))}
        self.master = Master(self, policy)

    def _a_host(self, name: str) -> SimulatedHost:
        slots = self.rng.choice((2, 4, 4, 8))
        facts = HostFacts(name, slots, slots * 1000, gpus=self.rng.choice((0, 0, 2)), keeps_leases=True)
        return SimulatedHost(self, facts, self.rng.uniform(-3.0, 3.0))

    # -- time --------------------------------------------------------------------------------------------------------

    def after(self, delay_s: float, action: Callable[[], None]) -> None:
        """Schedule an action; actions of the same time run in the order of these calls."""
        self._number += 1
        heapq.heappush(self._heap, (self.now + delay_s, self._number, action))

    def run_until(self, end: float, is_done: Callable[[], bool] = lambda: False) -> None:
        """Advance time."""
        while self._heap and self._heap[0][0] <= end and not is_done():
            self.now, _, action = heapq.heappop(self._heap)
            action()
        self.now = max(self.now, min(end, self.now if is_done() else end))

    # -- interface of hosts ------------------------------------------------------------------------------------------

    def behaviour(self, key: Key) -> Behaviour:
        """Return the behaviour of the attempt's job; elements of an array differ in their status."""
        known = self.behaviours[key.job]
        return replace(known, status=((known.status + 3 * key.index) % 7) << 8) if key.index else known

    def peer(self, name: str) -> SimulatedHost:
        """Return a host by name."""
        return self.hosts[name]

    def say(self, host: SimulatedHost, reports: Sequence[c.AgentReport | c.NoticeTaken | c.ReportCheckpoint]) -> None:
        """Send an agent's message, if it has a session."""
        session = self._sessions.get(host.name)
        if session is not None and session.is_open_at_agent:
            self.send(session, session.up, Message(reports=tuple(reports), clock=host.own_clock()))

    def hang_up(self, host: SimulatedHost) -> None:
        """Close the connection of a dead agent, as its kernel does unless the host is down."""
        session = self._sessions.pop(host.name, None)
        if session is not None:
            session.is_open_at_agent = False
            self.after(self.rng.choice((0.001, 0.1, 25.0)), lambda: self.break_session(session))

    # -- the network -------------------------------------------------------------------------------------------------

    def dial(self, host: SimulatedHost) -> None:
        """Open a session for the agent, beginning with its hello."""
        self._number += 1
        session = Session(self._number, host, host.incarnation)
        self._sessions[host.name] = session
        self.send(session, session.up, Message(hello=host.hello(), clock=host.own_clock()))
        self.after(WELCOME_S, lambda: None if session.is_welcome else self.break_session(session))

    def send(self, session: Session, line: Line, message: Message) -> None:
        """Send a message."""
        delay_s = self.rng.choice((0.001, 0.003, 0.02, 0.3)) * self.rng.random()
        for _ in range(2 if self.faults and self.rng.random() < 0.02 else 1):
            line.last_due = max(line.last_due, self.now + delay_s)
            line.waiting.append((line.last_due, message))
            self.after(line.last_due - self.now, lambda: self._pump(session, line))

    def _pump(self, session: Session, line: Line) -> None:
        direction = "up" if line is session.up else "down"
        while line.waiting and line.waiting[0][0] <= self.now:
            if (session.host.name, direction) in self._blocked:
                return  # it waits in buffers; healing pumps again
            _, message = line.waiting.popleft()
            if direction == "up" and self.master.is_up and session.is_open_at_master:
                self.master.receive(session, message)
            elif direction == "down" and session.is_open_at_agent:
                self._deliver(session, message)

    def _deliver(self, session: Session, message: Message) -> None:
        def take() -> None:
            session.is_welcome = True
            if session.is_open_at_agent:
                session.host.take_orders(list(message.orders), message.clock)

        session.host.act(session.incarnation, take)

    def break_session(self, session: Session) -> None:
        """Break a connection: each side notices by itself, and messages in flight are lost, or arrive late."""
        late_s = self.rng.choice((0.0, 0.05, 1.0))

        def end_at_master() -> None:
            session.is_open_at_master = False
            self.master.session_over(session)

        def end_at_agent() -> None:
            session.is_open_at_agent = False
            if self._sessions.get(session.host.name) is session:
                del self._sessions[session.host.name]

        first, second = (end_at_master, end_at_agent) if self.rng.random() < 0.5 else (end_at_agent, end_at_master)
        first()
        self.after(late_s, second)

    def _keep_connected(self, host: SimulatedHost) -> None:
        if host.is_agent_up and not host.is_stopped and host.name not in self._sessions and self.master.is_up:
            self.dial(host)
        self.after(self.rng.uniform(0.2, 2.0), lambda: self._keep_connected(host))

    def partition(self, host: SimulatedHost, directions: tuple[str, ...], duration_s: float) -> None:
        """Block directions for a while; both sides give up a connection that is cut for long."""
        places = {(host.name, direction) for direction in directions}
        self._blocked |= places

        def heal() -> None:
            self._blocked -= places
            session = self._sessions.get(host.name)
            if session is not None:
                self._pump(session, session.up)
                self._pump(session, session.down)

        def give_up() -> None:
            session = self._sessions.get(host.name)
            if session is not None and places & self._blocked:
                self.break_session(session)
                self.after(LONG_PARTITION_S, give_up)

        self.after(duration_s, heal)
        self.after(LONG_PARTITION_S * self.rng.uniform(0.7, 3.0), give_up)

    def break_all(self) -> None:
        """Break every connection after the master's death."""
        for session in list(self._sessions.values()):
            session.is_open_at_master = False
            self.after(self.rng.uniform(0.0, 1.0), lambda session=session: self.break_session(session))  # type: ignore[misc]

    def cut(self, host: SimulatedHost) -> None:
        """Break the host's connection, if it has one."""
        session = self._sessions.get(host.name)
        if session is not None:
            self.break_session(session)

    # -- the whole ---------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start everything."""
        self.master.start()
        for host in self.hosts.values():
            host.start_agent()
            self._keep_connected(host)
        self.after(1.0, self._look)

    def _look(self) -> None:
        self.alone.look(self.now, self._partial_attempts())
        self.torn.look(self.now, self._torn_attempts())
        self.after(1.0, self._look)

    def _partial_attempts(self) -> set[Key]:
        """Return attempts of which part was lost while the rest runs, and all hosts can be reached: the master ends
        nothing for an unreachable one."""
        if not self.master.is_up:
            return set()
        found: set[Key] = set()
        for key, attempt in self.master.durable.attempts.items():
            hosts = [share.host for share in attempt.allocation]
            is_partial = (
                is_partial_gang(attempt, self.history) if attempt.tasks is not None else self._is_halved(key, hosts)
            )
            if is_partial and all(self.is_within_reach(self.hosts[name]) for name in hosts):
                found.add(key)
        return found

    def _is_halved(self, key: Key, hosts: list[str]) -> bool:
        if len(hosts) == 1 or not self.behaviours[key.job].each:
            return False
        is_here = any(one.key == key for name in hosts for one in self.history.running[name])
        return is_here and any(self._has_lost(name, key) for name in hosts)

    def _torn_attempts(self) -> set[Key]:
        """Return attempts with both stopped and running processes, whose hosts all receive orders."""
        if not self.master.is_up:
            return set()
        stopped: dict[Key, list[bool]] = {}
        for here in self.history.running.values():
            for one in here:
                stopped.setdefault(one.key, []).append(one.is_stopped)
        return {key for key, some in stopped.items() if len(set(some)) > 1 and self._is_reachable(key)}

    def _is_reachable(self, key: Key) -> bool:
        attempt = self.master.durable.attempts.get(key)
        if attempt is None or attempt.is_ending:
            return False
        return all(self.is_within_reach(self.hosts[share.host]) for share in attempt.allocation)

    def _has_lost(self, name: str, key: Key) -> bool:
        """Return True if nothing of the attempt runs on that host, unless it ended normally."""
        processes = [one for one in self.history.processes if one.key == key and one.host == name]
        return not processes or any(one.ended and one.status == 9 for one in processes)

    def is_within_reach(self, host: SimulatedHost) -> bool:
        """Return True if the master's orders reach the host."""
        session = self._sessions.get(host.name)
        connected = session is not None and self.master.links.get(host.name) is session
        cut = any(name == host.name for name, _ in self._blocked)
        return host.is_agent_up and not host.is_stopped and connected and not cut

    def ended(self) -> list[Ended]:
        """Return every job and element that has ended according to the disk."""
        cluster = self.master.durable
        found = [Ended(job.key, job.state, job.end) for job in cluster.finished.values() if job.end is not None]
        return found + [
            Ended(Key(record.id, index, 0), JobState(record.ended[index]), NEVER_STARTED)
            for record in cluster.jobs.values()
            if isinstance(record, ArrayRecord)
            for index in record.killed
        ]

    def is_idle(self) -> bool:
        """Return True if nothing is left to do."""
        cluster = self.master.durable
        return (
            self.master.is_up
            and not cluster.attempts
            and all(
                record.is_over if isinstance(record, ArrayRecord) else record.state in FINAL
                for record in cluster.jobs.values()
            )
            and not any(host.journal for host in self.hosts.values())
        )

    def digest(self) -> str:
        """Return one line that identifies the whole history."""
        seen = self.master.log.copy()
        for one in self.history.processes:
            seen.update(repr(one).encode())
        return seen.hexdigest()

    def unresolved(self) -> list[str]:
        """List what is still unfinished, for the message of a failure."""
        cluster = self.master.cluster
        found = [f"{key} unreleased={sorted(a.unreleased)} over={a.over}" for key, a in cluster.attempts.items()]
        for record in cluster.jobs.values():
            if isinstance(record, ArrayRecord):
                if not record.is_over:
                    live = {index: job.state.name for index, job in (record.live | record.apart).items()}
                    found.append(f"{record.id} pending={record.pending} held={record.held} live={live}")
            elif record.state not in FINAL:
                found.append(f"{record.id} {record.state.name} attempt={record.attempts}")
        found += [f"{host.name}: {host.journal}" for host in self.hosts.values() if host.journal]
        return found
