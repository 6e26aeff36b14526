"""Placement within one job's allowance: each host's free resources, capped by limits and reservations.

Most jobs fall under no limit of hosts and are placed directly. For the others the free resources of each host examined
are capped first; an allocation found is taken from the real free resources only if every limit allows all of it.
"""

import copy
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lavad.core.model import Allocation, Request, RoleRequest
from lavad.core.scheduling.capacity.backfill_window import BackfillWindow, lowest
from lavad.core.scheduling.capacity.free_resources import CandidateHosts, FreeResources, HostFree, ResourceLeft
from lavad.core.scheduling.capacity.headroom import Ceilings, Headroom
from lavad.core.scheduling.placement.place import place
from lavad.core.state.limits import JOBS, SLOTS, Consumer, Counter


class CappedResources(FreeResources):
    """Free resources as one job may use them: a layer over others that caps each host examined at the ceilings.

    What is taken is taken from the layer below. ``commit`` then uncovers what was hidden; ``roll_back`` also returns
    what was taken. ``window`` is the backfill window.
    """

    def __init__(self, room: FreeResources, ceilings: Ceilings, window: BackfillWindow | None = None) -> None:
        super().__init__(room.table)
        self._below = room
        self._ceilings = ceilings
        self._window = window
        self._before: dict[int, HostFree] = {}
        self._left_before: dict[int, tuple[ResourceLeft, ResourceLeft, int]] = {}  # original state, and amount hidden

    def free(self, row: int) -> HostFree:
        """Free resources of a host, within the ceilings; change the returned object to take some."""
        found = self._free.get(row)
        if found is None:
            found = self._free[row] = self._below.free(row)
            self._before[row] = before = copy.copy(found)
            before.gpu_shared = dict(found.gpu_shared) if found.gpu_shared is not None else None
            self._lower(row, found)
        return found

    def _lower(self, row: int, free: HostFree) -> None:
        ceilings = self._ceilings
        free.slots = ceilings.slots_on(row, free.slots)
        if ceilings.memory_mib is not None:
            free.memory_mib = int(min(free.memory_mib, max(0.0, ceilings.memory_mib[row])))
        if ceilings.gpus is not None:
            free.gpus = lowest(free.gpus, ceilings.gpus[row])
        if self._window is not None:
            self._window.lower(row, free)

    def left(self, name: str, row: int) -> ResourceLeft | None:
        """Amount left of a cluster-wide resource, within the backfill window."""
        found = self._below.left(name, row)
        if found is not None and id(found) not in self._left_before:
            before = copy.copy(found)
            if self._window is not None:
                found.amount = self._window.amount(self.table, name, row, found.amount)
            self._left_before[id(found)] = found, before, before.amount - found.amount
        return found

    def slots(self, row: int) -> int:
        """Free slots of a host."""
        return self.free(row).slots

    def _rows_with(self, gpus: int) -> NDArray[np.intp]:
        """Hosts with a free slot, GPUs and a ceiling of at least one slot: often few on a large cluster."""
        rows = super()._rows_with(gpus)
        return rows[self._ceilings.slots[rows] >= 1]

    def listed(self, candidates: CandidateHosts) -> None:
        """None: each host has to be examined."""
        return

    def values(self, name: str) -> NDArray[Any]:
        """Values of the layer below."""
        return self._below.values(name)

    def commit(self, allocation: Allocation, exclusive: bool) -> None:
        """Take the allocation and uncover what the ceilings have hidden."""
        for row, free in self._free.items():
            before, shown = self._before[row], copy.copy(self._before[row])
            self._lower(row, shown)
            free.slots += before.slots - shown.slots
            free.memory_mib += before.memory_mib - shown.memory_mib
            free.gpus |= before.gpus & ~shown.gpus
            free.cpus |= before.cpus & ~shown.cpus
            if before.gpu_shared and not shown.gpu_shared:
                free.gpu_shared = before.gpu_shared | (free.gpu_shared or {})
        for left, _, hidden in self._left_before.values():
            left.amount += hidden
        if exclusive:
            for share in allocation:
                self._free[self.table.rows[share.host]].slots = 0
        self._below.version += 1

    def roll_back(self) -> None:
        """Restore the layer below."""
        for row, free in self._free.items():
            for name in HostFree.__slots__:
                setattr(free, name, getattr(self._before[row], name))
        for left, before, _ in self._left_before.values():
            left.amount, left.busy = before.amount, before.busy


def is_checked(consumer: Consumer, request: Request) -> bool:
    """True if the job's use of limits depends on the hosts it is placed on."""
    if consumer.is_of_hosts or request.alternatives:
        return bool(consumer.counters)
    return any(counter.rule.what not in (SLOTS, JOBS) for counter in consumer.overall)


def place_capped(
    room: FreeResources,
    ceilings: Ceilings,
    request: Request,
    waited_s: float = 0.0,
    window: BackfillWindow | None = None,
) -> Allocation | None:
    """Place within the ceilings; None leaves the free resources unchanged."""
    capped = CappedResources(room, ceilings, window)
    allocation = place(capped, request, waited_s)
    room.work += capped.work
    if allocation is None:
        capped.roll_back()
    else:
        capped.commit(allocation, request.exclusive)
    return allocation


def has_place(room: FreeResources, slots: NDArray[Any] | None, request: Request, waited_s: float = 0.0) -> bool:
    """True if the request fits with at most ``slots`` on each host (None: all free slots). Nothing is taken."""
    capped = CappedResources(room, Ceilings(np.full(len(room.table), np.inf) if slots is None else slots))
    allocation = place(capped, request, waited_s)
    room.work += capped.work
    capped.roll_back()
    return allocation is not None


class LimitedPlacer:
    """Placement of a slice's jobs within limits; ``counter`` is the limit that refused the last one, else None."""

    def __init__(self, room: FreeResources, headroom: Headroom) -> None:
        self.counter: Counter | None = None
        self._room = room
        self._headroom = headroom

    def place(
        self,
        consumer: Consumer,
        request: Request,
        waited_s: float = 0.0,
        slots: NDArray[Any] | None = None,
        window: BackfillWindow | None = None,
    ) -> Allocation | None:
        """Place within limits, taking from free resources and headroom; None leaves both unchanged.

        Args:
            slots: further ceiling of slots on each host.
            window: the backfill window.
        """
        self.counter = None
        slots_max = self._headroom.slots_max(consumer)
        if slots_max < request.slots_max:
            request = with_at_most(request, int(slots_max + 1e-9))
        if is_checked(consumer, request) or slots is not None:
            allocation = self._place_checked(consumer, request, waited_s, slots, window)
        else:
            allocation = place(self._room, request, waited_s)
        if allocation is not None:
            self._headroom.take(consumer, allocation)
        return allocation

    def _place_checked(
        self,
        consumer: Consumer,
        request: Request,
        waited_s: float,
        slots: NDArray[Any] | None,
        window: BackfillWindow | None,
    ) -> Allocation | None:
        """Place within ceilings of each host.

        If a limit refuses the result, try the minimum of tasks, then share out what limits on groups of hosts allow.
        """
        ceilings = self._headroom.ceilings(consumer)
        if slots is not None:
            ceilings.lower(SLOTS, slots)
        allocation, refusing = self._try(consumer, request, ceilings, waited_s, window)
        if refusing is not None and request.slots_max > request.slots_min:
            request = with_at_most(request, request.slots_min)
            allocation, refusing = self._try(consumer, request, ceilings, waited_s, window)
        if refusing in consumer.among_hosts:
            self._deal_out(consumer, ceilings)
            allocation, refusing = self._try(consumer, request, ceilings, waited_s, window)
        self.counter = refusing if refusing in consumer.overall else None
        return allocation

    def _try(
        self, consumer: Consumer, request: Request, ceilings: Ceilings, waited_s: float, window: BackfillWindow | None
    ) -> tuple[Allocation | None, Counter | None]:
        """Return an allocation that all limits allow, or None and the limit that refused it."""
        capped = CappedResources(self._room, ceilings, window)
        allocation = place(capped, request, waited_s)
        self._room.work += capped.work
        if allocation is None:
            capped.roll_back()
            return None, None
        refusing = self._headroom.refusing(consumer, allocation)
        if refusing is not None:
            capped.roll_back()
            return None, refusing
        capped.commit(allocation, request.exclusive)
        return allocation, None

    def _deal_out(self, consumer: Consumer, ceilings: Ceilings) -> None:
        """Share out what a limit on a group of hosts has left to its hosts in order, as far as they have free slots."""
        table = self._room.table
        for counter in consumer.among_hosts:
            if counter.rule.what != SLOTS:
                continue
            left = self._headroom.left(counter)
            for row in table.sorted_rows(self._headroom.members(counter.rule)).tolist():
                offered = min(float(ceilings.slots[row]), left, float(max(0, self._room.slots(row))))
                ceilings.slots[row] = offered
                left -= offered


@lru_cache(maxsize=4096)
def with_at_most(request: Request, slots: int) -> Request:
    """Copy of the request with at most ``slots`` slots, but not below its minimum."""
    more = max(0, slots - request.slots_min)
    roles: list[RoleRequest] = []
    for role in request.roles:
        tasks = min(role.tasks_max - role.tasks_min, more // role.slots_per_task)
        more -= tasks * role.slots_per_task
        roles.append(replace(role, tasks_max=role.tasks_min + tasks))
    return replace(request, roles=tuple(roles))
