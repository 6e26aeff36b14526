"""Application of events: one function for each type.

This is the only way in which the state of the cluster changes, except that ``restore`` adopts rows, and that figures
without a row, such as load and usage, are set directly.
"""

from collections.abc import Callable, Sequence
from typing import Any

from lavad.core.activity_events import BudgetWarned
from lavad.core.apply import (
    advance_reservations,
    batch_dispatch,
    charge,
    claims,
    hosts,
    jobs,
    modify,
    resize,
    start_conditions,
)
from lavad.core.apply.tasks import activity
from lavad.core.apply.tasks import events as task_events
from lavad.core.cluster import Cluster
from lavad.core.events import Event

HANDLERS: dict[type, Callable[[Cluster, Any], None]] = {
    **jobs.HANDLERS,
    **resize.HANDLERS,
    **claims.HANDLERS,
    **hosts.HANDLERS,
    **modify.HANDLERS,
    **advance_reservations.HANDLERS,
    **start_conditions.HANDLERS,
    **task_events.HANDLERS,
    **activity.HANDLERS,
    BudgetWarned: charge.budget_warned,
}


def apply_event(cluster: Cluster, event: Event) -> None:
    """Apply an event.

    Raises:
        IllegalTransition: the event is illegal in the job's state.
    """
    apply_events(cluster, (event,))


def apply_events(cluster: Cluster, events: Sequence[Event]) -> None:
    """Apply events in order. Many dispatches together cost less than one by one."""
    starts = batch_dispatch.all_starts(cluster, events) if len(events) >= batch_dispatch.MANY else None
    if starts is not None:
        cluster.applied += len(starts)
        batch_dispatch.dispatch_all(cluster, starts)
        return
    cluster.applied += len(events)
    for event in events:
        if cluster.reserved.by_name:
            cluster.reserved.note(cluster, event)
        HANDLERS[type(event)](cluster, event)
