"""External statuses of jobs, as far as external() of bsub -w compares them: the first word of message 0 (bstatus -d).

Invariant: only jobs that a status was posted to have an entry; it lasts as long as the job is in memory.
"""

from collections.abc import Iterator
from sys import intern

STATUS = 0  # number of the message that is the external status


class ExternalStatusTable:
    """First words by job and element; 0 for a plain job, and for an array as a whole."""

    def __init__(self) -> None:
        self._by_job: dict[int, dict[int, str]] = {}

    def put(self, job: int, index: int, text: str) -> None:
        """Set the status that was posted to a job or element."""
        self._by_job.setdefault(job, {})[index] = intern((text.split(maxsplit=1) or [""])[0])

    def word(self, job: int, index: int) -> str:
        """First word of a status; empty without one."""
        return self._by_job.get(job, {}).get(index, "")

    def elements(self, job: int) -> dict[int, str]:
        """Words of all elements of an array that have a status."""
        return self._by_job.get(job, {})

    def forget(self, job: int) -> None:
        """Forget a job that memory forgets."""
        self._by_job.pop(job, None)

    def __iter__(self) -> Iterator[tuple[int, int, str]]:
        return ((job, index, word) for job, words in self._by_job.items() for index, word in words.items())
