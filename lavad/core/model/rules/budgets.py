"""Budgets of slot, CPU and GPU hours for users, groups and projects, each for a period that comes again or for one."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from enum import Enum
from typing import NamedTuple

from lavad.core.model.rules.names import Names

HOUR_S = 3600.0


class Every(Enum):
    """Calendar unit with which a budget begins anew."""

    WEEK = "week"  # from Monday on
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


class Span(NamedTuple):
    """Period of a budget: from its begin to before its end, seconds since the epoch."""

    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Budget:
    """A Budget section of lsb.resources. Consumers None: any; ``per_*``: a separate budget for each."""

    name: str
    slot_s: float | None = None
    cpu_s: float | None = None
    gpu_s: float | None = None
    every: Every = Every.MONTH
    once: tuple[date, date] | None = None  # first and last day, in place of ``every``
    warns_at: float = 0.8  # part of it
    users: Names | None = None
    per_user: Names | None = None
    projects: Names | None = None
    per_project: Names | None = None
    queues: Names | None = None

    @property
    def amounts(self) -> "Amounts":
        """Seconds of slots, processors and GPUs; infinite where there is no bound."""
        return Amounts(*(float("inf") if one is None else one for one in (self.slot_s, self.cpu_s, self.gpu_s)))

    def consumer(self, user: str, project: str, queue: str) -> str | None:
        """Name of the account that a job is charged to; empty if there is one for all, None if the job has none."""
        for names, name in ((self.users, user), (self.per_user, user), (self.projects, project),
                            (self.per_project, project), (self.queues, queue)):  # fmt: skip
            if names is not None and name not in names:
                return None
        return "/".join(name for per, name in ((self.per_user, user), (self.per_project, project)) if per is not None)

    def span(self, at: float, zone: tzinfo) -> Span:
        """Period that a moment lies in; the only one of a budget for some days, wherever the moment lies."""
        if self.once is not None:
            begin, end = (datetime(day.year, day.month, day.day, tzinfo=zone) for day in self.once)
            return Span(begin.timestamp(), (end + timedelta(days=1)).timestamp())
        local = datetime.fromtimestamp(at, zone)
        first = datetime(local.year, local.month, local.day, tzinfo=zone)
        if self.every is Every.WEEK:
            first -= timedelta(days=first.weekday())
            return Span(first.timestamp(), (first + timedelta(days=7)).timestamp())
        months = {Every.MONTH: 1, Every.QUARTER: 3, Every.YEAR: 12}[self.every]
        month = (first.month - 1) // months * months
        begin = first.replace(month=month + 1, day=1)
        last = month + months
        end = begin.replace(year=begin.year + last // 12, month=last % 12 + 1)
        return Span(begin.timestamp(), end.timestamp())


class Amounts(NamedTuple):
    """Seconds of slots, of processors and of GPUs."""

    slot_s: float = 0.0
    cpu_s: float = 0.0
    gpu_s: float = 0.0

    def plus(self, other: "Amounts", sign: float = 1.0) -> "Amounts":
        """Return the sum, or with another sign the difference."""
        return Amounts(*(one + sign * more for one, more in zip(self, other, strict=True)))


UNITS = ("slot", "CPU", "GPU")
