"""Orders of a queue's jobs, as LAVA_JOB_ORDER and ROUND_ROBIN_POLICY name them."""

from enum import Enum


class JobOrder(Enum):
    """Order of a queue's jobs of equal priority.

    Attributes:
        is_scored: a job's place is a score of its wait and its run limit, which changes with time.
    """

    is_scored: bool

    def __new__(cls, value: str, is_scored: bool = False) -> "JobOrder":
        """Make the member of that value."""
        member = object.__new__(cls)
        member._value_, member.is_scored = value, is_scored
        return member

    SUBMISSION = "submission"
    SLOWDOWN = "slowdown", True  # longest wait in relation to the run limit first
    ROUND_ROBIN = "round robin"  # users with the fewest slots in use first
