"""A master for tests, over real mutual TLS, and the agent as a real process that connects to it."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import grpc.aio

from agents.state_directory import find_groups
from protos.agents_pb2 import (
    JobSpecBlob,
    LaunchOrder,
    Order,
    Orders,
    Release,
    Report,
    Reports,
    SignalOrder,
    Stage,
    Welcome,
)
from protos.agents_pb2_grpc import AgentServiceServicer, add_AgentServiceServicer_to_server
from protos.trust.authority import Authority, key_pem, make_authority, make_key, make_request
from protos.trust.private import write_private
from protos.trust.roles import Identity, Kind, Role
from protos.trust.tls import server_credentials
from protos.wire import SERVER_OPTIONS
from tests.agents.hosts import NAME, Key, Place, key_message, key_of, stage, sweep, until

ROOT = Path(__file__).resolve().parents[2]


def an_identity(authority: Authority, role: Role) -> Identity:
    """A key and its certificate."""
    key = make_key()
    certificate = authority.sign(make_request(key, "test"), role)
    return Identity(key_pem(key), certificate, authority.certificate_pem)


class Conversation:
    """One session of an agent, as the master sees it."""

    def __init__(self, first: Reports) -> None:
        self.hello = first.hello
        self.sequence = first.sequence
        self.outbox: asyncio.Queue[Orders | None] = asyncio.Queue()
        self.open = True


class Master(AgentServiceServicer):
    """Accepts sessions, records agents' messages, sends the test's orders.

    ``acknowledge``: forget attempts as soon as their last report has come. ``frozen``: stop echoing the agent's clock,
    as if every order had been in transit for long.
    """

    def __init__(self, acknowledge: bool = True) -> None:
        self.authority = make_authority("test")
        self.acknowledge = acknowledge
        self.welcome = Welcome(
            cluster="c1", heartbeat_s=0.2, order_validity_s=5.0, usage_interval_s=1.0, terminate_interval_s=0.3
        )
        self.term = 1
        self.echo = 0.0
        self.frozen = False
        self.sessions: list[Conversation] = []
        self.messages: list[Reports] = []
        self.reports: list[Report] = []
        self._known: set[int] = set()

    async def __aenter__(self) -> "Master":
        self._server = grpc.aio.server(options=SERVER_OPTIONS)
        add_AgentServiceServicer_to_server(self, self._server)
        identity = an_identity(self.authority, Role(Kind.MASTER))
        self.port = self._server.add_secure_port("127.0.0.1:0", server_credentials(identity))
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in self.sessions:
            session.outbox.put_nowait(None)
        await self._server.stop(0.2)

    async def Session(
        self, reports: AsyncIterator[Reports], context: "grpc.aio.ServicerContext[Reports, Orders]"
    ) -> AsyncIterator[Orders]:
        """The service's one method."""
        first = await anext(reports)
        session = Conversation(first)
        self._take(first)
        self.sessions.append(session)
        reading = asyncio.create_task(self._read(reports, session))
        try:
            yield Orders(term=self.term, welcome=self.welcome, echo_monotonic=self.echo)
            while (message := await session.outbox.get()) is not None:
                yield message
        finally:
            session.open = False
            reading.cancel()

    async def _read(self, reports: AsyncIterator[Reports], session: Conversation) -> None:
        async for message in reports:
            assert message.sequence == session.sequence + 1
            session.sequence = message.sequence
            self._take(message, session)
        session.outbox.put_nowait(None)

    def _take(self, message: Reports, session: Conversation | None = None) -> None:
        self.messages.append(message)
        if not self.frozen:
            self.echo = message.sent_monotonic
        self.reports.extend(message.reports)
        self.reports.extend(held.last for held in message.hello.held if held.HasField("last"))
        over = [report.key for report in message.reports if _is_last(report)]
        if session is not None and over and self.acknowledge:
            session.outbox.put_nowait(Orders(term=self.term, forget=over, echo_monotonic=self.echo))

    # -- actions of a test

    async def session(self, number: int = 1) -> Conversation:
        """The n-th session, waited for."""
        await until(lambda: len(self.sessions) >= number)
        return self.sessions[number - 1]

    def send(
        self, *orders: Order, specs: tuple[JobSpecBlob, ...] = (), term: int | None = None, **more: object
    ) -> None:
        """Send orders in the newest session."""
        message = Orders(term=term or self.term, orders=orders, specs=specs, echo_monotonic=self.echo, **more)  # type: ignore[arg-type]
        self.sessions[-1].outbox.put_nowait(message)

    def start(self, job: JobSpecBlob, where: Stage | None = None, index: int = 0, attempt: int = 1) -> Key:
        """Order a job to be started; its key."""
        key = (job.job, index, attempt)
        self.send(Order(key=key_message(key), stage=where or stage()), specs=(job,))
        return key

    def launch(self, key: Key) -> None:
        """Order the launch."""
        self.send(Order(key=key_message(key), launch=LaunchOrder()))

    def signal(self, key: Key, number: int, reason: str = "") -> None:
        """Order a signal."""
        self.send(Order(key=key_message(key), signal=SignalOrder(signal=number, reason=reason)))

    def release(self, key: Key) -> None:
        """Order a release."""
        self.send(Order(key=key_message(key), release=Release()))

    def said(self, key: Key, what: str) -> list[Report]:
        """Reports of this kind about an attempt."""
        return [one for one in self.reports if key_of(one.key) == key and one.WhichOneof("what") == what]

    async def report(self, key: Key, what: str, count: int = 1) -> Report:
        """The n-th report of this kind about an attempt, waited for."""
        await self.until(lambda: len(self.said(key, what)) >= count)
        return self.said(key, what)[count - 1]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a report of an agent."""
        await until(condition, more=lambda: f"reports: {self.reports}")


def _is_last(report: Report) -> bool:
    return report.also_released or report.WhichOneof("what") in ("refused", "released")


class Agent:
    """`lava-agent` as a process."""

    def __init__(self, place: Place, master: Master, *options: str, fail: str = "", enrolled: bool = True) -> None:
        self.place = place
        self.master = master
        self.options = options
        self.fail = fail
        if enrolled:
            (place.state / "identity").mkdir(parents=True, exist_ok=True)
            identity = an_identity(master.authority, Role(Kind.AGENT, NAME))
            write_private(place.state / "identity" / "agent.pem", identity.bundle())

    async def __aenter__(self) -> "Agent":
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.kill)
        base = await asyncio.to_thread(find_groups, NAME, self.place.state)
        await asyncio.to_thread(sweep, self.place.state, base)

    def start(self, fail: str | None = None) -> None:
        """Start a process, the first or the next."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LAVA_")}
        fail = self.fail if fail is None else fail
        if fail:
            environment["LAVA_FAIL"] = fail
        argv = [sys.executable, "-m", "agents", "--master", f"127.0.0.1:{self.master.port}", "--name", NAME]
        argv += ["--state", str(self.place.state), "--socket", str(self.place.root / "agent.sock"), "--slots", "4"]
        argv += ["--peer-listen", "127.0.0.1:0", "--pid-file", str(self.place.root / "pid"), *self.options]
        with open(self.place.root / "agent.log", "ab") as log:
            self.process = subprocess.Popen(argv, cwd=ROOT, env=environment, stderr=log, stdout=log)

    def log(self) -> str:
        """Its log so far."""
        return (self.place.root / "agent.log").read_text()

    def kill(self) -> int:
        """End it the hard way; how it had ended, if it had."""
        if self.process.poll() is None:
            self.process.kill()
        return self.process.wait()

    async def stop(self) -> int:
        """End it by SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(self.process.wait, 60)

    async def died(self) -> int:
        """Wait until it ends by itself."""
        return await asyncio.to_thread(self.process.wait, 60)
