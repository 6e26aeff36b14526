"""Surroundings of a served command: the caller's, as it has sent them, and its connection.

Whatever needs more than these values ends in `CallerNeeded`: the caller runs the command itself.
"""

from lavactl.io import Io
from lavactl.served.caller import Caller, CallerNeeded, Input, Output
from lavactl.wire.client import Client
from protos import served

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from lavactl.wire import messages
    from lavactl.wire.connection import Connection

# Variables that say how text is written; another writing than this process's own is the caller's to do.
LOCALES = (b"LC_ALL=", b"LC_CTYPE=", b"LANG=")
PLAIN = (b"", b"C", b"POSIX")


class Request:
    """Request of a stub: the words and surroundings that it was started with.

    Attributes:
        words: the command's words, without its name.
        request_id: name of its submission.

    Raises:
        ValueError: the request is malformed.
    """

    def __init__(self, parts: list[bytes]) -> None:
        user, uid, version, flags, umask, width, self.request_id, self.cwd, count, *rest = parts
        if version != served.VERSION:
            raise CallerNeeded
        self.user, self.uid = user.decode(), int(uid)
        self.flags, self.umask, self.width = int(flags), int(umask), int(width)
        number = int(count)
        self.name = rest[0].decode("ascii", "replace")
        self.words = [word.decode("utf-8", "surrogateescape") for word in rest[1:number]]
        self.environment = rest[number:]


class ServedIo(Io):
    """Surroundings of one served command."""

    def __init__(self, caller: Caller, request: Request) -> None:
        streams = [bool(request.flags & bit) for bit in served.TERMINAL]
        self._caller, self._request = caller, request
        super().__init__(
            stdin=Input(caller, streams[0]),  # type: ignore[arg-type]
            stdout=Output(caller, False, streams[1]),  # type: ignore[arg-type]
            stderr=Output(caller, True, streams[2]),  # type: ignore[arg-type]
            raw_environ=request.environment,
            cwd=request.cwd.decode("utf-8", "surrogateescape"),
            umask=request.umask,
            width=request.width,
        )
        self._client = ServedClient(self, caller.connection)

    def kind_of(self, path: str) -> str:
        """Kind of a file, as the caller sees it."""
        return self._caller.kind_of(path)

    def read_file(self, path: str, limit: int) -> bytes | None:
        """Beginning of a file, as the caller sees it."""
        return self._caller.read_file(path, limit)

    def stay(self) -> None:
        """Leave the command to the caller."""
        raise CallerNeeded

    def request_id(self) -> tuple[bytes, bool]:
        """The caller's own name of the submission: it can be sent again by the caller."""
        return self._request.request_id, False

    @property
    def uid(self) -> int:
        """Numeric id of the caller."""
        return self._request.uid

    def user_name(self) -> str:
        """Login name of the caller."""
        return self._request.user

    def sleep(self, seconds: float) -> None:
        """Leave waiting to the caller."""
        raise CallerNeeded


class ServedClient(Client):
    """Calls on the connection of one command; there is no second one, and no second try."""

    def __init__(self, io: Io, connection: "Connection") -> None:
        super().__init__(io, "-")
        self._connection = connection

    def peek_many(
        self, requests: "list[messages.PeekRequest]", at_once: int
    ) -> "Iterator[tuple[int, messages.TailChunk | str | None]]":
        """Leave calls that overlap to the caller."""
        raise CallerNeeded

    def close(self) -> None:
        """Keep the connection, which is the caller's too."""

    def _pause(self, attempt: int, reason: str) -> None:
        raise CallerNeeded


def has_own_way(environment: list[bytes], zone: bytes) -> bool:
    """True if a caller writes times or text in another way than this process.

    Args:
        zone: TZ of this process.
    """
    zones = [entry[3:] for entry in environment if entry.startswith(b"TZ=")]
    if (zones[0] if zones else b"") != zone:
        return True
    values = (entry.partition(b"=")[2] for name in LOCALES for entry in environment if entry.startswith(name))
    value = next((value for value in values if value), b"")
    return value not in PLAIN and b"utf" not in value.lower()
