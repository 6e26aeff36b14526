"""Room as limits and promises leave it to one job: hosts offer no more than the job may have there.

Most jobs fall under no limit about hosts, and are placed as ever. For the others the free figures of each host that is
looked at are lowered first; what is found is taken from the real room only when every limit allows all of it.
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
    """A room over another one, for placing one job: hosts that are looked at show no more than the ceilings.

    What is taken is taken from the room below. Afterwards ``commit`` shows again what was hidden, and ``roll_back``
    gives back what was taken as well. ``leeway``: what promises leave of some hosts, and of the site's resources.
    """

    def __init__(self, room: FreeResources, ceilings: Ceilings, leeway: BackfillWindow | None = None) -> None:
        super().__init__(room.table)
        self._below = room
        self._ceilings = ceilings
        self._leeway = leeway
        self._before: dict[int, HostFree] = {}
        self._left_before: dict[
            int, tuple[ResourceLeft, ResourceLeft, int]
        ] = {}  # how it was, and how much is hidden of it

    def free(self, row: int) -> HostFree:
        """The host's figures, no higher than the ceilings; change them to take something."""
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
        if self._leeway is not None:
            self._leeway.lower(row, free)

    def left(self, name: str, row: int) -> ResourceLeft | None:
        """What is left of a resource of the site."""
        found = self._below.left(name, row)
        if found is not None and id(found) not in self._left_before:
            before = copy.copy(found)
            if self._leeway is not None:
                found.amount = self._leeway.amount(self.table, name, row, found.amount)
            self._left_before[id(found)] = found, before, before.amount - found.amount
        return found

    def slots(self, row: int) -> int:
        """The host's free slots as of now."""
        return self.free(row).slots

    def _rows_with(self, gpus: int) -> NDArray[np.intp]:
        """Without those on which nothing may be had: they may be most of a large cluster."""
        rows = super()._rows_with(gpus)
        return rows[self._ceilings.slots[rows] >= 1]

    def listed(self, candidates: CandidateHosts) -> None:
        """Each host has to be asked."""
        return

    def values(self, name: str) -> NDArray[Any]:
        """As in the room below."""
        return self._below.values(name)

    def commit(self, allocation: Allocation, exclusive: bool) -> None:
        """The job has this allocation."""
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
        """Everything is as it was."""
        for row, free in self._free.items():
            for name in HostFree.__slots__:
                setattr(free, name, getattr(self._before[row], name))
        for left, before, _ in self._left_before.values():
            left.amount, left.busy = before.amount, before.busy


def is_checked(consumer: Consumer, request: Request) -> bool:
    """Does it depend on hosts how much of a limit such a job would use?"""
    if consumer.is_of_hosts or request.alternatives:
        return bool(consumer.counters)
    return any(counter.rule.what not in (SLOTS, JOBS) for counter in consumer.overall)


def place_capped(
    room: FreeResources,
    ceilings: Ceilings,
    request: Request,
    waited_s: float = 0.0,
    leeway: BackfillWindow | None = None,
) -> Allocation | None:
    """An allocation within the ceilings, taken from the room; or None, with the room as it was."""
    capped = CappedResources(room, ceilings, leeway)
    allocation = place(capped, request, waited_s)
    room.work += capped.work
    if allocation is None:
        capped.roll_back()
    else:
        capped.commit(allocation, request.exclusive)
    return allocation


def has_place(room: FreeResources, slots: NDArray[Any] | None, request: Request, waited_s: float = 0.0) -> bool:
    """Is there an allocation with no more slots of each host (None: as many as are free)? Nothing is taken."""
    capped = CappedResources(room, Ceilings(np.full(len(room.table), np.inf) if slots is None else slots))
    allocation = place(capped, request, waited_s)
    room.work += capped.work
    capped.roll_back()
    return allocation is not None


class LimitedPlacer:
    """Places jobs of one slice within limits; ``counter`` is the limit that refused the last one, if one did."""

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
        leeway: BackfillWindow | None = None,
    ) -> Allocation | None:
        """An allocation, taken from the room and from the limits; or None, with both as they were.

        ``slots``: no more of each host, whatever limits say; ``leeway``: no more than promises leave.
        """
        self.counter = None
        slots_max = self._headroom.slots_max(consumer)
        if slots_max < request.slots_max:
            request = with_at_most(request, int(slots_max + 1e-9))
        if is_checked(consumer, request) or slots is not None:
            allocation = self._place_checked(consumer, request, waited_s, slots, leeway)
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
        leeway: BackfillWindow | None,
    ) -> Allocation | None:
        """With ceilings for each host; with fewer tasks, or hosts of a group by turns, where it would be too much."""
        ceilings = self._headroom.ceilings(consumer)
        if slots is not None:
            ceilings.lower(SLOTS, slots)
        allocation, refusing = self._try(consumer, request, ceilings, waited_s, leeway)
        if refusing is not None and request.slots_max > request.slots_min:
            request = with_at_most(request, request.slots_min)
            allocation, refusing = self._try(consumer, request, ceilings, waited_s, leeway)
        if refusing in consumer.among_hosts:
            self._deal_out(consumer, ceilings)
            allocation, refusing = self._try(consumer, request, ceilings, waited_s, leeway)
        self.counter = refusing if refusing in consumer.overall else None
        return allocation

    def _try(
        self, consumer: Consumer, request: Request, ceilings: Ceilings, waited_s: float, leeway: BackfillWindow | None
    ) -> tuple[Allocation | None, Counter | None]:
        """An allocation that all limits allow, or none and the limit that refused what was found."""
        capped = CappedResources(self._room, ceilings, leeway)
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
        """What is left among some hosts goes to them in order, as far as they have room."""
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
    """The same request with no more than so many slots, as far as its minimum allows."""
    more = max(0, slots - request.slots_min)
    roles: list[RoleRequest] = []
    for role in request.roles:
        tasks = min(role.tasks_max - role.tasks_min, more // role.slots_per_task)
        more -= tasks * role.slots_per_task
        roles.append(replace(role, tasks_max=role.tasks_min + tasks))
    return replace(request, roles=tuple(roles))
