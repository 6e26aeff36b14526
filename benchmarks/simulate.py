"""Replay rate of the simulator, beside AccaSim (PyPI) in the same run: EASY, the first 10,000 lines of a trace.

Two machines: one-slot hosts, and one host with as many slots. Runs alternate, and the best of each counts, so that
other work on the machine affects both. Both simulators get the same jobs (those that ran, killed at their estimates).
AccaSim runs as it is delivered, with its result files (a replay without a visible schedule is of no use; ours keeps it
in memory), and once more without them, as `accasim_silent`. It lives in a virtual environment of its own under .cache,
so that lava does not depend on it; on today's Python it needs its `collections` names back.

    python -m benchmarks.simulate TRACE [PROCESSORS]
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.figures import Figures
from lavad.simulator.replay import textbook
from lavad.simulator.replay.fast_replay import BriefReplay
from lavad.simulator.replay.swf import Trace, TraceError, read_trace
from lavad.simulator.replay.workload import Machine, of_trace

VENV = Path(".cache/accasim")
PACKAGE = "accasim==1.1.3"
TRACE_VARIABLE = "LAVA_BENCHMARK_TRACE"
LINES = 10_000
ROUNDS = 5
LIMIT_S = 300
DRIVER = """
import collections, collections.abc, json, os, sys
for name in ("Mapping", "MutableMapping", "Sequence", "Iterable", "Callable"):
    setattr(collections, name, getattr(collections.abc, name))
from accasim.base.allocator_class import FirstFit
from accasim.base.scheduler_class import EASYBackfilling
from accasim.base.simulator_class import Simulator
trace, hosts, slots, is_silent = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "silent"
system = {"groups": {"g": {"core": slots}}, "resources": {"g": hosts}, "start_time": 0,
          "equivalence": {"processor": {"core": 1}}}
json.dump(system, open("system.json", "w"))
silent = dict(scheduling_output=False, statistics_output=False, show_statistics=False)
options = {"RESULTS_FOLDER_NAME": "results", **(silent if is_silent else {})}
simulator = Simulator(trace, "system.json", EASYBackfilling(FirstFit()), **options)
simulator.start_simulation()
took_s = simulator.end_simulation_time - simulator.start_simulation_time
print(f"rate={simulator.dispatched_jobs / took_s}", flush=True)
"""


def measure(figures: Figures, path: Path | None = None, processors: int = 128) -> None:
    """sim_jobs_per_s of both simulators on both machines, and the ratio of ours to the peer's."""
    found = path or (Path(os.environ[TRACE_VARIABLE]) if TRACE_VARIABLE in os.environ else None)
    if found is None:
        figures.leave_out("sim_jobs_per_s", f"no trace was named, and {TRACE_VARIABLE} is not set")
        return
    try:
        trace = read_trace(found, processors, LINES)
    except TraceError as error:
        figures.leave_out("sim_jobs_per_s", str(error))
        return
    has_peer = _install(figures)
    for name, machine in (("hosts", Machine(processors, 1)), ("pooled", Machine(1, processors))):
        _compare(figures, name, trace, machine, has_peer)


def _compare(figures: Figures, name: str, trace: Trace, machine: Machine, has_peer: bool) -> None:
    ours: list[float] = []
    peers: dict[str, list[float]] = {"accasim": [], "accasim_silent": []}
    with tempfile.TemporaryDirectory() as directory:
        _write(trace, Path(directory) / "trace.swf")
        for _ in range(ROUNDS):
            for peer, rates in peers.items() if has_peer else ():
                rates += _peer_rates(Path(directory), machine, peer)
            ours.append(_our_rate(trace, machine))
    figures.put(f"sim_jobs_per_s_{name}", max(ours))
    for peer, rates in peers.items() if has_peer else ():
        if rates:
            figures.put(f"{peer}_jobs_per_s_{name}", max(rates))
            figures.put(f"times_{peer}_{name}", max(ours) / max(rates))
        else:
            figures.leave_out(f"{peer}_jobs_per_s_{name}", "it printed no rate")


def _our_rate(trace: Trace, machine: Machine) -> float:
    policy = textbook.policy("easy")
    replay = BriefReplay(of_trace(trace.jobs, policy), machine.facts(), policy)
    began = time.perf_counter()
    ran = replay.run()
    return len(ran) / (time.perf_counter() - began)


def _peer_rates(directory: Path, machine: Machine, peer: str) -> list[float]:
    python = (VENV / "bin/python").absolute()
    arguments = ["trace.swf", str(machine.hosts), str(machine.slots), peer.removeprefix("accasim_")]
    done = subprocess.run(
        [python, "-W", "ignore", "-c", DRIVER, *arguments],
        cwd=directory, check=False, capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    return [float(line.removeprefix("rate=")) for line in done.stdout.splitlines() if line.startswith("rate=")]


def _write(trace: Trace, path: Path) -> None:
    """Write the same jobs in the columns that AccaSim reads, each cut at its estimate."""
    lines = (
        f"{at} {job.submit_s} -1 {min(job.run_s, job.estimate_s)} {job.processors} -1 -1 {job.processors}"
        f" {job.estimate_s} -1 1 {max(job.user, 1)} 1 1 1 1 -1 -1\n"
        for at, job in enumerate(trace.jobs, 1)
    )
    path.write_text("".join(lines))


def _install(figures: Figures) -> bool:
    python = VENV / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    done = subprocess.run([python, "-m", "pip", "install", "-q", PACKAGE], check=False, capture_output=True, text=True)
    if done.returncode:
        figures.leave_out("accasim_jobs_per_s", "the package can't be installed here")
    return done.returncode == 0


if __name__ == "__main__":
    named = [Path(word) for word in sys.argv[1:2]]
    measured = Figures()
    measure(measured, named[0] if named else None, int(sys.argv[2]) if len(sys.argv) > 2 else 128)
    sys.stderr.write(f"kept in {measured.keep()}\n")
