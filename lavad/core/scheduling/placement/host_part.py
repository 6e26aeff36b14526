"""Part of one role on one host: tasks that fit, the resources they take, and their release."""

from dataclasses import dataclass

from lavad.core.language.requirements.parsed import ParsedRole, amount_for
from lavad.core.language.requirements.rusage import Reserve
from lavad.core.model import PARTS, Device, ResourceShare, RoleRequest
from lavad.core.scheduling.capacity.free_resources import FreeResources, HostFree
from lavad.core.scheduling.placement import cpus as processors
from lavad.core.scheduling.placement import gpus as devices
from lavad.core.scheduling.placement import locality
from lavad.core.scheduling.placement.gpus import lowest_bits
from lavad.core.state.hosts.shared_gpus import joined, left_by


@dataclass(slots=True)
class HostPart:
    """Resources of one host for one role."""

    row: int
    role: int
    tasks: int
    slots: int
    memory_mib: int
    gpus: tuple[int, ...]
    gpu_memory_mib: int | None = None  # of each shared device; None: the devices are exclusive
    resources: tuple[ResourceShare, ...] = ()
    cpus: tuple[tuple[int, ...], ...] = ()
    cpus_idle: tuple[int, ...] = ()


def room_for(
    room: FreeResources, row: int, role: RoleRequest, wants: ParsedRole, tasks_max: int, is_first: bool = False
) -> int:
    """Number of the role's tasks that fit on a host; ``is_first`` if amounts per job are taken here, too."""
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
    while tasks and wants.is_placed and _devices_and_cpus(room, row, role, wants, tasks) is None:
        tasks -= 1
    return tasks


def _tasks_within(
    room: FreeResources, free: HostFree, row: int, role: RoleRequest, one: Reserve, tasks: int, is_first: bool
) -> int:
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
    """Devices needed by ``tasks`` tasks on one host."""
    return role.gpus * tasks if role.gpus_per_task else role.gpus


def _devices_and_cpus(
    room: FreeResources, row: int, role: RoleRequest, wants: ParsedRole, tasks: int
) -> locality.GpusAndCpus | None:
    facts, free = room.table.facts[row], room.free(row)
    return locality.choose(facts, free, wants.gpus, gpus_for(role, tasks), wants.affinity, tasks)


def take(
    room: FreeResources, role: RoleRequest, wants: ParsedRole, number: int, row: int, tasks: int, is_first: bool
) -> HostPart:
    """Take the resources of ``tasks`` tasks of role ``number`` on a host where they fit."""
    free = room.free(row)
    count = gpus_for(role, tasks)
    part = HostPart(row, number, tasks, tasks * role.slots_per_task, role.memory_mib, ())
    if wants.is_counted:
        _choose(room, free, role, wants, part, count, is_first)
    elif count:
        part.gpus = devices.of_any_kind(room.table.facts[row], free, count)
    _move(room, part, 1)
    return part


def _choose(
    room: FreeResources,
    free: HostFree,
    role: RoleRequest,
    wants: ParsedRole,
    part: HostPart,
    count: int,
    is_first: bool,
) -> None:
    facts = room.table.facts[part.row]
    both = _devices_and_cpus(room, part.row, role, wants, part.tasks)
    if both is not None:
        part.gpus, part.cpus = both
    if wants.gpus is not None and count:
        part.gpu_memory_mib = wants.gpus.memory_mib if wants.gpus.is_shared else None
    elif count:
        part.gpus = devices.of_any_kind(facts, free, count)
    if wants.affinity is not None:
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


def _device_numbers(room: FreeResources, row: int, name: str, amount: int) -> tuple[int, ...]:
    """Lowest idle devices of an indexed resource."""
    amounts, left = room.table.site.amounts(name), room.left(name, row)
    if amounts is None or left is None or not amounts.is_indexed:
        return ()
    return lowest_bits(~left.busy, amount // PARTS)


def undo(room: FreeResources, part: HostPart) -> None:
    """Release what ``take`` took."""
    _move(room, part, -1)


def _move(room: FreeResources, part: HostPart, sign: int) -> None:
    free = room.free(part.row)
    room.version += 1
    free.slots -= sign * part.slots
    free.memory_mib -= sign * part.memory_mib
    free.attempts += sign
    if part.gpu_memory_mib is not None:
        _move_shared_gpus(free, part.gpus, part.gpu_memory_mib, room.table.facts[part.row].devices, sign)
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


def _move_shared_gpus(
    free: HostFree, gpus: tuple[int, ...], memory_mib: int, known: tuple[Device, ...], sign: int
) -> None:
    shared = free.gpu_shared = free.gpu_shared if free.gpu_shared is not None else {}
    for gpu in gpus:
        if sign > 0:
            shared[gpu] = joined(shared.get(gpu), known[gpu].memory_mib, memory_mib)
            free.gpus &= ~(1 << gpu)
            continue
        rest = left_by(shared.pop(gpu), memory_mib)
        if rest is not None:
            shared[gpu] = rest
        else:
            free.gpus |= 1 << gpu
