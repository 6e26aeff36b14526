"""A fake agent: a real session with a real master, and jobs that only take their time."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import grpc
import grpc.aio

from protos import agents_pb2 as pb
from protos import jobs_pb2
from protos.agents_pb2_grpc import AgentServiceStub
from protos.cluster_pb2 import HostFacts
from protos.jobs_pb2_grpc import JobServiceStub
from protos.trust.authority import Authority
from protos.trust.roles import MASTER_NAME, Kind, Role
from protos.trust.tls import aio_channel
from protos.wire import CALLER_GID, CALLER_UID, CALLER_USER, PROTOCOL
from tests.fakes.site import identity_for

CALLER = ((CALLER_USER, "ann"), (CALLER_UID, "1000"), (CALLER_GID, "1000"))
HEARTBEAT_S = 1.0
CONNECT_S = 30.0


class PretendingAgent:
    """One host. ``started`` gets the jobs in order of their start."""

    def __init__(self, host: str, slots: int, channel: grpc.aio.Channel) -> None:
        self.started: list[int] = []
        self.late_s = 0.0  # how far behind its time the latest of all reports was made
        self._facts = HostFacts(name=host, slots=slots, cpus=slots, memory_mib=1000, server=True, type="X86_64")
        self._channel = channel
        self._call = AgentServiceStub(channel).Session()
        self._reports: asyncio.Queue[pb.Report] = asyncio.Queue()
        self._runs: dict[int, asyncio.Future[float]] = {}  # seconds by job: its order may come before its number does
        self._change = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._sequence = 0

    async def begin(self) -> None:
        """Send a hello and wait for the welcome."""
        await self._write(pb.Reports(hello=pb.Hello(facts=self._facts, protocol=PROTOCOL, incarnation=1)))
        while True:
            orders = await self._call.read()
            assert isinstance(orders, pb.Orders), "the master has ended the session"
            if orders.HasField("welcome"):
                assert not orders.welcome.error, orders.welcome.error
                break
        for work in (self._take_orders(), self._write_reports()):
            self._tasks.add(asyncio.create_task(work))

    async def end(self) -> None:
        """Hang up."""
        self._call.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def submit(self, spec: jobs_pb2.JobSpec, run_s: float) -> int:
        """As a user of this host; the job's number."""
        call = JobServiceStub(self._channel).Submit(metadata=CALLER)
        await call.write(jobs_pb2.SubmitBatch(items=[jobs_pb2.SubmitItem(spec=spec)]))
        replies = await call.read()
        assert isinstance(replies, jobs_pb2.SubmitReplies), "no answer"
        await call.done_writing()
        (result,) = replies.results
        assert not result.error, result.error
        self._run_of(result.job).set_result(run_s)
        return result.job

    async def wait_for_starts(self, count: int) -> None:
        """Wait until this number of jobs has started."""
        async with self._change:
            await self._change.wait_for(lambda: len(self.started) >= count)

    def _run_of(self, job: int) -> asyncio.Future[float]:
        return self._runs.setdefault(job, asyncio.get_running_loop().create_future())

    async def _write(self, message: pb.Reports) -> None:
        self._sequence += 1
        message.sequence, message.sent_monotonic = self._sequence, time.monotonic()
        await self._call.write(message)

    async def _take_orders(self) -> None:
        while isinstance(orders := await self._call.read(), pb.Orders):
            for order in orders.orders:
                if order.WhichOneof("what") == "stage":
                    assert order.stage.launch_now, "a job on one host is staged and launched at once"
                    async with self._change:
                        self.started.append(order.key.job)
                        self._change.notify_all()
                    self._tasks.add(asyncio.create_task(self._pretend(order)))

    async def _pretend(self, order: pb.Order) -> None:
        began = time.monotonic()
        self._report(order, started=pb.Started(pid=1, time=time.time()))
        run_s = await self._run_of(order.key.job)
        await asyncio.sleep(run_s)
        self.late_s = max(self.late_s, time.monotonic() - began - run_s)
        self._report(order, finished=pb.Finished(time=time.time()), also_released=True)

    def _report(self, order: pb.Order, **what: object) -> None:
        report = pb.Report(key=order.key, allocation_version=order.allocation_version, **what)  # type: ignore[arg-type]
        self._reports.put_nowait(report)

    async def _write_reports(self) -> None:
        while True:
            reports = []
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_S):
                    reports.append(await self._reports.get())
            await self._write(pb.Reports(reports=reports))


@contextlib.asynccontextmanager
async def pretending(
    directory: Path, settings: Mapping[str, str], host: str, slots: int
) -> AsyncIterator[PretendingAgent]:
    """An agent in session with the master of that cluster directory, as soon as that can be reached."""
    identity = identity_for(Authority.load(directory / "ca"), Role(Kind.AGENT, host))
    channel = await aio_channel(settings["LAVA_LISTEN"], identity, MASTER_NAME)
    async with channel:
        async with asyncio.timeout(CONNECT_S):
            await channel.channel_ready()
        agent = PretendingAgent(host, slots, channel)
        await agent.begin()
        try:
            yield agent
        finally:
            await agent.end()
