"""Output of task runs: each its own file by the job's patterns, or a kept file of the agent's, bounded while it grows.

Patterns beside %J and %I: %R the role, %T the task's index in it, %N the run. A file whose name has no %T is shared by
the tasks, who append to it.
"""

import glob
import os
import time

from agents.shepherd.clock import NEVER
from agents.shepherd.messages import JobSetup, Key, RunOrder
from agents.shepherd.process import start
from agents.shepherd.process.descriptors import aside
from agents.shepherd.spool import LOOK_MAX_S, LOOK_S, cut, give_back

Run = tuple[int, int, int]  # role, index, run


def expand_run(template: str, role_name: str, run: Run) -> str:
    """Expand %R, %T and %N in a path."""
    if "%" not in template:
        return template
    return template.replace("%T", str(run[1])).replace("%N", str(run[2])).replace("%R", role_name)


def is_shared(template: str) -> bool:
    """Return True if all tasks of the job write to the same file."""
    return bool(template) and "%T" not in template


def setup_of_run(setup: JobSetup, key: Key, order: RunOrder) -> JobSetup:
    """Return the job's setup with the directory and the files of one run.

    A file of the task's own is emptied, if that is wanted, by its first run, or by each if each has its own; a shared
    one is emptied before all tasks start.
    """
    run = (order.role, order.index, order.run)

    def absolute(template: str) -> str:
        """Expand a path that is relative to the job's directory, whatever the task's is."""
        return start.place(setup, expand_run(template, order.role_name, run), key)

    def empties(template: str) -> bool:
        return not is_shared(template) and (order.run == 1 or "%N" in template)

    return setup._replace(
        cwd=order.cwd or setup.cwd,
        input=os.path.join(start.expand(setup.cwd, key), expand_run(setup.input, order.role_name, run))
        if setup.input
        else "",
        output=absolute(setup.output),
        error=absolute(setup.error),
        output_overwrite=setup.output_overwrite and empties(setup.output),
        error_overwrite=setup.error_overwrite and empties(setup.error),
    )


def setups_to_empty(setup: JobSetup) -> list[JobSetup]:
    """Return setups by whose opening the shared files that are to be overwritten are emptied."""
    output = setup.output if setup.output_overwrite and is_shared(setup.output) else ""
    error = setup.error if setup.error_overwrite and is_shared(setup.error) else ""
    pairs = {(expand_run(output, name, (0, 0, 1)), expand_run(error, name, (0, 0, 1))) for name in setup.role_names}
    return [setup._replace(input="", output=output, error=error) for output, error in pairs if output or error]


def kept_run_path(directory: str, key: Key, run: Run) -> str:
    """Return the path of a run's kept output."""
    return f"{directory}/{'.'.join(map(str, (*key, *run)))}"


def kept_path_of_run(directory: str, key: Key, run: Run) -> str:
    """Return the path of a run's kept output, if need be of another attempt of the job here; it may not exist."""
    path = kept_run_path(directory, key, run)
    if os.path.exists(path):
        return path
    others = glob.glob(f"{glob.escape(directory)}/{key[0]}.{key[1]}.*.{'.'.join(map(str, run))}")
    return max(others, key=os.path.getmtime, default=path)


class KeptOutput:
    """Kept output of one run. Beyond the limit the space of its middle is freed, repeatedly while it grows."""

    def __init__(self, path: str, setup: JobSetup) -> None:
        """Make the file, owned by the job's user.

        Raises:
            OSError: it cannot be made.
        """
        self._path = path
        self._limit = setup.kept_output_mib << 20
        self._size, self._pause_s = 0, LOOK_S
        self.next_at = time.monotonic() + LOOK_S
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self.descriptor = aside(os.open(path, flags, 0o600))
        if os.geteuid() == 0:
            os.fchown(self.descriptor, setup.uid, setup.gid)

    def bound(self, now: float) -> None:
        """Check the size of the file when that is due, soon again if it grows."""
        if now < self.next_at:
            return
        size = os.fstat(self.descriptor).st_size
        self._pause_s = LOOK_S if size > self._size else min(2 * self._pause_s, LOOK_MAX_S)
        self._size, self.next_at = size, now + self._pause_s
        half = self._limit // 2
        if size > 2 * self._limit:
            give_back(self.descriptor, half, size - 2 * half)

    def close(self) -> None:
        """Bring the file of an ended run to its bound.

        Raises:
            OSError: that fails.
        """
        self.next_at = NEVER
        try:
            size = os.fstat(self.descriptor).st_size
            os.utime(self.descriptor)
            if size > self._limit:
                cut(self.descriptor, self._path, self._limit // 2, size)
        finally:
            os.close(self.descriptor)
