"""Reclaim of resources that capacity pools have lent.

A pool reclaims what others have borrowed: elastic jobs shrink, and if that is not enough the newest and smallest jobs
are requeued, whole jobs only. No borrower is left with less than its own share.
"""

import heapq
from collections.abc import Iterator, Sequence

from lavad.core.cluster_view import ClusterView
from lavad.core.model import Allocation, Key
from lavad.core.scheduling.preemption.lent_resources import is_within_reach, leaving, shares_of
from lavad.core.scheduling.preemption.victim import PreemptionMode, Together, Victim
from lavad.core.state.pools import NOBODY


class LentByPools:
    """Resources of pools that others use, and the jobs that could give them back."""

    def __init__(self, cluster: ClusterView) -> None:
        self.cluster = cluster
        self.pools = cluster.pools

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
