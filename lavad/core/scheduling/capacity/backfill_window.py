"""Backfill window: the resources left on hosts, and of cluster-wide resources, at the starts of future reservations.

A job that starts now may use what is free now, and no more than what is left at each reservation start before its end:
between these times nothing is taken, and resources only come back.
"""

import copy
from bisect import insort
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from lavad.core.model import Allocation, HostShare, Request
from lavad.core.scheduling.capacity.free_resources import HostFree
from lavad.core.state.hosts.compute_units import kept_type, unit_mates
from lavad.core.state.hosts.site_resources import NOWHERE
from lavad.core.state.hosts.table import HostTable

_PLENTY = 1 << 60
Place = tuple[str, int]  # name of a cluster-wide resource, and number of its pool


class HostRemainder:
    """Resources left on one host at a reservation start.

    GPUs are a number of interchangeable devices, except reserved devices (``gpus_kept``). Once GPUs of a host are
    reserved, its shared GPUs accept no more jobs.
    """

    __slots__ = ("cpus_kept", "gpus", "gpus_kept", "memory_mib", "shares_gpus", "slots")

    def __init__(self, slots: int, memory_mib: int = _PLENTY, gpus: int = _PLENTY) -> None:
        self.slots = slots
        self.memory_mib = memory_mib
        self.gpus = gpus
        self.gpus_kept = 0
        self.cpus_kept = 0
        self.shares_gpus = True

    def promise(self, share: HostShare, are_certain_gpus: bool) -> None:
        """Reserve these very GPUs and processors of the share, not only their number."""
        if share.gpus:
            self.shares_gpus = False
            self.gpus_kept |= bits(share.gpus) if are_certain_gpus or share.gpu_memory_mib else 0
        self.cpus_kept |= bits(share.cpus_idle) | bits([cpu for task in share.cpus for cpu in task])

    def take(self, share: HostShare) -> None:
        """Deduct a share that is held at this time."""
        self.slots -= share.slots
        self.memory_mib -= share.memory_mib
        self.gpus -= len(share.gpus)

    def lower(self, free: HostFree) -> None:
        """Cap a host's free resources at this remainder."""
        free.slots = min(free.slots, max(0, self.slots))
        free.memory_mib = min(free.memory_mib, max(0, self.memory_mib))
        free.gpus = lowest(free.gpus & ~self.gpus_kept, self.gpus)
        free.cpus &= ~self.cpus_kept
        if free.gpu_shared and not self.shares_gpus:
            free.gpu_shared = {}


class WindowEnd:
    """End of a backfill window, where a reservation starts: what is left of its hosts (by row) and resource pools.

    It does not bind jobs of ``exempt`` queues.
    """

    __slots__ = ("at", "exempt", "rows", "stores")

    def __init__(self, at: float, exempt: frozenset[str] = frozenset()) -> None:
        self.at = at
        self.exempt = exempt
        self.rows: dict[int, HostRemainder] = {}
        self.stores: dict[Place, int] = {}

    def __lt__(self, other: "WindowEnd") -> bool:
        return self.at < other.at

    def copy(self) -> "WindowEnd":
        """Return an independent copy."""
        twin = WindowEnd(self.at, self.exempt)
        twin.rows = {row: copy.copy(rest) for row, rest in self.rows.items()}
        twin.stores = self.stores.copy()
        return twin

    def take(self, table: HostTable, row: int, share: HostShare) -> None:
        """Deduct a share of a host that is held at this time."""
        if row in self.rows:
            self.rows[row].take(share)
        for one in share.resources if self.stores else ():
            place = place_of(table, one.name, row)
            if place in self.stores:
                self.stores[place] -= one.amount


class FutureReservations:
    """Starts of future reservations, in order of time, and for each host (by row) those that leave less of it."""

    def __init__(self) -> None:
        self.all: list[WindowEnd] = []
        self._on: dict[int, list[WindowEnd]] = {}
        self._windows: dict[tuple[WindowEnd, ...], BackfillWindow] = {}

    def __bool__(self) -> bool:
        return bool(self.all)

    def copy(self) -> "FutureReservations":
        """Return an independent copy."""
        twin = FutureReservations()
        for moment in self.all:
            twin.add(moment.copy())
        return twin

    def add(self, moment: WindowEnd) -> None:
        """Add the start of a reservation, with all its hosts."""
        insort(self.all, moment)
        for row in moment.rows:
            self._on.setdefault(row, []).append(moment)
        self._windows.clear()

    def take(self, table: HostTable, allocation: Allocation, begin: float, end: float) -> None:
        """Deduct an allocation held from ``begin`` to ``end``."""
        for share in allocation:
            row = table.rows[share.host]
            for moment in self.all if share.resources else self._on.get(row, ()):
                if begin <= moment.at < end:
                    moment.take(table, row, share)
            if row in self._on:
                for window in self._windows.values():
                    window.note(row)

    def window(self, begin: float, end: float, queue: str = "") -> "BackfillWindow | None":
        """Window for a job of that queue that runs from ``begin`` to ``end``; None if no reservation constrains it."""
        some = tuple([one for one in self.all if begin < one.at < end and queue not in one.exempt])
        if not some:
            return None
        found = self._windows.get(some)
        if found is None:
            found = self._windows[some] = BackfillWindow(some)
        return found


class BackfillWindow:
    """Minimum of what several reservation starts leave, up to date at each query."""

    def __init__(self, moments: tuple[WindowEnd, ...]) -> None:
        self._moments = moments
        self._rows: dict[int, list[HostRemainder]] = {}
        self._columns: dict[object, NDArray[np.float64]] = {}
        for moment in moments:
            for row, rest in moment.rows.items():
                self._rows.setdefault(row, []).append(rest)

    def note(self, row: int) -> None:
        """Note an allocation on a host: cached columns with it are out of date."""
        if row in self._rows:
            self._columns.clear()

    def lower(self, row: int, free: HostFree) -> None:
        """Cap a host's free resources at the window."""
        for rest in self._rows.get(row, ()):
            rest.lower(free)

    def leaves(self, row: int, slots: int, memory_mib: int) -> bool:
        """True if the window has room for these amounts on the host."""
        return all([rest.slots >= slots and rest.memory_mib >= memory_mib for rest in self._rows.get(row, ())])

    def is_free(self, row: int) -> bool:
        """True if nothing of the host is reserved."""
        return row not in self._rows

    def amount(self, table: HostTable, name: str, row: int, amount: int) -> int:
        """Amount left of a cluster-wide resource as the host sees it, at most ``amount``."""
        place = place_of(table, name, row)
        return max(0, min([amount, *(one.stores[place] for one in self._moments if place in one.stores)]))

    def slots(self, table: HostTable, request: Request) -> NDArray[np.float64]:
        """Slots the job may have on each host; all or none on hosts that it would hold exclusively."""
        kind = kept_type(request)
        sort = (request.exclusive or kind is not None, kind)
        found = self._columns.get(sort)
        if found is None:
            found = self._columns[sort] = self._column(table, *sort)
        return found

    def _column(self, table: HostTable, is_whole: bool, kind: str | None) -> NDArray[np.float64]:
        found = np.full(len(table), np.inf)
        rows = list(self._rows)
        if kind is not None:
            found[list(unit_mates(table, rows, kind))] = 0
        found[rows] = 0 if is_whole else [max(0, min([rest.slots for rest in self._rows[row]])) for row in rows]
        return found


def place_of(table: HostTable, name: str, row: int) -> Place:
    """Resource pool from which a host takes a cluster-wide resource."""
    amounts = table.site.amounts(name)
    return name, amounts.number(row) if amounts is not None else NOWHERE


def lowest(devices: int, most: float) -> int:
    """The ``most`` lowest of these devices, as bits."""
    if most >= devices.bit_count():
        return devices
    found = 0
    while devices and most >= 1:
        bit = devices & -devices
        found |= bit
        devices ^= bit
        most -= 1
    return found


def bits(numbers: Iterable[int]) -> int:
    """Bit mask of these numbers."""
    found = 0
    for number in numbers:
        found |= 1 << number
    return found
