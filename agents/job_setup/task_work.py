"""Working directories of tasks that get a copy of their job's code: one for each task, removed after the job.

A directory stays while its task is restarted in place. Large ones are removed beside the agent's other work.
"""

import os
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
    threading.Thread(target=shutil.rmtree, args=(gone, True), name="remove work directory").start()
