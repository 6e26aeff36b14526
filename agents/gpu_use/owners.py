"""Owners of processes on GPUs: the attempt of this agent that a process belongs to, or its user and command if none."""

import contextlib
import os
import pwd
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from protos.common_pb2 import GpuProcess

Key = tuple[int, int, int]
KEY = b"LAVA_JOB_KEY="
SOCKET = b"LAVA_SOCKET="
COMMAND_MAX = 64


class Owners:
    """Finder of owners, in one reading. ``members`` are the processes of each attempt, by its control group.

    A process that is in none of them is known by the variables that this agent gives to all processes of its jobs.
    """

    def __init__(self, socket: str, members: Mapping[Key, Iterable[int]]) -> None:
        self._socket = SOCKET + os.fsencode(socket)
        self._known: dict[int, Key | None] = {pid: key for key, pids in members.items() for pid in pids}

    def of(self, pid: int) -> Key | None:
        """Return the attempt that the process belongs to; None if it is of no job of this agent."""
        if pid not in self._known:
            self._known[pid] = self._by_environment(pid)
        return self._known[pid]

    def _by_environment(self, pid: int) -> Key | None:
        try:
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:  # gone, or of another user
            return None
        named = next((one for one in variables if one.startswith(KEY)), b"").removeprefix(KEY).split(b".")
        if self._socket not in variables or len(named) != 3 or not all(part.isdigit() for part in named):
            return None
        job, index, attempt = map(int, named)
        return (job, index, attempt)


def exists(pid: int) -> bool:
    """Return True if the kernel knows the process."""
    return os.path.exists(f"/proc/{pid}")


def described(process: GpuProcess) -> GpuProcess:
    """Return the process with its user and command, as far as they can be read."""
    told = GpuProcess()
    told.CopyFrom(process)
    told.user = _read(lambda: _user(os.stat(f"/proc/{process.pid}").st_uid))
    name = Path(f"/proc/{process.pid}/comm")
    told.command = _read(lambda: name.read_text(encoding="utf-8", errors="replace").strip()[:COMMAND_MAX])
    return told


def _user(uid: int) -> str:
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return str(uid)


def _read(value: Callable[[], str]) -> str:
    try:
        return value()
    except OSError:  # gone meanwhile
        return ""
