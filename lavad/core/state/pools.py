"""Capacity pools: usage of slots, memory and GPUs by the jobs of each pool, and its entitlement.

A job belongs to the pool of the service class that it names, or else to the first pool whose users, queues and
application profiles match and that takes jobs without a class, as of its dispatch. A class that is no longer configured
counts as none. A pool is entitled to the larger of its guaranteed and its deserved amount; usage beyond that is
borrowed. Jobs of no pool only borrow. A percentage is of the slots of all joined hosts of the pool, whether they accept
jobs or not, so that a closed host moves no entitlement. Kept by ``apply``; memory is in MiB.
"""

from collections.abc import Iterable, Mapping

from lavad.core.model import HostShare, Key, Request, Shared
from lavad.core.model.demand import Demand
from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import ALL
from lavad.core.model.rules.resources import Pool
from lavad.core.state.counters import Kind

SLOTS, MEMORY, GPUS = "slots", "mem", "gpus"
NOBODY = -1
_KINDS_KEPT = 100_000
_ROUNDING = 1e-6  # 29% of 100 slots are 29, though 0.29 * 100 is a little less


class Pools:
    """All pools of a policy, by number, and their usage. False if there are none."""

    def __init__(self, policy: Policy) -> None:
        self.pools: tuple[Pool, ...] = policy.pools
        self.used: list[dict[str, float]] = [{SLOTS: 0.0, MEMORY: 0.0, GPUS: 0.0} for _ in policy.pools]
        self.resources = frozenset(
            name for pool in policy.pools for part in (pool.guaranteed, pool.deserved, pool.largest) for name in part
        )
        self._parts = [number for number, pool in enumerate(policy.pools) if pool.slots_share]
        self.host_slots = dict.fromkeys(self._parts, 0)  # slots of the joined hosts of pools with a percentage
        if self._parts:
            self.resources |= {SLOTS}
        self.by_application = any(pool.applications != ALL for pool in policy.pools)
        self._classes = {pool.service_class: number for number, pool in enumerate(policy.pools) if pool.service_class}
        self._without_pool = frozenset(policy.service_classes) - frozenset(self._classes)
        self._numbers: dict[tuple[str, str, str], int] = {}
        self._of: dict[Key, int] = {}  # pool of an attempt

    def __bool__(self) -> bool:
        return bool(self.pools)

    def note_host(self, name: str, slots: int) -> None:
        """Add slots of a host that joins or changes, or deduct them (below 0)."""
        for number in self._parts:
            if name in self.pools[number].hosts:
                self.host_slots[number] += slots

    def number_of(self, job: Shared | Demand) -> int:
        """Number of the pool of such jobs; -1 if they have none."""
        return self._number(job.user, job.queue, job.application, job.request.service_class)

    def _number(self, user: str, queue: str, application: str, named: str) -> int:
        if named in self._classes:
            return self._classes[named]
        if named in self._without_pool:
            return NOBODY
        kind = (user, queue, application if self.by_application else "")
        found = self._numbers.get(kind)
        if found is None:
            if len(self._numbers) >= _KINDS_KEPT:
                self._numbers.clear()
            every = enumerate(self.pools)
            found = next((number for number, pool in every if _is_of(pool, *kind)), NOBODY)
            self._numbers[kind] = found
        return found

    def service_class_of(self, job: Shared | Demand) -> str:
        """Service class of such jobs: the one that they name, else the one that they attach to; empty if none."""
        return self.service_class_of_kind(Kind(job.user, job.queue, job.application, job.request.service_class))

    def service_class_of_kind(self, kind: Kind) -> str:
        """Service class of jobs of this kind; empty if none."""
        number = NOBODY if kind.service_class else self._number(*kind)
        return kind.service_class if number == NOBODY else self.pools[number].service_class

    def pool_of(self, key: Key) -> int:
        """Number of the pool of a dispatched attempt; -1 if it has none."""
        return self._of.get(key, NOBODY)

    def entitled(self, number: int, resource: str) -> float:
        """Amount that the pool is entitled to."""
        if number == NOBODY:
            return 0.0
        return max(self.guaranteed(number).get(resource, 0.0), self.pools[number].deserved.get(resource, 0.0))

    def guaranteed(self, number: int) -> Mapping[str, float]:
        """Guaranteed amounts of the pool; of a percentage of slots, the whole slots."""
        pool = self.pools[number]
        if not pool.slots_share:
            return pool.guaranteed
        return {SLOTS: float(int(pool.slots_share * self.host_slots[number] + _ROUNDING))}

    def take(self, key: Key, number: int, shares: Iterable[HostShare]) -> None:
        """Add shares of an attempt to its pool's usage."""
        if number == NOBODY:
            return
        self._of[key] = number
        self._add(number, shares, 1)

    def give_back(self, key: Key, shares: Iterable[HostShare], is_last: bool) -> None:
        """Subtract shares of an attempt; with the last ones the attempt is forgotten."""
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
        """Amounts of shares on the pool's hosts; on all hosts for jobs of no pool."""
        found = {SLOTS: 0.0, MEMORY: 0.0, GPUS: 0.0}
        for share in shares:
            if number == NOBODY or share.host in self.pools[number].hosts:
                found[SLOTS] += share.slots
                found[MEMORY] += share.memory_mib
                found[GPUS] += len(share.gpus)
        return found


def _is_of(pool: Pool, user: str, queue: str, application: str) -> bool:
    """True if such a job, which names no service class, matches the pool."""
    return pool.attaches and user in pool.users and queue in pool.queues and application in pool.applications


def least(request: Request) -> dict[str, float]:
    """Minimum amounts that a job of this request takes."""
    memory = gpus = 0.0
    for role in request.roles:
        memory += role.memory_mib
        gpus += role.gpus * (role.tasks_min if role.gpus_per_task else 1)
    return {SLOTS: float(request.slots_min), MEMORY: memory, GPUS: gpus}


class PoolState:
    """Usage of the pools during a slice: held, claimed, and started by the slice."""

    def __init__(self, pools: Pools, claims: Iterable[tuple[int, Iterable[HostShare]]]) -> None:
        self._pools = pools
        self.used = [dict(used) for used in pools.used]
        for number, shares in claims:
            self.note(number, shares)

    def note(self, number: int, shares: Iterable[HostShare], sign: int = 1) -> None:
        """Add shares that a job of the pool is to get or, with ``sign`` -1, deduct them."""
        if number == NOBODY:
            return
        for name, amount in self._pools.amounts(number, shares).items():
            self.used[number][name] += sign * amount

    def is_owed(self, number: int, wanted: Mapping[str, float]) -> bool:
        """True if the job, with what its pool uses, is within the pool's entitlement."""
        if number == NOBODY:
            return False
        pools = self._pools
        return wanted[SLOTS] > 0 and all(
            self.used[number][name] + amount <= pools.entitled(number, name)
            for name, amount in wanted.items()
            if amount and name in pools.resources
        )

    def beyond(self, number: int, wanted: Mapping[str, float]) -> str:
        """Resource of which the job would exceed its pool's maximum; empty if none."""
        if number == NOBODY:
            return ""
        largest, used = self._pools.pools[number].largest, self.used[number]
        return next((name for name, most in largest.items() if wanted[name] and used[name] + wanted[name] > most), "")
