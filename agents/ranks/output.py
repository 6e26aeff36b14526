"""Reader of a running job's output file, for bpeek.

The file is read through the descriptor that the job's shepherd holds, so it is the very file that was opened as the
job's user, whatever has become of its name. Invariants: nothing is read that the job's user could not read, nor after
the shepherd has released the attempt; only regular files are read; reading, which may block on a network file system,
happens in threads that serve one user each; following waits for the kernel's notification of growth.
"""

import errno
import os
import stat
from collections.abc import Awaitable, Callable, Sequence

from agents.ranks.growth import WATCHES
from agents.ranks.readers import READERS, Reading

CHUNK = 256 << 10
# Interval of a follower's checks for the job's end; new output wakes it at once.
LOOK_AGAIN_S = 1.0
TOO_MUCH = "too much output is being read on this host at the same time; try again"

Send = Callable[[bytes], Awaitable[None]]


class NotReadable(Exception):
    """Unreadable output; the text is one sentence for the user."""


class OnlyForItsUser(Exception):
    """Refusal to the agent itself, such as root on many network file systems; the text is the path."""


class OutputReader:
    """Output file, opened by ``open_output``."""

    def __init__(self, descriptor: int, reading: Reading) -> None:
        self.descriptor = descriptor
        self.offset = 0
        self._reading = reading

    async def send_all(self, last_bytes: int, send: Send) -> None:
        """Send the file, or its last ``last_bytes`` bytes."""
        if last_bytes:
            self.offset = max(0, os.fstat(self.descriptor).st_size - last_bytes)
        await self._send_new(send)

    async def follow(self, is_over: Callable[[], bool], send: Send) -> None:
        """Send additions until the job is over, the last ones included."""
        with WATCHES.watch(self.descriptor) as watch:
            over = False
            while not over:
                over = is_over()
                await self._send_new(send)
                if not over:
                    await watch.changed(LOOK_AGAIN_S)

    async def _send_new(self, send: Send) -> None:
        while True:
            start, data = await self._reading.call(_next_data, self.descriptor, self.offset)
            if not data:
                return
            if start > self.offset:
                await send(b"\n[%d bytes of output are left out here]\n" % (start - self.offset))
            self.offset = start + len(data)
            await send(data)

    def close(self) -> None:
        os.close(self.descriptor)
        self._reading.end()


def _next_data(descriptor: int, offset: int) -> tuple[int, bytes]:
    """Return the next data and its offset, skipping holes: the middle of a long output may have been freed."""
    try:
        start = os.lseek(descriptor, offset, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:  # at the end, or in a hole up to it, of any length
            return offset, b""
        start = offset  # the file system does not know holes
    return start, os.pread(descriptor, CHUNK, start)


async def open_output(path: str, uid: int, groups: Sequence[int], is_held: Callable[[], bool]) -> OutputReader:
    """Open the file behind a shepherd's descriptor; ``is_held`` returns True while it is that of the attempt.

    Raises:
        NotReadable: it is gone, is no regular file, or the job's user may not read it or reads too many already.
        OnlyForItsUser: the user may be able to read it, but this process is not.
    """
    reading = READERS.begin(uid)
    if reading is None:
        raise NotReadable(TOO_MUCH)
    try:
        descriptor = await _open(reading, path, uid, groups, is_held)
    except BaseException:
        reading.end()
        raise
    return OutputReader(descriptor, reading)


def open_kept(path: str, missing: str = "The job has ended, and no output of it is kept here.") -> OutputReader:
    """Open a kept output. Its user may still have it open, and give it any size. ``missing``: the answer for none.

    Raises:
        NotReadable: it is not there, or its user reads too many already.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        raise NotReadable(missing) from None
    reading = READERS.begin(os.fstat(descriptor).st_uid)
    if reading is None:
        os.close(descriptor)
        raise NotReadable(TOO_MUCH)
    return OutputReader(descriptor, reading)


async def _open(reading: Reading, path: str, uid: int, groups: Sequence[int], is_held: Callable[[], bool]) -> int:
    try:
        descriptor = await reading.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:
        raise NotReadable("the job has just ended") from None
    except PermissionError:
        name = await reading.call(os.readlink, path)
        if not is_held():
            raise NotReadable("the job has just ended") from None
        raise OnlyForItsUser(name) from None
    except OSError as error:
        raise NotReadable(f"the output file cannot be read: {error.strerror}") from None
    why_not = _why_not(descriptor, uid, groups)
    # Only this process gives a shepherd its next attempt: while it holds this one, the file was this one's.
    if not is_held():
        why_not = "the job has just ended"
    if why_not:
        os.close(descriptor)
        raise NotReadable(why_not)
    return descriptor


def _why_not(descriptor: int, uid: int, groups: Sequence[int]) -> str:
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode):
        return "the output file is no regular file"
    return "" if _may_read(about, uid, groups) else "the output file may not be read by the job's user"


def _may_read(about: os.stat_result, uid: int, groups: Sequence[int]) -> bool:
    """Check owner and mode. An owner always may, since he could restore a permission that he took away."""
    if uid in (0, about.st_uid):
        return True
    needed = stat.S_IRGRP if about.st_gid in groups else stat.S_IROTH
    return bool(about.st_mode & needed)
