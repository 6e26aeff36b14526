"""Jobs of a list that the master tells by columns, as records.

It tells once what jobs have in common. Jobs that it reads from its store come as records, and so do all jobs of a
master that knows no columns.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
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


def jobs_of(page: "messages.JobPage") -> "list[Job]":
    """All jobs of a page as records."""
    told, jobs = page.columns, list(page.jobs)
    if told.job:
        kinds, names, indices = list(told.kinds), list(told.names), told.index[:] or [0] * len(told.job)
        columns = zip(told.job[:], indices, told.submit_time[:], told.kind[:], told.name[:], strict=True)
        for job, index, time, kind, name in columns:
            own = f"{names[name]}[{index}]" if index else names[name]
            jobs.append(listed(kinds[kind], job, index, own, time))
    return jobs


if TYPE_CHECKING:

    def listed(kind: Job, job: int, index: int, name: str, submit_time: float) -> Job:
        """``Listed`` typed as a record."""
        return cast("Job", Listed(kind, job, index, name, submit_time))
else:
    listed = Listed
