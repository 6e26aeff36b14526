"""News for the jobs of this host: notices given to them, and a bell for those that wait for a change."""

import asyncio
import contextlib
import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from agents.shepherd.messages import Key, Notice, notice_path

SUFFIX = ".notice"


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
    """Read a notice file as far as it is whole."""
    found = []
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        for line in path.read_text(encoding="utf-8").splitlines():
            one: dict[str, Any] = json.loads(line)
            found.append(Notice(one["number"], one["event"], one["reason"], one["time"], one["at"] or 0.0))
    return found
