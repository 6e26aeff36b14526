"""The caller of a served command, at the other end of a call: its streams, its files, its exit.

Output is collected and sent in large pieces; a question waits for its answer.
"""

from lavactl.errors import OutputClosedError
from lavactl.wire.connection import CREDIT_PORTION, Connection, LostError
from protos import frames, served

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.served.bounds import Part

PIECE = 1 << 18
END_S = 10.0  # for the agent to pass on the last message
OPEN_MAX = frames.WINDOW - 4  # messages that the agent has not credited yet


class CallerNeeded(BaseException):
    """The caller must run the command itself: it needs its terminal, its life or something else that is not sent."""


class CommandLost(BaseException):
    """The command cannot go on here, and how far it came is not known: the agent tells its caller so."""


class Caller:
    """Conversation about one command, on a connection of its own.

    Attributes:
        is_shown: True once something was sent that the caller prints: it cannot run the command itself any more.

    Raises:
        LostError: the caller has gone, or the agent.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._call = connection.open(served.SERVE)
        self._open = self._taken = 0
        self._output = bytearray()
        self.is_shown = False
        self.part: Part | None = None  # of the process's means, as soon as it is known whose command it is
        self.packed = self._message()

    @property
    def request(self) -> list[bytes]:
        """Request of the stub, behind its caller's name and number.

        Raises:
            ValueError: it is malformed.
        """
        return served.unpacked(self.packed)

    def write(self, data: bytes) -> None:
        """Collect standard output."""
        self._output += data
        if self.part is not None:
            self.part.step()
        if len(self._output) >= PIECE:
            self.flush()

    def flush(self) -> None:
        """Send the standard output collected so far."""
        view = memoryview(bytes(self._output))
        self._output.clear()
        for at in range(0, len(view), PIECE):
            self._show()
            self._send(served.OUTPUT + bytes(view[at : at + PIECE]))

    def error(self, data: bytes) -> None:
        """Send standard error, behind the output before it."""
        self.flush()
        self._show()
        self._send(served.ERROR + data)

    def _show(self) -> None:
        self.is_shown = True
        if self.part is not None:
            self.part.let_go()

    def look_at(self, path: str, limit: int) -> tuple[str, bytes | None]:
        """Kind and beginning of the file at a path, as the caller sees it."""
        self._send(served.ASK_KIND + limit.to_bytes(4, "little") + path.encode("utf-8", "surrogateescape"))
        answer = self._message()
        return served.KINDS.get(answer[:1], ""), content_of(answer[1:])

    def read_file(self, path: str, limit: int) -> bytes | None:
        """Beginning of the file at a path, as the caller sees it; None if it cannot be read."""
        name = path.encode("utf-8", "surrogateescape")
        self._send(served.ASK_FILE + limit.to_bytes(4, "little") + name)
        return content_of(self._message())

    def read_input(self, limit: int) -> bytes | None:
        """Standard input up to a number of bytes; None if it cannot be read."""
        self._send(served.ASK_INPUT + limit.to_bytes(4, "little"))
        return content_of(self._message())

    def done(self, code: int) -> bool:
        """End with the command's exit code, behind all its output; False if the connection is of no further use."""
        done = served.DONE + bytes((code & 0xFF,))
        if self._output and len(self._output) < PIECE:  # together: the agent and the stub wake up once
            self.is_shown = True
            output = served.OUTPUT + bytes(self._output)
            self._output.clear()
            self._send(output, done)
        else:
            self.flush()
            self._send(done)
        return self._await_end()

    def become(self) -> bool:
        """End with the demand that the caller runs the command itself; nothing of its output is shown.

        False if the connection is of no further use.

        Raises:
            CommandLost: some is shown already.
        """
        if self.is_shown:
            raise CommandLost
        self._output.clear()
        self._send(served.BECOME)
        return self._await_end()

    def _await_end(self) -> bool:
        """Wait until the agent has passed on the last message: what is closed before may be lost."""
        try:
            while self.connection.frame_of(self._call, END_S)[0] != frames.END:
                continue
        except LostError:
            return False
        self.connection.forget(self._call)
        return True

    def _send(self, *messages: bytes) -> None:
        while self._open + len(messages) > OPEN_MAX:
            self._next(frames.CREDIT)
        self.connection.send(self._call, *messages)
        self._open += len(messages)

    def _message(self) -> bytes:
        payload = self._next(frames.MESSAGE)
        self._taken += 1
        if self._taken == CREDIT_PORTION:
            self.connection.credit(self._call, self._taken)
            self._taken = 0
        return payload

    def _next(self, wanted: int) -> bytes:
        """Read frames of the call up to one of this kind; credits on the way are counted."""
        while True:
            kind, payload = self.connection.frame_of(self._call, None)
            if kind == frames.CREDIT:
                self._open -= int.from_bytes(payload[:4], "little")
            if kind == wanted:
                return payload
            if kind == frames.END:
                raise LostError("the caller has gone")


def content_of(answer: bytes) -> bytes | None:
    """Content of a file in an answer of the stub; None if it cannot be read."""
    return answer[1:] if answer[:1] == served.READ else None


class Output:
    """Standard output or error of the caller, as a binary stream."""

    def __init__(self, caller: Caller, is_error: bool, is_terminal: bool) -> None:
        self._caller, self._is_error, self._is_terminal = caller, is_error, is_terminal

    def write(self, data: bytes) -> int:
        """Write bytes.

        Raises:
            OutputClosedError: the caller has gone.
        """
        try:
            if self._is_error:
                self._caller.error(data)
            else:
                self._caller.write(data)
        except LostError:
            raise OutputClosedError from None
        return len(data)

    def flush(self) -> None:
        """Send what was written; raises OutputClosedError like `write`."""
        try:
            self._caller.flush()
        except LostError:
            raise OutputClosedError from None

    def isatty(self) -> bool:
        """True if the caller's stream is a terminal."""
        return self._is_terminal


class Input:
    """Standard input of the caller, which is read when the command wants it."""

    def __init__(self, caller: Caller, is_terminal: bool) -> None:
        self._caller, self._is_terminal = caller, is_terminal

    def read(self, limit: int) -> bytes:
        """Read to the end of input, at most ``limit`` bytes; OSError if it cannot be read."""
        self._check()
        data = self._caller.read_input(limit)
        if data is None:
            raise OSError(5, "it cannot be read")
        return data

    def readline(self) -> bytes:
        """Read a line; only terminals are read by lines."""
        raise CallerNeeded

    def isatty(self) -> bool:
        """True if the caller's input is a terminal, which it reads itself."""
        self._check()
        return False

    def _check(self) -> None:
        if self._is_terminal:
            raise CallerNeeded
