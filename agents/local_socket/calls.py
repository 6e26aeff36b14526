"""One call on the local socket: unread messages of the command, and flow control of both directions.

Invariants: no more than ``frames.WINDOW`` unconsumed messages each way; every byte that waits here is counted against a
budget that bounds the gateway's memory as a whole and for each user; a call ends with exactly one END.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable

from agents.local_socket.callers import Caller, CallFailed
from protos import frames

# Credit is returned in portions: one small frame for many messages.
_CREDIT_PORTION = frames.WINDOW // 4


class ByteBudget:
    """Bound of the bytes of unconsumed requests, in total and for each user."""

    def __init__(self, total: int, per_user: int) -> None:
        self._left = total
        self._per_user = per_user
        self._held: defaultdict[int, int] = defaultdict(int)
        self._waiting: set[asyncio.Future[None]] = set()

    def has_room(self, uid: int, size: int) -> bool:
        """Return True if ``size`` bytes of this user fit now."""
        return size <= self._left and self._held.get(uid, 0) + size <= self._per_user

    async def take(self, uid: int, size: int) -> None:
        """Wait until ``size`` bytes of this user fit, and count them."""
        while not self.has_room(uid, size):
            freed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(freed)
            try:
                await freed
            finally:
                self._waiting.discard(freed)
        self.count(uid, size)

    def count(self, uid: int, size: int) -> None:
        """Count bytes for which there is room."""
        self._left -= size
        self._held[uid] += size

    def give(self, uid: int, size: int) -> None:
        """Release bytes counted by ``take`` or ``count``."""
        self._left += size
        self._held[uid] -= size
        if not self._held[uid]:
            del self._held[uid]
        for freed in self._waiting:
            if not freed.done():
                freed.set_result(None)


Write = Callable[[bytes], Awaitable[None]]


# The serving process, on a connection on which it has no command.
NO_CALLER = Caller("", -1, -1, 0)


class Served:
    """A command of a stub that a serving process runs: what it was started with, and its stub's call.

    Attributes:
        has_begun: something has come from the serving process: it may have asked the master.
        is_over: the stub has its last message.
    """

    def __init__(self, stub: "Call", request: bytes) -> None:
        self.stub = stub
        self.request = request
        self.has_begun = self.is_over = False
        self.gone = asyncio.Event()  # the stub has said GO
        self.first = asyncio.Event()  # it has begun, or its connection has ended
        self.last = asyncio.Event()  # it is over, or its connection has ended

    def begin(self) -> None:
        """Note that something has come from the serving process."""
        self.has_begun = True
        self.first.set()

    def finish(self, is_over: bool) -> None:
        """Note the last message, or without one the end of its connection."""
        self.is_over = self.is_over or is_over
        self.first.set()
        self.last.set()


class Worker:
    """A connection of the serving process: one thread of it, and the command that it has at present.

    ``end_others`` ends all calls on the connection but one; the connection sets it.
    """

    def __init__(self) -> None:
        self.command: Served | None = None
        self.given = asyncio.Event()  # it has a command
        self.is_asked = False  # a call ``SERVE`` waits for a command, or carries one
        self.end_others: Callable[[Call], Awaitable[None]]

    def give(self, command: Served) -> None:
        """Let it have a command; what it calls from now on is called in that caller's name."""
        self.command = command
        self.given.set()

    def take_back(self) -> None:
        """End the command: nothing is called in anyone's name."""
        self.command = None
        self.given.clear()


class Call:
    """A call opened by a command.

    ``write(data)`` sends frames on the connection and waits while the command reads too slowly.
    """

    def __init__(self, number: int, method: str, caller: Caller, write: Write, budget: ByteBudget) -> None:
        self.number = number
        self.method = method
        # Actions when the command leaves, by a name of their own: shared by all calls of its connection.
        self.at_close: dict[bytes, Callable[[], None]] = {}
        self.caller = caller
        self.served: Served | None = None  # of a call that is made for a served command
        self.worker: Worker | None = None  # of a call of the serving process
        self._write = write
        self._budget = budget
        self._inbox: deque[tuple[bytes, int, int]] = deque()
        self._half_closed = False
        self._arrived = asyncio.Event()
        self._consumed = 0
        self._credit = frames.WINDOW
        self._credited = asyncio.Event()
        self._last = b""  # answers that go with the END

    def deliver(self, message: bytes, paid: int, uid: int) -> None:
        """Queue a message of the command; ``paid`` bytes of that user's budget are counted for it.

        Raises:
            FrameError: the command sent more than the window, or sent after its half-close.
        """
        if self._half_closed or len(self._inbox) >= frames.WINDOW:
            raise frames.FrameError(f"call {self.number} sent more than it may")
        self._inbox.append((message, paid, uid))
        self._arrived.set()

    def half_close(self) -> None:
        """Note that the command sends no more messages."""
        self._half_closed = True
        self._arrived.set()

    def credit(self, messages: int) -> None:
        """Note that the command consumed this number of answers."""
        self._credit += messages
        self._credited.set()

    async def receive(self) -> bytes | None:
        """Return the next message of the command; None at the end."""
        while not self._inbox:
            if self._half_closed:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        message, paid, uid = self._inbox.popleft()
        self._budget.give(uid, paid)
        self._consumed += 1
        if self._consumed >= _CREDIT_PORTION and not self._half_closed:
            portion, self._consumed = self._consumed, 0
            await self._write(frames.pack(self.number, frames.CREDIT, portion.to_bytes(4, "little")))
        return message

    def next_message(self) -> bytes:
        """Return the next message of the command without taking it; empty if it is still to come."""
        return self._inbox[0][0] if self._inbox else b""

    async def send(self, message: bytes) -> None:
        """Send one answer; wait while the command has consumed too few of the earlier ones.

        Raises:
            CallFailed: the answer does not fit a frame.
        """
        await self._write(await self._packed(message))

    async def send_last(self, message: bytes) -> None:
        """Send an answer together with the call's END: a command that waits for both wakes up once.

        Raises:
            CallFailed: the answer does not fit a frame.
        """
        self._last += await self._packed(message)

    async def _packed(self, message: bytes) -> bytes:
        """Return an answer as a frame, once the command may get one more."""
        if len(message) > frames.MAX_PAYLOAD:
            raise CallFailed(
                frames.RESOURCE_EXHAUSTED, f"an answer of {len(message)} bytes is too large for the local socket"
            )
        while self._credit <= 0:
            self._credited.clear()
            await self._credited.wait()
        self._credit -= 1
        return frames.pack(self.number, frames.MESSAGE, message)

    async def end(self, status: int, text: str = "") -> None:
        """Send the END of the call."""
        await self._write(self._last + frames.pack(self.number, frames.END, frames.pack_end(status, text[:4096])))

    def drop(self) -> None:
        """Release the budget of unread messages."""
        while self._inbox:
            _, paid, uid = self._inbox.popleft()
            self._budget.give(uid, paid)
