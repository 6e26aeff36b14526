"""Pipes and sockets in the event loop: read and written without blocking it, at the pace of the slower side.

Invariant: no buffer here holds more than one chunk, so a task that writes faster than its reader takes is blocked by
its own full pipe.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from typing import IO

CHUNK = 64 << 10


@contextlib.contextmanager
def open_pipe() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Make a pipe, to read from and to write to; ends that are still open are closed afterwards."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    with open(reading, "rb", 0) as reader, open(writing, "wb", 0) as writer:
        yield reader, writer


def open_null() -> IO[bytes]:
    """Open the file that is empty and takes everything."""
    return open(os.devnull, "r+b", 0)


class ReadEnd:
    """Reading end of a task's pipe; owns the descriptor."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._finishing = False
        self._wake: asyncio.Future[None] | None = None

    async def read(self) -> bytes:
        """Return the next data, waiting for some; empty at the end, or if there is none after ``finish``."""
        while True:
            try:
                return os.read(self._descriptor, CHUNK)
            except BlockingIOError:
                if self._finishing:
                    return b""
            except OSError:
                return b""  # a socket whose other end closed with unread data
            await self._readable()

    def finish(self) -> None:
        """Stop waiting for data after the task's end, even if other processes hold the pipe."""
        self._finishing = True
        _settle(self._wake)

    def close(self) -> None:
        os.close(self._descriptor)

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        self._wake = loop.create_future()
        loop.add_reader(self._descriptor, _settle, self._wake)
        try:
            await self._wake
        finally:
            loop.remove_reader(self._descriptor)
            self._wake = None


class WriteEnd:
    """Writing end of a task's pipe; owns the descriptor. Data that the task will not read is dropped."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._open = True

    async def write(self, data: bytes) -> None:
        """Write all of ``data``; return early if the task has closed its end."""
        view = memoryview(data)
        while view and self._open:
            try:
                view = view[os.write(self._descriptor, view) :]
            except BlockingIOError:
                await self._writable()
            except OSError:
                self.close()

    def close(self) -> None:
        """Close the pipe; the task reads to the end of the data."""
        if self._open:
            self._open = False
            os.close(self._descriptor)

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        wake: asyncio.Future[None] = loop.create_future()
        loop.add_writer(self._descriptor, _settle, wake)
        try:
            await wake
        finally:
            loop.remove_writer(self._descriptor)


def output_pipe(uid: int, gid: int) -> tuple[ReadEnd, int]:
    """Make a pipe for output of a user's task: the reader, and the task's descriptor, to be closed after its start."""
    ours, theirs = os.pipe()
    _give(theirs, uid, gid)
    return ReadEnd(ours), theirs


def input_pipe(uid: int, gid: int) -> tuple[WriteEnd, int]:
    """Make a pipe for input of a task of this user, likewise."""
    theirs, ours = os.pipe()
    _give(theirs, uid, gid)
    return WriteEnd(ours), theirs


def socket_pair() -> tuple[ReadEnd, WriteEnd, int]:
    """Make a socket that a task reads and writes: both directions of this end, and the task's descriptor."""
    ours, theirs = socket.socketpair()
    descriptor = ours.detach()
    return ReadEnd(descriptor), WriteEnd(os.dup(descriptor)), theirs.detach()


def _give(descriptor: int, uid: int, gid: int) -> None:
    """Let the user open the pipe by name (/dev/stdout); it belongs to root otherwise."""
    if os.geteuid() == 0:
        # In a user namespace the id may not exist; the pipe then works, except by name.
        with contextlib.suppress(OSError):
            os.fchown(descriptor, uid, gid)


def _settle(wake: asyncio.Future[None] | None) -> None:
    if wake is not None and not wake.done():
        wake.set_result(None)
