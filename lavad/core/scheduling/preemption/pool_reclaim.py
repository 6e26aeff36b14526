"""Capacity pools in a pass: priority of pool jobs, limits of pools, and reclaim of lent resources.

Jobs within their pool's own go before all that would borrow, so that released resources are not lent again at once. A
pool reclaims what others have borrowed: elastic jobs shrink, and if that is not enough the newest and smallest jobs are
requeued, whole jobs only. No borrower is left with less than its own share.
"""

import heapq
from collections.abc import Iterator, Sequence

from lavad.core.cluster import Cluster
from lavad.core.model import Allocation, Key
from lavad.core.plan import Start
from lavad.core.scheduling.preemption.lent_resources import is_within_reach, leaving, shares_of
from lavad.core.scheduling.preemption.victims import PreemptionMode, Together, Victim
from lavad.core.scheduling.queueing.ordering import Rank
from lavad.core.state.pending import BucketKey
from lavad.core.state.pools import GPUS, MEMORY, NOBODY, SLOTS, PoolState, least

_AHEAD = 1 << 24  # larger than any difference of queue priorities


class PoolUsers:
    """Pools in one slice, including what the slice has started."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.pools = cluster.pools
        claims = [(self._number(job), claim.allocation) for (job, _), claim in cluster.claims.items()]
        self.lots = PoolState(cluster.pools, claims)
        self._unlent = [number for number, pool in enumerate(self.pools.pools) if not pool.lends]

    def _number(self, job: int) -> int:
        shared = self.cluster.jobs[job].shared
        return self.pools.number_of(shared.user, shared.queue)

    def number_of(self, key: BucketKey) -> int:
        """Number of the pool of a bucket's jobs."""
        return self.pools.number_of(key.kind.user, key.queue)

    def ranked(self, key: BucketKey, rank: Rank) -> Rank:
        """Rank of the bucket, before all others while its next job is within its pool's own."""
        return rank._replace(queue=rank.queue - _AHEAD) if self.is_owed(key) else rank

    def is_owed(self, key: BucketKey) -> bool:
        """True if the bucket's next job would stay within its pool's own."""
        return self.lots.is_owed(self.number_of(key), least(key.request))

    def admits(self, key: BucketKey) -> bool:
        """True if the minimum of the bucket's next job is within its pool's maximum."""
        return not self.lots.beyond(self.number_of(key), least(key.request))

    def admits_there(self, key: BucketKey, allocation: Allocation, starts: list[Start]) -> bool:
        """True if the allocation is within the pool's maximum and spares the guarantees of pools with LOAN = N."""
        return self.admits_more(self.number_of(key), allocation, starts)

    def admits_more(self, number: int, allocation: Allocation, starts: Sequence[Start] = ()) -> bool:
        """The same check by pool number, for growth of running jobs as well."""
        if self.lots.beyond(number, self.pools.amounts(number, allocation)):
            return False
        return all(self._leaves_enough(other, allocation, starts) for other in self._unlent if other != number)

    def _leaves_enough(self, other: int, allocation: Allocation, starts: Sequence[Start]) -> bool:
        """True if the unused part of the other pool's guarantee still fits beside the allocation."""
        guaranteed, used = self.pools.pools[other].guaranteed, self.lots.used[other]
        taken = self.pools.amounts(other, allocation)
        if not any(taken[name] for name in guaranteed):
            return True
        free = self._free(other)
        for start in starts:
            for name, amount in self.pools.amounts(other, start.allocation).items():
                free[name] -= amount
        return all(free[name] - taken[name] >= most - used[name] for name, most in guaranteed.items() if taken[name])

    def _free(self, number: int) -> dict[str, float]:
        """Free resources of a pool's hosts at the beginning of the slice."""
        table, hosts = self.cluster.table, self.pools.pools[number].hosts
        rows = [row for row, name in enumerate(table.names) if table.is_open(row) and name in hosts]
        return {
            SLOTS: float(table.slots_free[rows].clip(0).sum()),
            MEMORY: float(table.memory_free_mib[rows].clip(0).sum()),
            GPUS: float(table.gpus_free[rows].sum()),
        }

    def note(self, key: BucketKey, allocation: Allocation) -> None:
        """Record the start of a job of the bucket."""
        self.lots.note(self.number_of(key), allocation)

    # -- reclaim -----------------------------------------------------------------------------------------------------

    def borrowers(self, number: int) -> Iterator[Victim]:
        """Jobs that each could be requeued for a pool: newest first, of those started together the smallest first."""
        surplus = self._surpluses(number)
        for key in self._newest_first():
            attempt = self.cluster.attempts[key]
            other = self.pools.pool_of(key)
            if other == number or attempt.takes_whole_hosts or not is_within_reach(self.cluster, attempt):
                continue
            shares = shares_of(self.cluster, key)
            if not self._is_among(number, shares):
                continue
            if other == NOBODY or _is_within(surplus[other], self.pools.amounts(other, shares)):
                yield Victim(key, PreemptionMode.REQUEUE, shares)

    def elastic(self, number: int) -> list[Key]:
        """Elastic jobs of other pools that could shrink for a pool, in the same order."""
        resizable = self.cluster.resizable
        every = [(-one.started_at, one.slots, key) for key, one in resizable.items() if key in self.cluster.preemptable]
        others = [key for _, _, key in sorted(every) if self.pools.pool_of(key) != number]
        near = [key for key in others if self._is_among(number, resizable[key].allocation)]
        return [key for key in near if is_within_reach(self.cluster, resizable[key])]

    def _is_among(self, number: int, shares: Allocation) -> bool:
        """True if one of the shares is on the pool's hosts."""
        hosts = self.pools.pools[number].hosts
        return any(share.host in hosts for share in shares)

    def leave_enough(self, number: int) -> Together:
        """Predicate for sets of victims: every pool keeps its own."""
        surplus = self._surpluses(number)

        def may_go_together(victims: Sequence[Victim]) -> bool:
            taken: dict[int, dict[str, float]] = {}
            for victim in victims:
                other = self.pools.pool_of(victim.key)
                if other != NOBODY:
                    sums = taken.setdefault(other, {})
                    for name, amount in self.pools.amounts(other, victim.gives).items():
                        sums[name] = sums.get(name, 0.0) + amount
            return all(_is_within(surplus[other], amounts) for other, amounts in taken.items())

        return may_go_together

    def _surpluses(self, number: int) -> dict[int, dict[str, float]]:
        return {other: self._surplus(other) for other in range(len(self.pools.pools)) if other != number}

    def _newest_first(self) -> list[Key]:
        preemptable, attempts = self.cluster.preemptable, self.cluster.attempts
        every = heapq.merge(*(preemptable.entries(queue) for queue in preemptable.queues))
        return [key for _, _, key in sorted((-started, attempts[key].slots, key) for started, key in every)]

    def _surplus(self, number: int) -> dict[str, float]:
        """Usage of a pool beyond its own, without what is about to be released."""
        used = dict(self.pools.used[number])
        for key, share in leaving(self.cluster):
            if self.pools.pool_of(key) == number:
                for name, amount in self.pools.amounts(number, (share,)).items():
                    used[name] -= amount
        return {name: amount - self.pools.entitled(number, name) for name, amount in used.items()}


def _is_within(surplus: dict[str, float], amounts: dict[str, float]) -> bool:
    """True if each amount is within the surplus."""
    return all(amount <= max(0.0, surplus[name]) for name, amount in amounts.items() if amount)
