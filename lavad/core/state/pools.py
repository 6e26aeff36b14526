"""Capacity pools: what the jobs of each use of slots, memory and GPUs, and what each is entitled to.

A job belongs to the first pool whose users and queues it is of, as of its dispatch. What a pool is entitled to is the
larger of its guaranteed and its deserved share; what it uses beyond that is borrowed. Jobs of no pool only borrow.
Kept by ``apply``; memory is in MiB.
"""

from collections.abc import Iterable, Mapping

from lavad.core.model import HostShare, Key, Request
from lavad.core.model.policy import Policy, Pool

SLOTS, MEMORY, GPUS = "slots", "mem", "gpus"
NOBODY = -1
_KINDS_KEPT = 100_000


class Pools:
    """All pools of a policy, by number, and what each uses. False where there are none."""

    def __init__(self, policy: Policy) -> None:
        self.pools: tuple[Pool, ...] = policy.pools
        self.used: list[dict[str, float]] = [{SLOTS: 0.0, MEMORY: 0.0, GPUS: 0.0} for _ in policy.pools]
        self.resources = frozenset(
            name for pool in policy.pools for part in (pool.guaranteed, pool.deserved, pool.largest) for name in part
        )
        self._numbers: dict[tuple[str, str], int] = {}
        self._of: dict[Key, int] = {}  # the pool that an attempt counts in

    def __bool__(self) -> bool:
        return bool(self.pools)

    def number_of(self, user: str, queue: str) -> int:
        """The pool of these jobs, or NOBODY."""
        found = self._numbers.get((user, queue))
        if found is None:
            if len(self._numbers) >= _KINDS_KEPT:
                self._numbers.clear()
            every = enumerate(self.pools)
            found = next((number for number, pool in every if user in pool.users and queue in pool.queues), NOBODY)
            self._numbers[user, queue] = found
        return found

    def pool_of(self, key: Key) -> int:
        """The pool that a dispatched attempt counts in."""
        return self._of.get(key, NOBODY)

    def entitled(self, number: int, resource: str) -> float:
        """What is the pool's own."""
        if number == NOBODY:
            return 0.0
        pool = self.pools[number]
        return max(pool.guaranteed.get(resource, 0.0), pool.deserved.get(resource, 0.0))

    def take(self, key: Key, number: int, shares: Iterable[HostShare]) -> None:
        """An attempt of that pool holds these shares now."""
        if number == NOBODY:
            return
        self._of[key] = number
        self._add(number, shares, 1)

    def give_back(self, key: Key, shares: Iterable[HostShare], is_last: bool) -> None:
        """It holds these no more; with the last it is forgotten."""
        number = self._of.get(key, NOBODY)
        if number == NOBODY:
            return
        self._add(number, shares, -1)
        if is_last:
            del self._of[key]

    def _add(self, number: int, shares: Iterable[HostShare], sign: int) -> None:
        used = self.used[number]
        for name, amount in self.amounts(number, shares).items():
            used[name] += sign * amount

    def amounts(self, number: int, shares: Iterable[HostShare]) -> dict[str, float]:
        """What shares come to on the pool's hosts; everywhere for jobs of no pool."""
        found = {SLOTS: 0.0, MEMORY: 0.0, GPUS: 0.0}
        for share in shares:
            if number == NOBODY or share.host in self.pools[number].hosts:
                found[SLOTS] += share.slots
                found[MEMORY] += share.memory_mib
                found[GPUS] += len(share.gpus)
        return found


def least(request: Request) -> dict[str, float]:
    """What a job of this request takes at the very least."""
    memory = gpus = 0.0
    for role in request.roles:
        memory += role.memory_mib
        gpus += role.gpus * (role.tasks_min if role.gpus_per_task else 1)
    return {SLOTS: float(request.slots_min), MEMORY: memory, GPUS: gpus}


class PoolState:
    """The pools' use while a slice decides: what is held, what is claimed, and what the slice has started."""

    def __init__(self, pools: Pools, claims: Iterable[tuple[int, Iterable[HostShare]]]) -> None:
        self._pools = pools
        self.used = [dict(used) for used in pools.used]
        for number, shares in claims:
            self.note(number, shares)

    def note(self, number: int, shares: Iterable[HostShare]) -> None:
        """A job of the pool is to have these shares."""
        if number == NOBODY:
            return
        for name, amount in self._pools.amounts(number, shares).items():
            self.used[number][name] += amount

    def is_owed(self, number: int, wanted: Mapping[str, float]) -> bool:
        """Is all that a job wants within its pool's own?"""
        if number == NOBODY:
            return False
        pools = self._pools
        return wanted[SLOTS] > 0 and all(
            self.used[number][name] + amount <= pools.entitled(number, name)
            for name, amount in wanted.items()
            if amount and name in pools.resources
        )

    def beyond(self, number: int, wanted: Mapping[str, float]) -> str:
        """The resource of which the job would take its pool over its maximum; empty when there is none."""
        if number == NOBODY:
            return ""
        largest, used = self._pools.pools[number].largest, self.used[number]
        return next((name for name, most in largest.items() if wanted[name] and used[name] + wanted[name] > most), "")
