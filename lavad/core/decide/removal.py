"""Removal of hosts from the cluster (badmin hremove).

Attempts on such a host count as lost, as when the host itself says that it does not know them. The host is removed when
nothing refers to it any more; jobs of several hosts may have to end elsewhere before.
"""

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.decide import reports
from lavad.core.decide.decision import Decision, denial
from lavad.core.model import Key
from lavad.core.model.reasons import Refused
from lavad.core.state.records import Host

NAMED_MAX = 5  # reservations named in one sentence


def check(cluster: Cluster, command: c.RemoveHost) -> Host:
    """The host, if it can be removed now.

    Raises:
        Refused: it can't be removed, with the reason.
    """
    name, host = command.host, cluster.hosts.get(command.host)
    if not command.caller.is_administrator:
        raise Refused(denial(command.caller))
    if host is None:
        raise Refused(f"{name}: Bad host name, host group name or cluster name")
    if host.is_connected and not host.is_silent and host.attempts:
        raise Refused(
            f"Host <{name}> is connected and runs jobs: close it and wait for their ends, or stop its agent first"
        )
    reserved = [one.name for one in cluster.reserved.by_name.values() if any(name == part for part, _ in one.hosts)]
    if reserved:
        raise Refused(
            f"Host <{name}> is in advance reservations: remove {', '.join(sorted(reserved)[:NAMED_MAX])} first"
        )
    return host


def remove(cluster: Cluster, command: c.RemoveHost, now: float) -> Decision:
    """Remove a host (badmin hremove) after ending what is on it; the reply is True when it is removed, False to ask
    again."""
    host = check(cluster, command)
    name, by = command.host, command.caller.user
    if host.attempts:
        decision = Decision([e.HostClosed(now, name, by, command.comment)], reply=False)
        for key in list(host.attempts):
            _lose(cluster, name, key, f"{name} was removed from the cluster", now, decision)
        return decision
    why = f"{name} was removed from the cluster"
    dropped = [e.ClaimDropped(now, job, index, why) for job, index in host.claims]
    if any(_refers(cluster, key, name) for key in cluster.attempts):
        return Decision(list(dropped), reply=False)
    return Decision([*dropped, e.HostRemoved(now, name, by, command.comment)], reply=True)


def _lose(cluster: Cluster, name: str, key: Key, why: str, now: float, decision: Decision) -> None:
    attempt = cluster.attempts[key]
    job = cluster.holder_of(attempt)
    if job is None:
        decision.events.append(e.HostReleased(now, key, name, assumed=True))
        return
    lost = reports.part_gone(cluster, job, attempt, name, now, why)
    decision.events.extend(lost.events)
    decision.orders.extend(lost.orders)


def _refers(cluster: Cluster, key: Key, name: str) -> bool:
    """True if a live attempt of several hosts still has this one."""
    attempt = cluster.attempts[key]
    return not attempt.over and len(attempt.booked) > 1 and any(share.host == name for share in attempt.booked)
