"""Allocations: sums and differences of host shares, and what a job could release.

Invariant: an allocation has one share a host, in the order in which hosts were allocated; the first is the lead host.
Memory, GPUs and other resources belong to a host's share as a whole: they are allocated with its first task there and
released with its last; in a job of tasks each task has its own part of them (``language.requirements.parts``).
"""

from collections.abc import Mapping
from itertools import zip_longest
from operator import itemgetter

from lavad.core.model import Allocation, HostShare, ResourceShare, RoleRequest

HOST = itemgetter(HostShare._fields.index("host"))  # of a share, called in C: parallel jobs have hundreds of hosts
_SLOTS = itemgetter(HostShare._fields.index("slots"))


def slots_of(allocation: Allocation) -> int:
    """Total number of slots."""
    return allocation[0].slots if len(allocation) == 1 else sum(map(_SLOTS, allocation))


def slots_by_host(allocation: Allocation) -> list[int]:
    """Number of slots on each host."""
    return [allocation[0].slots] if len(allocation) == 1 else list(map(_SLOTS, allocation))


def tasks_of(allocation: Allocation) -> int:
    """Total number of tasks."""
    return sum(sum(share.tasks_by_role) for share in allocation)


def is_divisible(role: RoleRequest) -> bool:
    """True if a host can lose some of its tasks; not if they have resources besides slots."""
    return not (role.gpus or role.gpu or role.rusage or role.affinity or role.ptile < 0 or role.ptile_by)


def is_whole(share: HostShare) -> bool:
    """True if the share has more than slots, so that it can only be released whole."""
    return bool(share.memory_mib or share.gpus or share.resources or share.cpus)


def plus(one: HostShare, more: HostShare) -> HostShare:
    """Sum of two shares of one host; devices of ``more`` come last."""
    tasks = tuple(a + b for a, b in zip_longest(one.tasks_by_role, more.tasks_by_role, fillvalue=0))
    if is_whole(one) and is_whole(more):
        return _together(one, more, tasks)
    whole, rest = (more, one) if is_whole(more) else (one, more)
    return whole._replace(slots=whole.slots + rest.slots, tasks_by_role=tasks)


def _together(one: HostShare, more: HostShare, tasks: tuple[int, ...]) -> HostShare:
    resources = {amount.name: amount for amount in one.resources}
    for amount in more.resources:
        had = resources.get(amount.name, ResourceShare(amount.name, 0))
        devices, roles = had.devices + amount.devices, had.device_roles + amount.device_roles
        resources[amount.name] = ResourceShare(amount.name, had.amount + amount.amount, devices, roles)
    return HostShare(
        one.host,
        one.slots + more.slots,
        one.memory_mib + more.memory_mib,
        one.gpus + more.gpus,
        tasks,
        tuple(resources.values()),
        one.gpu_memory_mib + more.gpu_memory_mib,
        one.cpus + more.cpus,
        one.cpus_idle + more.cpus_idle,
        one.gpu_roles + more.gpu_roles,
    )


def minus(one: HostShare, less: HostShare) -> HostShare:
    """Difference of two shares of one host; ``less`` is a part of ``one``."""
    tasks = tuple(a - b for a, b in zip_longest(one.tasks_by_role, less.tasks_by_role, fillvalue=0))
    if is_whole(one) and is_whole(less):
        return _rest(one, less, tasks)
    return one._replace(slots=one.slots - less.slots, tasks_by_role=tasks)


def _rest(one: HostShare, less: HostShare, tasks: tuple[int, ...]) -> HostShare:
    kept = _kept(one.gpus, one.gpu_roles, less.gpus, less.gpu_roles)
    amounts = {amount.name: amount for amount in less.resources}
    resources = (_amount_left(amount, amounts.get(amount.name)) for amount in one.resources)
    return HostShare(
        one.host,
        one.slots - less.slots,
        one.memory_mib - less.memory_mib,
        _at(kept, one.gpus),
        tasks,
        tuple(amount for amount in resources if amount.amount),
        _at(kept, one.gpu_memory_mib),
        () if less.cpus else one.cpus,
        () if less.cpus else one.cpus_idle,
        _at(kept, one.gpu_roles),
    )


def _amount_left(one: ResourceShare, less: ResourceShare | None) -> ResourceShare:
    if less is None:
        return one
    kept = _kept(one.devices, one.device_roles, less.devices, less.device_roles)
    return ResourceShare(one.name, one.amount - less.amount, _at(kept, one.devices), _at(kept, one.device_roles))


def _kept(
    devices: tuple[int, ...], roles: tuple[int, ...], gone: tuple[int, ...], roles_gone: tuple[int, ...]
) -> list[int]:
    """Places of the devices that are left; of equal ones the last are gone."""
    less = list(zip_longest(gone, roles_gone))
    kept = []
    for at, one in reversed(list(enumerate(zip_longest(devices, roles)))):
        if one in less:
            less.remove(one)
        else:
            kept.append(at)
    return kept[::-1]


def _at(places: list[int], values: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([values[at] for at in places]) if values else ()


def grown(allocation: Allocation, additions: Allocation) -> Allocation:
    """Allocation with additional shares; new hosts come last."""
    if not additions:
        return allocation
    found = {share.host: share for share in allocation}
    for share in additions:
        found[share.host] = plus(found[share.host], share) if share.host in found else share
    return tuple(found.values())


def shrunk(allocation: Allocation, gives: Allocation) -> Allocation:
    """Allocation without these shares; hosts without tasks are dropped."""
    less = {share.host: share for share in gives}
    left = (minus(share, less[share.host]) if share.host in less else share for share in allocation)
    return tuple(share for share in left if share.slots > 0)


def given_up(before: Allocation, after: Allocation) -> Allocation:
    """Shares of the first allocation that the second lacks, host by host."""
    kept = {share.host: share for share in after}
    parts = (minus(share, kept[share.host]) if share.host in kept else share for share in before)
    return tuple(part for part in parts if part.slots > 0)


def part_of(share: HostShare, tasks: int, role: RoleRequest) -> HostShare:
    """Share of ``tasks`` tasks: the whole share, or slots only."""
    if tasks == sum(share.tasks_by_role):
        return share
    return HostShare(share.host, tasks * role.slots_per_task, 0, (), (tasks,))


def could_give(
    allocation: Allocation, role: RoleRequest, tasks: int, wanted: Mapping[str, int] | None = None
) -> Allocation:
    """Shares that the job could release to lose ``tasks`` tasks, or as many as its minimum allows.

    Hosts that joined last are released first. The lead host stays; indivisible tasks are released by whole hosts.
    ``wanted``: number of slots on these hosts, about, and none on others.
    """
    spare = min(tasks, tasks_of(allocation) - role.tasks_min)
    gives: list[HostShare] = []
    for share in reversed(allocation):
        here = sum(share.tasks_by_role)
        less = min(spare, here - 1 if share.host == allocation[0].host else here)
        if wanted is not None:
            most = -(-wanted.get(share.host, 0) // role.slots_per_task)
            less = min(less, most if is_divisible(role) or not most else here)
        if less < here and not is_divisible(role):
            continue
        if less > 0:
            gives.append(part_of(share, less, role))
            spare -= less
    return tuple(reversed(gives))
