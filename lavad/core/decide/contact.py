"""Contact with the hosts of an attempt, and what people are told where there is none."""

from lavad.core.cluster import Cluster
from lavad.core.records import Attempt


def is_in_contact(cluster: Cluster, attempt: Attempt, name: str) -> bool:
    """True where an order would reach the host, and where nothing is left on it that could be ordered anything."""
    host = cluster.hosts.get(name)
    return host is None or host.is_in_contact or name not in attempt.unreleased


def silent_hosts(cluster: Cluster, attempt: Attempt) -> list[str]:
    """Hosts that may still run a part of the attempt and have said nothing for too long."""
    hosts = [share.host for share in attempt.booked if share.host in attempt.unreleased]
    return [name for name in hosts if (host := cluster.hosts.get(name)) is not None and host.is_silent]


def named(hosts: list[str]) -> str:
    """The hosts as the subject of a sentence, with its verb: ``n1 is``, ``n1 and 3 more are``."""
    if len(hosts) == 1:
        return f"{hosts[0]} is"
    return f"{', '.join(hosts)} are" if len(hosts) < 4 else f"{hosts[0]} and {len(hosts) - 1} more are"
