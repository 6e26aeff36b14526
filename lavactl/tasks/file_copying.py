"""Files that are copied for jobs (bsub -f): read as they are, written whole or not at all.

Run as a program by the agent of a job's submission host, as the job's user: ``python -m lavactl.tasks.file_copying
read|write|append PATH``. The file's state is its first line; of a file that is written, permissions and size are the
first line of its input. Invariants: a file is in its place only when all of it is there; the file of a shared file
system, which both hosts have, is recognised and left alone.
"""

import contextlib
import os
import signal
import stat
import sys
from typing import NamedTuple, NoReturn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

CHUNK = 256 << 10


class NotCopied(Exception):
    """A file that is not there, or cannot be read or written; the text says why."""


class State(NamedTuple):
    """Marks by which two hosts tell that they see the same file; all zero: there is none."""

    permissions: int = 0
    inode: int = 0
    size: int = 0
    modified_ns: int = 0


def state_of(path: str) -> State:
    """State of a file, all zero without one."""
    try:
        return _state(os.stat(path))
    except FileNotFoundError:
        return State()


def is_same(one: State, other: State) -> bool:
    """Return True if these are of one file, which two hosts share."""
    return one == other and bool(one.inode)


def open_whole(path: str) -> "tuple[BinaryIO, State]":
    """Open a regular file for reading; it is read up to the size that it has now."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise NotCopied("Not a regular file")
    return os.fdopen(descriptor, "rb", buffering=0), _state(found)


def chunks(file: "BinaryIO", size: int) -> "Iterator[bytes]":
    """So many bytes of a file.

    Raises:
        NotCopied: it ends before.
    """
    while size:
        data = file.read(min(CHUNK, size))
        if not data:
            raise NotCopied("the end of it did not come")
        size -= len(data)
        yield data


def write(path: str, is_appended: bool, permissions: int, data: "Iterable[bytes]") -> None:
    """Write a file, or append to it, when all data have come; a new file gets the permissions."""
    target = os.path.realpath(path)
    try:
        existing = os.stat(target)
    except FileNotFoundError:
        existing = None
    if existing is not None and not stat.S_ISREG(existing.st_mode):
        raise NotCopied("Not a regular file")
    if existing is not None and not os.access(target, os.W_OK):
        raise NotCopied("Permission denied")
    mode = permissions if existing is None else existing.st_mode & 0o7777
    temporary = os.path.join(os.path.dirname(target), f".{os.path.basename(target)[:200]}.{os.getpid()}.lava")
    try:
        with open(temporary, "x+b", buffering=0) as file:
            for part in data:
                _put(file, part)
            os.chmod(file.fileno(), mode)
            if is_appended and existing is not None:
                _append(file, target)
                return
        os.rename(temporary, target)
    finally:
        with contextlib.suppress(OSError):  # it has been renamed, or could not be made
            os.unlink(temporary)


def _append(source: "BinaryIO", target: str) -> None:
    """Append to a file at a stroke: elements of an array append to the same one."""
    import fcntl

    source.seek(0)
    with open(target, "ab", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = os.fstat(file.fileno()).st_size
        try:
            while part := source.read(CHUNK):
                _put(file, part)
        except OSError:
            os.truncate(target, before)
            raise


def _put(file: "BinaryIO", data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _state(found: os.stat_result) -> State:
    return State(found.st_mode & 0o777, found.st_ino, found.st_size, found.st_mtime_ns)


def why(error: OSError) -> str:
    """The cause of a failure in the system's words."""
    return error.strerror or str(error)


def main(argv: list[str]) -> int:
    """Read or write one file for the agent."""
    mode, path = argv
    signal.signal(signal.SIGTERM, _end)  # what was begun is removed
    given, told = sys.stdin.buffer, sys.stdout.buffer
    try:
        if mode == "read":
            file, state = open_whole(path)
            with file:
                told.write(b"%d %d %d %d\n" % state)
                for part in chunks(file, state.size):
                    told.write(part)
                told.flush()
        else:
            told.write(b"%d %d %d %d\n" % state_of(path))
            told.flush()
            permissions, size = map(int, given.readline().split())
            write(path, mode == "append", permissions, chunks(given, size))
    except (NotCopied, OSError) as error:
        print(why(error) if isinstance(error, OSError) else error, file=sys.stderr)
        return 1
    return 0


def _end(_number: int, _frame: object) -> NoReturn:
    raise SystemExit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
