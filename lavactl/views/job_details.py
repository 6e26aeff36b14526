"""Restores to array elements the details that a listing sends only with the first element of the array.

The master sends a spec with the first of consecutive records of one job only (``shares_details``), since a script may
be long and an array large.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, cast

    from lavactl.wire import messages

    Job = messages.JobRecord


class Element:
    """A record with the spec and the requirement of an earlier one of the same job."""

    __slots__ = ("_record", "effective_requirement", "spec")

    def __init__(self, record: "Job", first: "Job") -> None:
        self._record = record
        self.spec = first.spec
        self.effective_requirement = first.effective_requirement

    def __getattr__(self, name: str) -> "Any":
        """Every other field, from the record itself."""
        return getattr(self._record, name)


class Completion:
    """Completes the records of one listing, page by page."""

    def __init__(self) -> None:
        self._first: Job | None = None

    def complete(self, jobs: "list[Job]") -> "list[Job]":
        """Records with their details; must be called with all pages in order."""
        completed = []
        for job in jobs:
            first = self._first
            if first is not None and first.job == job.job and not job.HasField("spec"):
                completed.append(element(job, first))
            else:
                self._first = job
                completed.append(job)
        return completed


if TYPE_CHECKING:

    def element(record: Job, first: Job) -> Job:
        """``Element`` typed as a record."""
        return cast("Job", Element(record, first))
else:
    element = Element
