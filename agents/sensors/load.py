"""Load of a host by LSF's indices, and the test if a change is worth a report.

The run queue: r1m and r15m are the kernel's own averages over 1 and 15 minutes; r15s, which the kernel lacks, is an
exponential average over 15 s of the processes running or ready at each sample. All three are of the whole machine, also
on a host that is only a namespace of it.
"""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from agents.gpus.vendors import vendor
from agents.sensors import cpu_memory
from agents.sensors.elim import Elims
from protos.cluster_pb2 import Gpu, Load

QUEUE_AVERAGE_S = 15.0
KERNEL_STATISTICS = Path("/proc/stat")

# A change is reported when it exceeds both a floor in the index's own unit and a fraction of the old value, so that
# neither noise on an idle host nor jitter on a large one makes traffic.
THRESHOLDS: dict[str, tuple[float, float]] = {
    "r15s": (0.5, 0.1),
    "r1m": (0.3, 0.1),
    "r15m": (0.3, 0.1),
    "ut": (0.05, 0.1),
    "pg": (10.0, 0.25),
    "io": (1024.0, 0.25),
    "ls": (0.0, 0.0),
    "it": (1.0, 0.25),
    "tmp_mib": (256.0, 0.05),
    "swp_mib": (64.0, 0.05),
    "mem_mib": (64.0, 0.05),
}
GPU_THRESHOLDS: dict[str, tuple[float, float]] = {
    "memory_used_mib": (256.0, 0.05),
    "utilisation": (0.1, 0.1),
    "memory_utilisation": (0.1, 0.1),
    "temperature_c": (4.0, 0.05),
    "power_w": (30.0, 0.1),
}
# Any change of these is reported.
GPU_STATE = ("index", "uuid", "status", "mode", "mig", "ecc_errors", "pids", "nvlink_peers", "memory_mib", "throttled")


class RunQueue:
    """Number of processes running or ready, averaged over 15 s."""

    def __init__(self, first: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._average = first
        self._time = clock()

    def add(self, length: float) -> float:
        """Add a sample of the queue's length; return the average."""
        now = self._clock()
        kept = cpu_memory.decay(now - self._time, QUEUE_AVERAGE_S)
        self._time = now
        self._average = kept * self._average + (1 - kept) * length
        return self._average


def running_now(statistics: str) -> int:
    """Return the processes running or ready, without the present one. `statistics` is the text of /proc/stat."""
    for line in statistics.splitlines():
        if line.startswith("procs_running "):
            return max(0, int(line.split()[1]) - 1)
    return 0


class GpuReader(Protocol):
    """Source of the host's GPUs."""

    def read(self) -> Sequence[Gpu]:
        """Return the devices now; a fault is the device's status."""


class Sampler:
    """Sampler of the load; made once, because rates and averages need the last sample."""

    def __init__(self, simulate_gpus: int = 0, elims: Elims | None = None, gpus: GpuReader | None = None) -> None:
        self._elims = elims
        self._counters = cpu_memory.Counters()
        self._queue = RunQueue(first=os.getloadavg()[0])
        self._gpus = gpus or vendor(simulate_gpus).devices()

    def sample(self) -> Load:
        """Return the load now. Takes a few milliseconds, longer if a driver is slow."""
        rates = self._counters.rates()
        one_minute, _, fifteen_minutes = os.getloadavg()
        return Load(
            r15s=self._queue.add(running_now(KERNEL_STATISTICS.read_text(encoding="ascii"))),
            r1m=one_minute,
            r15m=fifteen_minutes,
            ut=rates.ut,
            pg=rates.pg,
            io=rates.io,
            ls=cpu_memory.login_sessions(),
            it=cpu_memory.idle_minutes(time.time()),
            tmp_mib=cpu_memory.free_tmp_mib(),
            swp_mib=cpu_memory.free_swap_mib(),
            mem_mib=cpu_memory.free_memory_mib(),
            gpus=self._gpus.read(),
            external=self._elims.values() if self._elims is not None else {},
        )

    def expect(self, names: tuple[str, ...]) -> None:
        """Set the names of the dynamic resources that the master wants."""
        if self._elims is not None:
            self._elims.expect(names)

    def close(self) -> None:
        """End the elims."""
        if self._elims is not None:
            self._elims.close()


def significant(old: Load | None, new: Load) -> bool:
    """Return True if `new` is to be reported after `old`, the last report; None if there was none."""
    if old is None or _exceeds(old, new, THRESHOLDS) or len(old.gpus) != len(new.gpus):
        return True
    if old.external != new.external:  # a site's own amounts may be small: every change is reported
        return True
    return any(
        _exceeds(before, after, GPU_THRESHOLDS)
        or any(getattr(before, name) != getattr(after, name) for name in GPU_STATE)
        for before, after in zip(old.gpus, new.gpus, strict=True)
    )


def _exceeds(old: Load | Gpu, new: Load | Gpu, thresholds: dict[str, tuple[float, float]]) -> bool:
    for name, (floor, fraction) in thresholds.items():
        before: float = getattr(old, name)
        if abs(getattr(new, name) - before) > max(floor, fraction * before):
            return True
    return False
