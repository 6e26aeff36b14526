"""Dispatch of a plan. A plan made from the cluster's present version holds; else each of its starts is verified."""

from collections.abc import Callable
from operator import le
from typing import Any

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.decide import preemption
from lavad.core.decide.decision import Decision, dispatch, dispatch_each
from lavad.core.decide.jobs import resize
from lavad.core.model import HostShare, ResourceShare
from lavad.core.model.allocation import is_whole, slots_by_host
from lavad.core.model.demand import demand_of
from lavad.core.plan import DropClaims, Preempt, ReserveSlots, Resize, Resume, Start, StartClaimed, Starts
from lavad.core.scheduling.capacity.allowance import Allowance
from lavad.core.scheduling.capacity.constraints import allowance_of
from lavad.core.state.hosts.compute_units import kept_type, unit_mates
from lavad.core.state.hosts.shared_gpus import SharedGpus, joined
from lavad.core.state.records import ArrayRecord


class _Room:
    """Resources left on each host while the starts of a plan are accepted one by one."""

    def __init__(self, cluster: Cluster) -> None:
        self.table = cluster.table
        self.slots: dict[int, int] = {}  # of hosts that some start uses
        self.memory_mib: dict[int, int] = {}
        self.gpus: dict[int, int] = {}
        self.gpu_shared: dict[tuple[int, int], SharedGpus] = {}
        self.cpus: dict[int, int] = {}
        self.amounts: dict[tuple[int, str], int] = {}  # taken of a shared resource, by its first host and name
        self.kept: set[int] = set()  # hosts in compute units that a start has exclusively

    def fits(self, start: Start, exclusive: bool) -> bool:
        """True if every host is open and has the resources of the start. Takes nothing."""
        allocation = start.allocation
        try:
            rows = self.table.rows_of(allocation)
        except KeyError:
            return False
        if not self.table.are_open(rows) or not all(map(le, slots_by_host(allocation), self._slots_on(rows))):
            return False
        if not self.kept.isdisjoint(rows):
            return False
        if exclusive and any(row in self.slots or self.table.attempts[row] for row in rows):
            return False
        return all([self._has_rest(row, share) for row, share in zip(rows, allocation, strict=True) if is_whole(share)])

    def _slots_on(self, rows: list[int]) -> list[int]:
        """Slots left on each of these hosts."""
        column = self.table.slots_free
        free = [int(column[rows[0]])] if len(rows) == 1 else column[rows].tolist()
        if not self.slots:
            return free
        return [self.slots.get(row, slots) for row, slots in zip(rows, free, strict=True)]

    def _has_rest(self, row: int, share: HostShare) -> bool:
        return (
            share.memory_mib <= self._memory_on(row)
            and self._has_gpus(row, share)
            and _cpus(share) & ~self.cpus.get(row, self.table.cpus_free(row)) == 0
            and all(self._has_amount(row, one) for one in share.resources)
        )

    def _has_gpus(self, row: int, share: HostShare) -> bool:
        if not share.gpu_memory_mib:
            wanted = _bits(share)
            return wanted & self._gpus_on(row) == wanted
        both = zip(share.gpus, share.gpu_memory_mib, strict=True)
        return all(self._sharing_on(row, gpu).can_take(memory) for gpu, memory in both)

    def _sharing_on(self, row: int, gpu: int) -> SharedGpus:
        """Memory left and number of jobs of a shared GPU; no memory of one that a job has exclusively."""
        known = self.gpu_shared.get((row, gpu)) or self.table.gpu_shared.get(row, {}).get(gpu)
        if known is not None:
            return known
        devices = self.table.facts[row].devices
        is_free = gpu < len(devices) and self._gpus_on(row) >> gpu & 1
        return SharedGpus(devices[gpu].memory_mib if is_free else 0, 0)

    def _has_amount(self, row: int, one: ResourceShare) -> bool:
        amounts = self.table.site.amounts(one.name)
        store = amounts.store(row) if amounts is not None else None
        return store is not None and one.amount + self.amounts.get((store.rows[0], one.name), 0) <= store.free

    def _take_amount(self, row: int, one: ResourceShare) -> None:
        amounts = self.table.site.amounts(one.name)
        store = amounts.store(row) if amounts is not None else None
        if store is not None:
            place = store.rows[0], one.name
            self.amounts[place] = self.amounts.get(place, 0) + one.amount

    def _memory_on(self, row: int) -> int:
        return self.memory_mib.get(row, int(self.table.memory_free_mib[row]))

    def _gpus_on(self, row: int) -> int:
        return self.gpus.get(row, self.table.gpu_free[row])

    def can_keep(self, start: Start, kind: str) -> bool:
        """True if nothing runs in the compute units of its hosts."""
        mates = self._mates(start, kind)
        return not any(row in self.slots or self.table.attempts[row] for row in mates)

    def keep(self, start: Start, kind: str) -> None:
        """Close the compute units of its hosts to later starts."""
        self.kept |= self._mates(start, kind)

    def _mates(self, start: Start, kind: str) -> set[int]:
        return unit_mates(self.table, [self.table.rows[share.host] for share in start.allocation], kind)

    def take(self, start: Start, exclusive: bool) -> None:
        """Take the start's resources."""
        rows = [self.table.rows[share.host] for share in start.allocation]
        for row, left, share in zip(rows, self._slots_on(rows), start.allocation, strict=True):
            self.slots[row] = 0 if exclusive else left - share.slots
            if share.memory_mib:
                self.memory_mib[row] = self._memory_on(row) - share.memory_mib
            if share.gpu_memory_mib:
                for gpu, memory in zip(share.gpus, share.gpu_memory_mib, strict=True):
                    self.gpu_shared[row, gpu] = joined(self._sharing_on(row, gpu), 0, memory)
            if share.gpus:
                self.gpus[row] = self._gpus_on(row) & ~_bits(share)
            if share.cpus:
                self.cpus[row] = self.cpus.get(row, self.table.cpus_free(row)) & ~_cpus(share)
            for one in share.resources:
                self._take_amount(row, one)


def _bits(share: HostShare) -> int:
    return sum(1 << gpu for gpu in share.gpus)


def _cpus(share: HostShare) -> int:
    return sum(1 << cpu for cpu in {*share.cpus_idle, *(cpu for task in share.cpus for cpu in task)})


def apply_plan(cluster: Cluster, command: c.ApplyPlan, now: float) -> Decision:
    """Carry out the parts of a plan that still hold; the reply is the number of those that do not."""
    return PLANS[type(command.plan)](cluster, command.plan, now)


def _drop_claims(_: Cluster, plan: DropClaims, now: float) -> Decision:
    return Decision([e.ClaimDropped(now, one.job, one.index, one.reason) for one in plan.drops], reply=0)


def _resize(cluster: Cluster, plan: Resize, now: float) -> Decision:
    return resize.resize(cluster, plan, _Room(cluster), now)


def _start(cluster: Cluster, plan: Starts, now: float) -> Decision:
    """Dispatch every start that still holds. Constraints that change with time are verified each time."""
    starts, allowance = plan.starts, allowance_of(cluster, now)
    is_bound = bool(allowance)
    # Elements in several buckets do not know how many of their array start with them.
    if plan.version == cluster.version and not allowance.changes_with_time and not cluster.capped:
        return Decision([*dispatch_each(cluster, starts, now)], reply=0)
    room = _Room(cluster)
    taken: dict[int, set[int]] = {}
    decision = Decision(reply=0)
    for start in starts:
        exclusive = _is_waiting(cluster, start, taken)
        if exclusive is None or not room.fits(start, exclusive):
            decision.reply += 1
            continue
        kind = kept_type(cluster.bearer(start.job, start.index).shared.request)
        if kind is not None and not room.can_keep(start, kind):
            decision.reply += 1
            continue
        if is_bound and not _is_within(cluster, allowance, start):
            decision.reply += 1
            continue
        if start is not starts[-1]:
            room.take(start, exclusive)
            if kind is not None:
                room.keep(start, kind)
        taken.setdefault(start.job, set()).add(start.index)
        decision.events.append(dispatch(cluster, start, now))
    return decision


def _is_within(cluster: Cluster, allowance: Allowance, start: Start) -> bool:
    """Take the start from the allowance, unless a constraint refuses it; False if so."""
    demand = demand_of(cluster.bearer(start.job, start.index).shared)
    if allowance.why(demand, start.allocation) is not None:
        return False
    allowance.take(demand, start.allocation)
    return True


def _is_waiting(cluster: Cluster, start: Start, taken: dict[int, set[int]]) -> bool | None:
    """True if the job is exclusive, False if not, None if it is not pending any more."""
    record = cluster.jobs.get(start.job)
    before = taken.get(start.job, ())
    if record is None or start.index in before:
        return None
    if isinstance(record, ArrayRecord):
        if not record.has_startable(start.index, len(before)):
            return None
    elif not record.may_start or start.index:
        return None
    return cluster.bearer(start.job, start.index).shared.request.exclusive


PLANS: dict[type, Callable[[Cluster, Any, float], Decision]] = {
    Starts: _start,
    Preempt: preemption.take_over,
    ReserveSlots: preemption.save,
    DropClaims: _drop_claims,
    StartClaimed: preemption.start_claimed,
    Resume: preemption.resume,
    Resize: _resize,
}
