"""Contact with the hosts of an attempt, and the words for users if there is none."""

import math

from lavad.core.cluster import Cluster
from lavad.core.state.attempts import Attempt
from lavad.core.state.leases import ends_at


def is_in_contact(cluster: Cluster, attempt: Attempt, name: str) -> bool:
    """True if orders reach the host, or if nothing of the attempt is left there to give orders to."""
    host = cluster.hosts.get(name)
    return host is None or host.is_in_contact or name not in attempt.unreleased


def is_in_contact_without(cluster: Cluster, attempt: Attempt, name: str) -> bool:
    """True if orders reach all hosts of the attempt but this one."""
    return all(share.host == name or is_in_contact(cluster, attempt, share.host) for share in attempt.allocation)


def silent_hosts(cluster: Cluster, attempt: Attempt) -> list[str]:
    """Silent hosts that have not released the attempt."""
    hosts = [share.host for share in attempt.booked if share.host in attempt.unreleased]
    return [name for name in hosts if (host := cluster.hosts.get(name)) is not None and host.is_silent]


def when_back(cluster: Cluster, attempt: Attempt, hosts: list[str], now: float) -> str:
    """Time at which nothing of the attempt runs on these hosts any more, in words."""
    end = max(ends_at(attempt, cluster.hosts[name]) for name in hosts)
    back = "when the host is back" if len(hosts) == 1 else "when these hosts are back"
    return back if math.isinf(end) else f"{back}, or in {max(0.0, end - now):.0f} s, when what ran there has been ended"


def named(hosts: list[str]) -> str:
    """The hosts as the subject of a sentence, with its verb: ``n1 is``, ``n1 and 3 more are``."""
    if len(hosts) == 1:
        return f"{hosts[0]} is"
    return f"{', '.join(hosts)} are" if len(hosts) < 4 else f"{hosts[0]} and {len(hosts) - 1} more are"
