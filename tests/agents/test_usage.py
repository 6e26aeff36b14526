"""The figures of a sample, taken while a job goes on."""

import os

from agents.shepherd.confinement.groups import ProcessTree
from agents.shepherd.usage import Meter


class Growing(ProcessTree):
    """A group of a job that starts a process between any two looks at it."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 0

    def _grow(self) -> int:
        self.number += 1
        return self.number

    def members(self) -> list[int]:
        """Return this process, as often as the job has processes."""
        return [os.getpid()] * self._grow()

    def threads(self) -> int:
        """Return a thread of each process."""
        return self._grow()


def test_a_sample_of_a_growing_job_never_shows_more_threads_of_one_thread_each_than_processes() -> None:
    """A sample said 1,100 threads and 1,061 processes: the threads were counted after a look at each process."""
    meter = Meter(Growing())
    for _ in range(5):
        assert meter.sample().threads <= meter.processes_max
        assert meter.threads_max == meter.processes_max
