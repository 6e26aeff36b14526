"""A personal cluster for these tests: commands as typed, daemons killed by pid, hosts stopped or disconnected."""

import contextlib
import copy
import json
import os
import pwd
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from lavactl.io import Io
from lavactl.personal import create
from lavactl.personal.directory import make_directory
from lavactl.wire import messages

BIN = Path(sys.executable).parent
# Commands that tests ask again and again until something has happened. They are typed as in a shell after `lavactl
# env`, where an agent's resident process runs them: a fifth of the CPU of a process of their own. What the two ways
# have in common is for test_served_commands; all other commands are processes of their own here.
ASKED_AGAIN = frozenset(("bjobs", "bhosts", "bhist", "bqueues", "bjgroup", "blimits", "busers", "lsload"))


class Cluster:
    """A cluster made by ``lavactl up`` in a directory of the test's own."""

    def __init__(self, directory: Path, commands: Path = BIN) -> None:
        self.directory = directory
        self.environment: dict[str, str] = {}
        self._commands = commands
        self._become: tuple[str, ...] = ()
        self._cwd: Path | None = None
        self._is_served = True

    def as_seen_by(self, user: str) -> "Cluster":
        """The same cluster for another user of this machine."""
        other = copy.copy(self)
        entry = pwd.getpwnam(user)
        other._become = ("runuser", "-u", user, "--")
        other.environment = {**self.environment, "HOME": entry.pw_dir, "USER": user, "LOGNAME": user}
        return other

    def with_environment(self, **variables: str) -> "Cluster":
        """The same cluster with other variables in the environment."""
        other = copy.copy(self)
        other.environment = {**self.environment, **variables}
        return other

    def at(self, directory: Path) -> "Cluster":
        """The same cluster, with that current directory."""
        other = copy.copy(self)
        other._cwd = directory
        return other

    def with_whole_commands(self) -> "Cluster":
        """The same cluster, each of whose commands is a process of its own."""
        other = copy.copy(self)
        other._is_served = False
        return other

    def up(self, *options: str) -> None:
        """Create the cluster, or start its missing parts."""
        self._lavactl("up", *options)
        if not self.environment:  # it stays the same as long as there is the cluster
            self.environment = _exports(self._lavactl("env"))

    def complete(self) -> None:
        """Start missing parts; a cluster that has all of them, as between most tests, is only looked at."""
        if not self._is_complete():
            self.up()

    def _is_complete(self) -> bool:
        """True if all daemons run and the master hears all hosts."""
        record = json.loads((self.directory / "personal.json").read_text())
        daemons = ["lavad", *(f"agent-{host}" for host in (record["login"], *record["hosts"]))]
        if not self.environment or not all(map(self.is_running, daemons)):
            return False
        rows = [line.split() for line in self.run("bhosts", "-noheader", "-o", "host_name status").stdout.splitlines()]
        heard = {name for name, status in rows if status not in ("unavail", "unreach")}
        return heard >= set(record["hosts"])

    def up_to_die(self, point: str) -> None:
        """Start missing parts with this fail point (``NAME:COUNT``); the death may be so early that ``up`` fails."""
        self._call("up", env={**os.environ, "LAVA_FAIL": point})

    def down(self) -> None:
        """Take everything down and remove it."""
        self._lavactl("down", "--purge")

    def _lavactl(self, command: str, *options: str) -> str:
        done = self._call(command, *options)
        assert done.returncode == 0, f"lavactl {command}: {done.stderr}{done.stdout}"
        return done.stdout

    def _call(self, command: str, *options: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        words = [str(self._commands / "lavactl"), command, "--dir", str(self.directory), *options]
        return subprocess.run(words, env=env, capture_output=True, text=True, timeout=120, check=False)

    def configure(self, **settings: str) -> None:
        """Set these in lava.conf; they count from the master's next start."""
        conf = self.directory / "lava.conf"
        kept = [line for line in conf.read_text().splitlines() if line.partition("=")[0] not in settings]
        conf.write_text("\n".join([*kept, *(f"{name}={value}" for name, value in settings.items()), ""]))

    def write_lsf_files(self, files: Mapping[str, str]) -> None:
        """Put LSF's configuration files into the cluster's directory, by name; they count from the next reconfig."""
        for name, text in files.items():
            (self.directory / name).write_text(textwrap.dedent(text))

    def reconfigure(self, files: Mapping[str, str] | None = None) -> str:
        """Write these files and run ``badmin reconfig``; its result."""
        self.write_lsf_files(files or {})
        done = self.run("badmin", "reconfig")
        assert done.returncode == 0, f"badmin reconfig: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def run(self, *words: str, stdin: str | None = None, timeout_s: float = 120.0) -> subprocess.CompletedProcess[str]:
        """A command as a user types it."""
        return subprocess.run(
            [*self._become, str(self._program(words[0])), *words[1:]],
            env=self.environment,
            cwd=self._cwd,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def _program(self, name: str) -> Path:
        served = Path(self.environment.get("LSF_BINDIR", ""), name)
        return served if self._is_served and name in ASKED_AGAIN and served.is_file() else self._commands / name

    def says(self, *words: str) -> str:
        """Output of a command that must succeed without a complaint, without the last newline."""
        done = self.run(*words)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout.rstrip("\n")

    def submit(self, *words: str, stdin: str | None = None) -> int:
        """bsub; the job's number."""
        done = self.run("bsub", *words, stdin=stdin)
        found = re.search(r"Job <(\d+)> is submitted", done.stdout)
        assert found, f"bsub {words}: {done.stdout}{done.stderr}"
        return int(found[1])

    def change(self, job: int, **fields: object) -> None:
        """As bmod does, whose times and limits count in minutes: these fields of the submission, to the second."""
        spec = messages.JobSpec(**fields)  # type: ignore[arg-type]
        request = messages.ModifyRequest(refs=[messages.JobRef(job=job)], spec=spec, fields=list(fields))
        entries = [f"{name}={value}".encode() for name, value in self.environment.items()]
        with contextlib.closing(Io(raw_environ=entries).client()) as client:
            (result,) = client.modify(request).results
        assert not result.error, result

    def states(self, job: int) -> dict[int, tuple[str, int]]:
        """Index -> (state, exit code) of every element, 0 for a plain job."""
        done = self.run("bjobs", "-noheader", "-o", "jobindex stat exit_code", str(job))
        rows = [line.split() for line in done.stdout.splitlines()]
        return {int(row[0]): (row[1], int(row[2]) if row[2].isdigit() else 0) for row in rows}

    def state(self, job: int, index: int = 0) -> str:
        """State of a job or an element; empty when bjobs does not know it."""
        return self.states(job).get(index, ("", 0))[0]

    def becomes(self, job: int, state: str, limit_s: float = 60) -> None:
        """Wait until the job has this state."""
        wait_for(lambda: self.state(job) == state, limit_s, f"job {job} to be {state}")

    def clear(self) -> None:
        """End all jobs of all users; on return all hosts are free."""
        self.run("bkill", "-u", "all", "0")
        self.becomes_idle()

    def becomes_idle(self) -> None:
        """Wait until all jobs of all users have ended and their slots are free: that comes a moment after the end."""
        wait_for(lambda: self._has_no_job() and self._taken() == 0, 60, "all jobs to end")

    def _has_no_job(self) -> bool:
        return "No unfinished job found" in self.run("bjobs", "-u", "all", "-noheader").stderr

    def _taken(self) -> int:
        """Slots in use on all hosts; -1 while the master does not answer."""
        done = self.run("bhosts", "-noheader", "-o", "njobs")
        return sum(int(word) for word in done.stdout.split() if word.isdigit()) if done.returncode == 0 else -1

    def counts(self, job: int) -> dict[str, int]:
        """The columns of bjobs -A."""
        lines = self.run("bjobs", "-A", str(job)).stdout.splitlines()
        header, row = lines[0].split(), lines[1].split()
        return {name: int(value) for name, value in zip(header[3:], row[-len(header[3:]) :], strict=True)}

    def pid(self, daemon: str) -> int:
        """Process id of ``lavad`` or ``agent-HOST``."""
        return int((self.directory / f"{daemon}.pid").read_text())

    def is_running(self, daemon: str) -> bool:
        """True if the process of its pid file lives."""
        try:
            stat = Path(f"/proc/{self.pid(daemon)}/stat").read_text()
        except (OSError, ValueError):
            return False
        return stat.rpartition(")")[2].split()[0] not in "ZX"

    def log(self, daemon: str) -> str:
        """Log of a daemon so far."""
        path = self.directory / "log" / f"{daemon}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def kill(self, daemon: str, number: int = signal.SIGKILL) -> None:
        """Signal a daemon; one that is gone already is fine. One that is killed is gone on return."""
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            os.kill(self.pid(daemon), number)
            if number == signal.SIGKILL:  # until it has died `up` might take it for running
                wait_for(lambda: not self.is_running(daemon), 60, f"{daemon} to die", 0.01)

    def end(self, daemon: str, number: int = signal.SIGTERM) -> None:
        """End a daemon by a signal, and wait until its process and its children are gone."""
        pid = self.pid(daemon)
        there = [f"/proc/{pid}"]
        with contextlib.suppress(OSError):
            there += [f"/proc/{one}" for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        self.kill(daemon, number)
        wait_for(lambda: all(map(_is_gone, there)), 60, f"{daemon} to end")

    def hosts(self) -> list[str]:
        """Hosts that run jobs."""
        done = self.run("bhosts", "-noheader", "-o", "host_name")
        return done.stdout.split()

    def history(self, job: int) -> str:
        """bhist -l."""
        return self.run("bhist", "-l", str(job)).stdout


def _exports(text: str) -> dict[str, str]:
    """Environment of a shell that evaluated the output of ``lavactl env``."""
    command = f"{text}\nenv -0"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True)
    return dict(entry.split("=", 1) for entry in done.stdout.split("\0") if "=" in entry)


@contextlib.contextmanager
def a_cluster(
    directory: Path,
    hosts: int,
    slots: int,
    *options: str,
    commands: Path = BIN,
    lsf_files: Mapping[str, str] | None = None,
    **settings: str,
) -> Iterator[Cluster]:
    """A running cluster with some settings, taken down in any case.

    ``lsf_files`` are LSF's configuration files by name, present from its start: ``{"lsb.queues": "Begin Queue ..."}``;
    change them with ``Cluster.reconfigure``.
    """
    cluster = Cluster(directory, commands)
    try:
        if lsf_files:
            directory.mkdir(parents=True, exist_ok=True)
            cluster.write_lsf_files(lsf_files)
        if settings:
            make_cluster(directory, hosts, slots, *options)
            cluster.configure(**settings)
            cluster.up()
            if hosts > 1:  # the next master has them in the order of their names, whichever joined first
                cluster.end("lavad")
                cluster.up()
        else:
            cluster.up("--hosts", str(hosts), "--slots", str(slots), *options)
        yield cluster
    finally:
        cluster.down()


def make_cluster(directory: Path, hosts: int, slots: int, *options: str) -> None:
    """Make a cluster as ``lavactl up`` does, and start none of it: its settings can be changed before."""
    given = dict(zip(options[::2], options[1::2], strict=True))
    gpus, database = int(given.pop("--simulate-gpus", 0)), given.pop("--db", None)
    assert not given, given
    make_directory(directory, 0o755)
    create.make(directory, create.Wishes(hosts, slots, gpus, database), pwd.getpwuid(os.geteuid()).pw_name)


def _is_gone(process: str) -> bool:
    try:
        return Path(process, "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def wait_for(condition: Callable[[], object], limit_s: float, what: str, pause_s: float = 0.0) -> None:
    """Wait until the condition holds; the test fails after the limit.

    Most conditions are commands. Without a pause given they are asked ten times a second at first, and more seldom, as
    every test beside this one needs the processors, the longer it takes.
    """
    pause, longest = (pause_s, pause_s) if pause_s else (0.1, 0.3)
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"waited {limit_s} s for {what}"
        time.sleep(pause)
        pause = min(1.1 * pause, longest)


def stands_still(path: Path) -> bool:
    """True if this file does not grow for half a second."""
    before = path.stat().st_size
    time.sleep(0.5)
    return path.stat().st_size == before
