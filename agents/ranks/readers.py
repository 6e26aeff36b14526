"""Threads that read output files: a hanging file system delays only its own users.

Invariants: a user has at most `THREADS` threads here, even when retrying reads that hang, and at most `READINGS_MAX`
files open; the users who have threads are bounded as well.
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

THREADS = 2
READINGS_MAX = 1024  # `lavactl logs -f` follows so many tasks, perhaps all on one host
USERS_MAX = 64

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _User:
    """One user's threads, and their queue of calls."""

    def __init__(self, uid: int) -> None:
        self.threads = ThreadPoolExecutor(THREADS, f"output-readers-{uid}")
        self.readings = 0
        self.waiting = 0  # calls that have not returned


class Readers:
    """Threads of all users; used on one event loop."""

    def __init__(self) -> None:
        self._users: dict[int, _User] = {}

    def begin(self, uid: int) -> "Reading | None":
        """Permit one user to read one file; None if the user, or this process, reads too many already."""
        if uid not in self._users and len(self._users) >= USERS_MAX:
            return None
        user = self._users.setdefault(uid, _User(uid))
        if user.readings >= READINGS_MAX:
            return None
        user.readings += 1
        return Reading(user, lambda: self._ended(uid, user))

    def _ended(self, uid: int, user: _User) -> None:
        if not user.readings and not user.waiting and self._users.get(uid) is user:
            del self._users[uid]
            user.threads.shutdown(wait=False)


class Reading:
    """One file being read."""

    def __init__(self, user: _User, ended: Callable[[], None]) -> None:
        self._user = user
        self._ended = ended

    async def call(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Run a function that may block."""
        return await asyncio.wrap_future(self._submit(function, *args, **kwargs))

    async def open(self, path: str, flags: int) -> int:
        """Open a file; the descriptor is closed again if the caller was cancelled meanwhile."""
        opening = self._submit(os.open, path, flags)
        try:
            return await asyncio.wrap_future(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close)
            raise

    def _submit(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> "Future[_T]":
        loop = asyncio.get_running_loop()
        self._user.waiting += 1
        future = self._user.threads.submit(function, *args, **kwargs)
        future.add_done_callback(lambda _: _tell(loop, self._came_back))
        return future

    def _came_back(self) -> None:
        self._user.waiting -= 1
        self._ended()

    def end(self) -> None:
        """End the reading of the file."""
        self._user.readings -= 1
        self._ended()


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(what)


def _close(opening: "Future[int]") -> None:
    if not opening.cancelled() and opening.exception() is None:
        os.close(opening.result())


READERS = Readers()
