"""One connection to the local agent's socket: frames out, frames in.

Invariants: answers are credited as they are consumed, so the agent never sends more than a window ahead; a broken or
silent connection raises ``LostError``, a refusal by the master or agent ``CallError``. Only ``_socket`` is imported:
importing the socket module costs a command 2 ms.
"""

import _socket

from protos import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

CREDIT_PORTION = frames.WINDOW // 4
# Read at once: of a frame that has only begun, or is small, and of a large one. The large size is for lists; memory of
# that size is mapped and unmapped for each read, whatever comes.
READ_SIZE, READ_SIZE_MAX = 1 << 14, 1 << 18


class LostError(Exception):
    """Broken connection or timeout: how far the call got is unknown."""


class CallError(Exception):
    """Failure answered by the master or agent: a gRPC status number and one sentence."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Connection:
    """Frames over a connected Unix socket. Calls may overlap, by ``answers`` or by ``start`` and ``receive``, not both.

    Raises:
        OSError: the socket cannot be reached.
    """

    def __init__(self, path: str, connected: "_socket.socket | None" = None) -> None:
        self.path = path
        self._socket = connected or _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            if connected is None:
                self._socket.connect(path)
        except OSError:
            self._socket.close()
            raise
        self._buffer = bytearray()
        self._parked: dict[int, list[tuple[int, bytes]]] = {}  # of each call in progress, read by another call
        self._last_call = 0

    def fileno(self) -> int:
        """Descriptor to poll; check ``has_frame`` first, since a frame may be buffered already."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the connection, which ends every call on it."""
        self._socket.close()

    def start(self, method: str, message: bytes, *, more: bool = False) -> int:
        """Begin a call and return its number. ``more``: further requests follow by ``send``, up to ``half_close``."""
        self._last_call += 1
        kind = frames.OPEN if more else frames.CALL
        self._put(frames.pack(self._last_call, kind, frames.pack_open(method, message)))
        return self._last_call

    def open(self, method: str) -> int:
        """Begin a call whose frames are read by `frame_of` beside those of others; return its number."""
        call = self.start(method, b"", more=True)
        self._parked[call] = []
        return call

    def forget(self, call: int) -> None:
        """Read no more frames of a call that was begun by `open`."""
        del self._parked[call]

    def send(self, call: int, *messages: bytes) -> None:
        """Send more requests of a call that was started with ``more``; the caller keeps to the window."""
        self._put(b"".join([frames.pack(call, frames.MESSAGE, message) for message in messages]))

    def half_close(self, call: int) -> None:
        """End the requests of a call; its answers still come."""
        self._put(frames.pack(call, frames.HALF_CLOSE))

    def cancel(self, call: int) -> None:
        """Cancel a call: no further answers are wanted."""
        self._put(frames.pack(call, frames.CANCEL))

    def credit(self, call: int, messages: int) -> None:
        """Report this number of answers as consumed, so that the agent may send as many more."""
        self._put(frames.pack(call, frames.CREDIT, messages.to_bytes(4, "little")))

    def receive(self, timeout_s: float | None) -> tuple[int, int, bytes]:
        """The next frame: (call, kind, payload).

        Raises:
            LostError: the agent closed the connection, sent a malformed frame, or was silent for ``timeout_s``.
        """
        try:
            call, kind, length = frames.unpack_header(self._take(frames.HEADER.size, timeout_s))
            return call, kind, self._take(length, timeout_s)
        except TimeoutError:
            raise LostError(f"no answer within {timeout_s:.0f} seconds") from None
        except (OSError, frames.FrameError) as error:
            raise LostError(str(error)) from None

    def wait(self, timeout_s: float) -> bool:
        """Wait until a frame has begun to arrive, or the connection has ended; False if neither did in time."""
        if self.has_frame():
            return True
        import select

        poll = select.poll()
        poll.register(self._socket.fileno(), select.POLLIN)
        return bool(poll.poll(timeout_s * 1000))

    def has_frame(self) -> bool:
        """True if a whole frame is buffered, so that ``receive`` does not block."""
        size = frames.HEADER.size
        if len(self._buffer) < size:
            return False
        return len(self._buffer) >= size + frames.unpack_header(bytes(self._buffer[:size]))[2]

    def answers(self, method: str, message: bytes, timeout_s: float | None) -> "Iterator[bytes]":
        """Answers to a call with one request. Stopping early cancels the call.

        Args:
            timeout_s: the longest silence between two answers; None for any.

        Raises:
            LostError, CallError.
        """
        call = self.start(method, message)
        self._parked[call] = []
        ended = False
        owed = 0
        try:
            while True:
                kind, payload = self.frame_of(call, timeout_s)
                if kind == frames.END:
                    ended = True
                    return self._conclude(payload)
                if kind == frames.MESSAGE:
                    yield payload
                    owed += 1
                    if owed == CREDIT_PORTION:
                        self._credit_softly(call, owed)
                        owed = 0
        finally:
            if not (ended or self._ends_here(call)):
                self._abandon(call)
            del self._parked[call]

    def frame_of(self, call: int, timeout_s: float | None) -> tuple[int, bytes]:
        """Next frame of a call: (kind, payload). Those of other calls are parked, those of cancelled calls dropped.

        Raises:
            LostError: as `receive`.
        """
        if self._parked[call]:
            return self._parked[call].pop(0)
        while True:
            number, kind, payload = self.receive(timeout_s)
            if number == call:
                return kind, payload
            if number in self._parked:
                self._parked[number].append((kind, payload))

    def _ends_here(self, call: int) -> bool:
        """True if the END of a call has arrived, behind the last answer that was wanted: it needs no cancellation."""
        found = any(kind == frames.END for kind, _ in self._parked[call])
        try:
            while not found and self.has_frame():
                number, kind, payload = self.receive(None)
                found = number == call and kind == frames.END
                if number != call and number in self._parked:
                    self._parked[number].append((kind, payload))
        except (LostError, frames.FrameError):
            return False
        return found

    def _credit_softly(self, call: int, messages: int) -> None:
        """Credit answers; a lost connection is left to the next read, since every answer may have arrived already."""
        try:
            self.credit(call, messages)
        except LostError:
            return

    def _abandon(self, call: int) -> None:
        try:
            self.cancel(call)
        except LostError:
            self.close()

    def _conclude(self, payload: bytes) -> None:
        status, text = frames.unpack_end(payload)
        if status != frames.OK:
            raise CallError(status, text)

    def _put(self, frame: bytes) -> None:
        try:
            self._set_timeout(None)
            view = memoryview(frame)
            while view:
                view = view[self._socket.send(view, _socket.MSG_NOSIGNAL) :]
        except OSError as error:
            raise LostError(str(error)) from None

    def _take(self, size: int, timeout_s: float | None) -> bytes:
        buffer = self._buffer
        if len(buffer) < size:
            self._set_timeout(timeout_s)
        while (missing := size - len(buffer)) > 0:
            chunk = self._socket.recv(min(max(missing, READ_SIZE), READ_SIZE_MAX))
            if not chunk:
                raise ConnectionResetError("the agent closed the connection")
            buffer += chunk
        taken = bytes(buffer[:size])
        del buffer[:size]
        return taken

    def _set_timeout(self, timeout_s: float | None) -> None:
        """Set the socket's time; each setting is a call of the kernel, also of the same one."""
        if self._socket.gettimeout() != timeout_s:
            self._socket.settimeout(timeout_s)
