"""Capacity pools at the start of jobs: the maximum of each pool, and guarantees that are not lent to all."""

from collections.abc import Hashable, Iterator

import numpy as np

from lavad.core.cluster_view import ClusterView
from lavad.core.language.numbers import number_text
from lavad.core.model import Allocation
from lavad.core.model.demand import Demand
from lavad.core.model.reasons import POOL_LIMIT, PendingReason
from lavad.core.model.rules.names import ALL, Names
from lavad.core.scheduling.capacity.constraint import NO_LIMIT, Constraint, Limit, Obstacle, Refusal
from lavad.core.state.pools import GPUS, MEMORY, NOBODY, SLOTS, PoolState, least

_GUARANTEED = POOL_LIMIT.saying("What is free is guaranteed to another capacity pool")


class PoolUsers(Constraint):
    """Use of pools in one slice, including what the slice has started and what claims hold."""

    changes_with_time = False
    counts_claims = True

    def __init__(self, cluster: ClusterView) -> None:
        self._cluster = cluster
        self._pools = cluster.pools
        claims = [(self._number(job, index), claim.allocation) for (job, index), claim in cluster.claims.items()]
        self._state = PoolState(cluster.pools, claims)
        every = enumerate(self._pools.pools)
        self._unlent = [number for number, pool in every if not pool.lends or pool.borrowers != ALL]
        self._kept_from: dict[str, list[int]] = {}  # by queue
        self._free: dict[int, dict[str, float]] = {}  # of unlent pools' hosts, less what the slice has taken
        self._free_in_all: dict[str, float] = {}  # of all hosts; not kept up

    def _number(self, job: int, index: int) -> int:
        return self._pools.number_of(self._cluster.bearer(job, index).shared)

    def number_of(self, demand: Demand) -> int:
        """Number of the job's pool; of a running job, that of its dispatch."""
        if demand.attempt is not None:
            return self._pools.pool_of(demand.attempt)
        return self._pools.number_of(demand)

    def _unlent_to(self, queue: str) -> list[int]:
        """Numbers of the pools that do not lend to jobs of the queue."""
        found = self._kept_from.get(queue)
        if found is None:
            pools = self._pools.pools
            found = self._kept_from[queue] = [
                number for number in self._unlent if not (pools[number].lends and queue in pools[number].borrowers)
            ]
        return found

    def is_owed(self, demand: Demand) -> bool:
        """True if the job would stay within its pool's own."""
        return self._state.is_owed(self.number_of(demand), least(demand.request))

    def limit(self, demand: Demand) -> Limit:
        """Return no limit: a pool's amounts are of several hosts together, so that allocations are checked."""
        return NO_LIMIT

    def is_checked(self, demand: Demand) -> bool:
        """True if the job's pool has a maximum, or another pool does not lend to it."""
        number = self.number_of(demand)
        return bool(self._unlent_to(demand.queue)) or (number != NOBODY and bool(self._pools.pools[number].largest))

    def kind_of(self, demand: Demand) -> Hashable:
        """Return the number of the job's pool; its queue, to which some pools do not lend, is part of the key."""
        return self.number_of(demand)

    def why(self, demand: Demand, allocation: Allocation | None = None) -> Obstacle | None:
        """Return an obstacle at the pool's maximum, or where a guarantee would be used that is not lent to it.

        What others release to the job is not the pools' to lend, and its size was checked before.
        """
        if allocation and demand.given:
            return None
        number = self.number_of(demand)
        short = self._state.beyond(number, self._amounts(number, demand, allocation))
        if short:
            pool = self._pools.pools[number]
            told = f"Pool: {pool.name}, Resource: {short}, Limit Value: {number_text(pool.largest[short])}"
            return Obstacle(Refusal.FORBIDDEN, POOL_LIMIT.with_details(told))
        others = self._unlent_to(demand.queue) if allocation else ()
        if all(self._leaves_enough(other, allocation or ()) for other in others if other != number):
            return None
        return Obstacle(Refusal.FORBIDDEN, _GUARANTEED)

    def _amounts(self, number: int, demand: Demand, allocation: Allocation | None) -> dict[str, float]:
        return self._pools.amounts(number, allocation) if allocation else least(demand.request)

    def _leaves_enough(self, other: int, allocation: Allocation) -> bool:
        """True if the unused part of the other pool's guarantee still fits beside the allocation."""
        guaranteed, used = self._pools.guaranteed(other), self._state.used[other]
        taken = self._pools.amounts(other, allocation)
        if not any(taken[name] for name in guaranteed):
            return True
        free = self._free_for(other)
        return all(free[name] - taken[name] >= most - used[name] for name, most in guaranteed.items() if taken[name])

    def _free_for(self, number: int) -> dict[str, float]:
        """Free resources of a pool's hosts."""
        found = self._free.get(number)
        if found is None:
            found = self._free[number] = self._free_on(self._pools.pools[number].hosts)
        return found

    def _free_on(self, hosts: Names) -> dict[str, float]:
        """Free resources of these hosts, as far as they accept jobs."""
        table = self._cluster.table
        among = table.cached(("in pool", hosts), lambda: np.array([name in hosts for name in table.names], np.bool_))
        count = len(table.names)
        rows = np.flatnonzero(among & table.usable[:count] & ~table.taken_whole[:count])
        if table.kept:
            rows = rows[[table.is_open(int(row)) for row in rows]]
        return {
            SLOTS: float(table.slots_free[rows].clip(0).sum()),
            MEMORY: float(table.memory_free_mib[rows].clip(0).sum()),
            GPUS: float(table.gpus_free[rows].sum()),
        }

    def reasons(self, demand: Demand) -> Iterator[PendingReason]:
        """Yield the reasons for which no allocation is allowed; also a guarantee that leaves too little of all."""
        yield from super().reasons(demand)
        number, others = self.number_of(demand), self._unlent_to(demand.queue)
        in_the_way = [other for other in others if other != number and self._leaves_too_little(other, demand)]
        if in_the_way and not demand.given:
            names = " ".join(self._pools.pools[other].name for other in in_the_way)
            yield PendingReason(_GUARANTEED.with_details(f"Pool: {names}"))

    def _leaves_too_little(self, other: int, demand: Demand) -> bool:
        """True if the job would fit into what is free, but not beside the unused part of the other's guarantee."""
        self._free_in_all = every = self._free_in_all or self._free_on(ALL)
        wanted, inside = least(demand.request), self._free_for(other)
        guaranteed, used = self._pools.guaranteed(other), self._state.used[other]
        kept = {name: min(inside[name], max(0.0, most - used[name])) for name, most in guaranteed.items()}
        return any(every[name] - amount < wanted[name] <= every[name] for name, amount in kept.items() if wanted[name])

    def take(self, demand: Demand, allocation: Allocation, sign: int = 1) -> None:
        """Deduct the allocation of a job that starts or, with ``sign`` -1, give it back."""
        for other in self._unlent:
            free = self._free_for(other)
            for name, amount in self._pools.amounts(other, allocation).items():
                free[name] -= sign * amount
        self._state.note(self.number_of(demand), allocation, sign)


def pool_users_of(cluster: ClusterView, _: float) -> PoolUsers | None:
    """Use of the cluster's capacity pools; None if it has none."""
    return PoolUsers(cluster) if cluster.pools else None
