"""The lease of an attempt, as it is begun or taken over; it never changes afterwards."""

from lavad.core.cluster import Cluster
from lavad.core.state.records import Attempt


def begin(cluster: Cluster, attempt: Attempt) -> None:
    """Give a new attempt the lease that the site has set, unless a host of it keeps none."""
    known = (cluster.hosts.get(share.host) for share in attempt.allocation)
    if all(host is not None and host.facts.keeps_leases for host in known):
        attempt.lease_s = cluster.policy.fence_after_s
        cluster.has_leases = True


def keep(cluster: Cluster, attempt: Attempt, lease_s: float) -> None:
    """Give an attempt that was found on its hosts the lease that it runs under there, which may be none."""
    attempt.lease_s = lease_s
    cluster.has_leases = cluster.has_leases or bool(lease_s)
