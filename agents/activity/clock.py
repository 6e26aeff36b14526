"""Clock of the inactivity of one part of a job: samples of its use in, the time without activity out. Pure.

Invariant: what is not known counts as no use, but a part of which nothing is known at all is never inactive: without a
new sample its time stands still.
"""

from typing import NamedTuple

from agents.activity.rule import Rule

NOT_KNOWN = -1
STEADY = 0.1  # of the CPU use of a part that spins, while its GPUs wait


class Sample(NamedTuple):
    """Use of a part until ``at`` (monotonic): totals that only grow, and what it is now."""

    at: float
    cpu_s: float
    network_bytes: int
    output: int  # size of all its output files; NOT_KNOWN if it is not
    progress: int = 0  # number of its progress reports
    gpu_power: float | None = None  # of the device with the highest, as part of its limit; None: none, or not known
    is_stopped: bool = False  # all its processes are stopped


class PartClock:
    """Time for which a part has been inactive, by the rule of its job."""

    def __init__(self, rule: Rule, now: float) -> None:
        self._rule = rule
        self.begin(now)

    def begin(self, now: float) -> None:
        """Begin anew: processes were started."""
        self._has_spoken = False
        self.wake(now)

    def wake(self, now: float) -> None:
        """Count the part as active now."""
        self._active_at = self._known_until = now
        self._spin: float | None = None  # its CPU use, in processors, since it was active last
        self._last: Sample | None = None
        self._output = NOT_KNOWN  # as last known

    def skip(self) -> None:
        """Leave out what the part uses until the next sample: it is not its own."""
        self._last, self._output = None, NOT_KNOWN

    def take(self, sample: Sample) -> None:
        """Add a sample."""
        last, self._last = self._last, sample
        before, self._output = self._output, self._output if sample.output == NOT_KNOWN else sample.output
        if last is None:
            return
        # A file that is gone, or emptied, is no output; what is written to it then is.
        has_spoken = sample.progress != last.progress or (before != NOT_KNOWN and sample.output > before)
        self._has_spoken = self._has_spoken or has_spoken
        if has_spoken or sample.is_stopped or self._is_used(sample, last):
            self._active_at = sample.at
        self._known_until = sample.at

    def _is_used(self, sample: Sample, last: Sample) -> bool:
        seconds, rule = max(sample.at - last.at, 1e-3), self._rule
        has_power = sample.gpu_power is not None and sample.gpu_power > rule.gpu_power
        has_network = sample.network_bytes - last.network_bytes > rule.network_bytes_s * seconds
        has_cpu = self._has_cpu((sample.cpu_s - last.cpu_s) / seconds, sample.gpu_power is not None)
        return has_power or has_network or has_cpu

    def _has_cpu(self, cpus: float, has_gpus: bool) -> bool:
        """True if the processors are used. Beside GPUs that wait, a steady use is that of threads that spin."""
        spin, self._spin = self._spin, cpus
        if not has_gpus or spin is None:
            return cpus > self._rule.cpus
        if abs(cpus - spin) > max(self._rule.cpus, STEADY * spin):
            return True
        self._spin = spin
        return False

    def inactive_s(self) -> float:
        """Return for how long the part has been inactive if that is as long as its rule names; else 0."""
        quiet_s = self._known_until - self._active_at
        return quiet_s if quiet_s >= (self._rule.after_s if self._has_spoken else self._rule.first_s) else 0.0
