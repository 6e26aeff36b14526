"""Throughput of short jobs end to end: an array of 2,000 `/bin/true` on one host of 64 slots.

Root's agent, an ordinary submitter, control groups, an output file for each element, the durable store: everything on.
Measured from the submit call to the last recorded exit. CPU per job is the whole machine's, with the share of lava's
daemons by process; the rest is the job itself, the kernel, and other processes.
"""

import time
from collections import Counter
from pathlib import Path

from benchmarks import submitting
from benchmarks.figures import Figures, busy_cpu_s
from benchmarks.personal import Personal, as_user, cluster, submitter
from benchmarks.scratch import scratch
from lavactl.wire.connection import Connection

JOBS = 2000
SLOTS = 64
REPEATS = 3
PARTS = ("master", "writer", "agent", "shepherds")


def _run(personal: Personal, outputs: Path) -> list[float]:
    """Seconds taken, and seconds of CPU: of the machine, and of each part of the cluster."""
    connection = Connection(personal.socket)
    outputs.mkdir()
    spec = submitting.spec("/bin/true", name="bench", output=f"{outputs}/out.%I", array=submitting.array(JOBS))
    busy, parts, began = busy_cpu_s(), _cpu_by_part(personal), time.perf_counter()
    submitting.wait_for_end(connection, submitting.submit_all(connection, [spec]))
    took = time.perf_counter() - began
    busy, after = busy_cpu_s() - busy, _cpu_by_part(personal)
    written = sum(1 for _ in outputs.iterdir())
    if written != JOBS:
        raise RuntimeError(f"{written} of {JOBS} output files")
    return [took, busy, *(after[part] - parts[part] for part in PARTS)]


def _cpu_by_part(personal: Personal) -> Counter[str]:
    """CPU seconds of the cluster's daemons so far. New shepherds count from their start."""
    used: Counter[str] = Counter()
    for directory in Path("/proc").iterdir():
        try:
            argv = (directory / "cmdline").read_bytes().decode().split("\0")
            part = _part(argv, (directory / "comm").read_text().strip(), str(personal.directory))
            if directory.name.isdigit() and part:
                used[part] += _scheduled_s(directory)
        except OSError:  # ended, or no process
            continue
    return used


def _part(argv: list[str], name: str, directory: str) -> str:
    """Part of this cluster that a process belongs to; the master's children have its command line."""
    if not any(word.startswith(directory) for word in argv):
        return ""
    if name.startswith("lavad-"):
        return "writer" if name == "lavad-writer" else ""
    if "lavad" in argv:
        return "master"
    if "agents" in argv:
        return "agent"
    return "shepherds" if any(word.endswith("/launcher.py") for word in argv) else ""


def _scheduled_s(process: Path) -> float:
    """CPU time of a process in nanosecond steps: the tick-based counters miss short work."""
    tasks = (process / "task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def measure(figures: Figures) -> None:
    """array_jobs_per_s and cpu_ms_per_job: the best of three runs, each into a fresh directory."""
    with submitter() as user, scratch() as top, cluster(1, SLOTS) as personal:
        runs = [as_user(user, lambda number=number: _run(personal, top / f"run{number}")) for number in range(REPEATS)]
    took, busy, *parts = min(runs)
    figures.put("array_jobs_per_s", JOBS / took)
    figures.put("array_jobs_per_s_median", JOBS / sorted(runs)[len(runs) // 2][0])
    figures.put("cpu_ms_per_job", busy / JOBS * 1000)
    for part, used in zip(PARTS, parts, strict=True):
        figures.put(f"cpu_ms_per_job_{part}", used / JOBS * 1000)


if __name__ == "__main__":
    measure(Figures())
