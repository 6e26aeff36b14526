"""Events take effect: one function for each, found by the type of the event.

This is the one door through which the state of the cluster changes; restored rows come by ``restore``, and figures that
no row keeps, as load and usage, directly.
"""

from collections.abc import Callable, Sequence
from typing import Any

from lavad.core.apply import (
    advance_reservations,
    batch_dispatch,
    claims,
    hosts,
    jobs,
    modify,
    resize,
    start_conditions,
)
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
}


def apply_event(cluster: Cluster, event: Event) -> None:
    """Let a fact take effect.

    Raises:
        IllegalTransition: the event can't meet the state the job is in.
    """
    apply_events(cluster, (event,))


def apply_events(cluster: Cluster, events: Sequence[Event]) -> None:
    """Let facts take effect one after the other. Many dispatches together cost less than each by itself."""
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
