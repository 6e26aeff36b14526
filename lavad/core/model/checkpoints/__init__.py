"""Checkpoints that a queue or an application profile sets for its jobs."""

from typing import NamedTuple


class CheckpointTerms(NamedTuple):
    """Terms of the jobs' checkpoints; without a directory none are made."""

    directory: str = ""  # a relative one begins at the job's working directory
    period_s: float = 0.0  # between two checkpoints; 0: only when asked for
    first_s: float = 0.0  # before the first one; 0: the period
    method: str = ""  # empty: the site's


NO_TERMS = CheckpointTerms()
