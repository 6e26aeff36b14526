"""Jobs of a list that the master tells by columns, as records.

It tells once what jobs have in common. Jobs that it reads from its store come as records, and so do all jobs of a
master that knows no columns.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, cast

    from lavactl.wire import messages

    Job = messages.JobRecord


class Listed:
    """A job of such a list: what it shares with others, and what is its own."""

    __slots__ = ("_kind", "index", "job", "name", "submit_time")

    def __init__(self, kind: "Job", job: int, index: int, name: str, submit_time: float) -> None:
        self._kind = kind
        self.job, self.index, self.name, self.submit_time = job, index, name, submit_time

    def __getattr__(self, name: str) -> "Any":
        """Every other field, of the kind."""
        return getattr(self._kind, name)


def number_of(columns: "messages.JobColumns") -> int:
    """Number of jobs on a page by columns."""
    return sum(columns.count) if columns.count else len(columns.job)


def entries_of(columns: "messages.JobColumns") -> "Iterator[tuple[int, int, int, int, int, float]]":
    """Entries of a page by columns: job, index, number of jobs or elements, kind, name, time of submission."""
    jobs = columns.job[:]
    indices, counts = columns.index[:] or [0] * len(jobs), columns.count[:] or [1] * len(jobs)
    return zip(jobs, indices, counts, columns.kind[:], columns.name[:], columns.submit_time[:], strict=True)


def jobs_of(page: "messages.JobPage") -> "list[Job]":
    """All jobs of a page as records. Each has an entry of its own, unless the request was for others (time_unit_s)."""
    told, jobs = page.columns, list(page.jobs)
    if told.job:
        kinds, names = list(told.kinds), list(told.names)
        for job, index, _, kind, name, time in entries_of(told):
            own = f"{names[name]}[{index}]" if index else names[name]
            jobs.append(listed(kinds[kind], job, index, own, time))
    return jobs


if TYPE_CHECKING:

    def listed(kind: Job, job: int, index: int, name: str, submit_time: float) -> Job:
        """``Listed`` typed as a record."""
        return cast("Job", Listed(kind, job, index, name, submit_time))
else:
    listed = Listed
