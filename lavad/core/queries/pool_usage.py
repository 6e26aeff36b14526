"""Capacity pools as shown to users: the resources of a pool's hosts, and their usage."""

from collections.abc import Iterator
from dataclasses import dataclass

from lavad.core.cluster_view import ClusterView
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.resources import Pool
from lavad.core.state.pools import GPUS, MEMORY, SLOTS

Amounts = dict[str, float]


@dataclass(frozen=True, slots=True)
class PoolUsage:
    """One resource of one pool; memory is in MiB.

    ``total`` and ``free`` count the pool's hosts that accept jobs now, for all pools. ``guaranteed`` is None where it
    is not configured, and of a percentage the whole slots it comes to. ``own`` is the pool's entitlement, and ``used``
    the usage of its jobs, which may exceed it.
    """

    pool: Pool
    resource: str
    total: float
    free: float
    guaranteed: float | None
    own: float
    used: float

    @property
    def borrowed(self) -> float:
        """Usage of its jobs beyond its own."""
        return max(0.0, self.used - self.own)

    @property
    def is_overcommitted(self) -> bool:
        """True if the entitlement exceeds the capacity of its hosts."""
        return self.own > self.total


def pool_usage(cluster: ClusterView) -> Iterator[PoolUsage]:
    """Each pool with the resources it names (slots by default), in the order of the file."""
    found: dict[Names, tuple[Amounts, Amounts]] = {}  # pools are often on the same hosts
    for number, pool in enumerate(cluster.pools.pools):
        if pool.hosts not in found:
            found[pool.hosts] = _on_hosts(cluster, pool.hosts)
        total, free = found[pool.hosts]
        spoken_of = {*cluster.pools.guaranteed(number), *pool.deserved, *pool.largest} or {SLOTS}
        for name in (SLOTS, MEMORY, GPUS):
            if name in spoken_of:
                own, used = cluster.pools.entitled(number, name), cluster.pools.used[number][name]
                guaranteed = cluster.pools.guaranteed(number).get(name)
                yield PoolUsage(pool, name, total[name], free[name], guaranteed, own, used)


def _on_hosts(cluster: ClusterView, names: Names) -> tuple[Amounts, Amounts]:
    """Total and free amounts of the hosts that accept jobs now."""
    table = cluster.table
    total, free = {SLOTS: 0.0, MEMORY: 0.0, GPUS: 0.0}, {SLOTS: 0.0, MEMORY: 0.0, GPUS: 0.0}
    for name, host in cluster.hosts.items():
        if not host.is_usable or name not in names:
            continue
        total[SLOTS] += host.facts.slots
        total[MEMORY] += host.facts.memory_mib
        total[GPUS] += host.facts.gpus
        free[SLOTS] += max(0, int(table.slots_free[host.row]))
        free[MEMORY] += max(0, int(table.memory_free_mib[host.row]))
        free[GPUS] += int(table.gpus_free[host.row])
    return total, free
