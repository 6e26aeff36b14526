"""Lease of an attempt, as it is dispatched or recovered; it never changes afterwards."""

from lavad.core.cluster import Cluster
from lavad.core.state.attempts import Attempt


def begin(cluster: Cluster, attempt: Attempt) -> None:
    """Give a new attempt the configured lease, unless one of its hosts does not support leases."""
    known = (cluster.hosts.get(share.host) for share in attempt.allocation)
    if all(host is not None and host.facts.keeps_leases for host in known):
        attempt.lease_s = cluster.policy.fence_after_s
        cluster.has_leases = True


def keep(cluster: Cluster, attempt: Attempt, lease_s: float) -> None:
    """Give a recovered attempt the lease that its hosts have, which may be none."""
    attempt.lease_s = lease_s
    cluster.has_leases = cluster.has_leases or bool(lease_s)
