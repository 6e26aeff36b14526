"""Streams of one kept task, each with its offset: data read and not acknowledged, data given and not taken.

Invariants: output is dropped only when it has been acknowledged; a buffer is bounded, and a task that writes faster
than its client reads is blocked by its own full pipe; input is taken once, even if sent twice.
"""

import os
import select
from collections.abc import Callable

CHUNK = 56 << 10  # with its envelope it fits one message, see messages.INLINE_MAX
KEPT_MAX = 512 << 10  # unacknowledged output of one stream
INPUT_MAX = 2 << 20  # input of one stream that the task has not read; a client stays below a quarter of it

STDIN, STDOUT, STDERR, PMI, SIGNALS = range(5)


class StreamError(Exception):
    """Lost offset: the peer has lost count of a stream."""


class End:
    """The shepherd's end of a pipe or socket; owns the descriptor. ``closing`` is called with it before its close."""

    def __init__(self, descriptor: int, closing: Callable[[int], None]) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.is_open = True
        self._closing = closing

    def close(self) -> None:
        """Close it; a repetition is no error."""
        if self.is_open:
            self.is_open = False
            self._closing(self.descriptor)
            os.close(self.descriptor)


class Output(End):
    """Output of the task."""

    def __init__(self, descriptor: int, closing: Callable[[int], None]) -> None:
        super().__init__(descriptor, closing)
        self.sent = 0  # all before this offset has been sent on the present connection
        self._at = 0  # offset of the first byte kept
        self._kept = bytearray()
        self._finishing = False

    @property
    def wants_more(self) -> bool:
        """True if the pipe is to be read."""
        return self.is_open and len(self._kept) < KEPT_MAX

    @property
    def events(self) -> int:
        """Events to poll for."""
        return select.POLLIN if self.wants_more else 0

    @property
    def has_unsent(self) -> bool:
        """True if something waits to be sent."""
        return self.sent < self._at + len(self._kept)

    @property
    def is_sent(self) -> bool:
        """True if all data has been sent and no more will come."""
        return not self.is_open and self.sent == self._at + len(self._kept)

    def read(self) -> None:
        """Read the data that is there; close the pipe at its end."""
        try:
            data = os.read(self.descriptor, CHUNK)
        except BlockingIOError:
            data = b""
            if not self._finishing:
                return
        except OSError:  # a socket whose other end closed with unread data
            data = b""
        self._kept += data
        if not data:
            self.close()

    def finish(self) -> None:
        """Stop waiting for data after the task's end, even if other processes hold the pipe."""
        self._finishing = True
        while self.wants_more:
            self.read()

    def unsent(self) -> bytes:
        """Return the next piece to send."""
        start = self.sent - self._at
        return bytes(self._kept[start : start + CHUNK])

    def acknowledge(self, place: int) -> None:
        """Drop the data before this offset.

        Raises:
            StreamError: it was never sent.
        """
        if place > self._at + len(self._kept):
            raise StreamError(f"output acknowledged up to {place}, which is more than there was")
        if place > self._at:
            del self._kept[: place - self._at]
            self._at = place
        self.sent = max(self.sent, self._at)
        if self._finishing:
            self.finish()

    def resume(self, place: int) -> None:
        """Resume for a new connection, which has everything before this offset.

        Raises:
            StreamError: later data is no longer kept.
        """
        if place < self._at:
            raise StreamError(f"output is asked for from {place} on, and kept from {self._at} on")
        self.acknowledge(place)
        self.sent = place


class Input(End):
    """Input of the task."""

    def __init__(self, descriptor: int, closing: Callable[[int], None]) -> None:
        super().__init__(descriptor, closing)
        self.taken = 0  # bytes written to the pipe
        self._waiting = bytearray()
        self._ends = False

    @property
    def events(self) -> int:
        """Events to poll for: space in the pipe, if data waits for it."""
        return select.POLLOUT if self._waiting else 0

    def accept(self, place: int, data: bytes) -> None:
        """Take input that begins at this offset; data received before is skipped.

        Raises:
            StreamError: data before it is missing, or too much waits.
        """
        known = self.taken + len(self._waiting)
        if place > known or known - self.taken > INPUT_MAX:
            raise StreamError(f"input at {place} comes after {known}, with {known - self.taken} waiting")
        self._waiting += data[known - place :]
        self.write()

    def end(self) -> None:
        """Note the end of input: the task reads to the end of the data."""
        self._ends = True
        self.write()

    def write(self) -> None:
        """Write as much as the pipe takes now. Data that the task will not read is dropped."""
        while self._waiting and self.is_open:
            try:
                written = os.write(self.descriptor, memoryview(self._waiting)[:CHUNK])
            except BlockingIOError:
                return
            except OSError:
                self.close()
            else:
                self.taken += written
                del self._waiting[:written]
        if self._ends:
            self.close()
        if not self.is_open:
            self.taken += len(self._waiting)
            self._waiting.clear()
