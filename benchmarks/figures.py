"""Figures of one run: printed at once as plain-decimal key=value lines, written as JSON at the end."""

import json
import platform
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


class Figures:
    """Figures measured so far, in order."""

    def __init__(self) -> None:
        self.values: dict[str, float | str] = {}
        self._started = time.time()

    def put(self, key: str, value: float) -> None:
        """Record and print one figure."""
        self.values[key] = round(value, 3)
        sys.stdout.write(f"{key}={value:.3f}\n")
        sys.stdout.flush()

    def put_percentiles(self, key: str, samples_s: Sequence[float], *percents: int) -> None:
        """Percentiles of durations, in milliseconds, as KEY_p50 and so on."""
        for percent in percents:
            self.put(f"{key}_p{percent}", percentile(samples_s, percent) * 1000)

    def leave_out(self, key: str, why: str) -> None:
        """Report that a figure cannot be measured here."""
        self.values[key] = f"left out: {why}"
        sys.stderr.write(f"{key} left out: {why}\n")

    def keep(self) -> Path:
        """Write the run to a file named after its time."""
        RESULTS.mkdir(exist_ok=True)
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(self._started))
        path = RESULTS / f"{stamp}.json"
        machine = {"python": platform.python_version(), "kernel": platform.release(), "cpus": _cpus()}
        path.write_text(json.dumps({"started": stamp, "machine": machine, "figures": self.values}, indent=1) + "\n")
        return path


def _cpus() -> int:
    return sum(line.startswith("processor") for line in Path("/proc/cpuinfo").read_text().splitlines())


def percentile(samples: Sequence[float], percent: int) -> float:
    """Nearest-rank percentile."""
    ordered = sorted(samples)
    if percent == 50:
        return statistics.median(ordered)
    return ordered[min(len(ordered) - 1, max(0, -(-len(ordered) * percent // 100) - 1))]


def busy_cpu_s() -> float:
    """CPU seconds used by the whole machine so far: user, system, interrupts."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    user, nice, system, _idle, _wait, irq, softirq = (int(word) for word in words[1:8])
    return (user + nice + system + irq + softirq) / 100


def resident_mib(*pids: int) -> float:
    """Proportional set size of these processes, in MiB: private memory plus their part of shared memory."""
    total_kib = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total_kib += int(line.split()[1])
    return total_kib / 1024
