"""What events do to jobs that wait for something, or are to wait again: one function an event, as in ``apply``."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lavad.core import events as e
from lavad.core import lifecycle, terms
from lavad.core.listed import list_array, list_job
from lavad.core.model import JobState
from lavad.core.records import ArrayRecord, Job

if TYPE_CHECKING:
    from lavad.core.cluster import Cluster

S = JobState


def _job_revived(cluster: "Cluster", event: e.JobRevived) -> None:
    record = cluster.jobs[event.job]
    target = S.PSUSP if event.hold else S.PEND
    if isinstance(record, ArrayRecord):
        _elements_revived(cluster, record, event, target)
        return
    lifecycle.check(record.state, event, target)
    cluster.finished.pop((record.id, 0), None)
    cluster.tally.add(record.shared, target)
    if cluster.dependants:
        cluster.dependants.note(record.id, 0, record.state, target)
    record.state, record.end = target, None
    terms.watch_deadline(cluster, record)
    list_job(cluster, record)


def _elements_revived(cluster: "Cluster", array: ArrayRecord, event: e.JobRevived, target: JobState) -> None:
    for index in event.indices:
        old = cluster.finished.pop((array.id, index), None)
        if old is not None:
            array.attempts[index] = old.attempts
        array.forget_end(index)
    (array.held.update if event.hold else array.admit)(event.indices)
    array.over_at = 0.0
    cluster.ended_arrays.pop(array.id, None)
    cluster.tally.add(array.shared, target, len(event.indices))
    cluster.dependants.note(array.id, 0, S.EXIT, target)
    terms.watch_deadline(cluster, array)
    list_array(cluster, array)


def _dependency_met(cluster: "Cluster", event: e.DependencyMet) -> None:
    record = cluster.jobs[event.job]
    terms.met(cluster, record, event.indices)
    _list(cluster, record)


def _begin_time_reached(cluster: "Cluster", event: e.BeginTimeReached) -> None:
    record = cluster.jobs[event.job]
    terms.reached(record)
    _list(cluster, record)


def _list(cluster: "Cluster", record: Job | ArrayRecord) -> None:
    if isinstance(record, ArrayRecord):
        list_array(cluster, record)
    elif record.state is S.PEND:
        list_job(cluster, record)


def _queue_window_changed(cluster: "Cluster", event: e.QueueWindowChanged) -> None:
    cluster.windows[event.queue] = event.state
    cluster.pending.freshen(event.queue)


HANDLERS: dict[type, Callable[["Cluster", Any], None]] = {
    e.JobRevived: _job_revived,
    e.DependencyMet: _dependency_met,
    e.BeginTimeReached: _begin_time_reached,
    e.QueueWindowChanged: _queue_window_changed,
}
