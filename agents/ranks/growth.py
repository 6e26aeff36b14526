"""Notification of followers about growing files.

All followers share one inotify instance: there are 128 for all programs of a user, root included.
"""

import asyncio
import contextlib
import ctypes
import os
import struct
from collections.abc import Iterator

_IN_MODIFY = 0x2
_EVENT = struct.Struct("iIII")


class Watch:
    """One follower of a file. Without a kernel watch, only the time limit wakes it."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    async def changed(self, limit_s: float) -> None:
        """Wait for a change since the last call, at most ``limit_s``."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self.event.wait()
        self.event.clear()


class Watches:
    """All followers of this process; used on one event loop at a time."""

    def __init__(self) -> None:
        self._inotify = -1
        self._followers: dict[int, set[Watch]] = {}  # by the kernel's number for the file

    @contextlib.contextmanager
    def watch(self, descriptor: int) -> Iterator[Watch]:
        """Wake the follower when this file is written to."""
        watch = Watch()
        number = self._add(descriptor)
        if number >= 0:
            self._followers.setdefault(number, set()).add(watch)
        try:
            yield watch
        finally:
            self._remove(number, watch)

    def _add(self, descriptor: int) -> int:
        libc = ctypes.CDLL(None, use_errno=True)
        if self._inotify < 0:
            self._inotify = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
            if self._inotify < 0:
                return -1
            asyncio.get_running_loop().add_reader(self._inotify, self._on_events)
        return int(libc.inotify_add_watch(self._inotify, b"/proc/self/fd/%d" % descriptor, _IN_MODIFY))

    def _remove(self, number: int, watch: Watch) -> None:
        followers = self._followers.get(number, set())
        followers.discard(watch)
        if number >= 0 and not followers:
            self._followers.pop(number, None)
            ctypes.CDLL(None).inotify_rm_watch(self._inotify, number)
        if not self._followers and self._inotify >= 0:
            asyncio.get_running_loop().remove_reader(self._inotify)
            os.close(self._inotify)
            self._inotify = -1

    def _on_events(self) -> None:
        with contextlib.suppress(BlockingIOError):
            events = os.read(self._inotify, 64 << 10)
            at = 0
            while at < len(events):
                number, _, _, size = _EVENT.unpack_from(events, at)
                at += _EVENT.size + size
                for watch in self._followers.get(number, ()):
                    watch.event.set()


WATCHES = Watches()
