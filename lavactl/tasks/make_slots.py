"""Slots of a job as files of a directory: each recipe line of lsmake locks one while it runs on the slot's host.

Invariant: a lock ends with the process that holds it, however that ends.
"""

import fcntl
import os
import tempfile
import time

PAUSE_S = 0.02


def make_directory(slots: list[str]) -> str:
    """Make a directory with an empty file for each slot: ``3.n001``."""
    directory = tempfile.mkdtemp(prefix="lsmake-")
    for number, host in enumerate(slots):
        with open(f"{directory}/{number}.{host}", "wb"):
            pass
    return directory


def remove_directory(directory: str) -> None:
    """Remove what ``make_directory`` made."""
    for name in os.listdir(directory):
        os.unlink(f"{directory}/{name}")
    os.rmdir(directory)


def lock_slot(directory: str) -> tuple[int, str]:
    """Lock a free slot, and wait for one if there is none: the descriptor of the lock, and the host.

    Raises:
        OSError: the directory is gone.
    """
    names = sorted(os.listdir(directory), key=lambda name: int(name.partition(".")[0]))
    while names:
        for name in names:
            descriptor = os.open(f"{directory}/{name}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                continue
            return descriptor, name.partition(".")[2]
        time.sleep(PAUSE_S)
    raise FileNotFoundError(directory)
