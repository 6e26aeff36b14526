"""Walk of a two-host job from bsub to its last row: the product files whose functions run for it, by process.

``python -m benchmarks.walk [--seconds S] [--functions] [--product DIR]`` copies the product, makes a personal cluster
of two hosts from the copy, runs another job to warm it up, then traces S seconds of an idle cluster and S seconds with
the job on it. What ran on the idle cluster, too, is left out. A file counts if a function of it ran for the job;
``asked_only`` are those of which only ``__bool__``, ``__len__`` and the like did: a test if a feature is in use.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.walk import hops

OWN = Path(__file__).resolve().parents[2]
PACKAGES = ("lavactl", "agents", "lavad", "protos")
JOB = ("-n", "4", "-R", "span[ptile=2] rusage[mem=100]", "-q", "night")
QUEUES = "Begin Queue\nQUEUE_NAME = night\nPRIORITY = 30\nEnd Queue\n"
WARM_UP = ("-n", "4", "-R", "span[ptile=2] rusage[mem=90]", "-q", "night")  # another request: nothing of it is cached
IDLE, WITH_JOB = 1, 2
_ASKS = {"__bool__", "__len__", "__contains__", "__iter__", "__getitem__", "__hash__", "__eq__"}


class Called(NamedTuple):
    """First call of a function in a period by one program."""

    at: int
    program: str
    file: str
    function: str
    line: int


@contextmanager
def traced_copy(product: Path) -> Iterator[Path]:
    """Copy of the packages of a checkout whose processes note their calls."""
    with tempfile.TemporaryDirectory(prefix="lava-walk-") as name:
        top = Path(name)
        top.chmod(0o755)
        for package in PACKAGES:
            shutil.copytree(product / package, top / package, ignore=shutil.ignore_patterns("__pycache__"))
            with (top / package / "__init__.py").open("a", encoding="utf-8") as file:
                file.write("\nimport tracer  # noqa\n" if package != "protos" else "")
        shutil.copy(Path(__file__).with_name("tracer.py"), top)
        (top / "notes").mkdir()
        (top / "notes").chmod(0o777)
        (top / "notes" / "period").write_bytes(b"\0")
        yield top


class Walk:
    """A personal cluster of the copied product."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.directory = top / "cluster"
        self.environment = {**os.environ, "PYTHONPATH": str(top), "PYTHONSAFEPATH": "1"}

    def run(self, command: str, *words: str) -> str:
        """Run one of the copy's commands; its output."""
        program = f"from lavactl.main import {command}; {command}()"
        done = subprocess.run(
            [sys.executable, "-c", program, *words],
            env=self.environment,
            cwd=self.top,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{command} {words}: {done.stdout}{done.stderr}")
        return done.stdout

    @contextmanager
    def cluster(self) -> Iterator[None]:
        """The cluster, with the queue of the job."""
        site = self.top / "site"
        site.mkdir()
        (site / "lsb.queues").write_text(QUEUES, encoding="utf-8")
        place = ("--dir", str(self.directory))
        try:
            self.run("lavactl", "up", "--hosts", "2", "--slots", "2", "--conf-from", str(site), *place)
            for line in self.run("lavactl", "env", *place).splitlines():
                name, _, value = line.removeprefix("export ").partition("=")
                if name.startswith(("LAVA_", "LSF_")):
                    self.environment[name] = value.strip("'\"")
            yield
        finally:
            self.run("lavactl", "down", *place, "--purge")

    def submit(self, job: tuple[str, ...]) -> str:
        """Submit a job; its number."""
        said = self.run("bsub", *job, "sleep 1")
        found = re.search(r"Job <(\d+)>", said)
        if found is None:
            raise RuntimeError(said)
        return found[1]

    def wait(self, job: str) -> None:
        """Wait for the end of the job."""
        while self.run("bjobs", "-noheader", "-o", "stat", job).strip() not in ("DONE", "EXIT"):
            time.sleep(0.5)

    def period(self, number: int) -> None:
        """Begin a period of the trace."""
        with (self.top / "notes" / "period").open("r+b") as file:
            file.write(bytes([number]))

    def calls(self) -> dict[int, list[Called]]:
        """Calls of each period, in order."""
        found: dict[int, list[Called]] = {IDLE: [], WITH_JOB: []}
        for notes in self.top.glob("notes/calls-*"):
            for line in notes.read_text(encoding="utf-8").splitlines():
                at, period, program, file, function, first = line.split("\t")
                found[int(period)].append(Called(int(at), _role(program), file, function, int(first)))
        return {period: sorted(calls) for period, calls in found.items()}


def _role(program: str) -> str:
    """Kind of process, from the first word of its command line."""
    if program.startswith("fork of"):
        return "shepherd" if program.endswith("launcher.py") else "child of the master"
    if program.endswith("launcher.py"):
        return "launcher"
    names = {"lavad": "master", "lavad-writer": "writer", "lavad-reader": "reader", "agents": "agent"}
    return names.get(program, "command" if program.startswith("from lavactl") else program)


def main() -> int:
    """Trace the walk and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="length of the idle period and of the job's")
    parser.add_argument("--functions", action="store_true", help="list the functions, too")
    parser.add_argument("--product", type=Path, default=OWN, help="another checkout than this one")
    chosen = parser.parse_args()
    with traced_copy(chosen.product) as top:
        walk = Walk(top)
        with walk.cluster():
            walk.wait(walk.submit(WARM_UP))
            time.sleep(2.0)
            walk.period(IDLE)
            time.sleep(chosen.seconds)
            walk.period(WITH_JOB)
            walk.submit(JOB)
            time.sleep(chosen.seconds)
            walk.period(0)
        _print(chosen.product, walk.calls(), chosen.functions)
    return 0


def _print(product: Path, calls: dict[int, list[Called]], with_functions: bool) -> None:
    idle = {(one.program, one.file, one.line) for one in calls[IDLE]}
    ran = [one for one in calls[WITH_JOB] if (one.program, one.file, one.line) not in idle]
    sources = [str(path.relative_to(product)) for name in PACKAGES for path in (product / name).rglob("*.py")]
    forwarding = hops.forwarding(product, [file for file in sources if "_pb2" not in file])
    found = {(hop.file, hop.line): hop for hop in forwarding}
    shown: set[str] = set()
    for program in dict.fromkeys(one.program for one in ran):
        own = [one for one in ran if one.program == program]
        files = list(dict.fromkeys(one.file for one in own))
        print(f"process={program} files={len(files)} new={len(set(files) - shown)}")
        shown.update(files)
        for file in files:
            names = list(dict.fromkeys(one.function for one in own if one.file == file))
            print(f"  {file}" + (": " + " ".join(names) if with_functions else ""))
    passed = dict.fromkeys(found[one.file, one.line] for one in ran if (one.file, one.line) in found)
    for hop in passed:
        print(f"hop={hop.file}:{hop.name} target={hop.target}")
    also_idle = {one.file for one in calls[WITH_JOB]} - shown
    print(f"also_idle={' '.join(sorted(also_idle))}")
    functions = {(one.file, one.line) for one in ran}
    asked_only = shown - {one.file for one in ran if one.function.rpartition(".")[2] not in _ASKS}
    print(f"asked_only={' '.join(sorted(asked_only))}")
    print(f"walk_files={len(shown)} walk_asked_only={len(asked_only)}")
    print(f"walk_functions={len(functions)} walk_hops={len(passed)}")


if __name__ == "__main__":
    sys.exit(main())
