"""Pool entitlement: a pool reclaims only resources of which it has a share, only if they are short, and on its hosts.

Jobs requeued for a pool release more than that: slots on other hosts, licences, memory where slots are guaranteed.
Other resources short on a host may be reclaimed along with the pool's own, because a slot is of no use without its
memory; but no pool has a guarantee of licences and other cluster-wide resources.
"""

import numpy as np

from lavad.core.cluster_view import ClusterView
from lavad.core.model import Allocation, HostShare
from lavad.core.model.rules.names import ALL
from lavad.core.scheduling.preemption.lent_resources import bits, leaving
from lavad.core.scheduling.preemption.victim_search import VictimSet
from lavad.core.state.advance_reservations import Slots
from lavad.core.state.hosts.table import HostTable
from lavad.core.state.pools import GPUS, MEMORY, SLOTS


def most_slots(cluster: ClusterView, number: int) -> Slots | None:
    """Slots of each host for a job that reclaims: outside the pool's hosts only free ones, or those about to be.

    None: the pool contains all hosts.
    """
    hosts = cluster.pools.pools[number].hosts
    if hosts == ALL:
        return None
    table = _soon(cluster)
    is_of_pool = np.array([name in hosts for name in table.names], dtype=bool)
    return np.where(is_of_pool, np.iinfo(np.int64).max, table.slots_free[: len(table)])


def is_entitled_to(cluster: ClusterView, number: int, clearing: VictimSet) -> bool:
    """True if the victims release only what the pool has a share of, or there are no victims."""
    if not clearing.victims:
        return True
    table, pools = _soon(cluster), cluster.pools
    short = {share.host: names for share in clearing.allocation if (names := _short_of(table, share))}
    hosts = pools.pools[number].hosts
    return (
        bool(short)
        and all(host in hosts for host in short)
        and all(any(pools.entitled(number, name) for name in names) for names in short.values())
        and _has_resources(table, clearing.allocation)
    )


def _soon(cluster: ClusterView) -> HostTable:
    """Copy of the host table in which everything about to be released is free."""
    table = cluster.table.copy()
    for _, share in leaving(cluster):
        table.give_back(table.rows[share.host], share, False)
    return table


def _short_of(table: HostTable, share: HostShare) -> set[str]:
    """Names of the resources short for a share on its host; parts of a device always count as short."""
    row = table.rows[share.host]
    is_short = {
        SLOTS: share.slots > table.slots_free[row],
        MEMORY: share.memory_mib > table.memory_free_mib[row],
        GPUS: bool(share.gpu_memory_mib) or bool(bits(share) & ~table.gpu_free[row]),
    }
    return {name for name, short in is_short.items() if short}


def _has_resources(table: HostTable, allocation: Allocation) -> bool:
    """True if all cluster-wide resources of the allocation are free; they are taken from the table."""
    for share in allocation:
        table.move_resources(table.rows[share.host], share.resources, 1)
    taken = [(table.rows[share.host], one.name) for share in allocation for one in share.resources]
    stores = [amounts.store(row) for row, name in taken if (amounts := table.site.amounts(name)) is not None]
    return all(store is None or store.free >= 0 for store in stores)
