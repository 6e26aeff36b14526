"""The master with 100,000 pending jobs, all different: submission rate, memory, and time of a listing."""

import subprocess
import time

from benchmarks import submitting
from benchmarks.figures import Figures, resident_mib
from benchmarks.personal import Personal, cluster
from lavactl.wire.connection import Connection
from protos import jobs_pb2

LISTED = 10_000
JOBS = 100_000
PORTION = 10_000


def _distinct(number: int) -> jobs_pb2.JobSpec:
    """Job whose name, command, directories, outputs and environment differ from all others."""
    made = submitting.spec(
        f"/opt/solver/bin/run --case {number} --steps 1000",
        name=f"case-{number}",
        output=f"/scratch/project/case-{number}/output.%J",
        error=f"/scratch/project/case-{number}/errors.%J",
    )
    made.cwd = made.submit_cwd = f"/scratch/project/case-{number}"
    made.environment.extend([f"CASE={number}".encode(), f"CASE_DIR=/scratch/project/case-{number}".encode()])
    return made


def _bjobs(personal: Personal) -> list[float]:
    samples = []
    for _ in range(7):
        began = time.perf_counter()
        done = subprocess.run(
            personal.command("bjobs", "-w"), env=personal.environment, capture_output=True, check=True
        )
        samples.append(time.perf_counter() - began)
        lines = done.stdout.count(b"\n")
        if lines < LISTED:
            raise RuntimeError(f"bjobs printed {lines} lines")
    return samples


def measure(figures: Figures) -> None:
    """submit_per_s, bjobs_10k_ms, master_rss_mib_0 and _100k."""
    with cluster(1, 1) as personal:
        connection = Connection(personal.socket)
        submitting.submit_all(connection, [submitting.spec("/bin/sleep 3600")])
        figures.put("master_rss_mib_0", resident_mib(*personal.master_pids()))
        rates = []
        for first in range(0, JOBS, PORTION):
            specs = [_distinct(number) for number in range(first, first + PORTION)]
            began = time.perf_counter()
            submitting.submit_all(connection, specs)
            rates.append(PORTION / (time.perf_counter() - began))
            if first == 0:
                figures.put_percentiles("bjobs_10k_ms", _bjobs(personal), 50)
        figures.put("submit_per_s", sorted(rates)[len(rates) // 2])
        figures.put("master_rss_mib_100k", resident_mib(*personal.master_pids()))
        grown = float(figures.values["master_rss_mib_100k"]) - float(figures.values["master_rss_mib_0"])
        figures.put("master_kib_per_pending_job", grown * 1024 / JOBS)


if __name__ == "__main__":
    measure(Figures())
