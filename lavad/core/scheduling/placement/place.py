"""All-or-nothing placement: every role's minimum on hosts with enough free resources, or nothing.

Works on a scratch copy of the free resources; a start sees what earlier starts of its slice took. Hosts are taken in
natural order of their names (first fit), which keeps wide holes for parallel jobs.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from lavad.core.language.requirements import cu
from lavad.core.language.requirements.cu import ComputeUnits
from lavad.core.language.requirements.parsed import wants_of
from lavad.core.model import Allocation, HostShare, Request, ResourceShare, RoleRequest
from lavad.core.scheduling.capacity.free_resources import CandidateHosts, FreeResources, HostFree, smallest_share
from lavad.core.scheduling.placement import gpus as devices
from lavad.core.scheduling.placement.compute_units import Capacity, HostSet, alike, within
from lavad.core.scheduling.placement.host_part import HostPart
from lavad.core.scheduling.placement.span import TaskDistributor, live_rows
from lavad.core.state.hosts.compute_units import kept_type, unit_mates
from lavad.core.state.hosts.table import HostTable

_ONE_TASK = (1,)
_WIDE_FRONT = 2  # multiple of the hosts needed that is examined before candidates are filtered by memory


class MinimumNeed(NamedTuple):
    """Minimum of free resources without which a request cannot fit: what a blocked bucket waits for."""

    slots: int  # these three on one host
    memory_mib: int
    gpus: int
    slots_in_all: int
    tasks: int  # of a parallel job of one role; 1 if a count of tasks over hosts decides nothing
    slots_per_task: int
    tasks_per_host: int


def smallest_need(request: Request) -> MinimumNeed:
    """Minimum need over all alternatives: per host that of the least demanding role, in total every role's minimum."""
    needs = [_need_of(roles) for roles in (request.roles, *(one.roles for one in request.alternatives))]
    if len(needs) == 1:
        return needs[0]
    least = MinimumNeed(*(min(values) for values in zip(*needs, strict=True)))
    return least._replace(tasks=1)


def _need_of(roles: tuple[RoleRequest, ...]) -> MinimumNeed:
    chunks = [smallest_share(role) for role in roles]
    tasks = (1, 1, 1)  # of several roles the tasks are not counted over hosts
    if len(roles) == 1:
        (role,) = roles
        is_tiled = role.ptile > 0 and not role.ptile_by
        each = role.ptile if is_tiled else role.tasks_min
        tasks = (1 if role.one_host else role.tasks_min, role.slots_per_task, each)
    return MinimumNeed(
        min(slots for slots, _, _ in chunks),
        min(memory for _, memory, _ in chunks),
        min(gpus for _, _, gpus in chunks),
        sum(role.tasks_min * role.slots_per_task for role in roles),
        *tasks,
    )


def is_single_host(request: Request) -> bool:
    """True if the request always fits on one host; then only hosts with freed resources can unblock it."""
    role = request.single_role
    return role is not None and not request.alternatives and (role.one_host or role.tasks_max == 1)


@lru_cache(maxsize=1024)
def cu_of(text: str) -> ComputeUnits | None:
    """Parsed cu section of a request."""
    return cu.parse(text) if text else None


def place(room: FreeResources, request: Request, waited_s: float = 0.0) -> Allocation | None:
    """Place the request, taking the free resources; None leaves them unchanged.

    Args:
        waited_s: seconds since submission, for alternatives that apply only after a delay.
    """
    role = request.single_role
    if role is not None:  # of several roles each has conditions of its own
        if request.is_slots_only:
            return _place_plain(room, request, role)
        if role.tasks_max == 1 and request.is_basic:
            return _place_one(room, request, role)
        if request.is_even_split:
            return _place_evenly(room, request, role)
    found = _Trial(room, request, request.roles, 0).place(request.same, request.cu)
    if found is None and request.is_of_tasks:
        return _place_smaller(room, request)
    for number, one in enumerate(request.alternatives, 1):
        if found is not None:
            break
        if waited_s >= one.delay_s:
            found = _Trial(room, request, one.roles, number).place(one.same, one.cu)
    return found


def _place_smaller(room: FreeResources, request: Request) -> Allocation | None:
    """Place a job of tasks with the first roles at their minimum: what they took beyond it, later ones may need."""
    roles, found = request.roles, None
    for number, role in enumerate(roles[:-1]):
        if found is None and role.tasks_max > role.tasks_min:
            roles = (*roles[:number], replace(role, tasks_max=role.tasks_min), *roles[number + 1 :])
            found = _Trial(room, request, roles, 0).place(request.same, request.cu)
    return found


def _place_plain(room: FreeResources, request: Request, role: RoleRequest) -> Allocation | None:
    """Place a request of slots only, first come, first served: the fast path of most jobs."""
    candidates = room.plain(request)
    listed = room.listed(candidates)
    if listed is not None:
        return room.take_listed(listed, role)
    wanted = left = role.tasks_max
    chosen: list[tuple[int, int]] = []
    rows, at = candidates.rows, candidates.start
    for at in range(candidates.start, len(rows)):
        free = room.slots(rows[at])
        if free > 0:
            slots = min(free, left)
            chosen.append((rows[at], slots))
            left -= slots
            if not left:
                at += free == slots
                break
    room.work += 1 + at - candidates.start
    if wanted - left < role.tasks_min:
        return None
    candidates.start = at
    for row, slots in chosen:
        room.take_slots(row, slots)
    return tuple([room.table.plain.one(row, slots) for row, slots in chosen])


def is_one_task(request: Request) -> bool:
    """True if the request is one task that needs only slots, memory and whole devices, on any one usable host."""
    role = request.single_role
    return role is not None and role.tasks_max == 1 and request.is_basic


def host_of_one(room: FreeResources, request: Request, role: RoleRequest) -> tuple[int, HostFree] | None:
    """First host with room for such a task, with its free resources; None if there is none. Nothing is taken."""
    found = None
    if not (role.select or request.has_host_preferences or room.is_narrowed(request)):
        found = room.front(role.slots_per_task, role.gpus).first_with(role.memory_mib)
    if found is None:
        candidates = room.candidates(request, request.roles, 0, 0)
        found = _first_of(room, candidates, role.slots_per_task, role.memory_mib, role.gpus)
    return found


def _place_one(room: FreeResources, request: Request, role: RoleRequest) -> Allocation | None:
    """Place one task on the first host with room for it: a fast path for single-task jobs."""
    found = host_of_one(room, request, role)
    if found is None:
        return None
    row, free = found
    slots, memory, gpus = role.slots_per_task, role.memory_mib, role.gpus
    chosen = devices.of_any_kind(room.table.facts[row], free, gpus) if gpus else ()
    room.version += 1
    free.take(slots, memory, chosen)
    return (HostShare(room.table.names[row], slots, memory, chosen, _ONE_TASK),)


def _first_of(
    room: FreeResources, candidates: CandidateHosts, slots: int, memory: int, gpus: int
) -> tuple[int, HostFree] | None:
    """First candidate with these free resources, and move the cursor to it; None if there is none."""
    rows, first = candidates.rows, candidates.start
    at, found = first, None
    while at < len(rows) or candidates.grow():
        free = room.free(rows[at])
        if free.slots >= slots and free.memory_mib >= memory and (not gpus or free.gpus.bit_count() >= gpus):
            found = rows[at], free
            break
        at += 1
    candidates.start = at
    room.work += 1 + at - first
    return found


def _place_evenly(room: FreeResources, request: Request, role: RoleRequest) -> Allocation | None:
    """Place equal parts of slots and memory on the first hosts with room for a part each."""
    tasks, memory = role.ptile, role.memory_mib
    slots, wanted = tasks * role.slots_per_task, role.tasks_max // tasks
    chosen: list[tuple[int, HostFree]] = []
    if not (role.select or request.has_host_preferences or room.is_narrowed(request)):
        chosen = _parts_of(room, room.with_slots(slots), slots, memory, wanted, _WIDE_FRONT * wanted)
    if len(chosen) < wanted:
        chosen = _parts_of(room, room.candidates(request, request.roles, 0, 0), slots, memory, wanted, len(room))
    if len(chosen) < wanted:
        return None
    for _, free in chosen:
        free.take(slots, memory, ())
    room.version += 1
    names, by_role = room.table.names, (tasks,)
    return tuple([HostShare(names[row], slots, memory, (), by_role) for row, _ in chosen])


def _parts_of(
    room: FreeResources, candidates: CandidateHosts, slots: int, memory: int, wanted: int, looks: int
) -> list[tuple[int, HostFree]]:
    """First ``wanted`` candidates with these free resources, or fewer after ``looks`` hosts.

    The cursor passes candidates at its position with too few slots.
    """
    rows, at = candidates.rows, candidates.start
    last = at + looks
    chosen: list[tuple[int, HostFree]] = []
    while len(chosen) < wanted and at < last and (at < len(rows) or candidates.grow()):
        free = room.free(rows[at])
        if free.slots < slots:
            candidates.start += at == candidates.start
        elif free.memory_mib >= memory:
            chosen.append((rows[at], free))
        at += 1
    room.work += 1 + at - (last - looks)
    return chosen


class _Trial:
    """Placement of one alternative: all of its roles together, or nothing."""

    def __init__(self, room: FreeResources, request: Request, roles: tuple[RoleRequest, ...], choice: int) -> None:
        self.room = room
        self.request = request
        self.roles = roles
        self.choice = choice
        self.mine: set[int] = set()  # rows with shares of this job

    def place(self, same: str, cu: str) -> Allocation | None:
        """Place all roles; None leaves the free resources unchanged."""
        names, units = tuple(filter(None, same.split(":"))), cu_of(cu)
        if not names and not units:
            parts = self._place_roles(None)
            return self._done(parts) if parts is not None else None
        rows = list(
            dict.fromkeys(row for number in range(len(self.roles)) for row in self._candidates(number).all_rows())
        )
        total = [sum(role.tasks_min for role in self.roles), sum(role.tasks_max for role in self.roles)]
        for some in self._sets(rows, names, units, self._slots_on, *total):
            parts = self._place_roles(set(some.rows))
            if parts is not None:
                return self._done(parts)
        return None

    def _done(self, parts: list[HostPart]) -> Allocation:
        if self.request.exclusive:
            for part in parts:
                self.room.free(part.row).slots = 0
        kind = kept_type(self.request)
        if kind is not None:
            for row in unit_mates(self.room.table, [part.row for part in parts], kind):
                self.room.free(row).slots = 0
        return _merged(self.room.table, parts, len(self.roles))

    def _slots_on(self, row: int) -> int:
        return self.room.slots(row)

    def _candidates(self, number: int) -> CandidateHosts:
        return self.room.candidates(self.request, self.roles, self.choice, number)

    def _place_roles(self, allowed: set[int] | None) -> list[HostPart] | None:
        """Place every role in turn, on allowed rows only; None, and nothing taken, if one does not fit."""
        cursors = [(candidates := self._candidates(number), candidates.start) for number in range(len(self.roles))]
        fillers: list[TaskDistributor] = []
        self.mine = set()
        for number, role in enumerate(self.roles):
            mine = self.mine if self.request.exclusive else set()
            filler = TaskDistributor(self.room, role, wants_of(role), number, self.request.exclusive, mine)
            fillers.append(filler)
            if not self._place_role(filler, allowed):
                for earlier in reversed(fillers):
                    earlier.undo()
                for candidates, start in cursors:  # released hosts may now be behind a cursor
                    candidates.start = start
                return None
        return [part for filler in fillers for part in filler.chosen]

    def _place_role(self, filler: TaskDistributor, allowed: set[int] | None) -> bool:
        candidates, wants, role = self._candidates(filler.number), filler.wants, filler.role
        first = self.room.first(self.request)
        if not wants.same and not wants.units and allowed is None:
            rows = self._first_only(self._live_rows(filler, candidates), first, filler)
            return filler.fill(rows) and self._has_first(filler, first)
        rows_left = [row for row in candidates.all_rows() if allowed is None or row in allowed]
        for some in self._sets(
            rows_left,
            wants.same,
            wants.units,
            lambda row: filler.room_on(row, role.tasks_max),
            role.tasks_min,
            role.tasks_max,
        ):
            filler.allow(some.parts)
            if filler.fill(live_rows(filler, some.rows)) and self._has_first(filler, first):
                return True
        return False

    def _first_only(self, rows: Iterator[int], first: frozenset[str] | None, filler: TaskDistributor) -> Iterator[int]:
        """Rows for -m "h1!": none if no required first host has room."""
        for row in rows:
            if (
                first is not None
                and not filler.number
                and not filler.chosen
                and self.room.table.names[row] not in first
            ):
                return
            yield row
            first = None

    def _has_first(self, filler: TaskDistributor, first: frozenset[str] | None) -> bool:
        if first is None or filler.number or not filler.chosen:  # a role that may be absent takes no host
            return True
        if self.room.table.names[filler.chosen[0].row] in first:
            return True
        filler.undo()
        return False

    def _sets(
        self,
        rows: list[int],
        same: tuple[str, ...],
        units: ComputeUnits | None,
        capacity: Capacity,
        least: int,
        most: int,
    ) -> Iterator[HostSet]:
        for some in alike(self.room, rows, same, capacity, most) if same else [rows]:
            if units is None:
                yield HostSet(some)
            else:
                yield from within(self.room, some, units, capacity, least, most)

    def _live_rows(self, filler: TaskDistributor, candidates: CandidateHosts) -> Iterator[int]:
        """Candidates from the cursor on; the cursor passes rows that cannot hold one task any more."""
        room = self.room
        slots, memory, gpus = filler.task_size
        rows, at = candidates.rows, candidates.start
        at_front = True
        while at < len(rows) or candidates.grow():
            row = rows[at]
            at += 1
            free = room.free(row)
            room.work += 1
            if free.slots < slots or free.memory_mib < memory or free.gpus.bit_count() < gpus:
                if at_front:
                    candidates.start = at
                continue
            at_front = False
            yield row


def _merged(table: HostTable, parts: list[HostPart], roles: int) -> Allocation:
    """One share for each host, in the order hosts were chosen: the lead host first."""
    by_row: dict[int, list[HostPart]] = {}
    for part in parts:
        by_row.setdefault(part.row, []).append(part)
    return tuple([share_of(table, row, together, roles) for row, together in by_row.items()])


def share_of(table: HostTable, row: int, parts: list[HostPart], roles: int) -> HostShare:
    """Share of one host for all roles together."""
    name = table.names[row]
    if len(parts) == 1 and roles == 1:
        (part,) = parts
        memory = (part.gpu_memory_mib,) * len(part.gpus) if part.gpu_memory_mib is not None else ()
        return HostShare(
            name,
            part.slots,
            part.memory_mib,
            part.gpus,
            (part.tasks,),
            part.resources,
            memory,
            part.cpus,
            part.cpus_idle,
        )
    tasks = [0] * roles
    for part in parts:
        tasks[part.role] += part.tasks
    return HostShare(
        name,
        sum(part.slots for part in parts),
        sum(part.memory_mib for part in parts),
        tuple(gpu for part in parts for gpu in part.gpus),
        tuple(tasks),
        _united(parts, roles > 1),
        _gpu_memory(table, parts),
        tuple(task for part in parts for task in part.cpus),
        tuple(cpu for part in parts for cpu in part.cpus_idle),
        tuple(part.role for part in parts for _ in part.gpus) if roles > 1 else (),
    )


def _gpu_memory(table: HostTable, parts: list[HostPart]) -> tuple[int, ...]:
    """Memory taken of each device, all of an exclusive one; empty if all devices are exclusive."""
    if all(part.gpu_memory_mib is None for part in parts):
        return ()
    return tuple([_memory_of(table, part, gpu) for part in parts for gpu in part.gpus])


def _memory_of(table: HostTable, part: HostPart, gpu: int) -> int:
    return table.facts[part.row].devices[gpu].memory_mib if part.gpu_memory_mib is None else part.gpu_memory_mib


def _united(parts: list[HostPart], has_roles: bool) -> tuple[ResourceShare, ...]:
    """One entry for each resource, summed over the parts."""
    found: dict[str, ResourceShare] = {}
    for part in parts:
        for one in part.resources:
            before = found.get(one.name, ResourceShare(one.name, 0))
            roles = (*before.device_roles, *[part.role for _ in one.devices if has_roles])
            amount = before.amount + one.amount
            found[one.name] = ResourceShare(one.name, amount, (*before.devices, *one.devices), roles)
    return tuple(found.values())
