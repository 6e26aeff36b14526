"""All-or-nothing host choice: every role's minimum on hosts that have room, or nothing.

Works on a scratch copy of the free figures; starts of one slice see what earlier ones took. Hosts are taken in natural
order of their names (first fit), which keeps wide holes for parallel jobs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from lavad.core.indexes.hosts import HostTable
from lavad.core.model import Allocation, HostShare, Request, RoleRequest
from lavad.core.scheduling.room import Candidates, Free, Room, chunk_of


class Need(NamedTuple):
    """The least that must be free for a request to have a chance: what a blocked bucket waits for."""

    slots: int  # these three on one host
    memory_mib: int
    gpus: int
    slots_in_all: int
    tasks: int  # of a gang of one role; 1 where counting tasks over hosts says nothing
    slots_per_task: int
    tasks_per_host: int


def smallest_need(request: Request) -> Need:
    """Per host: of the least demanding role; in all: the slots of every role's minimum."""
    chunks = [chunk_of(role) for role in request.roles]
    role = request.roles[0]
    is_gang = len(request.roles) == 1 and not role.one_host
    return Need(
        min(slots for slots, _, _ in chunks),
        min(memory for _, memory, _ in chunks),
        min(gpus for _, _, gpus in chunks),
        request.slots_min,
        role.tasks_min if is_gang else 1,
        role.slots_per_task,
        role.ptile or role.tasks_min,
    )


def is_single_host(request: Request) -> bool:
    """Does the request fit on one host whatever happens? Then only hosts whose room grew can unblock it."""
    role = request.roles[0]
    return len(request.roles) == 1 and (role.one_host or role.tasks_max == 1)


@dataclass(slots=True)
class _Part:
    """What one host gives to one role."""

    row: int
    role: int
    tasks: int
    slots: int
    memory_mib: int
    gpus: tuple[int, ...]


def place(room: Room, request: Request) -> Allocation | None:
    """An allocation, taken from the room; or None, with the room as it was."""
    if request.is_plain:
        return _place_plain(room, request)
    if len(request.roles) == 1 and request.roles[0].tasks_max == 1 and not request.exclusive:
        return _place_one(room, request, request.roles[0])
    parts: list[_Part] = []
    cursors = [room.candidates(request, number).start for number in range(len(request.roles))]
    for number, role in enumerate(request.roles):
        chosen = _place_role(room, request, role, number, parts)
        if chosen is None:
            for part in parts:
                _undo(room, part)
            for earlier, start in enumerate(cursors):  # what was undone may be behind a cursor now
                room.candidates(request, earlier).start = start
            return None
        parts.extend(chosen)
    if request.exclusive:
        for part in parts:
            room.free(part.row).slots = 0
    return _merged(room.table, parts, len(request.roles))


def _place_plain(room: Room, request: Request) -> Allocation | None:
    """Any free slots will do: first come, first taken. What most jobs ask for, so it goes the short way."""
    candidates = room.plain(request)
    slots_now = room.slots_of(candidates)
    if slots_now is not None:
        return _place_in_list(room, request, candidates, slots_now)
    wanted = left = request.roles[0].tasks_max
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
    if wanted - left < request.roles[0].tasks_min:
        return None
    candidates.start = at
    for row, slots in chosen:
        room.take_slots(row, slots)
    return tuple([room.table.plain_share(row, slots) for row, slots in chosen])


def _place_in_list(room: Room, request: Request, candidates: Candidates, slots_now: list[int]) -> Allocation | None:
    """The same where nothing but slots was taken so far, so that free slots stand in a list."""
    left = request.roles[0].tasks_max
    first = last = candidates.start
    hosts = len(slots_now)
    while left > 0 and last < hosts:
        left -= slots_now[last]
        last += 1
    room.work += 1 + last - first
    if left > request.roles[0].tasks_max - request.roles[0].tasks_min:
        return None
    rows, chosen = candidates.rows[first:last], slots_now[first:last]
    if left < 0:  # the last host gives only a part
        chosen[-1] += left
        slots_now[last - 1] = -left
        last -= 1
    candidates.start = last
    room.note_taken(rows, chosen)
    share = room.table.plain_share
    return tuple([share(row, slots) for row, slots in zip(rows, chosen, strict=True) if slots])


def _place_one(room: Room, request: Request, role: RoleRequest) -> Allocation | None:
    """One task: the first host with room for it. Most jobs have only one, so it goes a short way, too."""
    candidates = room.candidates(request, 0)
    slots, memory, gpus = role.slots_per_task, role.memory_mib, role.gpus
    rows, first = candidates.rows, candidates.start
    at = first
    while at < len(rows) or candidates.grow():
        free = room.free(rows[at])
        if free.slots >= slots and free.memory_mib >= memory and (not gpus or free.gpus.bit_count() >= gpus):
            break
        at += 1
    candidates.start = at
    room.work += 1 + at - first
    if at == len(rows):
        return None
    devices = _lowest_bits(free.gpus, gpus) if gpus else ()
    free.take(slots, memory, devices)
    return (HostShare(room.table.names[rows[at]], slots, memory, devices, (1,)),)


def _place_role(
    room: Room, request: Request, role: RoleRequest, number: int, before: list[_Part]
) -> list[_Part] | None:
    mine = {part.row for part in before} if request.exclusive else set()
    chosen: list[_Part] = []
    tasks_left = _fill(room, request, role, number, role.tasks_max, chosen, mine)
    if role.ptile and tasks_left:
        tasks_left -= _add_last(room, request, role, number, tasks_left, chosen, mine)
    if role.tasks_max - tasks_left >= role.tasks_min:
        return chosen
    for part in chosen:
        _undo(room, part)
    return None


def _fill(
    room: Room, request: Request, role: RoleRequest, number: int, tasks_left: int, chosen: list[_Part], mine: set[int]
) -> int:
    """Give tasks to candidate hosts that have none of this role yet; returns how many found no host."""
    used = {part.row for part in chosen}
    for row, free in _live_rows(room, request, role, number):
        if row in used or (request.exclusive and free.attempts and row not in mine):
            continue
        tasks = _tasks_on(free, role, tasks_left)
        if tasks:
            chosen.append(_take(free, role, number, row, tasks))
            tasks_left -= tasks
            if not tasks_left or role.one_host:
                break
    return tasks_left


def _add_last(
    room: Room, request: Request, role: RoleRequest, number: int, tasks_left: int, chosen: list[_Part], mine: set[int]
) -> int:
    """The last host of a ptile may have fewer tasks: the one that can take most of what is left; returns how many."""
    used = {part.row for part in chosen}
    most, best = 0, None
    for row, free in _live_rows(room, request, role, number):
        if row in used or (request.exclusive and free.attempts and row not in mine):
            continue
        tasks = _room_for(free, role, min(tasks_left, role.ptile - 1))
        if tasks > most:
            most, best = tasks, (row, free)
    if best is not None:
        chosen.append(_take(best[1], role, number, best[0], most))
    return most


def _live_rows(room: Room, request: Request, role: RoleRequest, number: int) -> Iterator[tuple[int, Free]]:
    """Candidates from the cursor on; the cursor passes rows that have become too full for even one chunk."""
    candidates = room.candidates(request, number)
    slots, memory, gpus = chunk_of(role)
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
        yield row, free


def _tasks_on(free: Free, role: RoleRequest, tasks_left: int) -> int:
    """How many tasks of the role this host takes: as many as fit, exactly ptile, or all."""
    tasks = _room_for(free, role, tasks_left)
    if role.one_host:
        return tasks if tasks >= role.tasks_min else 0
    if role.ptile:
        wanted = min(role.ptile, tasks_left)
        return wanted if tasks >= wanted else 0
    return tasks


def _room_for(free: Free, role: RoleRequest, tasks_max: int) -> int:
    """How many tasks of the role there is room for."""
    if free.memory_mib < role.memory_mib:
        return 0
    tasks = min(free.slots // role.slots_per_task, tasks_max)
    if role.gpus:
        devices = free.gpus.bit_count()
        tasks = min(tasks, devices // role.gpus) if role.gpus_per_task else (tasks if devices >= role.gpus else 0)
    return tasks


def _take(free: Free, role: RoleRequest, number: int, row: int, tasks: int) -> _Part:
    wanted = role.gpus * tasks if role.gpus_per_task else role.gpus
    gpus = _lowest_bits(free.gpus, wanted)
    part = _Part(row, number, tasks, tasks * role.slots_per_task, role.memory_mib, gpus)
    free.take(part.slots, part.memory_mib, gpus)
    return part


def _undo(room: Room, part: _Part) -> None:
    free = room.free(part.row)
    free.slots += part.slots
    free.memory_mib += part.memory_mib
    free.attempts -= 1
    for gpu in part.gpus:
        free.gpus |= 1 << gpu


def _lowest_bits(mask: int, count: int) -> tuple[int, ...]:
    found: list[int] = []
    while len(found) < count:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return tuple(found)


def _merged(table: HostTable, parts: list[_Part], roles: int) -> Allocation:
    """One share for each host, in the order hosts were chosen: the lead host first."""
    if len(parts) == 1 and roles == 1:
        part = parts[0]
        return (HostShare(table.names[part.row], part.slots, part.memory_mib, part.gpus, (part.tasks,)),)
    by_row: dict[int, list[_Part]] = {}
    for part in parts:
        by_row.setdefault(part.row, []).append(part)
    return tuple(_share(table.names[row], together, roles) for row, together in by_row.items())


def _share(name: str, parts: list[_Part], roles: int) -> HostShare:
    tasks = [0] * roles
    for part in parts:
        tasks[part.role] += part.tasks
    return HostShare(
        name,
        sum(part.slots for part in parts),
        sum(part.memory_mib for part in parts),
        tuple(gpu for part in parts for gpu in part.gpus),
        tuple(tasks),
    )
