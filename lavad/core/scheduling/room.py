"""What is free on hosts while a slice places jobs: a scratch layer over the host table that only ever shrinks.

Values of a host are fetched when it is first looked at, so a slice that touches few hosts costs little on a large
cluster.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from lavad.core.indexes.hosts import HostTable
from lavad.core.model import Request, RoleRequest
from lavad.core.requirement import select_mask

_FIRST_BLOCK = 8  # candidates looked for at first


class Free:
    """One host's free figures; ``gpus`` has a bit for each free device."""

    __slots__ = ("attempts", "gpus", "memory_mib", "slots")

    def __init__(self, slots: int, memory_mib: int, gpus: int, attempts: int) -> None:
        self.slots = slots
        self.memory_mib = memory_mib
        self.gpus = gpus
        self.attempts = attempts

    def take(self, slots: int, memory_mib: int, gpus: tuple[int, ...]) -> None:
        """Book one share."""
        self.slots -= slots
        self.memory_mib -= memory_mib
        self.attempts += 1
        for gpu in gpus:
            self.gpus &= ~(1 << gpu)


class Candidates:
    """Rows with a cursor: rows before it have no room for one chunk any more, and room only shrinks in a slice.

    Rows are found as far as somebody walks: most jobs fit on the first host that has room at all.
    """

    __slots__ = ("_blocks", "rows", "start")

    def __init__(self, rows: list[int], blocks: Iterable[list[int]] = ()) -> None:
        self.rows = rows
        self.start = 0
        self._blocks = iter(blocks)

    def grow(self) -> bool:
        """Find more rows; False when there are no more."""
        for block in self._blocks:
            if block:
                self.rows += block
                return True
        return False


def chunk_of(role: RoleRequest) -> tuple[int, int, int]:
    """(slots, memory, gpus) of the smallest useful part on one host. The last host of a ptile may have fewer tasks."""
    tasks = role.tasks_min if role.one_host else 1
    if role.ptile:
        counts = range(role.tasks_min, min(role.tasks_max, role.tasks_min + role.ptile - 1) + 1)
        tasks = min(count % role.ptile or role.ptile for count in counts)
    gpus = role.gpus * tasks if role.gpus_per_task else role.gpus
    return tasks * role.slots_per_task, role.memory_mib, gpus


class Room:
    """Free figures of hosts, less what this slice has taken. ``work`` counts hosts looked at: what a slice costs."""

    def __init__(self, table: HostTable) -> None:
        self.table = table
        self.work = 0
        self._open = table.open_rows()
        self._free: dict[int, Free] = {}
        self._slots_taken: dict[int, int] = {}  # by plain requests, from hosts that are in no other way of interest
        self._plain: Candidates | None = None
        self._plain_slots: list[int] | None = None
        self._candidates: dict[tuple[Request, int], Candidates] = {}
        self._masks: dict[str, NDArray[np.bool_]] = {}
        self._with_slots: dict[int, NDArray[np.intp]] = {}  # by the GPUs they have at least
        self._first: dict[int, list[int]] = {}  # the first few of these

    def free(self, row: int) -> Free:
        """The host's figures as of now; change them to take something."""
        found = self._free.get(row)
        if found is None:
            table, taken = self.table, self._slots_taken.pop(row, 0)
            found = self._free[row] = Free(
                int(table.slots_free[row]) - taken,
                int(table.memory_free_mib[row]),
                table.gpu_free[row],
                int(table.attempts[row]) + bool(taken),
            )
        return found

    def plain(self, request: Request) -> Candidates:
        """Hosts with free slots, for requests that ask for nothing else; one list serves all of them."""
        narrowed = self._candidates.get((request, 0)) if self._candidates else None
        if narrowed is not None:
            return narrowed
        if self._plain is None:
            self._plain = Candidates(self._rows_with_slots())
        return self._plain

    def _rows_with_slots(self) -> list[int]:
        table, hosts = self.table, len(self.table)
        self.work += 1 + hosts // 256
        if hosts == 1:
            return [0] if table.is_open(0) and table.slots_free[0] > 0 else []
        return self._rows_with(0).tolist()  # type: ignore[no-any-return]

    def slots_of(self, candidates: Candidates) -> list[int] | None:
        """Free slots of all these hosts, kept by whoever takes some; None where each host has to be asked."""
        if self._free or candidates is not self._plain:
            return None
        if self._plain_slots is None and not self._slots_taken:
            self._plain_slots = self.table.slots_free[candidates.rows].tolist()
        return self._plain_slots

    def slots(self, row: int) -> int:
        """The host's free slots as of now."""
        free = self._free.get(row)
        return free.slots if free is not None else int(self.table.slots_free[row]) - self._slots_taken.get(row, 0)

    def note_taken(self, rows: list[int], slots: list[int]) -> None:
        """Slots were taken from these hosts in the list of free slots."""
        taken = self._slots_taken
        for row, more in zip(rows, slots, strict=True):
            taken[row] = taken.get(row, 0) + more

    def take_slots(self, row: int, slots: int) -> None:
        """Take slots and nothing else."""
        self._plain_slots = None
        free = self._free.get(row)
        if free is None:
            self._slots_taken[row] = self._slots_taken.get(row, 0) + slots
        else:
            free.slots -= slots
            free.attempts += 1

    def candidates(self, request: Request, number: int) -> Candidates:
        """Hosts that could take a chunk of that role when the slice began, in natural order of names."""
        found = self._candidates.get((request, number))
        if found is None:
            role = request.roles[number]
            is_simple = role.tasks_max == 1 and not (request.hosts or role.select or request.exclusive)
            if is_simple:
                found = Candidates(self._first_with(role.gpus), self._blocks(request, role, _FIRST_BLOCK))
            else:
                found = Candidates([], self._blocks(request, role))
            self._candidates[request, number] = found
        return found

    def narrow(self, request: Request, rows: Iterable[int]) -> None:
        """Only these hosts are worth a look for the request: none of the others had room before, or has more now."""
        names = self.table.names
        fitting = [row for row in rows if self._fits_now(request, row)]
        fitting.sort(key=lambda row: request.hosts.index(names[row]) if request.hosts else self.table.place[row])
        self._candidates[request, 0] = Candidates(fitting)

    def _fits_now(self, request: Request, row: int) -> bool:
        role, free = request.roles[0], self.free(row)
        slots, memory, gpus = chunk_of(role)
        self.work += 1
        return bool(
            self._open[row]
            and free.slots >= slots
            and free.memory_mib >= memory
            and free.gpus.bit_count() >= gpus
            and (not request.hosts or self.table.names[row] in request.hosts)
            and (not role.select or self._mask(role.select)[row])
        )

    def _first_with(self, gpus: int) -> list[int]:
        """The first few open hosts with free slots and so many GPUs, which are soon looked at one by one."""
        found = self._first.get(gpus)
        if found is None:
            found = self._first[gpus] = self._rows_with(gpus)[:_FIRST_BLOCK].tolist()
        return found.copy()

    def _blocks(self, request: Request, role: RoleRequest, start: int = 0) -> Iterator[list[int]]:
        """Rows from that place on that may be candidates, a few at first and then more and more at a time."""
        if request.hosts:
            named = [self.table.rows[name] for name in dict.fromkeys(request.hosts) if name in self.table.rows]
            yield self._fitting(np.array(named, np.intp), request, role).tolist()
            return
        rows = self._rows_with(chunk_of(role)[2])
        if role.tasks_min > 1 and not role.one_host:
            rows = self._fitting(rows, request, role)
            if not self._is_enough(rows, role):
                return
        size = _FIRST_BLOCK
        while start < len(rows):
            yield self._fitting(rows[start : start + size], request, role).tolist()
            start, size = start + size, size * 4

    def _rows_with(self, gpus: int) -> NDArray[np.intp]:
        """Open hosts with a free slot and so many free GPUs, in natural order of names."""
        found = self._with_slots.get(gpus)
        if found is None:
            table, used = self.table, len(self.table)
            self.work += 1 + used // 64
            fits = self._open & (table.slots_free[:used] > 0)
            if gpus:
                fits &= table.gpus_free[:used] >= gpus
            found = self._with_slots[gpus] = table.sorted_rows(fits)
        return found

    def _fitting(self, rows: NDArray[np.intp], request: Request, role: RoleRequest) -> NDArray[np.intp]:
        """Those of the rows that could take a chunk of the role when the slice began."""
        table = self.table
        slots, memory, gpus = chunk_of(role)
        self.work += 1 + len(rows) // 64
        fits = self._open[rows] & (table.slots_free[rows] >= slots)
        if memory:
            fits &= table.memory_free_mib[rows] >= memory
        if gpus:
            fits &= table.gpus_free[rows] >= gpus
        if request.exclusive:
            fits &= table.attempts[rows] == 0
        if role.select:
            fits &= self._mask(role.select)[rows]
        return rows[fits]

    def _is_enough(self, rows: NDArray[np.intp], role: RoleRequest) -> bool:
        """Could these hosts together hold the role's minimum? If not, nobody need walk them."""
        tasks = self.table.slots_free[rows] // role.slots_per_task
        if role.ptile:
            tasks = np.minimum(tasks, role.ptile)
        return int(tasks.sum()) >= role.tasks_min

    def _mask(self, select: str) -> NDArray[np.bool_]:
        if select not in self._masks:
            self.work += len(self.table) // 64
            self._masks[select] = select_mask(select, self.table)
        return self._masks[select]
