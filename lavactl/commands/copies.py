"""lavactl copies: copy the files of a job (bsub -f) before or after it; agents run it beside the job, as its user.

Exit code: 0 all copied; 99 a file is not there or cannot be written; 255 the other host cannot be reached now.
"""

import os

from lavactl.errors import FAILURE, CommandError
from lavactl.options import FLAG, Grammar, answered
from lavactl.tasks import file_copying
from lavactl.tasks.file_copying import NotCopied, State
from lavactl.wire import messages
from protos import file_copies, frames
from protos.agents_pb2 import FilePart, FileState
from protos.jobs_pb2 import CopyTicketReply, CopyTicketRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from lavactl.io import Io
    from lavactl.wire.connection import Connection

USAGE = """\
Usage: lavactl copies [--back] "number file op file" ...
       lavactl copies -h | -V
  Runs within a job: copies its files of bsub -f, by their numbers, from the host that it was submitted from.
  --back   those that are copied to that host, after the job
"""
GRAMMAR = Grammar("lavactl copies", USAGE, {"-back": FLAG})
COPY = "/lava.local/Copy"
MESSAGE = 127  # the job's message that tells of a failure; bread shows it
TEXT_MAX = 512
SILENCE_S = 330.0  # longer than the other agent waits for the file itself
ABORT = 99  # of a pre-execution command: the job is not tried again
TRIES_BACK, PAUSE_S = 10, 6.0  # after a job nothing else tries again


class Unreachable(Exception):
    """The file cannot be reached now; it may be later."""


def main(argv: list[str], io: "Io") -> int:
    """Run lavactl copies."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    is_back = "-back" in options
    job, index = io.environ.get("LSB_JOBID", ""), io.environ.get("LSB_JOBINDEX", "") or "0"
    if not (job.isdigit() and index.isdigit()):
        raise CommandError("lavactl copies: it is run by a job, for its own files.")
    code = 0
    for word in options.words:
        number, _, text = word.partition(" ")
        asked = CopyTicketRequest(number=int(number) if number.isdigit() else 0, back=is_back)
        asked.key.job, asked.key.index = int(job), int(index)
        try:
            _copy(asked, file_copies.read(text), io)
        except (ValueError, NotCopied) as error:
            _tell(asked, f"{text}: {error}", io)
            code = ABORT
        except Unreachable as error:
            _tell(asked, f"{text}: {error}", io)
            code = code or FAILURE
    return code


def _tell(asked: CopyTicketRequest, why: str, io: "Io") -> None:
    """Say why a file was not copied, in the job's output and in its messages: after a job there is no output."""
    io.error(why)
    message = messages.JobMessage(number=MESSAGE, text=f"-f {why}"[:TEXT_MAX], level="ERROR")
    ref = messages.JobRef(job=asked.key.job)
    if index := asked.key.index:
        ref.indices.append(messages.IndexRange(first=index, last=index, step=1))
    try:
        io.client().post(messages.PostRequest(ref=ref, message=message))
    except CommandError as error:
        io.error(str(error))


def _copy(asked: CopyTicketRequest, one: file_copies.FileCopy, io: "Io") -> None:
    for left in range(TRIES_BACK if asked.back else 1, 0, -1):
        try:
            _try(asked, one, io)
        except Unreachable:
            if left == 1:
                raise
            io.sleep(PAUSE_S)
        else:
            return


def _try(asked: CopyTicketRequest, one: file_copies.FileCopy, io: "Io") -> None:
    from lavactl.tasks.tasks import connect

    try:
        connection = connect(io, "lavactl copies")
    except CommandError as error:
        raise Unreachable(str(error)) from None
    try:
        call = Call(connection, FilePart(asked=asked))
        leave = call.first().leave
        path = os.path.join(io.cwd, one.execution)
        is_appended = one.operator in file_copies.APPENDING
        if not leave.ticket:
            _copy_here(leave, path, is_appended)
        elif asked.back:
            _send(call, path)
        else:
            _take(call, path)
    except OSError as error:
        raise NotCopied(f"{error.filename or one.execution}: {file_copying.why(error)}") from None
    finally:
        connection.close()


def _copy_here(leave: CopyTicketReply, path: str, is_appended: bool) -> None:
    """Copy between two files of this host."""
    source, target = (leave.path, path) if leave.mode == "read" else (path, leave.path)
    file, state = file_copying.open_whole(source)
    with file:
        if not file_copying.is_same(state, file_copying.state_of(target)):
            file_copying.write(target, is_appended, state.permissions, file_copying.chunks(file, state.size))


def _take(call: "Call", path: str) -> None:
    """Write what the other host sends into a file here."""
    given = call.first().state
    state = State(given.permissions, given.inode, given.size, given.modified_ns)
    if not file_copying.is_same(state, file_copying.state_of(path)):
        file_copying.write(path, False, state.permissions & 0o777, _whole(call, state.size))


def _whole(call: "Call", size: int) -> "Iterator[bytes]":
    """So many bytes of what the other host sends."""
    for part in call.parts():
        size -= len(part.data)
        yield part.data
    if size:
        raise Unreachable("the connection was lost before its end")


def _send(call: "Call", path: str) -> None:
    """Send a file of this host to the other one, which says when it is written."""
    file, state = file_copying.open_whole(path)
    with file:
        there = call.first().state
        if file_copying.is_same(state, State(there.permissions, there.inode, there.size, there.modified_ns)):
            return
        call.send(FilePart(state=FileState(permissions=state.permissions, size=state.size)))
        for data in file_copying.chunks(file, state.size):
            call.send(FilePart(data=data))
    call.send(FilePart(is_whole=True))
    if not any(part.is_whole for part in call.parts()):
        raise Unreachable("the connection was lost before its end")


class Call:
    """The call to this host's agent, with both windows of messages."""

    def __init__(self, connection: "Connection", first: FilePart) -> None:
        self._connection = connection
        self._call = connection.start(COPY, first.SerializeToString(), more=True)
        self._left = frames.WINDOW - 1
        self._end: bytes | None = None

    def first(self) -> FilePart:
        """The next answer: leave to copy, or the state of the other host's file."""
        for part in self.parts():
            return part
        raise Unreachable("this host's agent gave no answer")

    def send(self, part: FilePart) -> None:
        """Send a message; wait while too many are under way."""
        while not self._left:
            if self._receive() is not None:
                raise Unreachable("the other host answered before the end of the file")
            if self._end is not None:
                self._check()
                raise Unreachable("the connection was lost before its end")
        self._left -= 1
        self._connection.send(self._call, part.SerializeToString())

    def parts(self) -> "Iterator[FilePart]":
        """Answers, to the end of the call."""
        while self._end is None:
            part = self._receive()
            if part is not None:
                yield part
        self._check()

    def _receive(self) -> FilePart | None:
        """Take a frame; return the message that it is, if it is one."""
        from lavactl.wire.connection import LostError

        try:
            _, kind, payload = self._connection.receive(SILENCE_S)
        except LostError as error:
            raise Unreachable(str(error)) from None
        if kind == frames.CREDIT:
            self._left += int.from_bytes(payload, "little")
        elif kind == frames.END:
            self._end = payload
        elif kind == frames.MESSAGE:
            self._connection.credit(self._call, 1)
            part = FilePart.FromString(payload)
            if part.error:
                raise NotCopied(part.error)
            return part
        return None

    def _check(self) -> None:
        status, text = frames.unpack_end(self._end or b"")
        if status != frames.OK:
            raise Unreachable(text)
