"""One task as its caller sees it, with the stream positions that let a broken connection be resumed.

Input that the task has not acknowledged is kept here and output is counted, so that after a reconnection no data is
lost and none is repeated.
"""

import os

from lavactl.wire.messages import TaskInput, TaskStart
from protos import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

STDIN, STDOUT, STDERR, PMI, SIGNALS = range(5)
INPUT_CHUNK = 64 << 10
# Output of a stream is acknowledged after this many bytes; the task's shepherd buffers eight times as much.
GOT_PORTION = 64 << 10
TOKEN_SIZE = 16
PAUSE_S = 0.05  # before the first repetition of a call that broke off
# Messages that the agent accepts ahead; one is the start itself.
WINDOW = frames.WINDOW - 1


class Input:
    """Input of one stream that the task has not yet acknowledged."""

    def __init__(self) -> None:
        self.taken = 0
        self.waiting = bytearray()
        self.has_ended = False

    def add(self, data: bytes) -> int:
        """Append data; its position in the stream."""
        place = self.taken + len(self.waiting)
        self.waiting += data
        return place

    def took(self, place: int) -> None:
        """Drop input before this position: the task has read it."""
        if place > self.taken:
            del self.waiting[: place - self.taken]
            self.taken = place


class Task:
    """One task."""

    def __init__(self, number: int, host: str, start: TaskStart, token: bytes = b"") -> None:
        self.number = number  # from 0, in start order
        self.host = host
        self.call = 0  # on the present connection; 0: no call
        self.started = False
        self.ended = False
        self.code = 0  # exit code, once ended
        self.error = ""  # reason why it could not be started, or was lost
        self.status: int | None = None  # raw wait status; None if unknown
        self.is_kept = False  # outlives the connection to it
        self.patience_s = 0.0
        self.is_resuming = False  # the present connection has not yet reported its input positions
        self.lost_at: float | None = None  # start of the time in which its host's agent cannot be reached
        self.retry_at = 0.0
        self.pause_s = 0.0
        self.inputs = {STDIN: Input(), PMI: Input(), SIGNALS: Input()}
        self.lines = {STDOUT: bytearray(), STDERR: bytearray()}
        self.owed = 0
        self.window = WINDOW
        self.backlog: list[TaskInput] = []
        self.window_size = (0, 0)  # lines and columns of the terminal that it starts with
        self._start = start
        self._connections = 0
        self._got = {STDOUT: 0, STDERR: 0, PMI: 0}
        self._acknowledged = dict(self._got)
        start.host, start.token = host, token or os.urandom(TOKEN_SIZE)

    @property
    def was_there(self) -> bool:
        """True of a process that runs elsewhere before the first connection to it."""
        return self._start.resume

    def lose(self, now: float) -> None:
        """Note that its host's agent cannot be reached, from now on unless that was known."""
        if self.lost_at is None:
            self.lost_at, self.pause_s = now, PAUSE_S

    def opening(self) -> TaskInput:
        """First message of a new connection: start the task, or resume it."""
        self._connections += 1
        self.is_resuming = self._connections > 1
        self.owed, self.window, self.backlog = 0, WINDOW, []
        start = self._start
        if self.started:
            got = self._acknowledged = dict(self._got)
            start = TaskStart(host=self.host, token=start.token, resume=True)
            start.key.CopyFrom(self._start.key)
            start.got_out, start.got_err, start.got_pmi = got[STDOUT], got[STDERR], got[PMI]
        start.connection = self._connections
        return TaskInput(start=start, lines=self.window_size[0], columns=self.window_size[1])

    def came(self, stream: int, place: int, data: bytes) -> bytes:
        """New part of output that begins at this position."""
        if not self.is_kept:
            return data
        fresh = data[max(0, self._got[stream] - place) :]
        self._got[stream] += len(fresh)
        return fresh

    def acknowledgement(self) -> TaskInput | None:
        """Acknowledgement of output, if ``GOT_PORTION`` bytes of a stream are due; otherwise None."""
        due = [stream for stream, got in self._got.items() if got - self._acknowledged[stream] >= GOT_PORTION]
        if not due:
            return None
        got = self._acknowledged = dict(self._got)
        return TaskInput(got_out=got[STDOUT], got_err=got[STDERR], got_pmi=got[PMI])

    def said(self, stream: int, data: bytes) -> "Iterator[TaskInput]":
        """Messages for new input; it is kept for a resumption unless the task ends with its connection."""
        one = self.inputs[stream]
        place = one.add(data)
        if self.started and not self.is_kept and stream != STDIN:
            one.took(place + len(data))
        return _messages(stream, place, data)

    def not_taken(self) -> "Iterator[TaskInput]":
        """Messages for all input that the task has not acknowledged."""
        for stream, one in self.inputs.items():
            yield from _messages(stream, one.taken, bytes(one.waiting))
        if self.inputs[STDIN].has_ended:
            yield self.end_of_input()

    def end_of_input(self) -> TaskInput:
        """Message that ends standard input."""
        one = self.inputs[STDIN]
        one.has_ended = True
        return TaskInput(end_of_input=True, offset=one.taken + len(one.waiting))


def _messages(stream: int, place: int, data: bytes) -> "Iterator[TaskInput]":
    if stream == SIGNALS:
        for number, signal in enumerate(data):
            yield TaskInput(signal=signal, offset=place + number)
        return
    for at in range(0, len(data), INPUT_CHUNK):
        piece = data[at : at + INPUT_CHUNK]
        if stream == PMI:
            yield TaskInput(pmi=piece, offset=place + at)
        else:
            yield TaskInput(data=piece, offset=place + at)
