"""Contact with the hosts of an attempt, and what people are told where there is none."""

import math

from lavad.core.cluster import Cluster
from lavad.core.state.leases import ends_at
from lavad.core.state.records import Attempt


def is_in_contact(cluster: Cluster, attempt: Attempt, name: str) -> bool:
    """True where an order would reach the host, and where nothing is left on it that could be ordered anything."""
    host = cluster.hosts.get(name)
    return host is None or host.is_in_contact or name not in attempt.unreleased


def silent_hosts(cluster: Cluster, attempt: Attempt) -> list[str]:
    """Hosts that may still run a part of the attempt and have said nothing for too long."""
    hosts = [share.host for share in attempt.booked if share.host in attempt.unreleased]
    return [name for name in hosts if (host := cluster.hosts.get(name)) is not None and host.is_silent]


def when_back(cluster: Cluster, attempt: Attempt, hosts: list[str], now: float) -> str:
    """The moment from which nothing of the attempt runs on these hosts, in words."""
    end = max(ends_at(attempt, cluster.hosts[name]) for name in hosts)
    back = "when the host is back" if len(hosts) == 1 else "when these hosts are back"
    return back if math.isinf(end) else f"{back}, or in {max(0.0, end - now):.0f} s, when what ran there has been ended"


def named(hosts: list[str]) -> str:
    """The hosts as the subject of a sentence, with its verb: ``n1 is``, ``n1 and 3 more are``."""
    if len(hosts) == 1:
        return f"{hosts[0]} is"
    return f"{', '.join(hosts)} are" if len(hosts) < 4 else f"{hosts[0]} and {len(hosts) - 1} more are"
