"""Events of advance reservations and of the jobs in them: one function each."""

from collections.abc import Callable
from typing import Any

from lavad.core import events as e
from lavad.core.apply import start_conditions
from lavad.core.apply.enqueue import entry, list_array, list_job
from lavad.core.apply.reconfigure import sort_pending
from lavad.core.cluster import Cluster
from lavad.core.model import JobState
from lavad.core.state.records import ArrayRecord, Job


def _reservation_set(cluster: Cluster, event: e.ReservationSet) -> None:
    reserved = cluster.reserved
    reserved.put(event.reservation)
    if event.number >= 0:
        reserved.numbers[event.holder] = event.number
    sort_pending(cluster)


def _reservation_removed(cluster: Cluster, event: e.ReservationRemoved) -> None:
    cluster.reserved.drop(event.name)
    sort_pending(cluster)


def _reservations_turned(cluster: Cluster, event: e.ReservationsTurned) -> None:
    cluster.reserved.turn(event.holding)


def _job_detached(cluster: Cluster, event: e.JobDetached) -> None:
    record = cluster.jobs[event.job]
    cluster.pending.remove(record.shared, entry(cluster, record))
    cluster.reserved.leave(event.reservation, record.id)
    start_conditions.detach(cluster, record, event.reservation)
    if isinstance(record, ArrayRecord):
        for job in record.live.values():
            if job.index not in record.changed:
                job.shared = record.shared
        list_array(cluster, record)
    elif record.state is JobState.PEND:
        list_job(cluster, record)


def move(cluster: Cluster, record: Job | ArrayRecord, name: str) -> None:
    """Move a modified job to that reservation, or out of all."""
    before = record.shared.request.reservation
    if before:
        cluster.reserved.leave(before, record.id)
    if name:
        cluster.reserved.enter(name, record.id)


HANDLERS: dict[type, Callable[[Cluster, Any], None]] = {
    e.ReservationSet: _reservation_set,
    e.ReservationRemoved: _reservation_removed,
    e.ReservationsTurned: _reservations_turned,
    e.JobDetached: _job_detached,
}
