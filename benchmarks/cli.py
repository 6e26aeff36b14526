"""Commands as users type them: how long one takes, how many a loop of a shell submits, beside Debian's Slurm.

The stubs of both kinds are measured on one personal cluster, in turns with the whole commands and with Slurm's, which
is measured where its daemons run already: ``SLURM_CONF`` names their configuration. Jobs are submitted held.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.figures import Figures
from benchmarks.personal import BIN, Personal, cluster, submitter
from benchmarks.scratch import scratch
from lavactl.served.stubs import COMPILED, write_stub

ROUNDS = 40
LOOP = 100
LOOPS = (1, 4)


class Kind:
    """One kind of commands: its words for a submission, a list and a bulk end, and its environment."""

    def __init__(self, name: str, directory: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self.submit = [str(directory / "bsub"), "-H", "-o", "/dev/null", "/bin/true"]
        self.list = [str(directory / "bjobs"), "-u", "all"]
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


def measure(figures: Figures) -> None:
    """KIND_submit_ms, KIND_list_20_ms, KIND_loops_N_per_s."""
    with submitter(), scratch() as top, cluster(1, 4) as personal:
        all_kinds = [*kinds(personal, top), *([found] if (found := slurm()) is not None else [])]
        if all_kinds[-1].name != "slurm":
            figures.leave_out("slurm", "SLURM_CONF is not set: no daemons of Slurm run here")
        for action in ("submit", "list"):
            samples: dict[str, list[float]] = {kind.name: [] for kind in all_kinds}
            for _ in range(ROUNDS):
                for kind in all_kinds:
                    samples[kind.name].append(timed(getattr(kind, action), kind.environment))
            for name, found in samples.items():
                figures.put_percentiles(f"{name}_{action}_ms", found, 50, 99)
        for number in LOOPS:
            for kind in all_kinds:
                figures.put(f"{kind.name}_loops_{number}_per_s", loops(kind, number))


def main() -> int:
    """Measure and keep."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    figures = Figures()
    measure(figures)
    sys.stderr.write(f"kept in {figures.keep()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
