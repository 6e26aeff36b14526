"""Run windows of queues: suspend, end and resume their jobs."""

from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import SYSTEM
from lavad.core.decide.jobs.control import kill_attempt, resumed, suspended
from lavad.core.model import HOLDING, WINDOW, JobState
from lavad.core.model import reasons as r
from lavad.core.state.records import Job

REASON = "The run windows of the queue are closed"


_CAN_STOP = HOLDING - {JobState.ZOMBI}


def run_window_events(cluster: Cluster, job: Job, queue_name: str, may_run: bool, now: float) -> list[e.Event]:
    """Suspend a job, or end it (TERMINATE_WHEN), when its queue's run windows close; resume it when they open.

    A job forced with brun -f goes on.
    """
    attempt = job.attempt
    assert attempt is not None, f"{job.key} holds no attempt"
    if job.state not in _CAN_STOP:
        return []
    if may_run:
        return resumed(job, WINDOW, "", now) if WINDOW in attempt.suspended else []
    if WINDOW in attempt.suspended or attempt.is_unconstrained:
        return []
    queue = cluster.policy.queue(queue_name)
    if queue is not None and "WINDOW" in queue.terminate_when and job.state is not JobState.UNKWN:
        ending = kill_attempt(cluster, job, attempt, now, SYSTEM, r.TERM_WINDOW, WINDOW)
        return [] if attempt.is_ending else ending
    return suspended(job, WINDOW, REASON, "", now)


def may_run(cluster: Cluster, queue_name: str) -> bool:
    """True if the run windows of that queue were open at the last tick."""
    state = cluster.windows.get(queue_name)
    return state is None or state.may_run
