"""Rows of hosts, queues, advance reservations and job groups; what administrators did to hosts and queues, and what the
master did.

That history is job 0's: no job has this number.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lavad.core import events as e
from lavad.core.job_group_events import JobGroupSet, JobGroupsRemoved
from lavad.store.rows import values as v
from lavad.store.writer.batch import Batch

if TYPE_CHECKING:
    from lavad.core.cluster import Cluster

NO_JOB = 0
PARTLY_OPENED = "partly opened"  # a host that is closed for another reason still


QueueStates = dict[str, tuple[bool, bool]]  # open and active, by name; a queue that is not there is both


def add(batch: Batch, cluster: "Cluster", event: Any, queues: QueueStates) -> None:
    """Add the rows of an event; ``queues`` are the states before it, and are updated."""
    if isinstance(event, e.QueueRuled):
        _queue_ruled(batch, event, queues)
    else:
        HANDLERS[type(event)](batch, cluster, event)


def tell(batch: Batch, at: float, kind: str, **detail: str) -> None:
    """Add a row of that history. ``kind`` is host, queue or master; ``name`` and ``to`` in ``detail`` are its name, and
    what became of it."""
    batch.events.append((NO_JOB, 0, 0, at, kind, v.detail(**{name: v.clean(text) for name, text in detail.items()})))


def _host_joined(batch: Batch, cluster: "Cluster", event: e.HostJoined) -> None:
    _host_changed(batch, cluster, event.facts.name)


def _host_closed(batch: Batch, cluster: "Cluster", event: e.HostClosed) -> None:
    _host_changed(batch, cluster, event.host)
    tell(batch, event.at, "host", name=event.host, to="closed", by=event.by, comment=event.comment)


def _host_opened(batch: Batch, cluster: "Cluster", event: e.HostOpened) -> None:
    _host_changed(batch, cluster, event.host)
    to = PARTLY_OPENED if cluster.hosts[event.host].lock_ids else "open"
    tell(batch, event.at, "host", name=event.host, to=to, by=event.by, comment=event.comment)


def _lock_id_attached(batch: Batch, cluster: "Cluster", event: e.LockIdAttached) -> None:
    _lock_ids_changed(batch, cluster, event.host)
    words = {"by": event.by, "comment": event.comment, "lock_id": event.lock_id}
    tell(batch, event.at, "host", name=event.host, to="closed", **words)


def _lock_ids_removed(batch: Batch, cluster: "Cluster", event: e.LockIdsRemoved) -> None:
    _lock_ids_changed(batch, cluster, event.host)
    to = PARTLY_OPENED if cluster.hosts[event.host].is_closed else "open"
    words = {"by": event.by, "comment": event.comment, "lock_id": " ".join(event.lock_ids)}
    tell(batch, event.at, "host", name=event.host, to=to, **words)


def _lock_ids_changed(batch: Batch, cluster: "Cluster", name: str) -> None:
    batch.standing[v.LOCK_IDS, name] = v.lock_ids_row(cluster.hosts[name])


def _host_revoked(batch: Batch, cluster: "Cluster", event: e.HostRevoked) -> None:
    _host_changed(batch, cluster, event.host)
    tell(batch, event.at, "host", name=event.host, to="revoked", by=event.by, comment=event.comment)


def _host_removed(batch: Batch, cluster: "Cluster", event: e.HostRemoved) -> None:
    batch.hosts[event.host] = None
    batch.standing[v.HOST_LOCK, event.host] = batch.standing[v.LOCK_IDS, event.host] = None
    tell(batch, event.at, "host", name=event.host, to="removed", by=event.by, comment=event.comment)


def _host_locked(batch: Batch, cluster: "Cluster", event: e.HostLocked) -> None:
    batch.standing[v.HOST_LOCK, event.host] = v.host_lock_row(event.host, event.by, event.until)
    tell(batch, event.at, "host", name=event.host, to="locked", by=event.by)


def _host_unlocked(batch: Batch, cluster: "Cluster", event: e.HostUnlocked) -> None:
    batch.standing[v.HOST_LOCK, event.host] = None
    tell(batch, event.at, "host", name=event.host, to="unlocked", by=event.by)


def _host_group_changed(batch: Batch, cluster: "Cluster", event: e.HostGroupChanged) -> None:
    batch.standing[v.HOST_GROUP, event.group] = v.host_group_row(event.group, event.change)
    words = {"to": "added" if event.is_added else "deleted", "group": event.group}
    for host in event.hosts:
        tell(batch, event.at, "host", name=host, by=event.by, comment=event.comment, **words)


def _host_changed(batch: Batch, cluster: "Cluster", name: str) -> None:
    batch.hosts[name] = v.host_row(cluster.hosts[name])


def _queue_ruled(batch: Batch, event: e.QueueRuled, queues: QueueStates) -> None:
    batch.queues[event.queue] = (
        event.queue,
        int(event.is_open),
        int(event.is_active),
        v.clean(event.by),
        event.at,
        v.clean(event.comment),
    )
    words = {"name": event.queue, "by": event.by, "comment": event.comment}
    was_open, was_active = queues.get(event.queue, (True, True))
    queues[event.queue] = (event.is_open, event.is_active)
    if was_open is not event.is_open:
        tell(batch, event.at, "queue", to="open" if event.is_open else "closed", **words)
    if was_active is not event.is_active:
        tell(batch, event.at, "queue", to="active" if event.is_active else "inactive", **words)


def _reservation_set(batch: Batch, cluster: "Cluster", event: e.ReservationSet) -> None:
    standing, name = batch.standing, event.reservation.name
    standing[v.RESERVATION, name] = v.reservation_row(event.reservation)
    if event.number >= 0:
        row = (v.RESERVATION_NUMBER, event.holder, str(event.number))
        standing[v.RESERVATION_NUMBER, event.holder] = row


def _reservation_removed(batch: Batch, cluster: "Cluster", event: e.ReservationRemoved) -> None:
    batch.standing[v.RESERVATION, event.name] = None


def _job_group_set(batch: Batch, cluster: "Cluster", event: JobGroupSet) -> None:
    batch.standing[v.JOB_GROUP, event.group.path] = v.job_group_row(event.group)


def _job_groups_removed(batch: Batch, cluster: "Cluster", event: JobGroupsRemoved) -> None:
    batch.standing.update(((v.JOB_GROUP, path), None) for path in event.paths)


HANDLERS: dict[type, Callable[[Batch, "Cluster", Any], None]] = {  # besides QueueRuled
    e.HostJoined: _host_joined,
    e.HostClosed: _host_closed,
    e.HostOpened: _host_opened,
    e.HostRevoked: _host_revoked,
    e.HostRemoved: _host_removed,
    e.HostLocked: _host_locked,
    e.HostUnlocked: _host_unlocked,
    e.HostGroupChanged: _host_group_changed,
    e.LockIdAttached: _lock_id_attached,
    e.LockIdsRemoved: _lock_ids_removed,
    e.ReservationSet: _reservation_set,
    e.ReservationRemoved: _reservation_removed,
    JobGroupSet: _job_group_set,
    JobGroupsRemoved: _job_groups_removed,
}
