"""One task beside a job's first process: started as its user, with its streams relayed, ended when its caller leaves.

Serves callers on this host and behind another host's agent alike. A caller that gives its task a token gets one that
its shepherd keeps (`agents.ranks.kept`); else, or if the shepherd's version keeps none, the agent owns the streams.
Invariants of the latter: user, base environment and limits come from the held attempt; output moves at its reader's
pace; when the conversation breaks, the task is ended: TERM, and KILL for all left after ``KILL_AFTER_S``; every
descriptor is closed on every path.
"""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import ExitStack
from typing import Any

from agents.ranks import kept
from agents.ranks.interfaces import (
    PMI_DESCRIPTOR,
    Attempts,
    HeldAttempt,
    KeptRequest,
    Run,
    TaskHandle,
    TaskRefused,
    TaskRequest,
)
from agents.ranks.pipes import ReadEnd, WriteEnd, input_pipe, output_pipe, socket_pair
from protos import gpu_vendors
from protos.agents_pb2 import TaskInput, TaskOutput, TaskStart

LOG = logging.getLogger("lava.ranks")

# Bytes of a task's input that wait here before its caller is made to wait; callers stay below it (see
# TaskOutput.taken), so that signals are never stuck behind input that the task does not read.
INPUT_WAITING_MAX = 1 << 20
# Time after a task's end in which processes it left behind may still write.
LINGER_S = 1.0
KILL_AFTER_S = 2.0
SIGNAL_MAX = 64

Send = Callable[[TaskOutput], Awaitable[None]]

# Variables that the agent of each host sets itself: a caller on another host would send wrong values.
_OF_THE_HOST = (
    *(b"LSB_", b"LSF_", b"LS_", b"LAVA_"),
    *(f"{name}=".encode() for name in gpu_vendors.VARIABLES),
    *(b"GPU_DEVICE_ORDINAL=", b"HOSTNAME=", b"TMPDIR="),
)
# LAVA_SSH_TASK: the task of a job of tasks in whose place this one runs.
_OF_THE_TASK = (b"LSF_PM_", b"LAVA_SSH_TASK=")


def _never() -> bool:
    return False


def window_of(first: TaskInput) -> tuple[int, ...]:
    """Return lines and columns of the terminal that the first message of a call wants; empty for pipes."""
    return (first.lines, first.columns) if first.start.terminal else ()


async def converse(
    attempts: Attempts,
    held: HeldAttempt,
    start: TaskStart,
    inputs: AsyncIterator[TaskInput],
    send: Send,
    has_gone: Callable[[], bool] = _never,
    window: tuple[int, ...] = (),
    in_task: bool = True,
) -> None:
    """Start the task in ``start``, or resume it, relay its streams both ways, and report its end.

    Cancellation ends a task that is not kept; a kept one only if ``has_gone`` says that its caller has ended. A task
    that cannot be started is an answer (``TaskOutput.error``), not an exception. ``window``: lines and columns of its
    terminal; empty for pipes. ``in_task``: of a job of tasks it is of one of these, and ends with that.
    """
    is_new = not (start.resume or start.gone)
    try:
        runs = await attempts.place(held.key, start.environment) if in_task and is_new else ()
        channel = attempts.open_task(held.key, _kept_request(start, window, runs)) if start.token else None
        if channel is None and (start.resume or start.gone):
            raise TaskRefused("The task is not there any more.")
    except TaskRefused as refused:
        await send(TaskOutput(error=str(refused)))
        return
    if channel is None:
        await _converse_here(attempts, held, start, runs, inputs, send)
    elif start.gone:
        await kept.end(channel)
    else:
        await kept.converse(channel, attempts.patience_s, inputs, send, has_gone)


def _kept_request(start: TaskStart, window: tuple[int, ...], runs: tuple[Run, ...]) -> KeptRequest:
    is_new = not (start.resume or start.gone)
    return KeptRequest(
        token=start.token,
        connection=start.connection,
        resume=start.resume,
        gone=start.gone,
        got=(start.got_out, start.got_err, start.got_pmi),
        argv=_argv(start) if is_new else (),
        cwd=os.fsdecode(start.cwd),
        environment=_environment(start) if is_new else (),
        no_input=start.no_input,
        pmi=start.pmi,
        umask=start.umask_plus_one - 1,
        task=start.task,
        place=start.place,
        places=start.places,
        window=window,
        runs=runs,
    )


async def _converse_here(
    attempts: Attempts,
    held: HeldAttempt,
    start: TaskStart,
    runs: tuple[Run, ...],
    inputs: AsyncIterator[TaskInput],
    send: Send,
) -> None:
    with ExitStack() as ours:
        try:
            streams, handle = await _start(attempts, held, start, runs, ours)
        except TaskRefused as refused:
            await send(TaskOutput(error=str(refused)))
            return
        try:
            await send(TaskOutput(started=True, pid=handle.pid))
            await streams.run(handle, inputs, send)
        except BaseException:
            _kill_in_background(handle, held)
            raise


async def _start(
    attempts: Attempts, held: HeldAttempt, start: TaskStart, runs: tuple[Run, ...], ours: ExitStack
) -> "tuple[_Streams, TaskHandle]":
    with ExitStack() as theirs:
        argv = _argv(start)
        streams, descriptors = _open_streams(held, start, ours, theirs)
        environment = _environment(start)
        request = TaskRequest(
            argv=argv,
            cwd=os.fsdecode(start.cwd),
            environment=environment,
            stdin_fd=descriptors[0],
            stdout_fd=descriptors[1],
            stderr_fd=descriptors[2],
            pmi_fd=descriptors[3] if start.pmi else None,
            runs=runs,
            task=start.task,
            place=start.place,
            places=start.places,
        )
        starting = asyncio.create_task(_start_and_close(attempts, held, request, theirs.pop_all()))
    try:
        return streams, await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(lambda started: _kill_if_started(started, held))
        raise


async def _start_and_close(
    attempts: Attempts, held: HeldAttempt, request: TaskRequest, theirs: ExitStack
) -> TaskHandle:
    """Start a task; close its ends of the streams after the start, even if the caller was cancelled."""
    with theirs:
        return await attempts.run_task(held.key, request)


def _argv(start: TaskStart) -> tuple[bytes, ...]:
    if any(b"\0" in text for text in (start.command, start.cwd, *start.argv, *start.environment)):
        raise TaskRefused("a command, a directory or a variable with a NUL character means nothing")
    if start.command:
        return (b"/bin/sh", b"-c", start.command)
    if not start.argv:
        raise TaskRefused("no command was given")
    return tuple(start.argv)


def _environment(start: TaskStart) -> tuple[bytes, ...]:
    return overlay(start.environment) + ((b"PMI_FD=%d" % PMI_DESCRIPTOR,) if start.pmi else ())


def overlay(environment: Iterable[bytes]) -> tuple[bytes, ...]:
    """Filter the caller's variables that may replace the job's: not those that each host's own agent sets."""
    return tuple(
        entry
        for entry in environment
        if entry.find(b"=") > 0 and (entry.startswith(_OF_THE_TASK) or not entry.startswith(_OF_THE_HOST))
    )


def _open_streams(
    held: HeldAttempt, start: TaskStart, ours: ExitStack, theirs: ExitStack
) -> "tuple[_Streams, list[int]]":
    """Open the task's standard streams and, for a rank, its PMI socket; each end is closed by its own stack."""
    descriptors: list[int] = []
    stdin: WriteEnd | None = None
    if start.no_input:
        descriptors.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    else:
        stdin, descriptor = input_pipe(held.uid, held.gid)
        ours.callback(stdin.close)
        descriptors.append(descriptor)
    outputs = []
    for _ in range(2):
        output, descriptor = output_pipe(held.uid, held.gid)
        ours.callback(output.close)
        outputs.append(output)
        descriptors.append(descriptor)
    pmi: tuple[ReadEnd, WriteEnd] | None = None
    if start.pmi:
        reading, writing, descriptor = socket_pair()
        ours.callback(reading.close)
        ours.callback(writing.close)
        pmi = (reading, writing)
        descriptors.append(descriptor)
    for descriptor in descriptors:
        theirs.callback(os.close, descriptor)
    return _Streams(stdin, outputs[0], outputs[1], pmi), descriptors


class _Streams:
    """The agent's ends of a task's descriptors."""

    def __init__(
        self, stdin: WriteEnd | None, out: ReadEnd, err: ReadEnd, pmi: tuple[ReadEnd, WriteEnd] | None
    ) -> None:
        self._stdin = stdin
        self._out = out
        self._err = err
        self._pmi = pmi
        self._turn = asyncio.Lock()
        self._waiting: asyncio.Queue[bytes] = asyncio.Queue()
        self._waiting_bytes = 0
        self._room = asyncio.Event()
        self._taken = 0

    async def run(self, handle: TaskHandle, inputs: AsyncIterator[TaskInput], send: Send) -> None:
        """Relay the streams until the task has ended and its output has been passed on."""
        feeding = [asyncio.create_task(self._feed(handle, inputs)), asyncio.create_task(self._pour(send))]
        pumps = [asyncio.create_task(pump) for pump in self._pumps(send)]
        ended = asyncio.create_task(handle.wait())
        try:
            await _until_ended(ended, [*feeding, *pumps])
            asyncio.get_running_loop().call_later(LINGER_S, self._finish)
            await asyncio.gather(*pumps)
            # No other coroutine may be sending now or later: gRPC takes one message at a time, and
            # a sender cancelled half-way would spoil the end of the stream.
            async with self._turn:
                await send(TaskOutput(ended=True, status=ended.result()))
                await _cancel(feeding)
        finally:
            await _cancel([*feeding, *pumps, ended])

    def _pumps(self, send: Send) -> list[Coroutine[Any, Any, None]]:
        pumps = [
            self._pump(self._out, send, lambda data: TaskOutput(out=data)),
            self._pump(self._err, send, lambda data: TaskOutput(err=data)),
        ]
        if self._pmi is not None:
            pumps.append(self._pump(self._pmi[0], send, lambda data: TaskOutput(pmi=data)))
        return pumps

    async def _pump(self, source: ReadEnd, send: Send, wrap: Callable[[bytes], TaskOutput]) -> None:
        while data := await source.read():
            async with self._turn:
                await send(wrap(data))

    async def _feed(self, handle: TaskHandle, inputs: AsyncIterator[TaskInput]) -> None:
        """Pass on the caller's messages; their end is the end of the task's input."""
        async for message in inputs:
            if 0 < message.signal <= SIGNAL_MAX:
                handle.signal(message.signal)
            if message.pmi and self._pmi is not None:
                await self._pmi[1].write(message.pmi)
            if message.data:
                await self._accept(message.data)
            if message.end_of_input:
                self._waiting.put_nowait(b"")
        self._waiting.put_nowait(b"")

    async def _accept(self, data: bytes) -> None:
        while self._waiting_bytes > INPUT_WAITING_MAX:
            self._room.clear()
            await self._room.wait()
        self._waiting_bytes += len(data)
        self._waiting.put_nowait(data)

    async def _pour(self, send: Send) -> None:
        """Write accepted input to the task as fast as it reads."""
        if self._stdin is None:
            return
        while data := await self._waiting.get():
            await self._stdin.write(data)
            self._waiting_bytes -= len(data)
            self._taken += len(data)
            self._room.set()
            async with self._turn:
                await send(TaskOutput(taken=self._taken))
        self._stdin.close()

    def _finish(self) -> None:
        self._out.finish()
        self._err.finish()
        if self._pmi is not None:
            self._pmi[0].finish()


async def _cancel(tasks: "Sequence[asyncio.Task[None] | asyncio.Task[int]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _until_ended(ended: asyncio.Task[int], others: list[asyncio.Task[None]]) -> None:
    """Wait for the task's end; a failure of one of the others ends the conversation at once."""
    waiting: set[asyncio.Task[int] | asyncio.Task[None]] = {ended, *others}
    while not ended.done():
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()


_killings: set[asyncio.Task[None]] = set()


def _kill_in_background(handle: TaskHandle, held: HeldAttempt) -> None:
    """Kill the task of a caller that has left, in a coroutine of its own, since the caller's is being cancelled."""
    LOG.info("task abandoned job=%d index=%d attempt=%d pid=%d", *held.key, handle.pid)
    killing = asyncio.create_task(_kill(handle))
    _killings.add(killing)
    killing.add_done_callback(_killings.discard)


def _kill_if_started(started: asyncio.Task[TaskHandle], held: HeldAttempt) -> None:
    if not started.cancelled() and started.exception() is None:
        _kill_in_background(started.result(), held)


async def _kill(handle: TaskHandle) -> None:
    """Send TERM, and KILL after ``KILL_AFTER_S``, also to descendants if the first process has ended."""
    handle.signal(int(signal.SIGTERM))
    handle.signal(int(signal.SIGCONT))
    await asyncio.sleep(KILL_AFTER_S)
    handle.signal(int(signal.SIGKILL))
