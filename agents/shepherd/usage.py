"""Resource usage of an attempt on this host: sampled while it runs, summed up when it ends."""

import resource
import time
from typing import NamedTuple

from agents.shepherd.confinement.groups import MIB, Confinement
from agents.shepherd.messages import TERMS_OF_TOTALS, Used
from agents.shepherd.process import processes

# With more processes than this a look at each would cost more than the answer is worth; they are still counted.
PROCESSES_LISTED_MAX = 1000


class Sample(NamedTuple):
    """One sample."""

    cpu_s: float
    memory_mib: int
    memory_mib_max: int
    swap_mib: int
    pids: tuple[int, ...]
    process_groups: tuple[int, ...]
    threads: int


def mib(size: int) -> int:
    """Convert bytes to MiB, rounded up: a running process never uses 0."""
    return -(-size // MIB)


class Meter:
    """Meter of one attempt. The confinement's own counters must have been begun before."""

    def __init__(self, confinement: Confinement) -> None:
        self._confinement = confinement
        self._began = time.monotonic()
        self._peak = 0
        self._largest = 0  # resident bytes of the largest process reaped
        self._sum = 0
        self._samples = 0
        self._processes = 0
        self.processes_max = 1
        self.threads_max = 1
        self.swap_mib_max = 0

    def reaped(self, usage: resource.struct_rusage) -> None:
        """Add an ended process of the attempt."""
        self._largest = max(self._largest, usage.ru_maxrss * 1024)

    def count(self) -> None:
        """Count processes and threads only: a short job ends before its first sample."""
        self._look_at_all()

    def _stats(self, pids: list[int]) -> list[processes.Stat]:
        return [entry for pid in pids[:PROCESSES_LISTED_MAX] if (entry := processes.stat(pid)) is not None]

    def _look_at_all(self) -> tuple[list[int], list[processes.Stat], int]:
        """Note the largest counts; return all processes, a look at each of those listed, and the threads of all.

        Threads are counted first and are at least as many as processes: a look at a thousand takes 20 ms, in which a
        job that starts processes adds dozens, so that counts of its two ends would contradict each other.
        """
        threads = self._confinement.threads()
        pids = self._confinement.members()
        stats = self._stats(pids)
        unlisted = max(0, len(pids) - PROCESSES_LISTED_MAX)
        self._processes = len(stats) + unlisted
        threads = max(threads or sum(entry.threads for entry in stats) + unlisted, self._processes)
        self.processes_max = max(self.processes_max, self._processes)
        self.threads_max = max(self.threads_max, threads)
        return pids, stats, threads

    def sample(self) -> Sample:
        """Take a sample."""
        pids, stats, threads = self._look_at_all()
        memory = self._confinement.memory()
        self._peak = max(self._peak, memory.resident)
        self._sum += memory.resident
        self._samples += 1
        self.swap_mib_max = max(self.swap_mib_max, mib(memory.swap))
        groups = tuple(sorted({entry.group for entry in stats}))
        cpu_s, listed = self._confinement.cpu_s(), tuple(pids[:PROCESSES_LISTED_MAX])
        return Sample(cpu_s, mib(memory.resident), mib(self._peak), mib(memory.swap), listed, groups, threads)

    def exceeded(self, totals: tuple[tuple[str, int], ...], sample: Sample) -> str:
        """Return the first limit of all processes together that the last sample exceeds, as a TERM_ word; or empty."""
        now = {
            "swap": (sample.memory_mib + sample.swap_mib) * MIB, "nproc": self._processes, "threads": sample.threads,
        }  # fmt: skip
        return next((TERMS_OF_TOTALS[name] for name, most in totals if now[name] > most), "")

    def look(self) -> tuple[float, tuple[int, ...]]:
        """Return CPU seconds until now, and the processes."""
        return self._confinement.cpu_s(), tuple(self._confinement.members()[:PROCESSES_LISTED_MAX])

    def used(self) -> Used:
        """Return the usage until now."""
        cpu_s, user = self._confinement.cpu_s(), self._confinement.user_part()
        peak = self.memory_mib_max()
        return Used(
            cpu_s, cpu_s * user, cpu_s * (1 - user), peak, self.memory_mib_mean(peak), self.swap_mib_max,
            self.processes_max, self.threads_max, time.monotonic() - self._began,
        )  # fmt: skip

    def used_now(self) -> Used:
        """Return the usage, with a new sample of running processes."""
        self.sample()
        return self.used()

    def memory_mib_max(self) -> int:
        """Peak memory: the highest figure seen otherwise, bounded by the group's own peak, which includes file caches.

        A process's largest size is known no better than the shepherd's own, which it starts with; below that this size
        is the bound.
        """
        bound = self._confinement.memory_peak()
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        seen = max(self._peak, self._largest if self._largest > own else 0) or self._largest
        return mib(min(seen, bound) if bound else seen)

    def memory_mib_mean(self, peak_mib: int) -> float:
        """Return the mean of all samples; the peak if the attempt was too short for one."""
        return self._sum / self._samples / MIB if self._samples else float(peak_mib)
