"""Commands as users type them: how long one takes, how many a loop of a shell submits, beside Debian's Slurm.

The stubs of both kinds are measured on one personal cluster, in turns with the whole commands and with Slurm's, which
is measured where its daemons run already: ``SLURM_CONF`` names their configuration. Jobs are submitted held. The list
of 10,000 is of jobs apart from each other: Slurm makes a record of each element of an array that is changed.
"""

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks import submitting
from benchmarks.figures import Figures
from benchmarks.personal import BIN, Personal, cluster, submitter
from benchmarks.scratch import scratch
from lavactl.served.stubs import COMPILED, write_stub
from lavactl.wire.connection import Connection

ROUNDS = 40
LOOP = 100
LOOPS = (1, 4)
LISTED, LISTED_WHOLE = 10_000, 100_000  # by a plain list; by bjobs -u all -a -w -W
LISTS = 7
CHANGED = 500  # elements in one scontrol


class Kind:
    """One kind of commands: its words for a submission, a list and a bulk end, and its environment."""

    def __init__(self, name: str, directory: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self.submit = [str(directory / "bsub"), "-H", "-o", "/dev/null", "/bin/true"]
        self.list = [str(directory / "bjobs"), "-u", "all"]
        self.whole = [*self.list, "-a", "-w", "-W"]
        self.array = [*self.submit[:-1], "-J", "t[1-{}]", "/bin/true"]
        self.end = [str(directory / "bkill"), "-u", "all", "0"]
        self.environment = dict(environment)


def kinds(personal: Personal, top: Path) -> list[Kind]:
    """The whole commands, and the stubs."""
    found = [Kind("whole", BIN, personal.environment)]
    for name, compiled in (("python", None), ("c", COMPILED)):
        if compiled is None or compiled.exists():
            directory = top / name
            directory.mkdir(parents=True)
            stub = _stub(top / f"{name}-file", personal, compiled)
            for command in ("bsub", "bjobs", "bkill"):
                (directory / command).symlink_to(stub)
            found.append(Kind(name, directory, personal.environment))
    return found


def _stub(directory: Path, personal: Personal, compiled: Path | None) -> Path:
    directory.mkdir()
    return write_stub(directory, BIN, personal.socket, compiled)


def slurm() -> Kind | None:
    """Slurm's commands, where its daemons run."""
    if not os.environ.get("SLURM_CONF"):
        return None
    found = Kind("slurm", Path("/usr/bin"), os.environ)
    found.submit = ["sbatch", "-H", "-o", "/dev/null", "--wrap", "/bin/true"]
    found.list = ["squeue"]
    found.end = ["scancel", "-u", "root"]
    return found


def timed(argv: list[str], environment: Mapping[str, str]) -> float:
    """Seconds of one command."""
    began = time.perf_counter()
    subprocess.run(argv, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def loops(kind: Kind, number: int) -> float:
    """Submissions a second of some shells, each in a loop."""
    line = f"i=0; while [ $i -lt {LOOP} ]; do {' '.join(kind.submit)} >/dev/null 2>&1; i=$((i+1)); done"
    began = time.perf_counter()
    running = [subprocess.Popen(["/bin/sh", "-c", line], env=kind.environment) for _ in range(number)]
    for process in running:
        process.wait()
    return number * LOOP / (time.perf_counter() - began)


def one_of_each(all_kinds: list[Kind]) -> list[Kind]:
    """A kind of each cluster."""
    ours = [kind for kind in all_kinds if kind.name != "slurm"]
    return [ours[-1], *(kind for kind in all_kinds if kind.name == "slurm")]


def fill(personal: Personal, all_kinds: list[Kind]) -> None:
    """LISTED pending jobs in each cluster."""
    specs = [submitting.spec("/bin/true", hold=True) for _ in range(LISTED)]
    submitting.submit_all(Connection(personal.socket), specs)
    for kind in all_kinds:
        if kind.name == "slurm":
            words = ["sbatch", "--parsable", "-H", "-o", "/dev/null", f"--array=1-{2 * LISTED}", "--wrap", "/bin/true"]
            job = subprocess.run(words, env=kind.environment, check=True, capture_output=True, text=True).stdout.strip()
            for first in range(0, LISTED, CHANGED):
                some = ",".join(str(2 * number + 1) for number in range(first, first + CHANGED))
                change = ["scontrol", "update", f"JobId={job}_[{some}]", "TimeLimit=50"]
                subprocess.run(change, env=kind.environment, check=True, capture_output=True)


def lists(figures: Figures, all_kinds: list[Kind], listing: str, rows: int) -> None:
    """KIND_LISTING_N_ms: one list of so many rows."""
    samples: dict[str, list[float]] = {kind.name: [] for kind in all_kinds}
    turns = random.Random(1)
    for _ in range(LISTS):
        for kind in turns.sample(all_kinds, len(all_kinds)):
            samples[kind.name].append(timed(getattr(kind, listing), kind.environment))
    for name, found in samples.items():
        figures.put_percentiles(f"{name}_{listing}_{rows}_ms", found, 50, 90)


def long_lists(figures: Figures, personal: Personal, all_kinds: list[Kind]) -> None:
    """Lists of 10,000 jobs, their end by one command (KIND_end_10000_ms), and lists of 100,000 elements of an array."""
    ours = [kind for kind in all_kinds if kind.name != "slurm"]
    for at, kind in enumerate(ours):
        fill(personal, all_kinds if not at else ours)
        if not at:
            lists(figures, all_kinds, "list", LISTED)
        figures.put(f"{kind.name}_end_{LISTED}_ms", timed(kind.end, kind.environment) * 1000)
    words = [word.format(LISTED_WHOLE) for word in ours[-1].array]
    subprocess.run(words, env=ours[-1].environment, check=True, stdout=subprocess.DEVNULL)
    lists(figures, ours, "whole", LISTED_WHOLE)


def measure(figures: Figures) -> None:
    """KIND_submit_ms, KIND_list_ms, KIND_loops_N_per_s, and long lists."""
    with submitter(), scratch() as top, cluster(1, 4) as personal:
        all_kinds = [*kinds(personal, top), *([found] if (found := slurm()) is not None else [])]
        turns = random.Random(1)  # in any order: what runs after a whole command finds its processor's caches cold
        if all_kinds[-1].name != "slurm":
            figures.leave_out("slurm", "SLURM_CONF is not set: no daemons of Slurm run here")
        for action in ("submit", "list"):
            samples: dict[str, list[float]] = {kind.name: [] for kind in all_kinds}
            for _ in range(ROUNDS):
                for kind in turns.sample(all_kinds, len(all_kinds)):
                    samples[kind.name].append(timed(getattr(kind, action), kind.environment))
            for name, found in samples.items():
                figures.put_percentiles(f"{name}_{action}_ms", found, 50, 99)
        for number in LOOPS:
            for kind in all_kinds:
                figures.put(f"{kind.name}_loops_{number}_per_s", loops(kind, number))
        for kind in one_of_each(all_kinds):
            subprocess.run(kind.end, env=kind.environment, check=True, capture_output=True)
        long_lists(figures, personal, all_kinds)
        for kind in one_of_each(all_kinds):
            subprocess.run(kind.end, env=kind.environment, check=True, capture_output=True)


def main() -> int:
    """Measure and keep."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    figures = Figures()
    measure(figures)
    sys.stderr.write(f"kept in {figures.keep()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
