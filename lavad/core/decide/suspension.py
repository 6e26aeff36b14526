"""A running job may be suspended for several causes at once; it runs again when the last of them is gone.

USUSP while a user's wish is among the causes, SSUSP while there are only others. A job that is being staged cannot be
stopped yet, nor one that is not heard of: the cause is noted, and takes effect as soon as the job has started or is
heard of again.
"""

from lavad.core import events as e
from lavad.core.model import BY_USER, JobState
from lavad.core.records import Attempt, Job

S = JobState
SYSTEM = "the system"  # as the one who did it, where no person did


def suspended(job: Job, cause: str, reason: str, by: str, now: float) -> list[e.Event]:
    """One more cause; ``reason`` is the sentence that people read."""
    assert job.attempt is not None, f"{job.key} holds no attempt"
    causes = {*job.attempt.suspended, cause}
    return [e.JobSuspended(now, job.key, _state(job, causes), by, cause, reason)]


def resumed(job: Job, cause: str, by: str, now: float, reason: str = "") -> list[e.Event]:
    """A cause is gone."""
    assert job.attempt is not None, f"{job.key} holds no attempt"
    return [e.JobResumed(now, job.key, by, reason, cause, _state(job, {*job.attempt.suspended} - {cause}))]


def _state(job: Job, causes: set[str]) -> JobState:
    if job.state in (S.STAGING, S.UNKWN):
        return job.state
    if not causes:
        return S.RUN
    return S.USUSP if BY_USER in causes else S.SSUSP


def noted(job: Job, attempt: Attempt, now: float) -> list[e.Event]:
    """The job has just started: causes that were noted while it was being staged take effect."""
    state = S.USUSP if BY_USER in attempt.suspended else S.SSUSP
    state = S.UNKWN if job.state is S.UNKWN else state
    causes = attempt.suspended.items()
    return [e.JobSuspended(now, attempt.key, state, "", cause, reason) for cause, reason in causes]
