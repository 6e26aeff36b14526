"""What is left of hosts, and of the site's resources, at moments to come at which something is promised to somebody.

A job that starts now may have of a host what is free now, and no more than what is left there at each of these moments
as long as the job runs: between them nothing is taken, things only come back.
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
Place = tuple[str, int]  # a resource of the site, and the number of its store


class HostRemainder:
    """Of one host at one moment. Devices count by number of which any will do, but for those that are ``kept``.

    Where devices are promised at all, none is shared by jobs that would use it still.
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
        """Of its devices and processors these must be free then, not just as many."""
        if share.gpus:
            self.shares_gpus = False
            self.gpus_kept |= bits(share.gpus) if are_certain_gpus or share.gpu_memory_mib else 0
        self.cpus_kept |= bits(share.cpus_idle) | bits([cpu for task in share.cpus for cpu in task])

    def take(self, share: HostShare) -> None:
        """Somebody will hold this then."""
        self.slots -= share.slots
        self.memory_mib -= share.memory_mib
        self.gpus -= len(share.gpus)

    def lower(self, free: HostFree) -> None:
        """Show no more than this."""
        free.slots = min(free.slots, max(0, self.slots))
        free.memory_mib = min(free.memory_mib, max(0, self.memory_mib))
        free.gpus = lowest(free.gpus & ~self.gpus_kept, self.gpus)
        free.cpus &= ~self.cpus_kept
        if free.gpu_shared and not self.shares_gpus:
            free.gpu_shared = {}


class WindowEnd:
    """What is left then of the hosts (by row) and stores of which something is promised from then on.

    Jobs of ``exempt`` queues need not mind.
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
        """An independent one."""
        twin = WindowEnd(self.at, self.exempt)
        twin.rows = {row: copy.copy(rest) for row, rest in self.rows.items()}
        twin.stores = self.stores.copy()
        return twin

    def take(self, table: HostTable, allocation: Allocation) -> None:
        """Somebody will hold this then."""
        for share in allocation:
            row = table.rows[share.host]
            rest = self.rows.get(row)
            if rest is not None:
                rest.take(share)
            for one in share.resources if self.stores else ():
                place = place_of(table, one.name, row)
                if place in self.stores:
                    self.stores[place] -= one.amount


class FutureReservations:
    """In the order of time."""

    def __init__(self) -> None:
        self.all: list[WindowEnd] = []
        self._leeways: dict[tuple[WindowEnd, ...], BackfillWindow] = {}

    def __bool__(self) -> bool:
        return bool(self.all)

    def copy(self) -> "FutureReservations":
        """Independent ones."""
        twin = FutureReservations()
        twin.all = [moment.copy() for moment in self.all]
        return twin

    def add(self, moment: WindowEnd) -> None:
        """From then on something more is promised."""
        insort(self.all, moment)
        self._leeways.clear()

    def take(self, table: HostTable, allocation: Allocation, begin: float, end: float) -> None:
        """Somebody will hold this from one time to another."""
        for moment in self.all:
            if begin <= moment.at < end:
                moment.take(table, allocation)
        for leeway in self._leeways.values():
            leeway.note(table, allocation)

    def leeway(self, begin: float, end: float, queue: str = "") -> "BackfillWindow | None":
        """What is left to a job of that queue that starts and ends then; None: whatever is free when it starts."""
        some = tuple([one for one in self.all if begin < one.at < end and queue not in one.exempt])
        if not some:
            return None
        found = self._leeways.get(some)
        if found is None:
            found = self._leeways[some] = BackfillWindow(some)
        return found


class BackfillWindow:
    """What is left at all of these moments, as it is when it is asked."""

    def __init__(self, moments: tuple[WindowEnd, ...]) -> None:
        self._moments = moments
        self._rows: dict[int, list[HostRemainder]] = {}
        self._columns: dict[object, NDArray[np.float64]] = {}
        for moment in moments:
            for row, rest in moment.rows.items():
                self._rows.setdefault(row, []).append(rest)

    def note(self, table: HostTable, allocation: Allocation) -> None:
        """Something was taken."""
        if any(table.rows[share.host] in self._rows for share in allocation):
            self._columns.clear()

    def lower(self, row: int, free: HostFree) -> None:
        """Let a host show no more than what is left."""
        for rest in self._rows.get(row, ()):
            rest.lower(free)

    def leaves(self, row: int, slots: int, memory_mib: int) -> bool:
        """Is there so much left of a host, if there is now?"""
        return all([rest.slots >= slots and rest.memory_mib >= memory_mib for rest in self._rows.get(row, ())])

    def is_free(self, row: int) -> bool:
        """Is nothing of the host promised?"""
        return row not in self._rows

    def amount(self, table: HostTable, name: str, row: int, amount: int) -> int:
        """No more than what is left of a resource of the site, where this host takes from."""
        place = place_of(table, name, row)
        return max(0, min([amount, *(one.stores[place] for one in self._moments if place in one.stores)]))

    def slots(self, table: HostTable, request: Request) -> NDArray[np.float64]:
        """How many slots the job may have at most on each host; of a host that it wants for itself all or none."""
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
    """Where a host takes a resource of the site from."""
    amounts = table.site.amounts(name)
    has_it = amounts is not None and row < len(amounts.of_row)
    return name, amounts.of_row[row] if amounts is not None and has_it else NOWHERE


def lowest(devices: int, most: float) -> int:
    """So many of the devices at most."""
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
    """A bit for each of them."""
    found = 0
    for number in numbers:
        found |= 1 << number
    return found
