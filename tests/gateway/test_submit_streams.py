"""Streams of submissions: one user's one after the other, never another user's."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from agents.local_socket import submit_streams
from agents.local_socket.callers import Caller, CallFailed
from agents.local_socket.gateway import is_connection_lost
from agents.local_socket.submit_streams import METHOD, SubmitStreams
from lavactl.wire.connection import CallError
from protos import frames
from protos.wire import CALLER_UID
from tests.fakes.site import Site

ANN, BOB = Caller("ann", 1001, 1001, 7), Caller("bob", 1002, 1002, 8)
TIMEOUT_S = 60.0


class FakeCall:
    """A stream that answers a batch with its own number and the batch."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.has_ended = False
        self.batch = b""

    async def write(self, batch: bytes) -> None:
        self.batch = batch

    async def read(self) -> bytes:
        if self.batch == b"slow":
            await asyncio.Event().wait()
        return b"%d:%b" % (self.number, self.batch)

    def done(self) -> bool:
        return self.has_ended

    def cancel(self) -> None:
        self.has_ended = True


class FakeChannel:
    """A channel, with the streams that were begun on it and for whom."""

    def __init__(self) -> None:
        self.calls: list[FakeCall] = []
        self.uids: list[str] = []

    def stream_stream(self, _method: str, **_: Any) -> Any:
        def begin(_requests: None, metadata: tuple[tuple[str, str], ...]) -> FakeCall:
            self.uids.append(dict(metadata)[CALLER_UID])
            self.calls.append(FakeCall(len(self.calls)))
            return self.calls[-1]

        return begin


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A gateway with a master that answers each batch with itself, and refuses the batch ``bad``."""

    async def answer(batches: AsyncIterator[bytes], context: Any) -> None:
        async for batch in batches:
            if batch == b"bad":
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "too large")
            await context.write(batch)

    with Site(tmp_path, "n1") as made:
        made.master.methods[METHOD] = answer
        yield made


def submit(site: Site, batch: bytes) -> list[bytes]:
    """Answers to a command that submits."""
    return list(site.dial().answers(METHOD, batch, TIMEOUT_S))


def test_submissions_one_after_the_other_are_one_call(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The master asks once who calls."""
    monkeypatch.setattr(submit_streams, "IDLE_S", TIMEOUT_S)
    monkeypatch.setattr(submit_streams, "LIFE_S", TIMEOUT_S)
    assert [submit(site, batch) for batch in (b"1", b"2", b"3")] == [[b"1"], [b"2"], [b"3"]]
    assert len(site.master.seen) == 1


def test_a_refused_submission_ends_its_stream(site: Site) -> None:
    """Its user is told why; the next one has a stream of its own."""
    submit(site, b"1")
    with pytest.raises(CallError, match="too large") as error:
        submit(site, b"bad")
    assert error.value.status == frames.INVALID_ARGUMENT
    assert submit(site, b"2") == [b"2"]


def test_a_master_that_begins_anew_is_asked_anew(site: Site) -> None:
    """A submission after that goes to the new one, or is told that the connection was lost."""
    submit(site, b"1")
    site.call(site.master.stop())
    site.call(site.master.start())
    try:
        assert submit(site, b"2") == [b"2"]
    except CallError as error:
        assert error.status == frames.UNAVAILABLE  # noqa: PT017 - either may be
    assert submit(site, b"3") == [b"3"]


def test_whose_a_stream_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user, other credentials, another master, a long life: each has a new one."""
    monkeypatch.setattr(submit_streams, "IDLE_S", TIMEOUT_S)
    now = 0.0

    async def body() -> list[bytes]:
        nonlocal now
        streams, channel, other = SubmitStreams(), FakeChannel(), FakeChannel()
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
        answers = [await streams.submit(channel, caller, b"x") for caller in (ANN, BOB, ANN, BOB)]  # type: ignore[arg-type]
        answers.append(await streams.submit(channel, Caller("ann", 1001, 50, 7), b"x"))  # type: ignore[arg-type]
        answers.append(await streams.submit(other, ANN, b"x"))  # type: ignore[arg-type]
        now = submit_streams.LIFE_S
        answers.append(await streams.submit(channel, ANN, b"x"))  # type: ignore[arg-type]
        assert channel.uids == ["1001", "1002", "1001", "1001"]
        streams.close()
        assert all(call.has_ended for call in channel.calls + other.calls)
        return answers

    assert asyncio.run(body()) == [b"0:x", b"1:x", b"0:x", b"1:x", b"2:x", b"0:x", b"3:x"]


def test_submissions_at_once_have_streams_of_their_own() -> None:
    """So none waits for another; one that is given up takes its stream with it."""

    async def body() -> None:
        streams, channel = SubmitStreams(), FakeChannel()
        slow = asyncio.create_task(streams.submit(channel, ANN, b"slow"))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        assert await streams.submit(channel, ANN, b"2") == b"1:2"  # type: ignore[arg-type]
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
        assert [call.has_ended for call in channel.calls] == [True, False]
        assert await streams.submit(channel, ANN, b"3") == b"1:3"  # type: ignore[arg-type]
        streams.close()

    asyncio.run(body())


def test_idle_streams_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A moment after their last submission, or when there are many."""
    monkeypatch.setattr(submit_streams, "IDLE_MAX", 1)
    monkeypatch.setattr(submit_streams, "IDLE_S", 0.01)

    async def body() -> None:
        streams, channel = SubmitStreams(), FakeChannel()
        for caller in (ANN, BOB):
            await streams.submit(channel, caller, b"x")  # type: ignore[arg-type]
        assert channel.calls[0].has_ended
        async with asyncio.timeout(60):
            while not channel.calls[1].has_ended:  # noqa: ASYNC110 - a timer ends it
                await asyncio.sleep(0.01)

    asyncio.run(body())


def test_a_submission_to_a_master_that_is_gone_is_told_that_the_connection_was_lost() -> None:
    """Though the library, which has not seen yet that the stream ended, calls a failed write its own error."""

    async def body() -> None:
        server = grpc.server(ThreadPoolExecutor(2))
        echo = grpc.stream_stream_rpc_method_handler(lambda batches, _context: batches)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("lava.v1.JobService", {"Submit": echo}),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            streams = SubmitStreams()
            assert await streams.submit(channel, ANN, b"1") == b"1"
            _stop(server)  # this loop stands still meanwhile, so that the stream seems whole to it
            try:
                await streams.submit(channel, ANN, b"2")
                pytest.fail("a server that is gone has answered")
            except grpc.aio.AioRpcError as error:
                assert is_connection_lost(error)  # noqa: PT017 - either may be
            except CallFailed as error:
                assert error.status == frames.UNAVAILABLE  # noqa: PT017 - either may be

    asyncio.run(body())


def _stop(server: grpc.Server) -> None:
    server.stop(None).wait(60)
    time.sleep(0.2)  # for the client's library to learn of it
