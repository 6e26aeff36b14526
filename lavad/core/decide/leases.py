"""Expired leases: a silent host has ended what it ran under one, so those jobs end or are requeued."""

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import Decision
from lavad.core.decide.reports import part_gone
from lavad.core.model import Key
from lavad.core.state.leases import ends_at
from lavad.core.state.records import Host


def end_leases(cluster: Cluster, command: c.EndLeases, now: float) -> Decision:
    """End the attempts whose leases have expired, one host of an attempt at a time: the next host is decided upon what
    the attempt has become by then."""
    decision, decided = Decision(), set[Key]()
    for host in cluster.hosts.values() if cluster.has_leases else ():
        if not host.is_silent:
            continue
        for key in _ended(cluster, host, now):
            if key not in decided:
                decided.add(key)
                one = _end(cluster, key, host, now)
                decision.events.extend(one.events)
                decision.orders.extend(one.orders)
    return decision


def _ended(cluster: Cluster, host: Host, now: float) -> list[Key]:
    return [key for key in host.attempts if ends_at(cluster.attempts[key], host) < now]


def _end(cluster: Cluster, key: Key, host: Host, now: float) -> Decision:
    attempt, name = cluster.attempts[key], host.facts.name
    job = cluster.holder_of(attempt)
    if job is None:
        return Decision([e.HostReleased(now, key, name)])
    why = f"{name} was silent for longer than LAVA_FENCE_AFTER, so it has ended what it ran"
    return part_gone(cluster, job, attempt, name, now, why)
