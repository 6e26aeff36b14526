"""Users of this host, looked up in threads (a directory service may be slow) and cached.

A job's owner must be known here under the same name and the same uid: a uid alone may have passed to another user since
the submission, a name alone may be another user on this host.
"""

import asyncio
import os
import pwd
import time
from collections.abc import Callable
from typing import NamedTuple

REMEMBER_S = 300.0


class UnknownUser(Exception):
    """Refusal of a user's jobs on this host; the text is one sentence."""


class Owner(NamedTuple):
    """A user with all data for starting a job."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    shell: str


def look_up(name: str, uid: int, gid: int) -> Owner:
    """Look a user up in the system; blocks. ``gid`` is the job's submission group, kept if the user is in it.

    Raises:
        UnknownUser: unknown here, changed since, or not one this agent may act for.
    """
    own = os.geteuid()
    if own not in (0, uid):
        raise UnknownUser(f"This agent runs without root as user id {own} and starts no jobs of user id {uid}.")
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise UnknownUser(f"User {name} does not exist on this host.") from None
    if entry.pw_uid != uid:
        raise UnknownUser(f"User {name} has user id {entry.pw_uid} on this host, but {uid} where the job came from.")
    groups = tuple(os.getgrouplist(name, entry.pw_gid))
    return Owner(name, uid, gid if gid in groups else entry.pw_gid, groups, entry.pw_dir, entry.pw_shell or "/bin/sh")


class Users:
    """Cache of users."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[tuple[str, int, int], tuple[float, Owner]] = {}

    def cached(self, name: str, uid: int, gid: int) -> Owner | None:
        """Return the user, if looked up lately."""
        found = self._known.get((name, uid, gid))
        return found[1] if found is not None and self._clock() < found[0] else None

    async def find(self, name: str, uid: int, gid: int) -> Owner:
        """Look the user up now in a thread; raises like `look_up`. A failure is not cached."""
        owner = await asyncio.to_thread(look_up, name, uid, gid)
        self._known[(name, uid, gid)] = (self._clock() + REMEMBER_S, owner)
        return owner
