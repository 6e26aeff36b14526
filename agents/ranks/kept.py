"""Kept task from its agent's side: a socket to the shepherd that owns the task's streams, and a remote caller.

Invariants: nothing is stored here, so the end of the agent loses nothing; the pace is that of the slower side; the
shepherd is told that a caller has left, but not that a connection merely broke.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

from agents.shepherd import messages
from agents.shepherd.messages import Message, pack, unpack
from agents.shepherd.tasks.streams import CHUNK, PMI, SIGNALS, STDERR, STDIN, STDOUT
from protos.agents_pb2 import TaskInput, TaskOutput

LOST = 9  # wait status of a task whose shepherd has gone: it was killed
ANSWER_S = 10.0

Send = Callable[[TaskOutput], Awaitable[None]]


async def converse(
    channel: socket.socket,
    patience_s: float,
    inputs: AsyncIterator[TaskInput],
    send: Send,
    has_gone: Callable[[], bool],
) -> None:
    """Relay messages of task and caller until the caller has received the end. Owns the socket.

    ``has_gone`` is called on cancellation: it returns True if the caller has ended and not the agent.
    """
    with channel:
        upward = asyncio.create_task(_pass_up(channel, inputs))
        downward = asyncio.create_task(_pass_down(channel, patience_s, send))
        try:
            await asyncio.wait([upward, downward], return_when=asyncio.FIRST_COMPLETED)
            if upward.done():
                upward.result()  # raises for a caller that breaks the protocol
            await downward
        except BaseException:
            if has_gone():
                with contextlib.suppress(OSError):  # its shepherd may have ended, too
                    channel.send(pack(messages.GONE))
            raise
        finally:
            upward.cancel()
            downward.cancel()
            await asyncio.gather(upward, downward, return_exceptions=True)


async def end(channel: socket.socket) -> None:
    """Wait until the shepherd has learnt that the caller has left. Owns the socket."""
    with channel, contextlib.suppress(TimeoutError, OSError):
        async with asyncio.timeout(ANSWER_S):
            await asyncio.get_running_loop().sock_recv(channel, messages.INLINE_MAX + 1)


async def _pass_down(channel: socket.socket, patience_s: float, send: Send) -> None:
    kinds = set()
    while data := await _receive(channel):
        message = unpack(data)
        kinds.add(message[0])
        await send(_as_output(message, patience_s))
    if not kinds:
        await send(TaskOutput(error="The job has ended on this host."))
    elif kinds.isdisjoint((messages.TASK_OVER, messages.NOT_THERE)):
        await send(TaskOutput(ended=True, status=LOST))


async def _receive(channel: socket.socket) -> bytes:
    loop = asyncio.get_running_loop()
    try:
        return await loop.sock_recv(channel, messages.INLINE_MAX + 1)
    except ConnectionResetError:
        # Returned once if the shepherd left with unread messages; its earlier messages can still be read.
        return await loop.sock_recv(channel, messages.INLINE_MAX + 1)


def _as_output(message: Message, patience_s: float) -> TaskOutput:
    match message:
        case (messages.DATA, stream, place, data):
            name = {STDOUT: "out", STDERR: "err", PMI: "pmi"}[stream]
            return TaskOutput(offset=place, **{name: data})
        case (messages.TAKEN, stream, place):
            name = {STDIN: "taken", PMI: "taken_pmi", SIGNALS: "taken_signals"}[stream]
            return TaskOutput(**{name: place})
        case (messages.TASK_RUNS, pid, taken, taken_pmi, taken_signals):
            return TaskOutput(
                started=True, pid=pid, taken=taken, taken_pmi=taken_pmi, taken_signals=taken_signals,
                kept=True, patience_s=patience_s,
            )  # fmt: skip
        case (messages.TASK_OVER, status):
            return TaskOutput(ended=True, status=status)
        case (messages.NOT_THERE, reason):
            return TaskOutput(error=reason)
    return TaskOutput()  # from a shepherd of a later version


async def _pass_up(channel: socket.socket, inputs: AsyncIterator[TaskInput]) -> None:
    loop = asyncio.get_running_loop()
    async for message in inputs:
        for packed in _as_messages(message):
            try:
                await loop.sock_sendall(channel, packed)
            except OSError:
                return  # the shepherd has closed it; the other direction reports that


def _as_messages(message: TaskInput) -> Iterator[bytes]:
    if message.signal:
        yield pack(messages.DATA, SIGNALS, message.offset, bytes([message.signal & 0xFF]))
    for stream, data in ((PMI, message.pmi), (STDIN, message.data)):
        for start in range(0, len(data), CHUNK):
            yield pack(messages.DATA, stream, message.offset + start, data[start : start + CHUNK])
    if message.end_of_input:
        yield pack(messages.END_OF_INPUT)
    for stream, place in ((STDOUT, message.got_out), (STDERR, message.got_err), (PMI, message.got_pmi)):
        if place:
            yield pack(messages.GOT, stream, place)
    if message.columns:
        yield pack(messages.WINDOW, message.lines, message.columns)
    if message.done:
        yield pack(messages.DONE)
