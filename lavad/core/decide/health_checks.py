"""Closing and reopening of hosts by their health checks.

A bad check closes a host that is open; only a good one, or an administrator, opens it again. A host that an
administrator or its exit rate has closed is left as it is. Checks that find fault with every host are at fault
themselves: they close no more than half of the hosts.
"""

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import Decision
from lavad.core.model.host_config import BY_HOST
from lavad.core.state.records import Host

BY = "health check"  # recorded as the administrator who closed the host
CLOSED_SHARE_MAX = 0.5


def checked(cluster: Cluster, command: c.HostChecked, now: float) -> Decision:
    """Decide what the result of a check means for its host."""
    host = cluster.hosts.get(command.host)
    if host is None:
        return Decision()
    if command.is_good and host.closed_by == BY:
        return Decision([_well(host, now)])
    if command.is_bad and not host.closed_by and may_close(cluster):
        return Decision([e.HostClosed(now, command.host, BY, f"health check: {command.text}")])
    return Decision()


def _well(host: Host, now: float) -> e.Event:
    """Event that undoes the closing; a host that will be taken away stays closed for that."""
    if host.leaves_at:
        return e.HostClosed(now, host.facts.name, BY_HOST, "the host will be taken away")
    return e.HostOpened(now, host.facts.name, BY, "")


def may_close(cluster: Cluster) -> bool:
    """True if the checks may close one host more."""
    servers = [host for host in cluster.hosts.values() if host.facts.server]
    closed = sum(1 for host in servers if host.closed_by == BY)
    return closed < max(1, int(len(servers) * CLOSED_SHARE_MAX))
