"""Sums over ended jobs, as bacct shows them: made by lavad for each page of its answer, joined by the command.

The figures are LSF's: the wait is from submission to dispatch (to the end of a job that was never dispatched), the
turnaround from submission to the end, the hog factor is CPU time by turnaround, the expansion factor turnaround by run
time.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from protos.jobs_pb2 import AccountSummary, Spread

FIGURES = ("cpu_s", "wait_s", "turnaround_s", "hog_factor", "expansion_factor", "run_s")


class Figure:
    """Count, total, least and greatest of some values."""

    __slots__ = ("count", "least", "most", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = self.least = self.most = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        if not self.count or value < self.least:
            self.least = value
        if not self.count or value > self.most:
            self.most = value
        self.count += 1
        self.total += value

    def join(self, part: "Spread | Figure") -> None:
        """Count the values that a message, or another figure, sums up."""
        if part.count:
            self.least = min(self.least, part.least) if self.count else part.least
            self.most = max(self.most, part.most) if self.count else part.most
            self.count += part.count
            self.total += part.total

    @classmethod
    def of(cls, count: int, total: float, least: float, most: float) -> "Figure":
        """Return the figure of values that were summed elsewhere."""
        figure = cls()
        figure.count, figure.total, figure.least, figure.most = count, total, least, most
        return figure

    @property
    def mean(self) -> float:
        """Mean of the values; 0 of none."""
        return self.total / self.count if self.count else 0.0


class Tally:
    """Sums over ended jobs."""

    def __init__(self) -> None:
        self.done = self.exited = 0
        self.cpu_s, self.wait_s, self.turnaround_s = Figure(), Figure(), Figure()
        self.hog_factor, self.expansion_factor, self.run_s = Figure(), Figure(), Figure()
        self.first_end = self.last_end = 0.0
        self.slot_s = self.revocable_slot_s = 0.0

    def add(self, is_done: bool, submitted_at: float, dispatched_at: float, ended_at: float, cpu_s: float) -> None:
        """Count an ended job; ``dispatched_at`` is 0 for one that never was."""
        turnaround_s = max(0.0, ended_at - submitted_at)
        run_s = max(0.0, ended_at - dispatched_at) if dispatched_at else 0.0
        if is_done:
            self.done += 1
        else:
            self.exited += 1
        self.cpu_s.add(cpu_s)
        self.wait_s.add(max(0.0, dispatched_at - submitted_at) if dispatched_at else turnaround_s)
        self.turnaround_s.add(turnaround_s)
        self.hog_factor.add(cpu_s / turnaround_s if turnaround_s else 0.0)
        if run_s:
            self.expansion_factor.add(turnaround_s / run_s)
        self.run_s.add(run_s)
        self.first_end = min(self.first_end, ended_at) if self.first_end else ended_at
        self.last_end = max(self.last_end, ended_at)

    def add_slots(self, slot_s: float, revocable_slot_s: float) -> None:
        """Count slots times seconds: on all hosts, and on revocable ones."""
        self.slot_s += slot_s
        self.revocable_slot_s += revocable_slot_s

    def join(self, part: "AccountSummary | Tally") -> None:
        """Count the jobs that a message, or another tally, sums up."""
        if not part.done + part.exited:
            return
        self.done += part.done
        self.exited += part.exited
        for name in FIGURES:
            getattr(self, name).join(getattr(part, name))
        self.first_end = min(self.first_end, part.first_end) if self.first_end else part.first_end
        self.last_end = max(self.last_end, part.last_end)
        self.add_slots(part.slot_s, part.revocable_slot_s)

    def fill(self, message: "AccountSummary") -> None:
        """Write the sums into a message."""
        message.done, message.exited = self.done, self.exited
        for name in FIGURES:
            figure, spread = getattr(self, name), getattr(message, name)
            spread.count, spread.total, spread.least, spread.most = (
                figure.count,
                figure.total,
                figure.least,
                figure.most,
            )
        message.first_end, message.last_end = self.first_end, self.last_end
        message.slot_s, message.revocable_slot_s = self.slot_s, self.revocable_slot_s
