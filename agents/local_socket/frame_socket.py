"""Socket of frames: read as they come, each handled as soon as it is there as a whole.

That happens in the event loop's own callback, without a task that is woken for it: a ``bsub`` is 13 frames. The socket
is read and written here: a transport of asyncio takes two turns of the event loop before its first read. Invariants:
the bytes of a frame are counted against the budget before they are waited for; while there is no room nothing is read;
one timer bounds every wait; a slow reader delays only those that write to it.
"""

import asyncio
import socket
from abc import ABC, abstractmethod

from agents.local_socket.calls import ByteBudget
from protos import frames

UNREAD_MAX = 1 << 20  # bytes put without a wait that the other end leaves unread
UNSENT_MAX, UNSENT_MIN = 1 << 16, 1 << 14  # bytes to be sent at which writers must wait, and may go on
READ_SIZE, READ_SIZE_MAX = 1 << 14, 1 << 18  # read at once: of small frames, and of one that is large


class FrameSocket(ABC):
    """One end of a connection.

    Args:
        half_frame_s: time for the rest of a frame after its header, and for room for it.
    """

    def __init__(self, budget: ByteBudget, half_frame_s: float) -> None:
        self._budget = budget
        self._half_frame_s = half_frame_s
        self._loop = asyncio.get_running_loop()
        self._socket: socket.socket | None = None  # while it can be written to
        self._is_listening = False
        self._buffer = bytearray()
        self._unsent = bytearray()
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
        connection.setblocking(False)
        self._socket = connection
        self._wait(self.patience_s())
        self._listen(True)
        self._read()  # a command sends its first frame together with its connection
        raise await self._over

    def abort(self) -> None:
        """Close the socket at once, and count no bytes any more."""
        self._finish(EOFError())
        if self._paying is not None:
            self._paying.cancel()
        if self._payer is not None and self._header is not None:
            self._budget.give(self._payer, self._header[2])
            self._payer = None
        self._lose(EOFError())

    @property
    def is_closing(self) -> bool:
        """True if nothing can be written any more."""
        return self._socket is None

    def put(self, data: bytes) -> None:
        """Write without a wait; nothing if the other end has gone. One that leaves too much unread is left."""
        if self._socket is None:
            return
        if not self._emptied.is_set():
            self._unread += len(data)
            if self._unread > UNREAD_MAX:
                self._finish(frames.FrameError("the ends of its calls are not read"))
                return
        self._send(self._socket, data)

    async def write(self, data: bytes) -> None:
        """Write; wait while the other end reads too slowly.

        Raises:
            ConnectionError: it has gone.
        """
        async with self._write_turn:
            self._send(self._open_socket(), data)
            if not self._emptied.is_set():
                await self._emptied.wait()
                self._open_socket()

    def _open_socket(self) -> socket.socket:
        if self._socket is None:
            raise ConnectionResetError("the command has gone")
        return self._socket

    # -- from the event loop

    def _listen(self, is_wanted: bool) -> None:
        """Be told of what comes, or not. By number: an event loop that misses a socket writes its addresses out."""
        if self._socket is None or self._is_listening == is_wanted:
            return
        self._is_listening = is_wanted
        if is_wanted:
            self._loop.add_reader(self._socket.fileno(), self._read)
        else:
            self._loop.remove_reader(self._socket.fileno())

    def _read(self) -> None:
        """Handle the frames that are whole now; the end of them if the other end has left."""
        if self._socket is None:
            return
        missing = self._header[2] - len(self._buffer) if self._header is not None else 0
        try:
            data = self._socket.recv(min(max(missing, READ_SIZE), READ_SIZE_MAX))
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(error)
            return
        if data:
            self._buffer += data
            self._go_on()
        else:  # what is still to be written is of no use to it
            self._listen(False)
            self._finish(EOFError())

    def _send(self, connection: socket.socket, data: bytes) -> None:
        """Send, the rest as soon as the other end has read enough; writers wait for a part of that."""
        if not self._unsent:
            sent = self._sent(connection, data)
            if sent is None or sent == len(data):
                return
            data = data[sent:]
            self._loop.add_writer(connection.fileno(), self._send_rest)
        self._unsent += data
        if len(self._unsent) > UNSENT_MAX:
            self._emptied.clear()

    def _send_rest(self) -> None:
        if self._socket is None or (sent := self._sent(self._socket, self._unsent)) is None:
            return
        del self._unsent[:sent]
        if not self._unsent:
            self._loop.remove_writer(self._socket.fileno())
        if len(self._unsent) <= UNSENT_MIN:
            self._unread = 0
            self._emptied.set()

    def _sent(self, connection: socket.socket, data: bytes | bytearray) -> int | None:
        """Return the number of bytes that are sent now; None if the other end has gone."""
        try:
            return connection.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self._lose(error)
            return None

    def _lose(self, error: Exception) -> None:
        """Close the socket, and let those go that wait for the other end."""
        self._finish(error)
        if self._socket is not None:
            self._listen(False)
            if self._unsent:
                self._loop.remove_writer(self._socket.fileno())
            self._socket.close()
            self._socket = None
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
        with memoryview(self._buffer) as whole:
            taken = bytes(whole[:size])
        del self._buffer[:size]
        return taken

    def _pay(self, length: int) -> None:
        """Count the bytes of a frame, later if there is no room."""
        uid = self.payer
        if self._budget.has_room(uid, length):
            self._budget.count(uid, length)
            self._paid(uid, length)
        else:
            self._listen(False)
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
        self._listen(True)
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
