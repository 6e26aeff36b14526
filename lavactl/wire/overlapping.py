"""Many calls over one connection, so many at once: their answers as they arrive.

A command with a thousand questions then costs its agent one connection and, at a time, a bounded number of calls. As
with a call alone, one that fails for the moment is made again while none of its answers has come, and silence is
bounded; the others go on meanwhile.
"""

import time
from collections import deque

from lavactl.wire.connection import CREDIT_PORTION, CallError, Connection, LostError
from protos import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Answer = tuple[int, bytes | CallError | LostError | None]


class Overlapping:
    """Calls of one method, with one request each. Each is in one place: ``_waiting``, ``_due``, ``_open`` or ended.

    Args:
        connected: gives the connection, a new one after the last was lost.
        at_once: most calls in progress.
        silence_s: longest time without any answer while calls are in progress; None for any.
        pause_s: pause after so many failed tries of a call; None if it is not made again.
    """

    def __init__(
        self,
        connected: "Callable[[], Connection]",
        method: str,
        requests: "Sequence[bytes]",
        at_once: int,
        silence_s: float | None,
        pause_s: "Callable[[int], float | None]",
    ) -> None:
        self._connected, self._method, self._requests = connected, method, requests
        self._at_once, self._silence_s, self._pause_s = at_once, silence_s, pause_s
        self._waiting = deque(range(len(requests)))
        self._due: list[tuple[float, int]] = []  # to be made again at a time
        self._open: dict[int, int] = {}  # call to number of the request
        self._answered: dict[int, int] = {}  # number of the request to answers that are not credited yet
        self._tries = [0] * len(requests)

    def answers(self, is_transient: "Callable[[CallError], bool]", lost: "Callable[[], None]") -> "Iterator[Answer]":
        """Number of a request, and an answer; at its end None, or why there are no more.

        Args:
            is_transient: failures after which a call may be made again.
            lost: tells that the connection is gone.
        """
        while self._waiting or self._due or self._open:
            try:
                self._begin(self._connected())
                if self._open:
                    yield from self._next(self._connected(), is_transient)
                else:
                    time.sleep(max(0.0, self._due[0][0] - time.monotonic()))
            except LostError as error:
                lost()
                cut, self._open = list(self._open.values()), {}
                for number in cut:
                    yield from self._failed(number, error)

    def _begin(self, connection: Connection) -> None:
        """Begin calls whose time has come, as many as there may be."""
        now = time.monotonic()
        while self._due and self._due[0][0] <= now:
            self._waiting.append(self._due.pop(0)[1])
        while self._waiting and len(self._open) < self._at_once:
            number = self._waiting.popleft()
            try:
                call = connection.start(self._method, self._requests[number])
            except LostError:
                self._waiting.appendleft(number)
                raise
            self._tries[number] += 1
            self._open[call] = number

    def _next(self, connection: Connection, is_transient: "Callable[[CallError], bool]") -> "Iterator[Answer]":
        """Read one frame, unless a call is to be made again before one comes."""
        if self._due and not connection.wait(max(0.0, self._due[0][0] - time.monotonic())):
            return
        call, kind, payload = connection.receive(self._silence_s)
        number = self._open.get(call)
        if number is None:
            return
        if kind == frames.MESSAGE:
            yield number, payload
            self._credit(connection, call, number)
        elif kind == frames.END:
            del self._open[call]
            status, text = frames.unpack_end(payload)
            error = CallError(status, text)
            if status == frames.OK:
                yield number, None
            elif is_transient(error):
                yield from self._failed(number, error)
            else:
                yield number, error

    def _credit(self, connection: Connection, call: int, number: int) -> None:
        self._answered[number] = self._answered.get(number, 0) + 1
        if self._answered[number] == CREDIT_PORTION:
            self._answered[number] = 0
            connection.credit(call, CREDIT_PORTION)

    def _failed(self, number: int, error: CallError | LostError) -> "Iterator[Answer]":
        """Repeat a failed call after a pause; one whose answers had begun, or that was tried too often, has ended."""
        pause_s = None if number in self._answered else self._pause_s(self._tries[number])
        if pause_s is None:
            yield number, error
            return
        self._due.append((time.monotonic() + pause_s, number))
        self._due.sort()
