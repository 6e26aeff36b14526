"""The steps of a job that run now: their numbers, and the slots that they hold on each host.

A directory of /tmp for each attempt, with a file for each step that its srun holds locked: what a dead srun leaves is
known by its lock and dropped. Steps that are started on different hosts of a job do not know each other. The names are
those that the warning action of --signal looks for: pid.STEP.PID.
"""

import contextlib
import fcntl
import json
import os
import shutil
import stat
import time

from lavactl.errors import CommandError

PLACE = "/tmp"
KEPT_S = 7 * 86400.0  # a directory in which no step began or runs for this long is removed by the next job with steps


class Ledger:
    """Steps of the surrounding job.

    Raises:
        CommandError: its directory cannot be made, or belongs to another user.
    """

    def __init__(self, key: str, uid: int, place: str = PLACE) -> None:
        self.path = f"{place}/lava-steps-{uid}-{key}"
        try:
            os.mkdir(self.path, 0o700)
            _sweep(place, uid, self.path)
        except FileExistsError:
            pass
        except OSError as error:
            raise CommandError(f"the directory of steps {self.path} cannot be made: {error.strerror}.") from None
        found = os.lstat(self.path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid:
            raise CommandError(f"{self.path} belongs to another user: remove it.")
        with contextlib.suppress(OSError):
            os.utime(self.path)  # in use: another job's step does not take it for an old one
        self._own = -1
        self._name = ""

    def enter(self, wanted: dict[str, int], slots: dict[str, int], *, overlaps: bool = False) -> int | None:
        """Number of this step, which holds its slots until `leave`; None while others hold them."""
        with open(f"{self.path}/next", "a+", encoding="ascii") as counter:
            fcntl.flock(counter, fcntl.LOCK_EX)
            held = {} if overlaps else self._held()
            if any(held.get(host, 0) + count > slots.get(host, 0) for host, count in wanted.items()):
                return None
            counter.seek(0)
            text = counter.read()
            number = int(text) if text.isdigit() else 0
            counter.truncate(0)
            counter.write(str(number + 1))
            counter.flush()
            self._register(number, {} if overlaps else wanted)
            return number

    def _register(self, number: int, wanted: dict[str, int]) -> None:
        self._name = f"{self.path}/pid.{number}.{os.getpid()}"
        self._own = os.open(self._name, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._own, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(self._own, json.dumps(wanted).encode())

    def _held(self) -> dict[str, int]:
        """Slots held on each host by steps that run."""
        held: dict[str, int] = {}
        for entry in os.scandir(self.path):
            if not entry.name.startswith("pid."):
                continue
            for host, count in _read(entry.path).items():
                held[host] = held.get(host, 0) + count
        return held

    def leave(self) -> None:
        """Give the slots back."""
        if self._own >= 0:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._name)
            os.close(self._own)
            self._own = -1


def _read(path: str) -> dict[str, int]:
    """Slots of a step; none, and no file any more, of one whose srun is dead."""
    try:
        with open(path, "r+", encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return dict(json.loads(file.read() or "{}"))
            os.unlink(path)
    except (OSError, ValueError):
        return {}
    return {}


def _sweep(place: str, uid: int, own: str) -> None:
    """Remove directories of this user's jobs that had no step for long."""
    for entry in os.scandir(place):
        if entry.name.startswith(f"lava-steps-{uid}-") and entry.path != own:
            try:
                found = entry.stat(follow_symlinks=False)
                is_old = found.st_uid == uid and time.time() - found.st_mtime > KEPT_S
                if is_old and not _has_step(entry.path):
                    shutil.rmtree(entry.path)
            except OSError:
                continue  # another step of the user has removed it


def _has_step(path: str) -> bool:
    """True if a step of this directory runs: its srun holds its file locked."""
    for name in os.listdir(path):
        if name.startswith("pid."):
            with open(f"{path}/{name}", "rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return True
    return False
