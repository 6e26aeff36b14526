"""How many short jobs a second, end to end: an array of 2,000 `/bin/true` on one host of 64 slots.

Root's agent, an ordinary submitter, control groups, an output file for each element, the durable store: everything on.
From the submit call to the last exit recorded.
"""

import tempfile
import time
from pathlib import Path

from benchmarks import submitting
from benchmarks.figures import Figures, busy_cpu_s
from benchmarks.personal import Personal, as_user, cluster, submitter
from lavactl.connection import Connection

JOBS = 2000
SLOTS = 64
REPEATS = 3


def _run(personal: Personal, outputs: Path) -> list[float]:
    connection = Connection(personal.socket)
    outputs.mkdir()
    spec = submitting.spec("/bin/true", name="bench", output=f"{outputs}/out.%I", array=submitting.array(JOBS))
    busy, began = busy_cpu_s(), time.perf_counter()
    submitting.wait_for_end(connection, submitting.submit_all(connection, [spec]))
    took = time.perf_counter() - began
    written = sum(1 for _ in outputs.iterdir())
    if written != JOBS:
        raise RuntimeError(f"{written} of {JOBS} output files")
    return [took, busy_cpu_s() - busy]


def measure(figures: Figures) -> None:
    """array_jobs_per_s and cpu_ms_per_job: the best of three runs, each into fresh directories."""
    with submitter() as user, cluster(1, SLOTS) as personal, tempfile.TemporaryDirectory() as top:
        Path(top).chmod(0o777)
        runs = [
            as_user(user, lambda number=number: _run(personal, Path(top) / f"run{number}")) for number in range(REPEATS)
        ]
    took, busy = min(runs)
    figures.put("array_jobs_per_s", JOBS / took)
    figures.put("array_jobs_per_s_median", JOBS / sorted(runs)[len(runs) // 2][0])
    figures.put("cpu_ms_per_job", busy / JOBS * 1000)


if __name__ == "__main__":
    measure(Figures())
