"""Control groups of the tasks of a job of tasks, each below the group of its slot.

A process may leave its parents, its session and its environment; without root's help it cannot leave its group. These
groups have no controllers: limits and figures are those of the slot's group, which is above them. A task's processes
enter its group by themselves before they become their programs; the shepherd never does.
"""

import contextlib
import os
import sys
from collections.abc import Iterator

from agents.shepherd.confinement.hierarchy import groups_below, members_of


class TaskGroups:
    """Groups of tasks by their serial numbers. ``above`` is the path of the slot's group, which counts processes.

    ``entrances`` are the files of the groups that every new process of the shepherd enters.
    """

    def __init__(self, above: str, entrances: list[int]) -> None:
        self._above = above
        self._entrances = entrances
        self._known: set[int] = set()
        for path in groups_below(above):  # of an earlier shepherd of this slot: empty by now
            with contextlib.suppress(OSError):
                os.rmdir(path)

    @contextlib.contextmanager
    def entered(self, serial: int) -> Iterator[None]:
        """Let processes that are started within be born in the group of a task, which is made.

        Where that fails they are born in the slot's group, and the task has none.
        """
        entrance = self._make(serial)
        if entrance < 0:
            yield
            return
        self._entrances.append(entrance)
        try:
            yield
        except BaseException:
            self.drop(serial)
            raise
        finally:
            self._entrances.remove(entrance)
            os.close(entrance)

    def _make(self, serial: int) -> int:
        """Make the group of a task; return the file by which it is entered, or -1."""
        if serial in self._known:  # of the attempt before: empty by now
            self.drop(serial)
        path = self._path(serial)
        try:
            os.mkdir(path)
            self._known.add(serial)
            return os.open(f"{path}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
        except OSError as error:
            print(f"event=no_group_of_task path={path} error={error.strerror!r}", file=sys.stderr)
            self.drop(serial)
            return -1

    def of(self, serial: int) -> list[int] | None:
        """Return the processes of a task; None if it has no group of its own."""
        if serial not in self._known:
            return None
        return members_of(self._path(serial))

    def members(self) -> list[int]:
        """Return the processes in all these groups, without the shepherd."""
        return [pid for serial in self._known for pid in members_of(self._path(serial))]

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
