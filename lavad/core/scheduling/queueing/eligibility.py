"""Whether jobs of one kind may be started at all now, whatever hosts there are: queue, windows, deadlines.

One place for the scheduler, which passes such buckets over, and for whoever asks why a job waits.
"""

from typing import TYPE_CHECKING

from lavad.core.model import reasons as r
from lavad.core.model.windows import NEVER

if TYPE_CHECKING:
    from lavad.core.cluster import Cluster
    from lavad.core.model.policy import Queue


def obstacle(
    cluster: "Cluster", queue: "Queue | None", run_limit_s: int, deadline: float, now: float
) -> tuple[int, str] | None:
    """Number and sentence of what keeps such jobs of this queue from being started now, or None.

    A job that could not finish in time is not started: before its queue's run windows close, or before its deadline.
    """
    if queue is None or not queue.active:
        return r.QUEUE_INACTIVE
    closes_at = NEVER
    if queue.has_windows:
        state = cluster.windows.get(queue.name)
        if state is None or not (state.may_dispatch and state.may_run):
            return r.QUEUE_WINDOW
        closes_at = state.closes_at
    if queue.ignores_deadline:
        return None
    if run_limit_s and now + run_limit_s > closes_at:
        return r.WINDOW_TOO_SHORT
    if deadline and now + run_limit_s > deadline:
        return r.DEADLINE_TOO_NEAR
    return None
