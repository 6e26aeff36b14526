"""Notices that jobs get before something is done to them: what, why, and how long before.

The time is that of the job (bsub -wt), else that of its queue (JOB_ACTION_WARNING_TIME); for what lava does of itself
at most LAVA_WARNING_TIME_MAX, since others wait for it. What a user does is told, too, and not delayed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from lavad.core.model import BY_USER, LOAD, PREEMPTION, WINDOW, Key, Shared, serial_of
from lavad.core.model.rules.queues import Queue

if TYPE_CHECKING:
    from lavad.core.cluster import Cluster
    from lavad.core.state.attempts import Attempt

PREEMPT, REQUEUE, SUSPEND, SHRINK, END = "preempt", "requeue", "suspend", "shrink", "terminate"
SIGSTOP = 19
LEAVE_SERIAL = 98  # in place of a signal's number: for a host that a running attempt gives up
SHRINK_MAX_S = 45.0  # agents/attempts/resizes.py has it, too
_CAUSES = {PREEMPTION: PREEMPT, LOAD: LOAD, WINDOW: WINDOW, BY_USER: SUSPEND}


class Notice(NamedTuple):
    """Notice of one order."""

    event: str = ""  # empty: none
    reason: str = ""  # a sentence; empty: that of the order
    seconds: float = 0.0  # between it and what it announces


NO_NOTICE = Notice()


@dataclass(frozen=True, slots=True)
class RevokeOrder:
    """The host is taken away in so many seconds: kill what is left then. Negative: it is not after all."""

    host: str
    seconds: float


@dataclass(frozen=True, slots=True)
class NoticeOrder:
    """Tell the job what will happen at a time; nothing is done by it."""

    host: str
    key: Key
    event: str
    reason: str
    at: float
    serial: int


def time_of_queue(shared: Shared, queue: Queue | None) -> float:
    """Warning time of a job: its own, or its queue's; 0: none."""
    return shared.special.warning_time_s or (queue.warning_time_s if queue is not None else 0.0)


def _queue_of(cluster: "Cluster", shared: Shared) -> Queue | None:
    return cluster.policy.queue_for(shared.queue, shared.application)


def time_of(cluster: "Cluster", key: Key) -> float:
    """Seconds that lava waits after the notice to an attempt."""
    record = cluster.find_bearer(key.job, key.index)
    if record is None:
        return 0.0
    return min(time_of_queue(record.shared, _queue_of(cluster, record.shared)), cluster.policy.warning_time_max_s)


def shrink_time(cluster: "Cluster", key: Key) -> float:
    """Seconds that hosts which stay wait before they report that the job knows its smaller size."""
    record = cluster.find_bearer(key.job, key.index)
    if record is None:
        return 0.0
    return min(time_of_queue(record.shared, _queue_of(cluster, record.shared)), SHRINK_MAX_S)


def leaving_notices(cluster: "Cluster", attempt: "Attempt", at: float) -> Iterator[NoticeOrder]:
    """Notices on hosts that the job is to leave; those that stay give theirs when they are told of the new size."""
    ends_at = at + shrink_time(cluster, attempt.key)
    for share in attempt.resizing.leaving:
        if attempt.share_on(share.host) is None and share.host in attempt.unreleased:
            yield NoticeOrder(
                share.host, attempt.key, SHRINK, "the job gives this host up", ends_at, serial_of(at, LEAVE_SERIAL)
            )


def notice_of(cluster: "Cluster", attempt: "Attempt", signal: int, reason: str) -> Notice:
    """Notice that comes with a signal to an attempt; 0 is the terminate sequence."""
    if signal == SIGSTOP and attempt.suspended:
        cause, why = list(attempt.suspended.items())[-1]
        return Notice(_CAUSES.get(cause, SUSPEND), why)
    if signal:
        return NO_NOTICE
    if attempt.warned:
        return Notice(attempt.warned, reason, time_of(cluster, attempt.key))
    return Notice(REQUEUE if attempt.again else END, reason)
