"""Frames of the local socket: they come off a real pair of sockets, cut anywhere, and are paid for before they wait."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Callable

import pytest

from agents.local_socket.callers import Caller
from agents.local_socket.calls import ByteBudget, Call
from agents.local_socket.frame_socket import FrameSocket
from protos import frames

ANN = 1000
SOON_S = 0.05  # for what is to run out
PATIENCE_S = 60.0


class Heard(FrameSocket):
    """Connection of Ann's that keeps the payloads of its frames; those of kind MESSAGE stay counted."""

    def __init__(self, budget: ByteBudget, half_frame_s: float = PATIENCE_S, patience_s: float = PATIENCE_S) -> None:
        super().__init__(budget, half_frame_s)
        self.payloads: list[bytes] = []
        self._patience_s = patience_s

    @property
    def payer(self) -> int:
        """Ann."""
        return ANN

    def patience_s(self) -> float | None:
        """As given."""
        return self._patience_s

    def begun(self) -> None:
        """Note nothing."""

    def handle(self, number: int, kind: int, payload: bytes, uid: int) -> bool:
        """Keep it."""
        self.payloads.append(payload)
        return kind == frames.MESSAGE

    async def until(self, number: int) -> None:
        """Wait until so many have come."""
        await until(lambda: len(self.payloads) >= number)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, which the event loop's callbacks make true."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)


@contextlib.asynccontextmanager
async def running(heard: Heard) -> AsyncIterator[tuple[socket.socket, "asyncio.Task[None]"]]:
    """The other end of a connection, and its task."""
    ours, theirs = socket.socketpair()
    task = asyncio.create_task(heard.run(ours))
    with theirs:
        theirs.setblocking(False)
        try:
            yield theirs, task
        finally:
            heard.abort()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def message(text: bytes, kind: int = frames.MESSAGE) -> bytes:
    """A frame of the first call."""
    return frames.pack(1, kind, text)


def test_frames_arrive_whole_and_in_order_however_they_are_cut() -> None:
    """Byte by byte, or many in one piece."""

    async def story() -> None:
        heard = Heard(ByteBudget(1 << 20, 1 << 20))
        async with running(heard) as (theirs, _):
            loop, whole = asyncio.get_running_loop(), message(b"one") + message(b"") + message(b"three")
            for byte in whole:
                await loop.sock_sendall(theirs, bytes([byte]))
                await asyncio.sleep(0)
            await heard.until(3)
            await loop.sock_sendall(theirs, whole * 50)
            await heard.until(153)
        assert heard.payloads == [b"one", b"", b"three"] * 51

    asyncio.run(story())


def test_a_frame_that_is_there_already_is_handled_at_once() -> None:
    """A command sends its first frame together with its connection: no turn of the event loop is waited for."""

    async def story() -> None:
        heard = Heard(ByteBudget(1 << 20, 1 << 20))
        ours, theirs = socket.socketpair()
        theirs.sendall(message(b"first"))
        task = asyncio.create_task(heard.run(ours))
        await asyncio.sleep(0)
        assert heard.payloads == [b"first"]
        theirs.close()
        with pytest.raises(EOFError):
            await task
        heard.abort()

    asyncio.run(story())


def test_what_is_written_arrives_whole_and_in_order() -> None:
    """More than the kernel takes at once, in several pieces, to a reader that begins late."""

    async def story() -> None:
        heard = Heard(ByteBudget(10, 10))
        async with running(heard) as (theirs, _):
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(theirs, message(b"hello"))
            await heard.until(1)
            pieces = [bytes([at]) * (1 << 20) for at in range(4)]
            heard.put(b"before")
            writers = [asyncio.create_task(heard.write(piece)) for piece in pieces]
            await until(lambda: not heard._emptied.is_set())
            wanted, found = b"before" + b"".join(pieces), bytearray()
            while len(found) < len(wanted):
                found += await loop.sock_recv(theirs, 1 << 16)
            assert found == wanted
            await asyncio.gather(*writers)
            assert not heard._unsent

    asyncio.run(story())


def test_a_frame_without_room_waits_and_those_behind_it_too() -> None:
    """It goes on as soon as earlier bytes are given back, in order; all is given back at the end."""

    async def story() -> None:
        budget = ByteBudget(10, 10)
        heard = Heard(budget)
        async with running(heard) as (theirs, _):
            sent = message(b"12345678") + message(b"abcdefgh") + message(b"12", frames.CREDIT)
            await asyncio.get_running_loop().sock_sendall(theirs, sent)
            await heard.until(1)
            await until(lambda: heard._paying is not None)
            assert heard.payloads == [b"12345678"]
            budget.give(ANN, 8)
            await heard.until(3)
            assert heard.payloads[1:] == [b"abcdefgh", b"12"]
            budget.give(ANN, 8)
            await asyncio.get_running_loop().sock_sendall(theirs, message(b"1234567890")[:-1])
            await until(lambda: not budget.has_room(ANN, 1))
        assert budget.has_room(ANN, 10)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("sent", "limits"),
    [
        (b"", (PATIENCE_S, SOON_S)),
        (message(b"whole") + message(b"x")[:5], (PATIENCE_S, SOON_S)),
        (message(b"half")[:-1], (SOON_S, PATIENCE_S)),
        (message(b"too long for the budget"), (SOON_S, PATIENCE_S)),
    ],
)
def test_what_does_not_come_in_time_ends_the_connection(sent: bytes, limits: tuple[float, float]) -> None:
    """The beginning of a frame, its rest, and room for it each have a time."""

    async def story() -> None:
        async with running(Heard(ByteBudget(10, 10), *limits)) as (theirs, task):
            await asyncio.get_running_loop().sock_sendall(theirs, sent)
            async with asyncio.timeout(PATIENCE_S):
                with pytest.raises(TimeoutError):
                    await asyncio.shield(task)

    asyncio.run(story())


def test_a_writer_waits_for_a_slow_reader_and_hears_that_it_has_left() -> None:
    """The bytes that wait here are bounded."""

    async def story() -> None:
        heard = Heard(ByteBudget(10, 10))
        async with running(heard) as (theirs, _):
            await asyncio.get_running_loop().sock_sendall(theirs, message(b"hello"))
            await heard.until(1)
            writer = asyncio.create_task(heard.write(bytes(8 << 20)))
            other = asyncio.create_task(heard.write(b"behind it"))
            await until(lambda: not heard._emptied.is_set())
            assert not writer.done()
            assert not other.done()
            theirs.close()
            async with asyncio.timeout(PATIENCE_S):
                found = await asyncio.gather(writer, other, return_exceptions=True)
        assert [type(one) for one in found] == [ConnectionResetError] * 2

    asyncio.run(story())


def test_the_last_answers_of_a_call_go_with_its_end() -> None:
    """In one write, so that the command wakes up once."""

    async def story() -> None:
        written: list[bytes] = []

        async def write(data: bytes) -> None:
            written.append(data)

        call = Call(1, "/lava.local/Command", Caller("ann", ANN, ANN, 1), write, ByteBudget(10, 10))
        await call.send_last(b"output")
        await call.send_last(b"done")
        await call.end(frames.OK)
        assert written == [message(b"output") + message(b"done") + message(frames.pack_end(frames.OK, ""), frames.END)]

    asyncio.run(story())


def test_one_that_reads_no_ends_of_calls_is_left() -> None:
    """Those are put without a wait: a command could begin calls and cancel them for ever."""

    async def story() -> None:
        heard = Heard(ByteBudget(10, 10))
        async with running(heard) as (theirs, task):
            await asyncio.get_running_loop().sock_sendall(theirs, message(b"hello"))
            await heard.until(1)
            for _ in range(64):
                heard.put(bytes(1 << 16))
            async with asyncio.timeout(PATIENCE_S):
                with pytest.raises(frames.FrameError):
                    await asyncio.shield(task)

    asyncio.run(story())
