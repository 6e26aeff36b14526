"""HyperQueue (PyPI) with the same work beside us: server and one worker of 64 slots, 2,000 `/bin/true` in one
submission.

It has no users, limits or durable queue here; it is the upper bound of what people use today. Lives in a virtual
environment of its own under .cache, so that lava does not depend on it.
"""

import subprocess
import sys
from pathlib import Path

from benchmarks.figures import Figures

VENV = Path(".cache/hyperqueue")
DRIVER = """
import os, sys, tempfile, time
from pathlib import Path
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
jobs, slots = int(sys.argv[1]), int(sys.argv[2])
os.chdir(tempfile.mkdtemp())
def submission(count):
    made = Job()
    for _ in range(count):
        made.program(["/bin/true"], stdout=None, stderr=None)
    return made
with LocalCluster(server_dir=str(Path("server").absolute())) as cluster:
    cluster.start_worker(WorkerConfig(cores=slots))
    client = cluster.client()
    client.wait_for_jobs([client.submit(submission(1))])
    for _ in range(3):
        made = submission(jobs)
        began = time.perf_counter()
        client.wait_for_jobs([client.submit(made)])
        print(f"rate={jobs / (time.perf_counter() - began)}", flush=True)
    os._exit(0)
"""


def measure(figures: Figures, jobs: int = 2000, slots: int = 64) -> None:
    """hyperqueue_jobs_per_s: its best of three runs."""
    python = VENV / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    installed = subprocess.run([python, "-m", "pip", "install", "-q", "hyperqueue"], check=False, capture_output=True)
    if installed.returncode:
        figures.leave_out("hyperqueue_jobs_per_s", "the package can't be installed here")
        return
    done = subprocess.run(
        [python, "-c", DRIVER, str(jobs), str(slots)], check=False, capture_output=True, text=True, timeout=120
    )
    rates = [float(line.removeprefix("rate=")) for line in done.stdout.splitlines() if line.startswith("rate=")]
    if not rates:
        figures.leave_out("hyperqueue_jobs_per_s", (done.stderr.strip().splitlines() or ["no output"])[-1])
        return
    figures.put("hyperqueue_jobs_per_s", max(rates))


if __name__ == "__main__":
    measure(Figures())
