"""Figures of a schedule: waits, slowdown, utilisation. Plain means over the jobs that ran.

Bounded slowdown is max(1, (wait + run) / max(run, 10 s)), after Feitelson and Rudolph, "Metrics and benchmarking for
parallel job scheduling", JSSPP 1998. Utilisation is executed work over processors times makespan, the makespan from the
first submission to the last end.
"""

from collections.abc import Sequence
from typing import NamedTuple

RUN_S_MIN = 10


class Ran(NamedTuple):
    """Last attempt of one job or array element as it ran. ``number`` is the source's own.

    A trace has whole seconds only.
    """

    number: int
    submit_s: float
    start_s: float
    run_s: float
    processors: int
    index: int = 0  # type: ignore[assignment]  # hides tuple.index, unused here
    stopped_s: float = 0  # while preempted
    work: float = 0  # of an elastic job, in slots times seconds; 0: run_s times processors

    @property
    def name(self) -> str:
        """Id as commands show it: 7, or 7[3]."""
        return f"{self.number}[{self.index}]" if self.index else str(self.number)

    @property
    def wait_s(self) -> float:
        """Seconds in which it could have run and did not."""
        return self.start_s - self.submit_s + self.stopped_s

    @property
    def end_s(self) -> float:
        return self.start_s + self.run_s + self.stopped_s


def bounded_slowdown(wait_s: float, run_s: float) -> float:
    """Return (wait + run) / run, at least 1, with runs below ten seconds counted as ten."""
    return max(1.0, (wait_s + run_s) / max(run_s, RUN_S_MIN))


def figures(jobs: Sequence[Ran], processors: int, wall_s: float) -> dict[str, float]:
    """Return all figures by name; zeros if no job ran. ``wall_s`` is the duration of the replay."""
    count = len(jobs)
    waits = [job.wait_s for job in jobs]
    makespan = max((job.end_s for job in jobs), default=0) - min((job.submit_s for job in jobs), default=0)
    work = sum(job.work or job.run_s * job.processors for job in jobs)
    return {
        "jobs_kept": count,
        "mean_wait_s": sum(waits) / count if count else 0.0,
        "max_wait_s": max(waits, default=0),
        "mean_turnaround_s": sum(job.end_s - job.submit_s for job in jobs) / count if count else 0.0,
        "mean_bounded_slowdown": sum(bounded_slowdown(job.wait_s, job.run_s) for job in jobs) / count if count else 0.0,
        "utilisation": work / (processors * makespan) if makespan else 0.0,
        "utilisation_while_submitted": _while_submitted(jobs, processors),
        "makespan_s": makespan,
        "sim_jobs_per_s": count / wall_s if wall_s else 0.0,
    }


def _while_submitted(jobs: Sequence[Ran], processors: int) -> float:
    """Return the utilisation from the first to the last submission: one long job at the end does not count.

    The work of a job is spread evenly over its run.
    """
    first = min((job.submit_s for job in jobs), default=0.0)
    last = max((job.submit_s for job in jobs), default=0.0)
    work = 0.0
    for job in jobs:
        share = max(0.0, min(job.end_s, last) - job.start_s) / max(job.end_s - job.start_s, 1e-9)
        work += (job.work or job.run_s * job.processors) * share
    return work / (processors * (last - first)) if last > first else 0.0


def recorded(jobs: Sequence[Ran], processors: int) -> dict[str, float]:
    """Return the figures of the real schedule, under names of their own."""
    values = figures(jobs, processors, 0.0)
    return {f"recorded_{name}": value for name, value in values.items() if name != "sim_jobs_per_s"}


def as_lines(values: dict[str, float]) -> str:
    """Format one key=value a line, in plain decimals."""
    return "".join(f"{key}={_plain(value)}\n" for key, value in values.items())


def _plain(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4f}"
