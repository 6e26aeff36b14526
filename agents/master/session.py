"""Session with the master: hello, reports up, orders down, and reconnection without limit.

Invariants: nothing that happens here affects jobs; a session opens with everything this host holds, so a report lost
with the last session is in the next one's hello; a last report is repeated until the master says forget. Reports leave
at once: on a busy host the pool reads its shepherds in batches, so their reports share messages.
"""

import asyncio
import contextlib
import errno
import logging
import shlex
from collections.abc import Awaitable, Callable, Iterator
from typing import Protocol

import grpc
import grpc.aio

from agents.attempts.ledger import Ledger, key_of
from agents.attempts.order_executor import Keeper
from agents.containers.settings import ContainerSettings
from agents.job_setup.preparation import Bounds
from agents.master.backoff import Backoff
from agents.sensors.health import BAD, Verdict
from agents.sensors.host_checks import HostChecks, Program, ToldBad
from agents.sensors.notice import HostNotice
from agents.shepherd import messages
from agents.shepherd.lease import own_clock
from protos.agents_pb2 import (
    CheckpointMade,
    CheckpointRequest,
    HealthCheck,
    HealthVerdict,
    Held,
    Hello,
    JobProgress,
    JobSpecBlob,
    JobUsage,
    Orders,
    PartActivity,
    Report,
    Reports,
    SavedStacks,
    StacksRequest,
    Welcome,
)
from protos.agents_pb2 import (
    HostNotice as NoticeMessage,
)
from protos.agents_pb2_grpc import AgentServiceStub
from protos.cluster_pb2 import HostFacts, Load
from protos.trust.roles import TrustError
from protos.wire import (
    AGENT_MESSAGE_MAX,
    LATER_REPORTS,
    PROTOCOL,
    REPORTS_UNDERSTOOD,
    REVOCATION_INTERVAL,
    REVOCATION_NOTICE,
    WRITE_FAILED,
)

LOG = logging.getLogger("lava.session")

CREDENTIALS_S = 5.0  # how often an agent that waits to reconnect looks for new ones
WELCOME_S = 60.0  # a master that waits for its administrator holds the welcome back
REPEAT_S = 5.0
REPEAT_HEARTBEATS = 10
SYNC_S = 1.0
LOAD_EVERY_S = 5.0
NOTICE_EVERY_S = 5.0
LOAD_AT_LEAST_EVERY_S = 60.0
USAGES_MAX = 10_000
DETAILS_MAX = AGENT_MESSAGE_MAX // 2  # bytes of a detailed hello
# Shortages of the machine that pass, by no fault of this agent.
SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class Sampler(Protocol):
    """Source of this host's load."""

    def sample(self) -> Load:
        """Return the load now; may block for a while."""

    def expect(self, names: tuple[str, ...]) -> None:
        """Set the names of dynamic resources that the master wants; may block for a moment."""


class Watch(Protocol):
    """Source of the activity of this host's attempts."""

    notify: Callable[[], None]

    def repeat(self) -> None:
        """Tell everything anew."""

    def take_news(self) -> tuple[list[PartActivity], list[SavedStacks]]:
        """Return what has changed since the last call."""

    def save_stacks(self, request: StacksRequest) -> None:
        """Save the stacks of an attempt's processes."""


class CheckpointMaker(Protocol):
    """Maker of checkpoints of this host's attempts."""

    notify: Callable[[], None]

    def repeat(self) -> None:
        """Tell the newest results anew."""

    def take_news(self) -> list[CheckpointMade]:
        """Return the results since the last call."""

    def make(self, request: CheckpointRequest) -> None:
        """Make a checkpoint, once for each number."""


class SessionRefused(Exception):
    """Refusal of this agent by the master; the text says why."""


# A report that is written in the instant in which the stream ends meets an InvalidStateError.
ENDINGS = (grpc.aio.AioRpcError, asyncio.InvalidStateError, TrustError, OSError, TimeoutError, SessionRefused)


class Session:
    """Session with the master, kept open by reconnecting.

    ``dial`` makes a channel; ``significant(old, new)`` returns True if a change of load is to be reported.
    """

    def __init__(
        self,
        dial: Callable[[], Awaitable[grpc.aio.Channel]],
        facts: HostFacts,
        incarnation: int,
        keeper: Keeper,
        sampler: Sampler,
        significant: Callable[[Load | None, Load], bool],
        watch: Watch,
        checkpoints: CheckpointMaker,
    ) -> None:
        self.welcome = Welcome(heartbeat_s=5.0)
        self.checks = HostChecks()
        self.notice = HostNotice()
        self._tells_notice = False
        self._taken_notice: NoticeMessage | None = None  # to be confirmed to the master
        self.connected = asyncio.Event()
        self.on_welcome: Callable[[Welcome], None] = lambda welcome: None
        self.before_orders: Callable[[Welcome], Awaitable[None]] = _at_once
        self.credentials: Callable[[], object] = lambda: None  # what changes with certificate and ticket
        self._dial = dial
        self._facts = facts
        self._incarnation = incarnation
        self._keeper = keeper
        self._sampler = sampler
        self._expected: tuple[str, ...] = ()
        self._significant = significant
        self._watch = watch
        self._checkpoints = checkpoints
        self.newest_load = Load()
        self._reports: list[Report] = []
        self._not_understood = frozenset(LATER_REPORTS)  # kinds that would end the session with an older master
        self._usages: dict[tuple[int, int, int], JobUsage] = {}
        self._progress: dict[tuple[int, int, int], JobProgress] = {}
        self._load: Load | None = None
        self._load_told: Load | None = None
        self._load_told_at = 0.0
        self._health: HealthVerdict | None = None
        self._told: dict[Program, tuple[int, str]] = {}  # the last answer about each program
        self._found_bad: dict[Program, HealthVerdict] = {}  # before and after jobs, not told yet
        self._told_bad = ToldBad()
        self._check_number = 0
        self._checks: set[asyncio.Task[None]] = set()
        self._sequence = 0
        self._something = asyncio.Event()
        self._is_detailed = False  # the next hello has the details of all attempts
        keeper.say = self.say
        keeper.use = self.use
        keeper.check = self.check
        watch.notify = checkpoints.notify = self._something.set

    # -- messages to the master

    def say(self, report: Report) -> None:
        """Send a report with the next message."""
        self._reports.append(report)
        self._something.set()

    def use(self, usage: JobUsage) -> None:
        """Send a usage with the next message; a newer one of the same attempt replaces it."""
        if len(self._usages) < USAGES_MAX:
            self._usages[key_of(usage.key)] = usage

    def progressed(self, progress: JobProgress) -> None:
        """Send a job's progress with the next message; a newer one of the same attempt replaces it."""
        self._progress[key_of(progress.key)] = progress
        self._something.set()

    # -- connection

    async def run(self) -> None:
        """Stay connected, for ever.

        Raises:
            JournalError: the agent must end.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch_load())
            group.create_task(self._watch_notice())
            group.create_task(self._sync_logs())
            group.create_task(self._stay_connected())

    async def _stay_connected(self) -> None:
        backoff = Backoff()
        while True:
            failure: Exception | None = None
            try:
                await self._one_session()
            except ENDINGS as error:
                failure = error
                if backoff.is_news(error):
                    LOG.warning("event=session_ended reason=%r", reason_of(error))
            pause_s = backoff.pause_s(failure, self.connected.is_set() or self._is_detailed)
            self.connected.clear()
            await self._pause(pause_s)

    async def _pause(self, seconds: float) -> None:
        """Wait that long, or until this host has been given another certificate or ticket."""
        loop, before = asyncio.get_running_loop(), self.credentials()
        end = loop.time() + seconds
        while True:
            left_s = end - loop.time()
            if left_s <= 0 or self.credentials() != before:
                return
            await asyncio.sleep(min(left_s, CREDENTIALS_S))

    async def _one_session(self) -> None:
        channel = await self._dial()
        try:
            call = AgentServiceStub(channel).Session()
            self._sequence = 0
            await call.write(self._hello())
            async with asyncio.timeout(WELCOME_S):
                await self._take_first(call)
            LOG.info("event=session_began cluster=%s term=%d", self.welcome.cluster, self._keeper.ledger.term)
            self.connected.set()
            await self._converse(call)
        finally:
            await channel.close(None)

    def _hello(self) -> Reports:
        ledger = self._keeper.ledger
        hello = Hello(
            facts=self._facts,
            protocol=PROTOCOL,
            held=ledger.held(self._is_detailed),
            highest_term=ledger.term,
            incarnation=self._incarnation,
            mark=ledger.mark,
            is_detailed=self._is_detailed,
        )
        if self._is_detailed:
            specs, ended = details(ledger, DETAILS_MAX - hello.ByteSize())
            hello.specs.extend(specs)
            hello.ended.extend(ended)
        # All waiting reports are in there.
        self._reports.clear()
        self._load_told = None
        self._tells_notice = self.notice.is_known  # a withdrawal, too: it may have been lost with the last session
        self._found_bad = self._told_bad.recent() | self._found_bad
        self._is_detailed = False
        for usage in self._keeper.newest_usages():
            self.use(usage)
        for progress in self._keeper.newest_progress():
            self.progressed(progress)
        self._watch.repeat()
        self._checkpoints.repeat()
        return self._numbered(Reports(hello=hello))

    async def _take_first(self, call: "grpc.aio.StreamStreamCall[Reports, Orders]") -> None:
        while True:
            orders = await self._read(call)
            if orders.HasField("welcome"):
                self._take_welcome(orders.welcome)
                await self.before_orders(orders.welcome)
                await self._take(orders)
                return
            await self._take(orders)

    def _take_welcome(self, welcome: Welcome) -> None:
        if welcome.error:
            self._is_detailed = welcome.wants_details
            raise SessionRefused(welcome.error)
        self.welcome = welcome
        self.on_welcome(welcome)
        self._expected = tuple(welcome.settings.get("LSF_RESOURCES", "").split())
        preparation = self._keeper.preparation
        preparation.cluster = welcome.cluster or preparation.cluster
        preparation.bounds = Bounds.of(welcome.settings)
        preparation.containers = ContainerSettings.of(welcome.settings)
        if welcome.terminate_interval_s:
            preparation.intervals.terminate_s = welcome.terminate_interval_s
        if welcome.usage_interval_s:
            preparation.intervals.usage_s = self._keeper.gpus.read_every_s = welcome.usage_interval_s
        self._keeper.gpus.set_bounds(welcome.settings)
        if welcome.order_validity_s:
            self._keeper.order_validity_s = welcome.order_validity_s
        understood = welcome.settings.get(REPORTS_UNDERSTOOD, "").split()
        self._not_understood = frozenset(LATER_REPORTS) - {*understood}
        self._keeper.attempts.patience_s = preparation.bounds.patience_s

    async def _converse(self, call: "grpc.aio.StreamStreamCall[Reports, Orders]") -> None:
        """Run both directions until one of them fails."""
        tasks = [
            asyncio.create_task(work) for work in (self._read_orders(call), self._write_reports(call), self._repeat())
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            call.cancel()
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    # -- messages from the master

    async def _read(self, call: "grpc.aio.StreamStreamCall[Reports, Orders]") -> Orders:
        orders = await call.read()
        if not isinstance(orders, Orders):
            raise SessionRefused(await call.details() or "the master ended the session")
        return orders

    async def _read_orders(self, call: "grpc.aio.StreamStreamCall[Reports, Orders]") -> None:
        while True:
            orders = await self._read(call)
            if orders.HasField("welcome"):
                self._take_welcome(orders.welcome)
                await self.before_orders(orders.welcome)
            await self._take(orders)

    async def _take(self, orders: Orders) -> None:
        if orders.term < self._keeper.ledger.term:
            raise self._too_old(orders)
        if orders.HasField("health_check"):
            check = asyncio.create_task(self._check(orders.health_check))
            self._checks.add(check)
            check.add_done_callback(self._checks.discard)
        for request in orders.stacks:
            self._watch.save_stacks(request)
        if orders.HasField("host_notice"):  # before the orders that follow from it
            notice = orders.host_notice
            seconds = -1.0 if notice.withdrawn else notice.seconds
            if not notice.withdrawn:
                LOG.warning("event=host_taken_away seconds=%.1f", seconds)
            self._keeper.pool.tell_all(messages.REVOKE, seconds)
            self._taken_notice = notice
            self._something.set()
        # Shielded: orders in the journal must reach the shepherds, whatever happens to the connection meanwhile.
        if not await asyncio.shield(self._keeper.take(orders)):
            raise self._too_old(orders)
        for asked in orders.checkpoints:
            self._checkpoints.make(asked)

    def _too_old(self, orders: Orders) -> SessionRefused:
        """Refuse a master whose database is older than what this host has been told."""
        ours = self._keeper.ledger.term
        return SessionRefused(
            f"orders of term {orders.term} came after those of term {ours}: the master's database is older than the "
            f"cluster, as after a copy was put back. On the master: lavactl adopt; a version without that command must "
            f"be a newer one again (docs/howto/upgrade.md, Going back)"
        )

    async def _check(self, asked: HealthCheck) -> None:
        """Check this host's health, once for each number. An answer as the last one goes with the next heartbeat."""
        if asked.number == self._check_number or not asked.argv:
            return
        self._check_number = asked.number
        found, key = await self.checks.run(asked.argv, asked.limit_s), tuple(asked.argv)
        self._health = HealthVerdict(number=asked.number, verdict=found.verdict, text=found.text)
        if self._told.get(key) != found:
            self._something.set()
        self._told[key] = found
        self._found(key, found)

    async def check(self, asked: HealthCheck, may_be_fresh: bool) -> Verdict:
        """Check this host's health before or after a job; a bad result is told."""
        found, key = await self.checks.run(asked.argv, asked.limit_s, may_be_fresh), tuple(asked.argv)
        self._found(key, found)
        if found.verdict == BAD:
            self._found_bad[key] = HealthVerdict(verdict=BAD, text=found.text, argv=key)
            self._something.set()
        return found

    def _found(self, program: Program, found: Verdict) -> None:
        """Note a result: an earlier bad one that is not told yet, or may be told again, counts no more."""
        self._found_bad.pop(program, None)
        self._told_bad.drop(program)

    # -- reports

    async def _write_reports(self, call: "grpc.aio.StreamStreamCall[Reports, Orders]") -> None:
        while True:
            await self._wait_for_something()
            await call.write(self._next_message())

    async def _wait_for_something(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.welcome.heartbeat_s or 5.0):
                await self._something.wait()

    def _next_message(self) -> Reports:
        reports = [one for one in self._reports if one.WhichOneof("what") not in self._not_understood]
        message = Reports(reports=reports, usages=self._usages.values(), progress=self._progress.values())
        activities, stacks = self._watch.take_news()
        message.activities.extend(activities)
        message.stacks.extend(stacks)
        message.checkpoints.extend(self._checkpoints.take_news())
        if self._load is not None:
            message.load.CopyFrom(self._load)
            self._load_told, self._load = self._load, None
        if self._health is not None:
            message.health.CopyFrom(self._health)
            self._health = None
        elif self._found_bad:
            key = next(iter(self._found_bad))
            message.health.CopyFrom(self._told_bad.note(key, self._found_bad.pop(key)))
        if self._tells_notice:
            message.host_notice.CopyFrom(self.notice.message())
            self._tells_notice = False
        if self._taken_notice is not None:
            message.taken_notice.CopyFrom(self._taken_notice)
            self._taken_notice = None
        self._reports.clear()
        self._usages.clear()
        self._progress.clear()
        self._something.clear()
        return self._numbered(message)

    def _numbered(self, message: Reports) -> Reports:
        self._sequence += 1
        message.sequence = self._sequence
        message.sent_monotonic = own_clock()
        return message

    async def _repeat(self) -> None:
        """Repeat reports that have not been acknowledged for a while."""
        before: set[int] = set()
        while True:
            await asyncio.sleep(min(REPEAT_S, REPEAT_HEARTBEATS * (self.welcome.heartbeat_s or REPEAT_S)))
            waiting = {id(report): report for report in self._keeper.ledger.unacknowledged()}
            for number, report in waiting.items():
                if number in before:
                    self.say(report)
            before = set(waiting)

    async def _sync_logs(self) -> None:
        while True:
            await asyncio.sleep(SYNC_S)
            with shortage_passes("sync_logs"):
                await self._keeper.pool.sync_logs()

    async def _watch_notice(self) -> None:
        """Ask the program that knows when this host is taken away, on hosts for which the master names one."""
        while True:
            settings = self.welcome.settings
            argv = shlex.split(settings.get(REVOCATION_NOTICE, ""))
            is_news = await asyncio.to_thread(self.notice.ask, argv) if argv else False
            if is_news:
                self._tells_notice = True
                self._something.set()
            await asyncio.sleep(float(settings.get(REVOCATION_INTERVAL) or NOTICE_EVERY_S))

    async def tell_load(self) -> None:
        """Sample the load and send it with the next message, before the reports in it."""
        with shortage_passes("load"):
            self._load = await asyncio.to_thread(self._sampler.sample)
            self._something.set()

    async def _watch_load(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            with shortage_passes("load"):
                await asyncio.to_thread(self._sampler.expect, self._expected)
                load = self.newest_load = await asyncio.to_thread(self._sampler.sample)
                told_long_ago = loop.time() - self._load_told_at > LOAD_AT_LEAST_EVERY_S
                if told_long_ago or self._load_told is None or self._significant(self._load_told, load):
                    self._load, self._load_told_at = load, loop.time()
                    self._something.set()
            await asyncio.sleep(LOAD_EVERY_S)


def details(ledger: Ledger, room: int) -> tuple[list[JobSpecBlob], list[Held]]:
    """Return a spec for each job here, and the newest ends with their jobs' specs, up to ``room`` bytes."""
    by_version = sorted((entry.blob for entry in ledger.entries.values()), key=lambda blob: blob.version, reverse=True)
    specs = {blob.job: blob for blob in by_version}  # of an array rather its own than that of a changed element
    room -= sum(blob.ByteSize() for blob in specs.values())
    known, ended = {job: blob for (job, _), blob in ledger.specs.items()}, list[Held]()
    for one in reversed(ledger.ended.values()):
        job = one.key.job
        new = {job: known[job]} if job in known and job not in specs else {}
        room -= one.ByteSize() + sum(blob.ByteSize() for blob in new.values())
        if room < 0:
            break
        specs |= new
        ended.append(one)
    return list(specs.values()), ended[::-1]


@contextlib.contextmanager
def shortage_passes(what: str) -> Iterator[None]:
    """Skip periodic work this time if the machine lacks descriptors or memory for it."""
    try:
        yield
    except OSError as error:
        if error.errno not in SHORTAGES:
            raise
        LOG.warning("event=left_out work=%s reason=%r", what, str(error))


async def _at_once(_welcome: Welcome) -> None:
    """Hold no orders back."""


def reason_of(error: Exception) -> str:
    """Return why a session ended, for the log."""
    if isinstance(error, grpc.aio.AioRpcError):
        broke = error.code() is grpc.StatusCode.INTERNAL and error.details() == WRITE_FAILED
        return "the master ended the connection" if broke else f"{error.code().name}: {error.details()}"
    return str(error) or type(error).__name__
