"""Working directories of tasks that get a copy of their job's code: one for each task, removed after the job.

A directory stays while its task is restarted in place. They are removed beside the agent's other work, one by one; the
next agent goes on with what the last one has left.
"""

import os
import queue
import shutil
import threading
from collections.abc import Collection
from pathlib import Path

FOLDER = "taskwork"
GONE = ".gone"

Key = tuple[int, int, int]


def path_of(state: Path, key: Key, role: str, index: int) -> Path:
    """Return the working directory of a task."""
    return _of_attempt(state, key) / f"{role}-{index}"


def make(path: Path, uid: int, gid: int) -> None:
    """Make a working directory, if it is not there, for this user alone.

    Raises:
        OSError: it cannot be made.
    """
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return
    if os.geteuid() == 0:
        os.chown(path, uid, gid)


def remove(state: Path, key: Key) -> None:
    """Remove the directories of an attempt."""
    _remove(_of_attempt(state, key))


def keep_only(state: Path, held: Collection[Key]) -> None:
    """Remove directories of all attempts but these: those that an earlier agent left."""
    kept = {_of_attempt(state, key).name for key in held}
    for path in (state / FOLDER).glob("*-*-*"):
        if path.name not in kept:
            _remove(path)


def _of_attempt(state: Path, key: Key) -> Path:
    return state / FOLDER / "-".join(map(str, key))


def _remove(path: Path) -> None:
    gone = path if path.suffix == GONE else path.with_name(path.name + GONE)
    try:
        path.rename(gone)
    except OSError:  # there is none
        return
    _REMOVER.remove(gone)


class _Remover:
    """Thread that removes directories. A daemon: a file system that hangs does not keep the agent from its end."""

    def __init__(self) -> None:
        self._paths: queue.SimpleQueue[Path] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def remove(self, path: Path) -> None:
        """Remove a directory soon."""
        self._paths.put(path)
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="remove work directories", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            shutil.rmtree(self._paths.get(), ignore_errors=True)


_REMOVER = _Remover()
