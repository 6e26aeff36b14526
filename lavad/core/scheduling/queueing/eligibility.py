"""Eligibility of jobs of one scheduling class, regardless of hosts: queue state, windows, deadlines.

Used by the scheduler, which skips such buckets, and by the queries for pending reasons.
"""

from typing import TYPE_CHECKING

from lavad.core.model import reasons as r
from lavad.core.model.windows import NEVER

if TYPE_CHECKING:
    from lavad.core.cluster_view import ClusterView
    from lavad.core.model.rules.queues import Queue


def obstacle(
    cluster: "ClusterView", queue: "Queue | None", run_limit_s: int, deadline: float, now: float
) -> r.Reason | None:
    """Pending reason that holds such jobs of this queue back now, or None.

    A job is held back if it could not finish before its queue's run window closes, or before its deadline.
    """
    if queue is None or not queue.starts_jobs:
        return r.QUEUE_INACTIVE if queue is None or not queue.active else r.IN_CONTAINER
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
