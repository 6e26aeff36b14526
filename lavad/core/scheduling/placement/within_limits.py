"""Placement within one job's allowance: each host's free resources, capped by limits and reservations.

Most jobs fall under no limit of hosts and are placed directly. For the others the free resources of each host examined
are capped first; an allocation found is taken from the real free resources only if every limit allows all of it.
"""

import copy
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lavad.core.model import Allocation, Request, RoleRequest
from lavad.core.model.demand import Demand
from lavad.core.scheduling.capacity.allowance import NO_CONSTRAINTS, Allowance
from lavad.core.scheduling.capacity.backfill_window import BackfillWindow, lowest
from lavad.core.scheduling.capacity.constraint import Ceilings, Obstacle, no_ceilings
from lavad.core.scheduling.capacity.free_resources import CandidateHosts, FreeResources, HostFree, ResourceLeft
from lavad.core.scheduling.placement.place import place
from lavad.core.state.limits import SLOTS


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


def has_place(room: FreeResources, ceilings: Ceilings | None, request: Request, waited_s: float = 0.0) -> bool:
    """True if the request fits within the ceilings (None: in all that is free). Nothing is taken."""
    capped = CappedResources(room, ceilings or no_ceilings(len(room.table)))
    allocation = place(capped, request, waited_s)
    room.work += capped.work
    capped.roll_back()
    return allocation is not None


class LimitedPlacer:
    """Placement of a slice's jobs within their allowance; ``obstacle`` is what refused the last one, else None."""

    def __init__(self, room: FreeResources, allowance: Allowance) -> None:
        self.obstacle: Obstacle | None = None
        self._room = room
        self._allowance = allowance

    def place(self, demand: Demand, waited_s: float = 0.0, window: BackfillWindow | None = None) -> Allocation | None:
        """Place within the allowance, taking from it and from the free resources; None leaves both unchanged.

        Args:
            window: the backfill window.
        """
        self.obstacle, limit = None, self._allowance.limit(demand)
        if limit.slots < demand.request.slots_max:
            demand = demand._replace(request=with_at_most(demand.request, int(limit.slots + 1e-9)))
        is_checked = self._allowance.is_checked(demand)
        if is_checked or limit.on_hosts is not None or window is not None:
            allocation = self._place_checked(demand, limit.on_hosts, is_checked, waited_s, window)
        else:
            allocation = place(self._room, demand.request, waited_s)
        if allocation is not None:
            self._allowance.take(demand, allocation)
        return allocation

    def _place_checked(
        self,
        demand: Demand,
        ceilings: Ceilings | None,
        is_checked: bool,
        waited_s: float,
        window: BackfillWindow | None,
    ) -> Allocation | None:
        """Place within ceilings of each host.

        If a constraint refuses the result, try the minimum of tasks, then share out what it leaves to several hosts.
        """
        ceilings = ceilings or no_ceilings(len(self._room.table))
        if window is not None:
            ceilings.lower(SLOTS, window.slots(self._room.table, demand.request))
        attempt = _Attempt(self._room, self._allowance if is_checked else NO_CONSTRAINTS, ceilings, waited_s, window)
        allocation, obstacle = attempt.place(demand)
        if obstacle is not None and demand.request.slots_max > demand.request.slots_min:
            demand = demand._replace(request=with_at_most(demand.request, demand.request.slots_min))
            allocation, obstacle = attempt.place(demand)
        if obstacle is not None and self._allowance.share_out(demand, obstacle, ceilings, self._room):
            allocation, obstacle = attempt.place(demand)
        self.obstacle = obstacle
        return allocation


class _Attempt(NamedTuple):
    """Attempt to place a job within these ceilings."""

    room: FreeResources
    allowance: Allowance
    ceilings: Ceilings
    waited_s: float
    window: BackfillWindow | None

    def place(self, demand: Demand) -> tuple[Allocation | None, Obstacle | None]:
        """Return an allocation that all constraints allow, or None and what refused it."""
        capped = CappedResources(self.room, self.ceilings, self.window)
        allocation = place(capped, demand.request, self.waited_s)
        self.room.work += capped.work
        obstacle = self.allowance.why(demand, allocation) if allocation is not None else None
        if allocation is None or obstacle is not None:
            capped.roll_back()
            return None, obstacle
        capped.commit(allocation, demand.request.exclusive)
        return allocation, None


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
