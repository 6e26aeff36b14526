"""Surroundings of a served command: the caller's, as it has sent them, and its connection.

Whatever needs more than these values ends in `CallerNeeded`: the caller runs the command itself.
"""

import time

from lavactl.files import DIRECTORY, PROGRAM, read_whole
from lavactl.io import Io
from lavactl.served.bounds import Part, check_row
from lavactl.served.caller import Caller, CallerNeeded, CommandLost, Input, Output, content_of
from lavactl.wire.client import Client
from protos import served

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from lavactl.wire import messages

# Methods that change nothing, and whose answers may be large.
READING = (
    "/List", "/Explain", "/Slots", "/History", "/Accounts", "/Dependencies", "/Environment", "/Read", "/Info", "/Hosts",
    "/Queues", "/Resources", "/Users", "/Groups", "/Parameters", "/Status", "/Limits", "/Pools", "/HostPartitions",
    "/ControlHistory", "/Reservations", "/Applications", "/JobGroups",
)  # fmt: skip
SETTINGS_MAX = 4 << 20  # bytes of a file of settings
# Variables that say how text is written; another writing than this process's own is the caller's to do.
LOCALES = (b"LC_ALL=", b"LC_CTYPE=", b"LANG=")
WRITING = (*LOCALES, b"TZ=", b"TZDIR=")
PLAIN = (b"", b"C", b"POSIX")


class Request:
    """Request of a stub: the words and surroundings that it was started with.

    Attributes:
        words: the command's words, without its name.
        request_id: name of its submission.
        socket: path of the agent's socket, as the stub found it.
        settings: content of the file of settings that the environment names, by its path; None if it cannot be read.
        kinds: kind of the file that a word of a submission names, as in the protocol, by the word.

    Raises:
        ValueError: the request is malformed.
    """

    def __init__(self, parts: list[bytes]) -> None:
        if parts[2:3] != [served.VERSION]:
            raise CallerNeeded
        user, uid, _, flags, umask, width, self.request_id, self.cwd, socket, settings, content, kinds, count, *rest = (
            parts
        )
        self.user, self.uid = user.decode(), int(uid)
        self.flags, self.umask, self.width = int(flags), int(umask), int(width)
        self.socket = socket.decode("utf-8", "surrogateescape")
        self.settings = {settings.decode("utf-8", "surrogateescape"): content_of(content)} if settings else {}
        number = int(count)
        self.name = rest[0].decode("ascii", "replace")
        self.kinds = {word: kinds[at : at + 1] for at, word in enumerate(rest[1 : min(number, len(kinds) + 1)])}
        self.words = [word.decode("utf-8", "surrogateescape") for word in rest[1:number]]
        self.environment = rest[number:]


class ServedIo(Io):
    """Surroundings of one served command.

    Attributes:
        own_copy: path of the master's settings that this host's agent keeps.
    """

    own_copy = ""

    def __init__(self, caller: Caller, request: Request, part: Part) -> None:
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
        if not (self.environ.get("LAVA_SOCKET") or self.environ.get("LAVA_ENVDIR")):
            self.environ = {**self.environ, "LAVA_SOCKET": request.socket}
        self._files.update(request.settings)
        self._part = part
        self._calls = ServedClient(self, caller, part)
        self._client = self._calls

    def flush_last(self) -> None:
        """Leave the rest of the output to the message that ends the command: they go in one write."""

    def kind_of(self, path: str) -> str:
        """Kind of the file at a path, as the caller sees it."""
        known = self._known(path)
        if known == served.BINARY:
            return PROGRAM
        return served.KINDS[known] if known in served.KINDS else super().kind_of(path)

    def look_at(self, path: str, limit: int) -> tuple[str, bytes | None]:
        """Kind and beginning of a file, as the caller sees it."""
        known = served.KINDS.get(self._known(path))
        return (known, None) if known in ("", DIRECTORY) else self._caller.look_at(path, limit)

    def is_binary(self, path: str) -> bool:
        """True if the caller has said that this is a program in ELF's format."""
        return self._known(path) == served.BINARY

    def _known(self, path: str) -> bytes:
        """Kind of the file that a word names, as the request has it."""
        name = path.encode("utf-8", "surrogateescape")
        found = self._request.kinds.get(name)
        if found is None and name.startswith(own := self._request.cwd.rstrip(b"/") + b"/"):
            found = self._request.kinds.get(name[len(own) :])
        return found or served.UNKNOWN

    def read_file(self, path: str, limit: int) -> bytes | None:
        """Beginning of a file, as the caller sees it."""
        return self._caller.read_file(path, limit)

    def read_whole(self, path: str) -> bytes | None:
        """Content of a file of settings, as the caller sees it; a very large one is the caller's to read."""
        content = read_whole(path) if path == self.own_copy else None  # that of this host's agent is for all
        if content is None:
            content = self._caller.read_file(path, SETTINGS_MAX)
        if content is not None and len(content) == SETTINGS_MAX:
            raise CallerNeeded
        return content

    def stay(self) -> None:
        """Leave the command to the caller."""
        raise CallerNeeded

    def check_row(self, names: "Sequence[str]", width: int) -> None:
        """Leave a command with very long rows to the caller."""
        check_row(list(names), width)

    def give_up(self) -> None:
        """Leave a command for which there is no memory to the caller, if that is possible."""
        self._part.give_up()

    def request_id(self) -> tuple[bytes, bool]:
        """The caller's own name of the submission: it can be sent again by the caller."""
        return self._request.request_id, False

    @property
    def process_limits(self) -> list[tuple[str, int]]:
        """Leave a command that looks at the caller's own limits to the caller."""
        raise CallerNeeded

    @property
    def uid(self) -> int:
        """Numeric id of the caller."""
        return self._request.uid

    def user_name(self) -> str:
        """Login name of the caller."""
        return self._request.user

    def sleep(self, seconds: float) -> None:
        """Leave waiting to the caller, unless it has seen output or the cluster has done something for it already."""
        if not (self._caller.is_shown or self._calls.is_answered):
            raise CallerNeeded
        time.sleep(seconds)


class ServedClient(Client):
    """Calls on the connection of one command; there is no second one.

    The first call that fails is the caller's to repeat, since nothing was done for it. Once a call was answered the
    whole command would do that again: then it is repeated here, as often as the whole command would.
    """

    def __init__(self, io: Io, caller: Caller, part: Part) -> None:
        super().__init__(io, "-")
        self._part = part
        self._connection = caller.connection
        self.is_answered = False

    def peek_many(
        self, requests: "list[messages.PeekRequest]", at_once: int
    ) -> "Iterator[tuple[int, messages.TailChunk | str | None]]":
        """Leave calls that overlap to the caller."""
        raise CallerNeeded

    def close(self) -> None:
        """End the command: its connection is the caller's too, and nothing else leads to the cluster."""
        raise CommandLost

    def _stream(self, method: str, message: bytes, **options: "Any") -> "Iterator[bytes]":
        if not method.endswith(READING):
            self._part.can_leave = False  # what was changed is not to be changed again
        for payload in super()._stream(method, message, **options):
            self.is_answered = True
            self._part.hold(len(payload))
            yield payload

    def _pause(self, attempt: int, reason: str) -> None:
        if not self.is_answered and attempt + 1 < self._tries:
            raise CallerNeeded
        super()._pause(attempt, reason)


def has_own_way(environment: list[bytes], zone: bytes | None) -> bool:
    """True if a caller writes times or text in another way than this process.

    Args:
        zone: TZ of this process; None where it is not set, which is another zone than an empty one.
    """
    own = [entry for entry in environment if entry.startswith(WRITING)]  # few have any
    if value_of(own, b"TZ=") != zone or value_of(own, b"TZDIR=") is not None:
        return True
    value = next((value for name in LOCALES if (value := value_of(own, name))), b"")
    return value not in PLAIN and b"utf" not in value.lower()


def value_of(environment: list[bytes], name: bytes) -> bytes | None:
    """Value of the first entry that begins with ``NAME=``."""
    return next((entry[len(name) :] for entry in environment if entry.startswith(name)), None)
