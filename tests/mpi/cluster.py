"""A personal cluster for tests of real jobs: two hosts of two slots, and an ssh that only records its calls."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from lavactl.personal.directory import change_settings
from tests.acceptance.personal import make_cluster

COMMANDS = Path(sys.executable).parent
PATIENCE_S = 120.0
FINISH_S = PATIENCE_S  # no job of these tests takes more than a few seconds on an idle machine
LOOK_AGAIN_S = 0.1


def until(what: str, happened: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Wait for a condition, with a timeout."""
    deadline = time.monotonic() + patience_s
    while not happened():
        assert time.monotonic() < deadline, f"waited {patience_s:.0f} s in vain for {what}"
        time.sleep(LOOK_AGAIN_S)


def is_alive(pid: int) -> bool:
    """True if a process runs (a zombie does not). Hosts of a personal cluster share the machine's process ids."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class PersonalCluster:
    """Up for the length of a ``with``. ``home`` is a directory that jobs can enter and write to."""

    def __init__(self, hosts: int = 2, slots: int = 2) -> None:
        self.hosts = hosts
        self.slots = slots
        self.home = Path(tempfile.mkdtemp(prefix="lava-mpi-"))
        self.home.chmod(0o1777)
        self.directory = self.home / "D"
        self.called = self.home / "ssh-was-called"
        self.environment: dict[str, str] = {}

    def __enter__(self) -> "PersonalCluster":
        traps = self._set_traps()
        self.environment = {**os.environ, "PATH": f"{traps}:{COMMANDS}:{os.environ['PATH']}"}
        try:
            make_cluster(self.directory, self.hosts, self.slots)
            # Tests wait for the CPU time of jobs to be told, and ranks that wait take all that there is.
            change_settings(self.directory, {"LAVA_USAGE_INTERVAL": "0.3", "LAVA_HEARTBEAT": "0.5"})
            self.run("lavactl", "up", "--dir", str(self.directory))
            exports = self.run("lavactl", "env", "--dir", str(self.directory))
            shown = self.run("sh", "-c", f'{exports}\nPATH="{traps}:$PATH" exec env -0')
            self.environment = dict(line.split("=", 1) for line in shown.split("\0") if "=" in line)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self.directory.exists():
            self.run("lavactl", "down", "--purge", "--dir", str(self.directory), check=False)
        shutil.rmtree(self.home, ignore_errors=True)

    def run(self, *argv: str, check: bool = True, environment: dict[str, str] | None = None) -> str:
        """A command's output; it must succeed if ``check``."""
        done = subprocess.run(
            argv,
            env=environment or self.environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert not check or done.returncode == 0, f"{argv} ended with {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def submit(self, name: str, command: str, environment: dict[str, str] | None = None, slots: int = 4) -> str:
        """Submit a job over both hosts; its output goes to NAME.out. The job's id."""
        options = ["-J", name, "-n", str(slots), "-R", f"span[ptile={self.slots}]", "-o", f"{name}.out"]
        answer = self.run("bsub", *options, command, environment=environment)
        found = re.search(r"Job <(\d+)> is submitted", answer)
        assert found is not None, answer
        return found.group(1)

    def script(self, name: str, text: str) -> str:
        """An executable shell script; its path."""
        path = self.home / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    def state(self, job: str) -> str:
        """The state of a job."""
        return self.run("bjobs", "-a", "-noheader", "-o", "stat", job).strip()

    def finish(self, job: str, name: str) -> str:
        """Wait for a job's end; its output."""
        try:
            until(f"job {job} to end", lambda: self.state(job) in ("DONE", "EXIT"), FINISH_S)
        except AssertionError as error:
            shown = [
                self.run(*command, check=False) for command in (("bjobs", "-l", job), ("bhosts",), ("bjobs", "-a"))
            ]
            raise AssertionError("\n".join([str(error), self.output(name), *shown])) from None
        return self.output(name)

    def output(self, name: str) -> str:
        """Output of a job so far."""
        path = self.home / f"{name}.out"
        return path.read_text(errors="replace") if path.exists() else ""

    def pids_shown(self, job: str) -> set[int]:
        """The processes that bjobs -l counts to a job, on all its hosts."""
        listing = self.run("bjobs", "-l", job)
        joined = re.sub(r"\n {21}", "", listing)
        return {int(pid) for part in re.findall(r"PIDs:([\d\s]+)", joined) for pid in part.split()}

    def _set_traps(self) -> Path:
        traps = self.home / "traps"
        traps.mkdir()
        for name in ("ssh", "rsh", "sshd"):
            (traps / name).write_text(f'#!/bin/sh\necho "$0 $*" >>{self.called}\nexit 255\n')
            (traps / name).chmod(0o755)
        return traps
