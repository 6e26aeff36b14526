"""Files of one attempt on one host, as its tasks are told of them: replaced one by one, never read half or empty.

The directory has `tree` with the files at fixed paths (the shepherd makes them appear there), `bin` with programs, and
files that variables name. Files of an earlier table that the new one lacks are removed last.
"""

import ipaddress
import os
import posixpath
import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from agents.job_setup.environment import write_whole
from agents.job_setup.told.values import TREE, CannotTell, File, Names, Told

HOSTS = "/etc/hosts"
HOST_NAME = re.compile(r"[A-Za-z0-9._~-]+")


class TaskFiles:
    """Directory of the files of one attempt."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._written: dict[str, File] | None = None  # None: not known, after a restart of the agent

    def write(self, told: Told, hosts_file: str = HOSTS) -> bool:
        """Write all files that differ from those written before; return True if some are at fixed paths.

        Raises:
            OSError: a file cannot be written.
            CannotTell: a name of a task can't be in a hosts file.
        """
        wanted = {TREE + HOSTS: File(_read(hosts_file) + lines_of(told.names))} if told.names else {}
        wanted |= told.own  # names come first, so that whatever a list names resolves
        wanted |= {f"{TREE}{path}": file for path, file in told.files.items()}
        (self._directory / TREE).mkdir(parents=True, exist_ok=True)  # looked for where the job may have files
        before = self._found() if self._written is None else self._written
        for path, file in wanted.items():
            if before.get(path) != file:
                self._put(path, file)
        for path in before.keys() - wanted.keys():
            (self._directory / path).unlink(missing_ok=True)
        self._written = wanted
        return any(path.startswith(f"{TREE}/") for path in wanted)

    def remove(self) -> None:
        """Remove everything: nothing of the attempt is left on this host."""
        shutil.rmtree(self._directory, ignore_errors=True)

    def _put(self, path: str, file: File) -> None:
        if posixpath.normpath(path) != path or path.startswith("../"):
            raise ValueError(f"the file {path} is outside the directory of the attempt")
        place = self._directory / path
        for folder in reversed(place.relative_to(self._directory).parents):
            directory = self._directory / folder
            directory.mkdir(parents=True, exist_ok=True)
            directory.chmod(0o755)
        write_whole(str(place), file.content, file.mode)

    def _found(self) -> Mapping[str, File]:
        """Return what an earlier agent has written."""
        paths = [path for path in self._directory.rglob("*") if path.is_file() and path.suffix != ".new"]
        return {
            path.relative_to(self._directory).as_posix(): File(path.read_bytes(), path.stat().st_mode & 0o777)
            for path in paths
        }


def lines_of(names: Names) -> bytes:
    """Return lines of a hosts file; none for a task whose address is not known.

    Raises:
        CannotTell: a name is none that a line can hold; the master refuses such jobs, and older ones may have it.
    """
    bad = next((name for _, known in names for name in known if not HOST_NAME.fullmatch(name)), None)
    if bad is not None:
        raise CannotTell(f"The name {bad[:80]!r} of a task can't be in a hosts file.")
    return "".join(f"{address}\t{' '.join(known)}\n" for address, known in names if _is_ip(address)).encode()


def _is_ip(address: str) -> bool:
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return False
    return True


def _read(path: str) -> bytes:
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        return b""
    return content if content.endswith(b"\n") or not content else content + b"\n"


def files_of_tasks(state: Path) -> Path:
    """Return the directory for the files of all attempts, below the agent's state directory."""
    return state / "taskfiles"


def directory_of(state: Path, key: tuple[int, int, int]) -> Path:
    """Return the directory for an attempt's files."""
    return files_of_tasks(state) / "-".join(map(str, key))


@cache
def can_be_private() -> bool:
    """Return True if this user's shepherds can put files at fixed paths: asks the kernel, in a process of its own."""
    flags = "--mount" if os.geteuid() == 0 else "-Urm"
    try:
        return subprocess.run(("unshare", flags, "true"), capture_output=True, check=False).returncode == 0
    except OSError:  # no such program
        return False
