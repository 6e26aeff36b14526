"""Latency of single operations on an idle cluster: a dispatch, a bsub, and bare Python for comparison."""

import subprocess
import sys
import time
from pathlib import Path

from benchmarks import submitting
from benchmarks.figures import Figures
from benchmarks.personal import Personal, as_user, cluster, submitter
from benchmarks.scratch import scratch
from lavactl.wire.connection import Connection

DISPATCHES = 60
COMMANDS = 40


def _dispatches(personal: Personal, outputs: Path) -> list[float]:
    """Seconds from the submit call, on a client's open stream, to the moment the job's own process reads the clock."""
    stream = submitting.SubmitStream(Connection(personal.socket))
    watching = Connection(personal.socket)
    samples = []
    for number in range(DISPATCHES):
        output = outputs / f"dispatch.{number}"
        spec = submitting.spec("/bin/date +%s.%N", output=str(output))
        began = time.time()
        job = submitting.submit_one(stream, spec)
        samples.append(_first_number(output) - began)
        submitting.wait_for_end(watching, [job])
    stream.close()
    return samples[5:]


def _first_number(output: Path) -> float:
    """First number that the job wrote. Waiting for it makes no call to the cluster, which must be idle but for this
    job.
    """
    for _ in range(10_000):
        words = output.read_text().split() if output.exists() else []
        if words:
            return float(words[0])
        time.sleep(0.002)
    raise RuntimeError(f"the job did not write to {output}")


def _timed(argv: list[str], environment: dict[str, str] | None = None, count: int = COMMANDS) -> list[float]:
    samples = []
    for _ in range(count):
        began = time.perf_counter()
        subprocess.run(argv, check=True, env=environment, stdout=subprocess.DEVNULL)
        samples.append(time.perf_counter() - began)
    return samples


def measure(figures: Figures) -> None:
    """dispatch_ms, python_ms, bsub_ms."""
    with submitter() as user, scratch() as top, cluster(1, 4) as personal:
        samples = as_user(user, lambda: _dispatches(personal, top))
        figures.put_percentiles("dispatch_ms", samples, 50, 99)
        figures.put_percentiles("python_ms", _timed([sys.executable, "-c", "pass"]), 50)
        bsub = personal.command("bsub", "-H", "-o", "/dev/null", "/bin/true")
        figures.put_percentiles("bsub_ms", _timed(bsub, personal.environment), 50)


if __name__ == "__main__":
    measure(Figures())
