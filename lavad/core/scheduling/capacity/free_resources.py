"""Free resources of hosts during a slice: a scratch layer over the host table that only ever shrinks.

A host's values are read on first use, so a slice that touches few hosts costs little on a large cluster.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lavad.core.language.requirements.parsed import ParsedRole, looked_at, wants_of
from lavad.core.language.requirements.select import Selection
from lavad.core.language.requirements.vocabulary import Vocabulary
from lavad.core.model import PARTS, Allocation, Request, RoleRequest
from lavad.core.scheduling.budget import HOSTS_A_COMPARISON
from lavad.core.scheduling.capacity.slot_list import SlotList
from lavad.core.scheduling.capacity.usable_hosts import UsableHosts, usable
from lavad.core.state.hosts.table import HostTable

if TYPE_CHECKING:
    from lavad.core.state.hosts.shared_gpus import SharedGpus

_FIRST_BLOCK = 8  # rows of candidates in the first block
_FIRST_WINDOW = 64  # hosts examined for the first block of the first-fit cache
_FRONT = 8  # hosts in a first-fit cache


class HostFree:
    """Free resources of one host; ``gpus`` and ``cpus`` have a bit for each free device and processor.

    ``gpu_shared`` holds the devices shared by jobs.
    """

    __slots__ = ("attempts", "cpus", "gpu_shared", "gpus", "memory_mib", "slots")

    def __init__(self, slots: int, memory_mib: int, gpus: int, attempts: int, cpus: int) -> None:
        self.slots = slots
        self.memory_mib = memory_mib
        self.gpus = gpus
        self.attempts = attempts
        self.cpus = cpus
        self.gpu_shared: dict[int, SharedGpus] | None = None

    def take(self, slots: int, memory_mib: int, gpus: tuple[int, ...]) -> None:
        """Book a share of slots, memory and whole devices."""
        self.slots -= slots
        self.memory_mib -= memory_mib
        self.attempts += 1
        for gpu in gpus:
            self.gpus &= ~(1 << gpu)


class ResourceLeft:
    """Amount left in a resource pool, and its busy devices."""

    __slots__ = ("amount", "busy", "is_shared")

    def __init__(self, amount: int, busy: int, is_shared: bool) -> None:
        self.amount = amount
        self.busy = busy
        self.is_shared = is_shared


class CandidateHosts:
    """Rows of candidate hosts with a cursor; rows before it cannot hold one task any more.

    Free resources only shrink in a slice. Rows are found on demand: most jobs fit on the first host with any free
    slots.
    """

    __slots__ = ("_blocks", "rows", "start", "version")

    def __init__(self, rows: list[int], blocks: Iterable[list[int]] = (), version: int = -1) -> None:
        self.rows = rows
        self.start = 0
        self.version = version  # of the free resources they depend on; -1 if they depend on none
        self._blocks = iter(blocks)

    def grow(self) -> bool:
        """Find more rows; False if there are none."""
        for block in self._blocks:
            if block:
                self.rows += block
                return True
        return False

    def all_rows(self) -> list[int]:
        """Find and return every row."""
        while self.grow():
            pass
        return self.rows


class FirstFitCache:
    """First few hosts, in natural order of names, with enough free slots and GPUs: most jobs go there.

    A host is added when those before it have too little memory, and removed when it has too few slots or GPUs.
    """

    __slots__ = ("_coming", "_gpus", "_hosts", "_room", "_slots")

    def __init__(self, room: "FreeResources", slots: int, gpus: int, rows: Iterable[int]) -> None:
        self._room = room
        self._slots = slots
        self._gpus = gpus
        self._coming = iter(rows)
        self._hosts: list[tuple[int, HostFree]] = []

    def first_with(self, memory_mib: int) -> tuple[int, HostFree] | None:
        """First of these hosts with enough memory, too; None if there is none."""
        hosts, slots, gpus = self._hosts, self._slots, self._gpus
        self._room.work += 1
        at = 0
        while at < len(hosts) or self._bring():
            free = hosts[at][1]
            if free.slots < slots or (gpus and free.gpus.bit_count() < gpus):
                del hosts[at]
            elif free.memory_mib >= memory_mib:
                return hosts[at]
            else:
                at += 1
        return None

    def _bring(self) -> bool:
        """Add the next host if the cache is not full."""
        row = next(self._coming, -1) if len(self._hosts) < _FRONT else -1
        if row >= 0:
            self._room.work += 1
            self._hosts.append((row, self._room.free(row)))
        return row >= 0


def smallest_share(role: RoleRequest) -> tuple[int, int, int]:
    """Smallest useful share on one host: (slots, memory, GPUs). With ptile the last host may have fewer tasks."""
    tasks = role.tasks_min if role.one_host else 1
    if role.ptile > 0 and not role.ptile_by:
        counts = range(role.tasks_min, min(role.tasks_max, role.tasks_min + role.ptile - 1) + 1)
        tasks = min(count % role.ptile or role.ptile for count in counts)
    gpus = role.gpus * tasks if role.gpus_per_task else role.gpus
    if role.gpu and _shares_devices(role):
        gpus = 0  # a device in shared use may have enough left
    return tasks * role.slots_per_task, role.memory_mib, gpus


def _shares_devices(role: RoleRequest) -> bool:
    gpus = wants_of(role).gpus
    return gpus is not None and gpus.is_shared


class FreeResources:
    """Free resources of all hosts, less what this slice has taken. ``work`` counts hosts examined: the slice's cost."""

    def __init__(self, table: HostTable) -> None:
        self.table = table
        self.work = 0
        self.version = 0  # raised whenever something is taken or put back
        self._open = table.open_rows()
        self._full: int | None = None  # hosts before the first one with a free slot; None: unknown
        self._free: dict[int, HostFree] = {}
        self._taken: dict[int, int] = {}  # slots taken by slots-only requests, on hosts not in ``_free``
        self._left: dict[tuple[str, int], ResourceLeft] = {}
        self._plain: CandidateHosts | None = None
        self._listed: SlotList | None = None  # its taken slots are not yet in ``_taken``
        self._candidates: dict[tuple[Request, int, int], CandidateHosts] = {}
        self._usable: dict[Request, UsableHosts] = {}
        self._with_slots: dict[int, NDArray[np.intp]] = {}  # by minimum of free GPUs
        self._fronts: dict[tuple[int, int], FirstFitCache] = {}  # by minimum of free slots and GPUs
        self._by_slots: dict[int, CandidateHosts] = {}  # by minimum of free slots
        self.narrowed: set[Request] = set()  # requests restricted to some hosts
        self._masks: dict[str, tuple[int, NDArray[np.bool_]]] = {}

    def __len__(self) -> int:
        return len(self.table)

    def free(self, row: int) -> HostFree:
        """Free resources of a host; change the returned object to take some."""
        found = self._free.get(row)
        if found is None:
            table, taken = self.table, self._slots_taken.pop(row, 0)
            found = self._free[row] = HostFree(
                int(table.slots_free[row]) - taken,
                int(table.memory_free_mib[row]),
                table.gpu_free[row],
                int(table.attempts[row]) + bool(taken),
                table.cpus_free(row),
            )
            if row in table.gpu_shared:
                unfit = table.gpu_unfit.get(row, 0)
                found.gpu_shared = {gpu: one for gpu, one in table.gpu_shared[row].items() if not unfit >> gpu & 1}
        return found

    def left(self, name: str, row: int) -> ResourceLeft | None:
        """Amount left of a cluster-wide resource as the host sees it; None if the host has none."""
        amounts = self.table.site.amounts(name)
        store = amounts.store(row) if amounts is not None else None
        if amounts is None or store is None:
            return None
        number = amounts.number(row)
        found = self._left.get((name, number))
        if found is None:
            found = self._left[name, number] = ResourceLeft(store.free, store.busy, store.is_shared)
        return found

    # -- values by name, for requirements

    def values(self, name: str) -> NDArray[Any]:
        """Values of a named resource by row: the table's, less what this slice has taken."""
        found = self.table.values(name)
        if name == "slots" and (self._free or self._slots_taken):
            found = found.copy()
            for row, taken in self._slots_taken.items():
                found[row] -= taken
            for row, free in self._free.items():
                found[row] = free.slots
        elif name == "mem" and self._free:
            found = found.copy()
            for row, free in self._free.items():
                found[row] = min(found[row], free.memory_mib)
        elif self._left and any(known == name for known, _ in self._left):
            found = found.copy()
            for row in range(len(found)):
                left = self.left(name, row)
                if left is not None:
                    found[row] = left.amount / PARTS
        return found

    def defined(self, name: str) -> NDArray[np.bool_]:
        """Mask of the hosts that have a resource of that name."""
        return self.table.defined(name)

    # -- requests of slots only

    def plain(self, request: Request) -> CandidateHosts:
        """Hosts with free slots, for requests of slots only; one list serves all of them."""
        narrowed = self._candidates.get((request, 0, 0)) if self._candidates else None
        if narrowed is not None:
            return narrowed
        if self._plain is None:
            self._plain = CandidateHosts(self._rows_with(0).tolist())
        return self._plain

    def listed(self, candidates: CandidateHosts) -> SlotList | None:
        """Free slots of these hosts as a list; None if each host has to be examined."""
        if self._free or candidates is not self._plain:
            return None
        if self._listed is None and not self._taken:
            self._listed = SlotList(self.table, self._rows_with(0))
        return self._listed

    def slots(self, row: int) -> int:
        """Free slots of a host."""
        free = self._free.get(row)
        return free.slots if free is not None else int(self.table.slots_free[row]) - self._slots_taken.get(row, 0)

    def take_listed(self, listed: SlotList, role: RoleRequest) -> Allocation | None:
        """Take a role's slots from the list; None if there are too few."""
        before = listed.work
        found = listed.take(role)
        self.work += listed.work - before
        if found is not None and self._plain is not None:
            self.version += 1
            self._plain.start = listed.start
        return found

    @property
    def _slots_taken(self) -> dict[int, int]:
        if self._listed is not None and self._listed.taken:
            taken, noted, self._listed.taken = self._taken, self._listed.taken, []
            for rows, slots in noted:
                for row, more in zip(rows, slots, strict=True):
                    taken[row] = taken.get(row, 0) + more
        return self._taken

    def take_slots(self, row: int, slots: int) -> None:
        """Take slots and nothing else from a host."""
        self.version += 1
        free = self._free.get(row)
        if free is None:
            taken, self._listed = self._slots_taken, None
            taken[row] = taken.get(row, 0) + slots
        else:
            free.slots -= slots
            free.attempts += 1

    # -- all other requests

    def candidates(self, request: Request, roles: tuple[RoleRequest, ...], choice: int, number: int) -> CandidateHosts:
        """Hosts that could take a task of that role of that alternative, in order of preference.

        The list is made once a slice, and again after each start if the role's conditions depend on what starts take.
        """
        found = self._candidates.get((request, choice, number))
        if found is None or found.version not in (-1, self.version):
            found = self._candidates[request, choice, number] = self._find(request, roles[number])
        return found

    def _find(self, request: Request, role: RoleRequest) -> CandidateHosts:
        """Find candidates: all at once if they have to be sorted, else on demand."""
        wants = wants_of(role)
        has_host_preferences = request.has_host_preferences
        if wants.order or has_host_preferences or self._is_moving(role):
            rows = self.usable(request).rows if has_host_preferences else self._rows_with(smallest_share(role)[2])
            fitting = self._fitting(rows, request, role)
            enough = has_host_preferences or self._is_enough(fitting, role)
            version = self.version if self._is_moving(role) else -1
            return CandidateHosts(self._sorted(fitting, request, wants) if enough else [], version=version)
        return CandidateHosts([], self._blocks(request, role))

    def rows_for(self, request: Request, role: RoleRequest) -> list[int]:
        """Rows of all hosts that could take a task of the role, even if too few for the whole role."""
        rows = self.usable(request).rows if request.has_host_preferences else self._rows_with(smallest_share(role)[2])
        found: list[int] = self._fitting(rows, request, role).tolist()
        return found

    def narrow(self, request: Request, rows: Iterable[int]) -> None:
        """Restrict the request to these hosts: no other had room at its last try, or has more now."""
        role = request.single_role
        assert role is not None, "only requests that fit on one host are restricted"
        if self._is_moving(role):  # its conditions may have changed on other hosts, too
            return
        fitting = np.array([row for row in rows if self._fits_now(request, role, row)], np.intp)
        self._candidates[request, 0, 0] = CandidateHosts(self._sorted(fitting, request, wants_of(role)))
        self.narrowed.add(request)

    def is_narrowed(self, request: Request) -> bool:
        """True if the request is restricted to some hosts."""
        return bool(self.narrowed) and request in self.narrowed

    def _is_moving(self, role: RoleRequest) -> bool:
        """True if candidates depend on values that each start changes."""
        return any(self.table.is_moving(name) for name in looked_at(role))

    def usable(self, request: Request) -> UsableHosts:
        """Hosts that the request may use by -m and its queue's HOSTS."""
        found = self._usable.get(request)
        if found is None:
            found = self._usable[request] = usable(self.table, request)
        return found

    def first(self, request: Request) -> frozenset[str] | None:
        """Hosts one of which must be the job's first one; None if any may be."""
        return self.usable(request).first if request.hosts else None

    def _fits_now(self, request: Request, role: RoleRequest, row: int) -> bool:
        free = self.free(row)
        slots, memory, gpus = smallest_share(role)
        self.work += 1
        return bool(
            self._open[row]
            and free.slots >= slots
            and free.memory_mib >= memory
            and free.gpus.bit_count() >= gpus
            and (not request.has_host_preferences or self.usable(request).contains[row])
            and (not role.select or self.mask(role.select)[row])
        )

    def front(self, slots: int, gpus: int) -> FirstFitCache:
        """Cache of the first hosts with that many free slots and GPUs."""
        found = self._fronts.get((slots, gpus))
        if found is None:
            rows = chain.from_iterable(self._blocks_from(slots, gpus))
            found = self._fronts[slots, gpus] = FirstFitCache(self, slots, gpus, rows)
        return found

    def with_slots(self, slots: int) -> CandidateHosts:
        """Hosts with at least ``slots`` free slots, regardless of memory; one list serves all requests."""
        found = self._by_slots.get(slots)
        if found is None:
            found = self._by_slots[slots] = CandidateHosts([], self._blocks_from(slots, 0))
        return found

    def _blocks_from(self, slots: int, gpus: int) -> Iterator[list[int]]:
        """Rows that had the slots and GPUs when the slice began, in blocks of growing size."""
        table, start, size = self.table, self._first_place(), _FIRST_WINDOW
        while start < len(table):
            rows = table.rows_at(start, start + size)
            self.work += 1 + len(rows) // HOSTS_A_COMPARISON
            fits = self._open[rows] & (table.slots_free[rows] >= slots)
            if gpus:
                fits &= table.gpus_free[rows] >= gpus
            yield rows[fits].tolist()
            start, size = start + size, size * 4

    def _first_place(self) -> int:
        """Place, in natural order of names, of the first host that had a free slot."""
        if self._full is None:
            table, used = self.table, len(self.table)
            self.work += 1 + used // HOSTS_A_COMPARISON
            has_room = (self._open & (table.slots_free[:used] > 0))[table.rows_at(0, used)]
            self._full = int(has_room.argmax()) if has_room.any() else used
        return self._full

    def _blocks(self, request: Request, role: RoleRequest) -> Iterator[list[int]]:
        """Rows of candidates in blocks of growing size.

        For a parallel job the first block is large enough for its minimum, if there are that many hosts.
        """
        rows, start, size = self._rows_with(smallest_share(role)[2]), 0, _FIRST_BLOCK
        held: list[int] = []
        missing = role.tasks_min if role.tasks_min > 1 and not role.one_host else 0
        while start < len(rows):
            some = self._fitting(rows[start : start + size], request, role)
            start, size = start + size, size * 4
            if missing > 0:
                missing -= self._tasks_on(some, role)
                held += some.tolist()
            else:
                yield some.tolist()
            if held and missing <= 0:
                yield held
                held = []

    def _rows_with(self, gpus: int) -> NDArray[np.intp]:
        """Open hosts with a free slot and at least ``gpus`` free GPUs, in natural order of names."""
        found = self._with_slots.get(gpus)
        if found is None:
            table, used = self.table, len(self.table)
            self.work += 1 + used // HOSTS_A_COMPARISON
            found = table.rows_with_slots()
            if gpus:
                found = found[table.gpus_free[found] >= gpus]
            self._with_slots[gpus] = found
        return found

    def _fitting(self, rows: NDArray[np.intp], request: Request, role: RoleRequest) -> NDArray[np.intp]:
        """Those of the rows that could take a task of the role when the slice began."""
        table = self.table
        slots, memory, gpus = smallest_share(role)
        self.work += 1 + len(rows) // HOSTS_A_COMPARISON
        fits = self._open[rows] & (table.slots_free[rows] >= slots)
        if memory:
            fits &= table.memory_free_mib[rows] >= memory
        if gpus:
            fits &= table.gpus_free[rows] >= gpus
        if request.exclusive:
            fits &= table.attempts[rows] == 0
        if role.select:
            fits &= self.mask(role.select)[rows]
        return rows[fits]

    def _sorted(self, rows: NDArray[np.intp], request: Request, wants: ParsedRole) -> list[int]:
        """Rows sorted by preference of -m or the queue, then order[...], place in -m, and natural order of names."""
        table = self.table
        if not wants.order and not request.has_host_preferences:
            return rows[np.argsort(table.place[rows])].tolist()  # type: ignore[no-any-return]
        keys: list[NDArray[Any]] = [table.place[rows]]
        ranked = self.usable(request) if request.has_host_preferences else None
        if ranked is not None:
            keys.append(ranked.places[rows])
        for key in reversed(wants.order):
            values = np.asarray(self.values(key.name)[rows], np.float64)
            keys.append(values if table.is_increasing(key.name) is not key.is_reversed else -values)
        if ranked is not None:
            keys.append(ranked.levels[rows])
        found = rows[np.lexsort(keys)].tolist()
        self.work += len(found) // HOSTS_A_COMPARISON
        first = self.first(request)
        if first is not None:
            found.sort(key=lambda row: table.names[row] not in first)
        return found  # type: ignore[no-any-return]

    def _is_enough(self, rows: NDArray[np.intp], role: RoleRequest) -> bool:
        """True if these hosts together could hold the role's minimum; otherwise the search is skipped."""
        return role.tasks_min == 1 or role.one_host or not len(rows) or self._tasks_on(rows, role) >= role.tasks_min

    def _tasks_on(self, rows: NDArray[np.intp], role: RoleRequest) -> int:
        """Number of tasks for which these hosts had slots when the slice began."""
        tasks = self.table.slots_free[rows] // role.slots_per_task
        if role.ptile > 0 and not role.ptile_by:
            tasks = np.minimum(tasks, role.ptile)
        return int(tasks.sum())

    def mask(self, text: str) -> NDArray[np.bool_]:
        """Mask of the hosts that satisfy a select expression, with what was taken so far."""
        found = self._masks.get(text)
        if found is None or found[0] not in (-1, self.version):
            selection = self.table.cached(("select", text), lambda: compiled(self.table, text))
            self.work += len(self.table) // HOSTS_A_COMPARISON
            is_fixed = all(self.table.is_fixed(name) for name in selection.names)
            if is_fixed:
                mask = self.table.cached(("mask", text), lambda: selection.truth(self.table))
            else:
                mask = selection.truth(self)
            is_moving_ = any(self.table.is_moving(name) for name in selection.names)
            found = self._masks[text] = (self.version if is_moving_ else -1, mask)
        return found[1]


def compiled(table: HostTable, text: str) -> Selection:
    """Parse an accepted select expression against the present resource names."""
    return Selection(text, vocabulary=Vocabulary(table.site.resources, is_open=True))
