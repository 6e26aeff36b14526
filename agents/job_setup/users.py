"""Users of this host, looked up in threads (a directory service may be slow) and cached for a moment.

A job's owner must be known here under the same name and the same uid: a uid alone may have passed to another user since
the submission, a name alone may be another user on this host.
"""

import asyncio
import os
import pwd
import sys
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from agents import account_files


class UnknownUser(Exception):
    """Refusal of a user's jobs on this host; the text is one sentence. ``is_queues``: the user of the queue's pre- and
    post-execution commands is the one.
    """

    def __init__(self, sentence: str, is_queues: bool = False) -> None:
        super().__init__(sentence)
        self.is_queues = is_queues


# Run with the agent's rights, it becomes a user and then the program behind. The agent itself must not fork for that:
# a child of gRPC's threads that does more than to execute a program may end in gRPC's own checks.
BECOME = """\
import os, sys
uid, gid, groups = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
os.setgroups([int(one) for one in groups.split(",") if one])
os.setresgid(gid, gid, gid)
os.setresuid(uid, uid, uid)
try:
    os.execv(sys.argv[4], sys.argv[4:])
except OSError as error:
    sys.exit(error.strerror)
"""


def words_of_user(uid: int, gid: int, groups: Iterable[int]) -> tuple[str, ...]:
    """Return the words before a command line that has to run as a user; none for an agent without root."""
    if os.geteuid() != 0:
        return ()
    return (sys.executable, "-I", "-S", "-c", BECOME, str(uid), str(gid), ",".join(map(str, groups)))


class Owner(NamedTuple):
    """A user with all data for starting a job."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    shell: str
    other: "Owner | None" = None  # user of the queue's pre- and post-execution commands, if not this one


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


def look_up_other(name: str) -> Owner:
    """Look up the user of a queue's pre- and post-execution commands; blocks.

    Raises:
        UnknownUser: unknown here, or not one this agent may act for.
    """
    own = os.geteuid()
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        sentence = f"User {name} of the queue's pre- and post-execution commands does not exist on this host."
        raise UnknownUser(sentence, is_queues=True) from None
    if own not in (0, entry.pw_uid):
        sentence = f"This agent runs without root as user id {own} and can't run the queue's commands as {name}."
        raise UnknownUser(sentence, is_queues=True)
    groups = tuple(os.getgrouplist(name, entry.pw_gid))
    return Owner(name, entry.pw_uid, entry.pw_gid, groups, entry.pw_dir, entry.pw_shell or "/bin/sh")


def _look_up_both(name: str, uid: int, gid: int, other: str) -> Owner:
    owner = look_up(name, uid, gid)
    return owner._replace(other=look_up_other(other)) if other else owner


class Users:
    """Cache of users."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[tuple[str, int, int, str], tuple[float, account_files.State, Owner]] = {}

    def cached(self, name: str, uid: int, gid: int, other: str = "") -> Owner | None:
        """Return the user, if looked up lately; ``other`` is the user of the queue's commands, empty for the same."""
        found = self._known.get((name, uid, gid, other))
        if found is None or self._clock() >= found[0] or found[1] != account_files.state():
            return None
        return found[2]

    async def find(self, name: str, uid: int, gid: int, other: str = "") -> Owner:
        """Look the user up now in a thread; raises like `look_up`. A failure is not cached."""
        before = account_files.state()
        owner = await asyncio.to_thread(_look_up_both, name, uid, gid, other)
        self._known[(name, uid, gid, other)] = (self._clock() + account_files.REMEMBER_S, before, owner)
        return owner
