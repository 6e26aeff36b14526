"""Bounds of one served command among those of other users: memory that it may hold, processor time that it may take.

A command that would hold too much is its caller's to run, in a process of the caller's own, as long as nothing of it
was shown and nothing was changed for it. One that takes long lets the new commands of other users go first, between
two pieces of its work. Memory of the process as a whole is bounded by the kernel.
"""

import resource
import threading
import time
from collections import Counter

from lavactl.served.caller import CallerNeeded, CommandLost

ROW_MAX = 8192  # characters of the columns of a row, as far as they have a width
REPEATS_MAX = 4  # of one field in a row: its value may be as long as a job's script
HELD_MAX, HELD_BY_ALL = 4 << 20, 32 << 20  # bytes of answers that nothing was shown of yet
SHOWN_TIMES = 8  # so many times as much of a command that cannot be its caller's any more
NEW_S = 0.25  # processor time for which a command is new
PIECE_S = 0.02  # of work between two looks at others
PAUSE_S = 0.2  # for each piece, at most
MEMORY_MAX = 1 << 30  # bytes that the process may write to


def bound_process() -> None:
    """Bound the memory of this process; its threads, which are many, get small stacks."""
    threading.stack_size(2 << 20)
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = MEMORY_MAX if hard == resource.RLIM_INFINITY else min(MEMORY_MAX, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


class Load:
    """Commands under way in this process, whose threads share this."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._new: Counter[int] = Counter()  # commands by user
        self._held = 0

    def began(self, uid: int) -> None:
        """Count a new command of a user."""
        with self._changed:
            self._new[uid] += 1

    def aged(self, uid: int) -> None:
        """Note that a command of the user is not new any more, or over."""
        with self._changed:
            self._new[uid] -= 1
            if not self._new[uid]:
                del self._new[uid]
            self._changed.notify_all()

    def give_way(self, uid: int) -> None:
        """Wait while other users have new commands, but not for long."""
        with self._changed:
            self._changed.wait_for(lambda: not self._new.keys() - {uid}, PAUSE_S)

    def hold(self, size: int) -> int:
        """Count bytes that a command holds, or with a negative number no longer holds; return those of all."""
        with self._changed:
            self._held += size
            return self._held


class Part:
    """Part of the process's means that one command has; ``can_leave``: its caller can still run it."""

    def __init__(self, load: Load, uid: int) -> None:
        self._load, self._uid = load, uid
        self._began = self._looked = time.thread_time()
        self._held = 0
        self._is_new = True
        self.can_leave = True
        load.began(uid)

    def step(self) -> None:
        """Let new commands of other users go first, if this one is none any more."""
        now = time.thread_time()
        if now - self._looked < PIECE_S:
            return
        self._looked = now
        if now - self._began >= NEW_S:
            self._age()
            self._load.give_way(self._uid)

    def hold(self, size: int) -> None:
        """Count an answer that has come.

        Raises:
            CallerNeeded: too much is held, and the caller can run the command.
            CommandLost: far too much is held, and the caller cannot run it.
        """
        self._held += size
        of_all = self._load.hold(size)
        if self.can_leave and (self._held > HELD_MAX or of_all > HELD_BY_ALL):
            raise CallerNeeded
        if self._held > SHOWN_TIMES * HELD_MAX:
            raise CommandLost
        self.step()

    def let_go(self) -> None:
        """Note that output was shown: it was made of the answers so far."""
        self._load.hold(-self._held)
        self._held = 0
        self.can_leave = False

    def give_up(self) -> None:
        """End a command for which there is no memory."""
        raise CallerNeeded if self.can_leave else CommandLost

    def close(self) -> None:
        """End it."""
        self._load.hold(-self._held)
        self._age()

    def _age(self) -> None:
        if self._is_new:
            self._is_new = False
            self._load.aged(self._uid)


def check_row(names: list[str], width: int) -> None:
    """Leave a command with very long rows to its caller.

    Raises:
        CallerNeeded: its columns are too wide together, or one field is named too often.
    """
    most = max(Counter(names).values(), default=0)
    if width > ROW_MAX or most > REPEATS_MAX:
        raise CallerNeeded
