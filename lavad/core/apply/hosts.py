"""Events of hosts and of the configuration: one function each. Nothing is decided here."""

from collections.abc import Callable
from typing import Any

from lavad.core import events as e
from lavad.core.apply.reconfigure import note_exclusive, take_policy
from lavad.core.apply.tasks.activity import session_began
from lavad.core.apply.tasks.events import note
from lavad.core.cluster import Cluster
from lavad.core.model import HostFacts
from lavad.core.model.host_config import BY_HOST, as_configured
from lavad.core.state.records import Host, LockId, QueueState


def _host_joined(cluster: Cluster, event: e.HostJoined) -> None:
    facts = as_configured(cluster.policy, event.facts)
    host = cluster.hosts.get(event.facts.name)
    if host is None:
        host = cluster.hosts[event.facts.name] = Host(facts, cluster.table.add(facts), cluster.unentered, event.facts)
        cluster.pools.note_host(facts.name, facts.slots)
    else:
        host.offered = event.facts
        change_facts(cluster, host, facts)
    note_exclusive(cluster, facts)
    for key in host.attempts:
        session_began(cluster.attempts[key], facts.name)
    host.incarnation = event.incarnation
    host.is_connected, host.is_silent, host.seen_at = True, False, event.at
    host.avoid_until = 0.0
    refresh_host(cluster, host, event.at)


def _host_silenced(cluster: Cluster, event: e.HostSilenced) -> None:
    host = cluster.hosts[event.host]
    host.is_silent = True
    refresh_host(cluster, host, event.at)


def _host_heard(cluster: Cluster, event: e.HostHeard) -> None:
    host = cluster.hosts[event.host]
    host.is_silent = False
    refresh_host(cluster, host, event.at)


def _host_disconnected(cluster: Cluster, event: e.HostDisconnected) -> None:
    host = cluster.hosts[event.host]
    host.is_connected = False
    refresh_host(cluster, host, event.at)


def _host_trusted(cluster: Cluster, event: e.HostTrusted) -> None:
    host = cluster.hosts[event.host]
    host.avoid_until = 0.0
    refresh_host(cluster, host, event.at)


def _user_kept_off(cluster: Cluster, event: e.UserKeptOff) -> None:
    if event.host in cluster.table.rows:
        cluster.limits.keep_off(event.user, cluster.table.rows[event.host], event.until, event.lacking)


def _host_closed(cluster: Cluster, event: e.HostClosed) -> None:
    host = cluster.hosts[event.host]
    host.closed_by, host.comment = event.by, event.comment
    refresh_host(cluster, host, event.at)


def _host_opened(cluster: Cluster, event: e.HostOpened) -> None:
    host = cluster.hosts[event.host]
    if event.by != BY_HOST:  # a check or an administrator has found it good: what it refused before counts no more
        host.closed_by, host.comment, host.revoked_at = "", event.comment, 0.0
        host.avoid_until = 0.0
        cluster.exit_rates.forget(event.host)
    elif host.closed_by == BY_HOST:
        host.closed_by, host.comment = "", event.comment
    host.noticed_at = host.told_end = 0.0
    _note_spares(cluster, host)
    refresh_host(cluster, host, event.at)


def _note_spares(cluster: Cluster, host: Host) -> None:
    """Note the jobs of tasks that may replace tasks on a host that has been opened."""
    for attempt in map(cluster.attempts.__getitem__, host.attempts):
        if attempt.tasks is not None and attempt.tasks.replacement is not None and not attempt.over:
            job = cluster.element(attempt.key.job, attempt.key.index)
            if job is not None:
                note(cluster, job)  # its places there are spares again


def _lock_id_attached(cluster: Cluster, event: e.LockIdAttached) -> None:
    host = cluster.hosts[event.host]
    host.lock_ids[event.lock_id] = LockId(event.by, event.at, event.comment)
    refresh_host(cluster, host, event.at)


def _lock_ids_removed(cluster: Cluster, event: e.LockIdsRemoved) -> None:
    host = cluster.hosts[event.host]
    for lock_id in event.lock_ids:
        host.lock_ids.pop(lock_id, None)
    if not host.is_closed:
        _note_spares(cluster, host)
    refresh_host(cluster, host, event.at)


def _host_revoked(cluster: Cluster, event: e.HostRevoked) -> None:
    host = cluster.hosts[event.host]
    if event.by == BY_HOST:
        host.noticed_at = event.until
    else:
        host.revoked_at = event.until
    if event.by != BY_HOST or not host.closed_by:
        host.closed_by, host.comment = event.by, event.comment
    host.told_end = 0.0
    refresh_host(cluster, host, event.at)


def _host_locked(cluster: Cluster, event: e.HostLocked) -> None:
    host = cluster.hosts[event.host]
    host.lock = event.by, event.until
    cluster.locked_hosts.add(event.host)
    refresh_host(cluster, host, event.at)


def _host_unlocked(cluster: Cluster, event: e.HostUnlocked) -> None:
    host = cluster.hosts[event.host]
    host.lock = None
    cluster.locked_hosts.discard(event.host)
    refresh_host(cluster, host, event.at)


def _host_told_end(cluster: Cluster, event: e.HostToldEnd) -> None:
    cluster.hosts[event.host].told_end = event.until


def _host_removed(cluster: Cluster, event: e.HostRemoved) -> None:
    host = cluster.hosts.pop(event.host)
    cluster.hosts_to_check.discard(event.host)
    cluster.locked_hosts.discard(event.host)
    cluster.exit_rates.forget(event.host)
    cluster.table.remove(host.row)
    cluster.pools.note_host(event.host, -host.facts.slots)


def change_facts(cluster: Cluster, host: Host, facts: HostFacts) -> None:
    """Put other facts of a host into effect; its allocations stay."""
    if host.facts != facts:
        cluster.table.resize(host.row, host.facts, facts)
        cluster.pools.note_host(facts.name, facts.slots - host.facts.slots)
        host.facts = facts


def _policy_changed(cluster: Cluster, event: e.PolicyChanged) -> None:
    take_policy(cluster, event.policy)
    for host in cluster.hosts.values():
        change_facts(cluster, host, as_configured(cluster.policy, host.offered))
        note_exclusive(cluster, host.facts)
        refresh_host(cluster, host, event.at)


def _host_group_changed(cluster: Cluster, event: e.HostGroupChanged) -> None:
    """Keep the change; the policy that follows has it."""
    if event.change:
        cluster.group_changes[event.group] = event.change
    else:
        cluster.group_changes.pop(event.group, None)


def _queue_ruled(cluster: Cluster, event: e.QueueRuled) -> None:
    cluster.queue_states[event.queue] = QueueState(event.is_open, event.is_active, event.by, event.at, event.comment)
    cluster.take_queue_states()


def _host_window_changed(cluster: Cluster, event: e.HostWindowChanged) -> None:
    host = cluster.hosts[event.host]
    host.is_shut = not event.is_open
    refresh_host(cluster, host, event.at)


def refresh_host(cluster: Cluster, host: Host, now: float) -> None:
    """Tell the host table if this host takes jobs now."""
    cluster.table.set_usable(host.row, host.is_usable and host.avoid_until <= now)


HANDLERS: dict[type, Callable[[Cluster, Any], None]] = {
    e.HostJoined: _host_joined,
    e.HostSilenced: _host_silenced,
    e.HostHeard: _host_heard,
    e.HostWindowChanged: _host_window_changed,
    e.HostDisconnected: _host_disconnected,
    e.HostTrusted: _host_trusted,
    e.UserKeptOff: _user_kept_off,
    e.HostClosed: _host_closed,
    e.HostOpened: _host_opened,
    e.HostRevoked: _host_revoked,
    e.HostToldEnd: _host_told_end,
    e.HostRemoved: _host_removed,
    e.HostLocked: _host_locked,
    e.HostUnlocked: _host_unlocked,
    e.LockIdAttached: _lock_id_attached,
    e.LockIdsRemoved: _lock_ids_removed,
    e.HostGroupChanged: _host_group_changed,
    e.PolicyChanged: _policy_changed,
    e.QueueRuled: _queue_ruled,
}
