"""The result of a decision, the check that its caller owns the job or is an administrator, the dispatch of a job."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lavad.core.cluster import Cluster
from lavad.core.commands import Caller
from lavad.core.events import AttemptDispatched, Event
from lavad.core.model import Key
from lavad.core.model.reasons import Refused
from lavad.core.model.tuples import new as _new
from lavad.core.orders import Order
from lavad.core.plan import Start
from lavad.core.state.records import ArrayRecord, Job

SYSTEM = "the system"  # named in events that no user caused


@dataclass(slots=True)
class Decision:
    """Result of a command: events in the order they take effect, orders beyond those that follow from them, the
    reply."""

    events: list[Event] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    reply: Any = None


def is_owner(record: Job | ArrayRecord, caller: Caller) -> bool:
    """True if the caller's uid, vouched for by the kernel, is the owner's."""
    return record.shared.uid == caller.uid


def check_owner(record: Job | ArrayRecord, caller: Caller) -> None:
    """Refuse callers who neither own the job nor administer the cluster.

    Raises:
        Refused: permission denied.
    """
    if not is_owner(record, caller) and not caller.is_administrator:
        raise Refused(denial(caller))


def administers(cluster: Cluster, record: Job | ArrayRecord, caller: Caller) -> bool:
    """True for administrators of the cluster, of the job's queue (ADMINISTRATORS), and of a user group of its owner
    (GROUP_ADMIN)."""
    if caller.is_administrator:
        return True
    policy, user = cluster.policy, caller.user
    queue = policy.queue(record.shared.queue)
    if queue is not None and user in queue.administrators:
        return True
    return any(
        user in group.administrators and record.shared.user in policy.user_groups.get(group.name, ())
        for group in policy.user_group_rows
    )


def check_control(cluster: Cluster, record: Job | ArrayRecord, caller: Caller) -> None:
    """Refuse callers who may not end, stop, resume, requeue or signal the job: all but its owner and those who
    administer it. What runs as its owner, or shows what is the owner's, is not theirs: see `check_owner`.

    Raises:
        Refused: permission denied.
    """
    if not is_owner(record, caller) and not administers(cluster, record, caller):
        raise Refused(denial(caller))


def denial(caller: Caller) -> str:
    """The refusal's text; it tells administrators when only their host is the reason."""
    if caller.would_administer:
        return f"User permission denied: {caller.host} is not a host that administrators are heeded from"
    return "User permission denied"


def dispatch(cluster: Cluster, start: Start, now: float) -> AttemptDispatched:
    """Event that dispatches the start: the job's next attempt."""
    return dispatch_each(cluster, (start,), now)[0]


def dispatch_each(cluster: Cluster, starts: Iterable[Start], now: float) -> list[AttemptDispatched]:
    """Events that dispatch the starts."""
    jobs, events = cluster.jobs, []
    for job, index, allocation, reason in starts:
        record = jobs[job]
        before = record.attempts.get(index, 0) if isinstance(record, ArrayRecord) else record.attempts
        launch_now = len(allocation) == 1 and record.shared.tasks is None
        key = _new(Key, (job, index, before + 1))
        events.append(_new(AttemptDispatched, (now, key, allocation, launch_now, reason, False, None)))
    return events
