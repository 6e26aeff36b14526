"""HyperQueue (PyPI) with the same work for comparison: server and one worker of 64 slots, 2,000 `/bin/true` in one
submission, each with an output file of its own on the same file system as ours.

Differences: it has no users, no control groups, no job environment, no report in the output file and no queue that
outlives its server; it is the upper bound of what people use today. Neither side runs a shell. Its Python client polls
for completion once a second, so the end is observed from outside: the time when all output files exist and no task's
process is left. Lives in a virtual environment of its own under .cache, so that lava does not depend on it.
"""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.figures import Figures
from benchmarks.scratch import scratch

VENV = Path(".cache/hyperqueue")
REPEATS = 3
PATIENCE_S = 120.0
LOOK_EVERY_S = 0.01
DRIVER = """
import os, sys, tempfile, time
from pathlib import Path
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
jobs, slots, outputs, repeats = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
os.chdir(tempfile.mkdtemp(dir=outputs))
def submission(name, count):
    os.mkdir(f"{outputs}/{name}")
    made = Job()
    for number in range(count):
        made.program(["/bin/true"], stdout=f"{outputs}/{name}/out.{number}", stderr=None)
    return made
with LocalCluster(server_dir=str(Path("server").absolute())) as cluster:
    cluster.start_worker(WorkerConfig(cores=slots))
    client = cluster.client()
    client.wait_for_jobs([client.submit(submission("first", 1))])
    for number in range(repeats):
        made = submission(f"run{number}", jobs)
        print(f"began={time.time()}", flush=True)
        client.wait_for_jobs([client.submit(made)])
    os._exit(0)
"""


def measure(figures: Figures, jobs: int = 2000, slots: int = 64) -> None:
    """hyperqueue_jobs_per_s: best of three runs."""
    python = VENV / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    installed = subprocess.run([python, "-m", "pip", "install", "-q", "hyperqueue"], check=False, capture_output=True)
    if installed.returncode:
        figures.leave_out("hyperqueue_jobs_per_s", "the package can't be installed here")
        return
    try:
        with scratch() as outputs:
            rates = _rates(python, jobs, slots, outputs)
    except RuntimeError as error:
        figures.leave_out("hyperqueue_jobs_per_s", str(error))
        return
    figures.put("hyperqueue_jobs_per_s", max(rates))
    figures.put("hyperqueue_jobs_per_s_median", sorted(rates)[len(rates) // 2])


def _rates(python: Path, jobs: int, slots: int, outputs: Path) -> list[float]:
    """Jobs per second of each run.

    Raises:
        RuntimeError: a run did not finish.
    """
    argv = [python, "-c", DRIVER, str(jobs), str(slots), str(outputs), str(REPEATS)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as driver:
        assert driver.stdout is not None
        try:
            rates = []
            for number in range(REPEATS):
                began = next((line for line in driver.stdout if line.startswith("began=")), "")
                if not began:
                    raise RuntimeError("it ended before its last run")
                ended = _end(driver.pid, outputs / f"run{number}", jobs)
                rates.append(jobs / (ended - float(began.removeprefix("began="))))
            return rates
        finally:
            driver.kill()


def _end(pid: int, directory: Path, jobs: int) -> float:
    """Time at which the last task ended."""
    give_up = time.monotonic() + PATIENCE_S
    while len(os.listdir(directory)) < jobs or _has_children(pid):
        if time.monotonic() > give_up:
            raise RuntimeError(f"not finished within {PATIENCE_S:.0f} s")
        time.sleep(LOOK_EVERY_S)
    return time.time()


def _has_children(pid: int) -> bool:
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread may end at any time
            if path.read_text().strip():
                return True
    return False


if __name__ == "__main__":
    measure(Figures())
