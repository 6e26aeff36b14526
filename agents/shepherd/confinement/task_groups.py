"""Control groups of the tasks of a job of tasks, each below the group of its slot.

A process may leave its parents, its session and its environment; without root's help it cannot leave its group. These
groups have no controllers: limits and figures are those of the slot's group, which is above them. The shepherd is in a
task's group for the moment in which the task's first process is born, and never at another time. The first of several
moves takes some milliseconds, those soon after it microseconds.
"""

import contextlib
import os
import sys
from collections.abc import Iterator

from agents.shepherd.confinement.hierarchy import groups_below, members_of, write


class TaskGroups:
    """Groups of tasks by their serial numbers. ``above`` is the path of the slot's group, which counts processes."""

    def __init__(self, above: str) -> None:
        self._above = above
        self._known: set[int] = set()
        for path in groups_below(above):  # of an earlier shepherd of this slot: empty by now
            with contextlib.suppress(OSError):
                os.rmdir(path)

    @contextlib.contextmanager
    def entered(self, serial: int) -> Iterator[None]:
        """Let processes that are started within be born in the group of a task, which is made.

        Where that fails they are born in the slot's group, and the task has none.
        """
        is_in = self._enter(serial)
        try:
            yield
        except BaseException:
            if is_in:
                self._return()
                is_in = False
                self.drop(serial)
            raise
        finally:
            if is_in:
                self._return()

    def _enter(self, serial: int) -> bool:
        if serial in self._known:  # of the attempt before: empty by now
            self.drop(serial)
        path = self._path(serial)
        try:
            os.mkdir(path)
            self._known.add(serial)
            write(f"{path}/cgroup.procs", str(os.getpid()))
        except OSError as error:
            print(f"event=no_group_of_task path={path} error={error.strerror!r}", file=sys.stderr)
            self.drop(serial)
            return False
        return True

    def _return(self) -> None:
        """Move back to the slot's group. Once the task runs that is no failure of its start."""
        try:
            write(f"{self._above}/cgroup.procs", str(os.getpid()))
        except OSError as error:
            print(f"event=group_not_left path={self._above} error={error.strerror!r}", file=sys.stderr)

    def of(self, serial: int) -> list[int] | None:
        """Return the processes of a task; None if it has no group of its own."""
        if serial not in self._known:
            return None
        own = os.getpid()
        return [pid for pid in members_of(self._path(serial)) if pid != own]

    def members(self) -> list[int]:
        """Return the processes in all these groups, without the shepherd."""
        own = os.getpid()
        return [pid for serial in self._known for pid in members_of(self._path(serial)) if pid != own]

    def drop(self, serial: int) -> None:
        """Remove the group of a task that is over; one with a process that cannot be killed stays, and is known."""
        with contextlib.suppress(OSError):
            os.rmdir(self._path(serial))
            self._known.discard(serial)

    def sweep(self) -> None:
        """Remove groups that have become empty since."""
        for serial in list(self._known):
            self.drop(serial)

    def _path(self, serial: int) -> str:
        return f"{self._above}/{serial}"
