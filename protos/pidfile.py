"""Pid file of a daemon, locked as long as the daemon runs: a second daemon leaves it unchanged."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

WAIT_S = 5.0
_RETRY_S = 0.05


class PidFileInUse(Exception):
    """Pid file locked by another process; the text is one sentence."""


@contextlib.contextmanager
def pid_file(path: Path | None, wait_s: float = WAIT_S) -> Iterator[None]:
    """Keep our process id in a file, if a path is given. A predecessor that is ending is waited for.

    Raises:
        PidFileInUse: a running process holds it.
        OSError: it cannot be written.
    """
    if path is None:
        yield
        return
    descriptor = _locked(path, time.monotonic() + wait_s)
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        try:
            yield
        finally:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
    finally:
        os.close(descriptor)


def _locked(path: Path, give_up: float) -> int:
    """Descriptor of the file, locked."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if _lock(descriptor) and _is_at(path, descriptor):
                return descriptor
            if time.monotonic() > give_up:
                owner = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
                raise PidFileInUse(f"{path} is in use by the running process {owner}.")
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        time.sleep(_RETRY_S)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    """True if the path still names the open file: a predecessor may have removed it meanwhile."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(descriptor))
