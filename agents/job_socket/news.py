"""News for the jobs of this host: notices given to them, and a bell for those that wait for a change."""

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from agents.shepherd.messages import Key, Notice, notice_path

SUFFIX = ".notice"
FILE_BYTES = 1 << 20  # of the newest notices in a file
TIME_MAX = 1e12  # seconds since 1970; nothing is announced for later
LOG = logging.getLogger("lava.notice")


class Bell:
    """Bell for each attempt: rung when its tasks, hosts or notices have changed, or when it is over here."""

    def __init__(self) -> None:
        self._waiting: dict[Key, set[asyncio.Future[None]]] = {}

    def ring(self, key: Key) -> None:
        """Wake all that wait for this attempt."""
        for waiter in self._waiting.pop(key, ()):
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, key: Key) -> None:
        """Wait until the bell of this attempt rings."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, set()).add(waiter)
        try:
            await waiter
        finally:
            left = self._waiting.get(key)
            if left is not None:
                left.discard(waiter)
                if not left:
                    del self._waiting[key]


class NoticeBoard:
    """Notices that shepherds have given to the jobs of this host; their files outlive the agent.

    Args:
        directory: of the notice files, which all jobs may pass; empty for none.
    """

    def __init__(self, directory: str, bell: Bell) -> None:
        self._directory = directory
        self._bell = bell
        self._known: dict[Key, list[Notice]] = {}

    def adopt(self, held: Collection[Key]) -> None:
        """Take over the files of attempts held here after a restart, and remove those of others."""
        by_path = {notice_path(self._directory, key): key for key in held}
        for path in Path(self._directory).glob(f"*{SUFFIX}*"):
            key = by_path.get(str(path))
            if key is None:
                path.unlink(missing_ok=True)
            else:
                self._known[key] = read_notices(path)

    def add(self, key: Key, notice: Notice) -> None:
        """Add a notice that a shepherd has given."""
        known = self._known.setdefault(key, [])
        if not known or notice.number > known[-1].number:
            known.append(notice)
            self._bell.ring(key)

    def of(self, key: Key, after: int = 0) -> list[Notice]:
        """Return an attempt's notices beyond a number."""
        return [one for one in self._known.get(key, ()) if one.number > after]

    def forget(self, key: Key) -> None:
        """Remove what is left of an attempt here."""
        self._bell.ring(key)
        if self._known.pop(key, None) is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(notice_path(self._directory, key))


def read_notices(path: Path) -> list[Notice]:
    """Read the newest notices in a file, as far as it is whole: an earlier version gave it to the job's user."""
    found = list[Notice]()
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - FILE_BYTES))
            is_cut = file.tell() > 0
            for line in file.read(FILE_BYTES).splitlines()[int(is_cut) :]:
                found.append(_notice(json.loads(line)))
    except (OSError, ValueError, RecursionError) as error:
        LOG.warning("event=notices_unreadable path=%s reason=%r", path, str(error))
    return found


def _notice(one: Any) -> Notice:
    """Return a notice that was written as `notices.shown` returns it.

    Raises:
        ValueError: it was not.
    """
    if not isinstance(one, dict):
        raise ValueError("an object is expected")
    number, event, reason, told, at = (one.get(name) for name in ("number", "event", "reason", "time", "at"))
    if not (isinstance(number, int) and isinstance(event, str) and isinstance(reason, str)):
        raise ValueError("number, event and reason are expected")
    return Notice(number, event, reason, _time(told), _time(at or 0.0))


def _time(value: Any) -> float:
    if not isinstance(value, int | float) or not abs(value) < TIME_MAX:
        raise ValueError("a time is expected")
    return float(value)
