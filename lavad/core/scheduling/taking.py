"""One host's part in a role: how many tasks there is room for, what they take, and how that is undone."""

from dataclasses import dataclass

from lavad.core.model import ResourceShare, RoleRequest
from lavad.core.requirements.rusage import PARTS, Reserve
from lavad.core.scheduling import devices, processors
from lavad.core.scheduling.devices import lowest_bits
from lavad.core.scheduling.room import Free, Room
from lavad.core.scheduling.wants import Wants, amount_for


@dataclass(slots=True)
class Part:
    """What one host gives to one role."""

    row: int
    role: int
    tasks: int
    slots: int
    memory_mib: int
    gpus: tuple[int, ...]
    gpu_memory_mib: int = 0  # of each device; 0: all of it
    resources: tuple[ResourceShare, ...] = ()
    cpus: tuple[tuple[int, ...], ...] = ()
    cpus_idle: tuple[int, ...] = ()


def room_for(room: Room, row: int, role: RoleRequest, wants: Wants, tasks_max: int, is_first: bool = False) -> int:
    """How many tasks of the role there is room for. ``is_first``: the job's own amounts are taken here, too."""
    free = room.free(row)
    if free.memory_mib < role.memory_mib:
        return 0
    tasks = min(free.slots // role.slots_per_task, tasks_max)
    if role.gpus and wants.gpus is None:
        there = free.gpus.bit_count()
        tasks = min(tasks, there // role.gpus) if role.gpus_per_task else (tasks if there >= role.gpus else 0)
    if not wants.is_counted:
        return tasks
    for one in wants.reserves:
        tasks = _tasks_within(room, free, row, role, one, tasks, is_first)
    while tasks and not _can_have_devices(room, free, row, role, wants, tasks):
        tasks -= 1
    while tasks and not _can_have_cpus(room, free, row, wants, tasks):
        tasks -= 1
    return tasks


def _tasks_within(room: Room, free: Free, row: int, role: RoleRequest, one: Reserve, tasks: int, is_first: bool) -> int:
    if one.name == "mem":
        amount, is_shared = (free.memory_mib - role.memory_mib) * PARTS, False
    else:
        left = room.left(one.name, row)
        if left is None:
            return 0
        amount, is_shared = left.amount, left.is_shared
    amount -= one.threshold
    fixed = amount_for(one, 0, is_shared, is_first)
    if amount < fixed or amount < 0:
        return 0
    each = amount_for(one, 1, is_shared, is_first) - fixed
    return min(tasks, (amount - fixed) // each) if each else tasks


def gpus_for(role: RoleRequest, tasks: int) -> int:
    """How many devices so many tasks on one host need."""
    return role.gpus * tasks if role.gpus_per_task else role.gpus


def _can_have_devices(room: Room, free: Free, row: int, role: RoleRequest, wants: Wants, tasks: int) -> bool:
    if wants.gpus is None or not role.gpus:
        return True
    return devices.choose(room.table.facts[row], free, wants.gpus, gpus_for(role, tasks)) is not None


def _can_have_cpus(room: Room, free: Free, row: int, wants: Wants, tasks: int) -> bool:
    if wants.affinity is None:
        return True
    return processors.choose(room.table.facts[row].topology, free.cpus, wants.affinity, tasks) is not None


def take(room: Room, role: RoleRequest, wants: Wants, number: int, row: int, tasks: int, is_first: bool) -> Part:
    """Give so many tasks of role ``number`` to a host that has room for them."""
    free = room.free(row)
    count = gpus_for(role, tasks)
    part = Part(row, number, tasks, tasks * role.slots_per_task, role.memory_mib, ())
    if wants.is_counted:
        _choose(room, free, role, wants, part, count, is_first)
    elif count:
        part.gpus = devices.of_any_kind(room.table.facts[row], free, count)
    _move(room, part, 1)
    return part


def _choose(room: Room, free: Free, role: RoleRequest, wants: Wants, part: Part, count: int, is_first: bool) -> None:
    facts = room.table.facts[part.row]
    if wants.gpus is not None and count:
        part.gpus = devices.choose(facts, free, wants.gpus, count) or ()
        part.gpu_memory_mib = wants.gpus.memory_mib if wants.gpus.is_shared else 0
    elif count:
        part.gpus = devices.of_any_kind(facts, free, count)
    if wants.affinity is not None:
        part.cpus = processors.choose(facts.topology, free.cpus, wants.affinity, part.tasks) or ()
        part.cpus_idle = processors.idle_beside(facts.topology, part.cpus, wants.affinity)
    found = []
    for one in wants.reserves:
        left = room.left(one.name, part.row) if one.name != "mem" else None
        amount = amount_for(one, part.tasks, left is not None and left.is_shared, is_first)
        if one.name == "mem":
            part.memory_mib += -(-amount // PARTS)
        elif amount:
            found.append(ResourceShare(one.name, amount, _device_numbers(room, part.row, one.name, amount)))
    part.resources = tuple(found)


def _device_numbers(room: Room, row: int, name: str, amount: int) -> tuple[int, ...]:
    """Of an indexed resource, the lowest devices that are not busy."""
    amounts, left = room.table.site.amounts(name), room.left(name, row)
    if amounts is None or left is None or not amounts.is_indexed:
        return ()
    return lowest_bits(~left.busy, amount // PARTS)


def undo(room: Room, part: Part) -> None:
    """Put back what ``take`` took."""
    _move(room, part, -1)


def _move(room: Room, part: Part, sign: int) -> None:
    free = room.free(part.row)
    room.version += 1
    free.slots -= sign * part.slots
    free.memory_mib -= sign * part.memory_mib
    free.attempts += sign
    if part.gpu_memory_mib:
        _move_gpu_memory(room, free, part, sign)
    else:
        free.gpus = _moved(free.gpus, part.gpus, sign)
    if part.cpus:
        free.cpus = _moved(free.cpus, (*part.cpus_idle, *(cpu for task in part.cpus for cpu in task)), sign)
    for one in part.resources:
        left = room.left(one.name, part.row)
        assert left is not None, one.name
        left.amount -= sign * one.amount
        left.busy = ~_moved(~left.busy, one.devices, sign)


def _moved(free: int, numbers: tuple[int, ...], sign: int) -> int:
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return free & ~bits if sign > 0 else free | bits


def _move_gpu_memory(room: Room, free: Free, part: Part, sign: int) -> None:
    known = room.table.facts[part.row].devices
    left = free.gpu_memory = free.gpu_memory if free.gpu_memory is not None else {}
    for gpu in part.gpus:
        size = known[gpu].memory_mib
        left[gpu] = left.get(gpu, size) - sign * part.gpu_memory_mib
        if left[gpu] >= size:
            del left[gpu]
            free.gpus |= 1 << gpu
        else:
            free.gpus &= ~(1 << gpu)
