"""Reading a running job's output file, for bpeek.

The file is read through the descriptor that the job's shepherd holds, so it is the very file that was opened as the
job's user, whatever has become of its name. Invariants: nothing is read that the job's user could not read; only
regular files are read; reading, which may block on a network file system, happens in threads of its own; following
waits for the kernel's word that the file has grown.
"""

import asyncio
import ctypes
import os
import stat
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

CHUNK = 256 << 10
# How often a follower looks whether the job is over; new output wakes it at once.
LOOK_AGAIN_S = 1.0
# More readers than this wait for each other: a file system that hangs must not take all threads of the agent.
READERS = 4

_IN_MODIFY = 0x2
_threads = ThreadPoolExecutor(READERS, "output-readers")

Send = Callable[[bytes], Awaitable[None]]


class NotReadable(Exception):
    """The output cannot be read; the text is one sentence for the user."""


class OnlyForItsUser(Exception):
    """The agent itself may not open the file, as root may not on many network file systems; the text is its path."""


class OutputReader:
    """An output file, opened by ``open_output``."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.offset = 0

    async def send_all(self, last_bytes: int, send: Send) -> None:
        """Send what is in the file, or its last so many bytes."""
        if last_bytes:
            self.offset = max(0, os.fstat(self.descriptor).st_size - last_bytes)
        await self._send_new(send)

    async def follow(self, is_over: Callable[[], bool], send: Send) -> None:
        """Send what is added until the job is over, all of it included."""
        watch = _Watch(self.descriptor)
        try:
            over = False
            while not over:
                over = is_over()
                await self._send_new(send)
                if not over:
                    await watch.changed(LOOK_AGAIN_S)
        finally:
            watch.close()

    async def _send_new(self, send: Send) -> None:
        loop = asyncio.get_running_loop()
        while data := await loop.run_in_executor(_threads, os.pread, self.descriptor, CHUNK, self.offset):
            self.offset += len(data)
            await send(data)

    def close(self) -> None:
        os.close(self.descriptor)


async def open_output(path: str, uid: int, groups: Sequence[int]) -> OutputReader:
    """The file behind a shepherd's descriptor.

    Raises:
        NotReadable: it is gone, is no regular file, or the job's user may not read it.
        OnlyForItsUser: the user may be able to read it, but this process is not.
    """
    loop = asyncio.get_running_loop()
    try:
        descriptor = await loop.run_in_executor(_threads, os.open, path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:
        raise NotReadable("the job has just ended") from None
    except PermissionError:
        raise OnlyForItsUser(await loop.run_in_executor(_threads, os.readlink, path)) from None
    except OSError as error:
        raise NotReadable(f"the output file cannot be read: {error.strerror}") from None
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode) or not _may_read(about, uid, groups):
        os.close(descriptor)
        what = "may not be read by the job's user" if stat.S_ISREG(about.st_mode) else "is no regular file"
        raise NotReadable(f"the output file {what}")
    return OutputReader(descriptor)


def _may_read(about: os.stat_result, uid: int, groups: Sequence[int]) -> bool:
    """By owner and mode. An owner who took his own permission away could give it back, so he always may."""
    if uid in (0, about.st_uid):
        return True
    needed = stat.S_IRGRP if about.st_gid in groups else stat.S_IROTH
    return bool(about.st_mode & needed)


class _Watch:
    """Wakes when a file is written to. Where the kernel gives no watch, only the time limit wakes."""

    def __init__(self, descriptor: int) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._inotify = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        if self._inotify >= 0:
            libc.inotify_add_watch(self._inotify, b"/proc/self/fd/%d" % descriptor, _IN_MODIFY)

    async def changed(self, limit_s: float) -> None:
        """Wait for a change since the last time, but not longer than this."""
        if self._inotify < 0:
            await asyncio.sleep(limit_s)
            return
        loop = asyncio.get_running_loop()
        event = asyncio.Event()
        loop.add_reader(self._inotify, event.set)
        try:
            async with asyncio.timeout(limit_s):
                await event.wait()
            os.read(self._inotify, 64 << 10)
        except (TimeoutError, BlockingIOError):
            return
        finally:
            loop.remove_reader(self._inotify)

    def close(self) -> None:
        if self._inotify >= 0:
            os.close(self._inotify)
