"""Allocation and release of attempts' host shares, with hosts, the host table and pools. No other module does it.

Invariant: a share is booked in all of them or in none.
"""

from collections.abc import Iterable

from lavad.core.apply import resize
from lavad.core.cluster import Cluster
from lavad.core.model import Allocation, HostShare, Key
from lavad.core.state.attempts import Attempt
from lavad.core.state.hosts import compute_units
from lavad.core.state.records import Host


def take(cluster: Cluster, attempt: Attempt, shares: Allocation) -> None:
    """Book host shares of an attempt, all or additional ones."""
    record = cluster.find_bearer(attempt.key.job, attempt.key.index)
    request = record.shared.request if record is not None else None
    attempt.takes_whole_hosts = request is not None and request.exclusive
    rows = cluster.table.rows_of(shares)
    cluster.unentered.note(attempt.key, shares)
    cluster.table.take_all(rows, shares, attempt.takes_whole_hosts)
    if request is not None and not request.is_basic:
        compute_units.keep(cluster.table, attempt, rows, request)
        cluster.timed_rusage.note(attempt, request)
    if cluster.pools:
        enter_in_pool(cluster, attempt, shares)


def hold_memory(cluster: Cluster, attempt: Attempt, more_mib: int) -> None:
    """Change the memory that a running attempt holds on each of its hosts."""
    before = attempt.allocation
    attempt.allocation = tuple([share._replace(memory_mib=share.memory_mib + more_mib) for share in before])
    cluster.changed_attempts.add(attempt.key)
    for old, new in zip(before, attempt.allocation, strict=True):
        host = cluster.hosts[old.host]
        if old.host in attempt.unreleased:
            host.attempts[attempt.key] = new
            cluster.table.give_back(host.row, old, attempt.takes_whole_hosts)
            cluster.table.take(host.row, new, attempt.takes_whole_hosts)
            if cluster.pools:
                cluster.pools.give_back(attempt.key, (old,), False)
                cluster.pools.take(attempt.key, cluster.pools.pool_of(attempt.key), (new,))


def enter_in_pool(cluster: Cluster, attempt: Attempt, shares: Iterable[HostShare]) -> None:
    """Count shares of an attempt in its job's pool."""
    record = cluster.find_bearer(attempt.key.job, attempt.key.index)
    if cluster.pools and record is not None:
        cluster.pools.take(attempt.key, cluster.pools.number_of(record.shared), shares)


def give_back_all(cluster: Cluster, key: Key) -> None:
    """Release the attempt from all hosts that still hold a share, at once."""
    attempt = cluster.attempts[key]
    names, attempt.unreleased = attempt.unreleased, frozenset()
    cluster.changed_attempts.add(key)
    shares, hosts = attempt.booked, cluster.hosts
    if len(names) < len(shares):
        shares = tuple([share for share in shares if share.host in names])
    if key in cluster.timed_rusage:
        for name in names:
            cluster.timed_rusage.take_again(cluster.table, key, name)
        cluster.timed_rusage.forget(key)
    if not cluster.unentered.drop(key, shares):
        for share in shares:
            del hosts[share.host].attempts[key]
    rows = cluster.table.rows_of(shares)
    cluster.table.give_back_all(rows, shares, attempt.takes_whole_hosts)
    compute_units.let_go(cluster.table, attempt, rows)
    if cluster.pools:
        cluster.pools.give_back(key, shares, True)
    if attempt.over:
        cluster.attempts.pop(key)


def give_back(cluster: Cluster, attempt: Attempt, name: str, at: float) -> None:
    """Release the attempt from one host, which has reported that nothing of it is left."""
    attempt.unreleased -= {name}
    if attempt.key in cluster.timed_rusage:
        cluster.timed_rusage.take_again(cluster.table, attempt.key, name)
        if not attempt.unreleased:
            cluster.timed_rusage.forget(attempt.key)
    cluster.changed_attempts.add(attempt.key)
    host = cluster.hosts.get(name)
    share = _leave(cluster, attempt, host) if host is not None else None
    if host is not None and share is not None:
        cluster.table.give_back(host.row, share, attempt.takes_whole_hosts)
        compute_units.let_go(cluster.table, attempt, (host.row,))
        if cluster.pools:
            cluster.pools.give_back(attempt.key, (share,), not attempt.unreleased)
    resize.host_left(cluster, attempt, name, at)
    if not attempt.unreleased and attempt.over:
        cluster.attempts.pop(attempt.key)


def _leave(cluster: Cluster, attempt: Attempt, host: Host) -> HostShare | None:
    """Remove the attempt's share from the host; return it, or None."""
    booked = attempt.booked
    if len(booked) == 1 and cluster.unentered.drop(attempt.key, booked):
        return booked[0]
    return host.attempts.pop(attempt.key, None)


def begin_lease(cluster: Cluster, attempt: Attempt) -> None:
    """Give a new attempt the configured lease, unless one of its hosts does not support leases."""
    known = (cluster.hosts.get(share.host) for share in attempt.allocation)
    if all(host is not None and host.facts.keeps_leases for host in known):
        attempt.lease_s = cluster.policy.fence_after_s
        cluster.has_leases = True


def keep_lease(cluster: Cluster, attempt: Attempt, lease_s: float) -> None:
    """Give a recovered attempt the lease that its hosts have, which may be none."""
    attempt.lease_s = lease_s
    cluster.has_leases = cluster.has_leases or bool(lease_s)
