"""Progress of a running job, as one of its processes reported it."""

from typing import NamedTuple

NOT_SAID = -1.0
SAVED_EVERY_S = 60.0  # a job's progress goes to the database no more often; agents tell the newest after a restart


class Progress(NamedTuple):
    """The newest report of a job."""

    at: float  # time of the report
    percent: float = NOT_SAID  # done, from 0 to 100
    seconds_left: float = NOT_SAID  # at that time
    text: str = ""
    role: str = ""  # of a job of tasks: task that reported it
    task: int = 0
    host: str = ""

    @property
    def ends_at(self) -> float:
        """End of the job as it expects it itself; 0 if it has not said."""
        return self.at + self.seconds_left if self.seconds_left >= 0 else 0.0
