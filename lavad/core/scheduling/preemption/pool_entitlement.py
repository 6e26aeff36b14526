"""What a pool may take back: what it has some of its own of, where that is short, and only on its hosts.

Jobs that are ended for a pool leave more than that: room on other hosts, licences, memory where slots are guaranteed.
What else is short on a host may come with what is the pool's own, for a slot is of no use without its memory; but
licences and other resources of the site are guaranteed to nobody.
"""

import numpy as np

from lavad.core.cluster import Cluster
from lavad.core.model import Allocation, HostShare
from lavad.core.model.policy import ALL
from lavad.core.scheduling.preemption.lent_resources import bits, leaving
from lavad.core.scheduling.preemption.victim_search import VictimSet
from lavad.core.state.advance_reservations import Slots
from lavad.core.state.hosts.table import HostTable
from lavad.core.state.pools import GPUS, MEMORY, SLOTS


def most_slots(cluster: Cluster, number: int) -> Slots | None:
    """Slots of each host for a job that takes back: on other hosts than the pool's only those that nobody has, or will
    have soon. None: all, for the pool's hosts are all there are."""
    hosts = cluster.pools.pools[number].hosts
    if hosts == ALL:
        return None
    table = _soon(cluster)
    is_of_pool = np.array([name in hosts for name in table.names], dtype=bool)
    return np.where(is_of_pool, np.iinfo(np.int64).max, table.slots_free[: len(table)])


def is_entitled_to(cluster: Cluster, number: int, clearing: VictimSet) -> bool:
    """Is it the pool's own that the victims make room for, as far as there are any?"""
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


def _soon(cluster: Cluster) -> HostTable:
    """A table of its own, with all that jobs are about to give back."""
    table = cluster.table.copy()
    for _, share in leaving(cluster):
        table.give_back(table.rows[share.host], share, False)
    return table


def _short_of(table: HostTable, share: HostShare) -> set[str]:
    """Of what too little is free there. Whether parts of a device are is not asked: they count as short."""
    row = table.rows[share.host]
    is_short = {
        SLOTS: share.slots > table.slots_free[row],
        MEMORY: share.memory_mib > table.memory_free_mib[row],
        GPUS: bool(share.gpu_memory_mib) or bool(bits(share) & ~table.gpu_free[row]),
    }
    return {name for name, short in is_short.items() if short}


def _has_resources(table: HostTable, allocation: Allocation) -> bool:
    """Are all the resources of the site free that it takes? They are taken from the table."""
    for share in allocation:
        table.move_resources(table.rows[share.host], share.resources, 1)
    taken = [(table.rows[share.host], one.name) for share in allocation for one in share.resources]
    stores = [amounts.store(row) for row, name in taken if (amounts := table.site.amounts(name)) is not None]
    return all(store is None or store.free >= 0 for store in stores)
