"""Socket of frames: read as they come, each handled as soon as it is there as a whole.

That happens in the event loop's own callback, without a task that is woken for it: a ``bsub`` is 13 frames. Invariants:
the bytes of a frame are counted against the budget before they are waited for; while there is no room nothing is read;
one timer bounds every wait; a slow reader delays only those that write to it.
"""

import asyncio
import socket
from abc import abstractmethod

from agents.local_socket.calls import ByteBudget
from protos import frames

UNREAD_MAX = 1 << 20  # bytes put without a wait that the other end leaves unread


class FrameSocket(asyncio.Protocol):
    """One end of a connection.

    Args:
        half_frame_s: time for the rest of a frame after its header, and for room for it.
    """

    def __init__(self, budget: ByteBudget, half_frame_s: float) -> None:
        self._budget = budget
        self._half_frame_s = half_frame_s
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._header: tuple[int, int, int] | None = None  # of the frame that is under way
        self._payer: int | None = None  # whose budget that frame is counted against
        self._paying: asyncio.Task[None] | None = None  # waits for room
        self._over: asyncio.Future[Exception] = self._loop.create_future()
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._write_turn = asyncio.Lock()
        self._emptied = asyncio.Event()
        self._emptied.set()
        self._unread = 0  # bytes put without a wait since writers have had to wait

    # -- what a connection says

    @property
    @abstractmethod
    def payer(self) -> int:
        """Uid of the user that the next frame is counted for."""

    @abstractmethod
    def patience_s(self) -> float | None:
        """Return the time within which the next frame must begin; None without a bound."""

    @abstractmethod
    def begun(self) -> None:
        """Note that a frame has begun."""

    @abstractmethod
    def handle(self, number: int, kind: int, payload: bytes, uid: int) -> bool:
        """Handle a frame, whose bytes are counted for a user; return True if they stay so."""

    # -- for a connection

    async def run(self, connection: socket.socket) -> None:
        """Handle frames until the other end leaves or breaks the protocol.

        Raises:
            EOFError, ConnectionError: it has left.
            TimeoutError: it was silent for too long.
            FrameError: it broke the protocol.
        """
        await self._loop.connect_accepted_socket(lambda: self, connection)
        raise await self._over

    def abort(self) -> None:
        """Close the socket at once, and count no bytes any more."""
        self._finish(EOFError())
        if self._paying is not None:
            self._paying.cancel()
        if self._payer is not None and self._header is not None:
            self._budget.give(self._payer, self._header[2])
            self._payer = None
        if self._transport is not None:
            self._transport.abort()

    @property
    def is_closing(self) -> bool:
        """True if nothing can be written any more."""
        return self._transport is None or self._transport.is_closing()

    def put(self, data: bytes) -> None:
        """Write without a wait; nothing if the other end has gone. One that leaves too much unread is left."""
        if self._transport is None or self._transport.is_closing():
            return
        if not self._emptied.is_set():
            self._unread += len(data)
            if self._unread > UNREAD_MAX:
                self._finish(frames.FrameError("the ends of its calls are not read"))
                return
        self._transport.write(data)

    async def write(self, data: bytes) -> None:
        """Write; wait while the other end reads too slowly.

        Raises:
            ConnectionError: it has gone.
        """
        async with self._write_turn:
            self._check_open()
            assert self._transport is not None
            self._transport.write(data)
            if not self._emptied.is_set():
                await self._emptied.wait()
                self._check_open()

    def _check_open(self) -> None:
        if self.is_closing:
            raise ConnectionResetError("the command has gone")

    # -- from the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._wait(self.patience_s())

    def data_received(self, data: bytes) -> None:
        """Handle the frames that are whole now."""
        self._buffer += data
        self._go_on()

    def eof_received(self) -> bool:
        """Note that the other end has left; what is still to be written is of no use to it."""
        self._finish(EOFError())
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the other end has left, and let those go that wait for it."""
        self._finish(exc or EOFError())
        self._emptied.set()

    def pause_writing(self) -> None:
        """Let writers wait."""
        self._emptied.clear()

    def resume_writing(self) -> None:
        """Let writers go on."""
        self._unread = 0
        self._emptied.set()

    # -- frames

    def _go_on(self) -> None:
        try:
            while not self._over.done() and self._step():
                continue
        except Exception as error:  # raised by `run`
            self._finish(error)

    def _step(self) -> bool:
        """Handle the next frame; False if some of it is still to come, or there is no room for it."""
        if self._header is None:
            if len(self._buffer) < frames.HEADER.size:
                return False
            self._header = frames.unpack_header(self._taken(frames.HEADER.size))
            self.begun()
            self._pay(self._header[2])
        number, kind, length = self._header
        if self._payer is None or len(self._buffer) < length:
            return False
        uid, self._header, self._payer = self._payer, None, None
        kept = False
        try:
            kept = self.handle(number, kind, self._taken(length), uid)
        finally:
            if not kept:
                self._budget.give(uid, length)
        if len(self._buffer) < frames.HEADER.size:
            self._wait(self.patience_s())
        return True

    def _taken(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _pay(self, length: int) -> None:
        """Count the bytes of a frame, later if there is no room."""
        uid = self.payer
        if self._budget.has_room(uid, length):
            self._budget.count(uid, length)
            self._paid(uid, length)
        else:
            assert self._transport is not None
            self._transport.pause_reading()
            self._wait(None)
            self._paying = self._loop.create_task(self._pay_later(uid, length))

    async def _pay_later(self, uid: int, length: int) -> None:
        try:
            async with asyncio.timeout(self._half_frame_s):
                await self._budget.take(uid, length)
        except TimeoutError as error:
            self._finish(error)
            return
        self._paying = None
        self._paid(uid, length)
        if self._transport is not None:
            self._transport.resume_reading()
        self._go_on()

    def _paid(self, uid: int, length: int) -> None:
        self._payer = uid
        if len(self._buffer) < length:
            self._wait(self._half_frame_s)

    # -- waiting

    def _wait(self, patience_s: float | None) -> None:
        """Bound the wait for what is due next. The timer stays as it is: it is moved when it finds itself too early."""
        self._deadline = None if patience_s is None else self._loop.time() + patience_s
        if self._deadline is not None and (self._timer is None or self._deadline < self._timer.when()):
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(self._deadline, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._deadline is None:
            return
        if self._deadline <= self._loop.time():
            self._finish(TimeoutError())
        else:
            self._timer = self._loop.call_at(self._deadline, self._look)

    def _finish(self, error: Exception) -> None:
        """End `run`; nothing is handled any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._deadline = None
        if not self._over.done():
            self._over.set_result(error)
