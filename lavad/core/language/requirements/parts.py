"""Parts of a host's share that some tasks of a job of tasks hold, and what such a job could release.

Invariant: the devices of a role on a host are in the order of its tasks there, so many for each task.

Amounts for each host are released with the role's last task there. Bound processors can't be divided: such a host is
released as a whole.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache

from lavad.core.language.requirements.parsed import amount_for, wants_of
from lavad.core.language.requirements.rusage import Per, Reserve
from lavad.core.model import PARTS, Allocation, HostShare, Request, ResourceShare, RoleRequest

MEMORY = "mem"
Places = Sequence[Collection[int]]  # of tasks of each role among its tasks on the host, from 0


def sizes_of(allocation: Allocation, roles: int) -> list[int]:
    """Number of tasks of each role."""
    found = [0] * roles
    for share in allocation:
        for role, tasks in enumerate(share.tasks_by_role):
            found[role] += tasks
    return found


@lru_cache(maxsize=4096)
def is_elastic(request: Request) -> bool:
    """True if a job of tasks can be resized: a role has a range, and no rule ties its hosts together for ever."""
    if not request.is_of_tasks or request.exclusive:
        return False
    return not is_tied(request) and any(role.tasks_min < role.tasks_max for role in request.roles)


def is_tied(request: Request) -> bool:
    """True if a rule ties the hosts of a job together for ever."""
    return any(map(_is_tied, request.roles))


def _is_tied(role: RoleRequest) -> bool:
    units = wants_of(role).units
    return bool(role.block) or (units is not None and (units.exclusive or units.balance))


@lru_cache(maxsize=4096)
def keeps_first_host(request: Request) -> bool:
    """True if a job of tasks holds amounts for the job as a whole: its first host has them, and never leaves."""
    return any(
        one.per is Per.JOB or (one.per is Per.DEFAULT and one.name != MEMORY)
        for role in request.roles
        for one in wants_of(role).reserves
    )


def last_of(share: HostShare, tasks: Sequence[int], request: Request) -> HostShare:
    """Part that the last of each role's tasks hold, so many of each role."""
    here = share.tasks_by_role
    return held_by(share, [range(have - less, have) for have, less in zip(here, tasks, strict=True)], request)


def held_by(share: HostShare, places: Places, request: Request) -> HostShare:
    """Part of the share that these tasks of each role hold."""
    counts = tuple(map(len, places))
    if counts == share.tasks_by_role:
        return share
    roles = request.roles
    gpus = [at for number in range(len(roles)) for at in _gpus_at(share, number, places[number], roles[number])]
    return HostShare(
        share.host,
        sum(tasks * role.slots_per_task for tasks, role in zip(counts, roles, strict=True)),
        sum(_memory(role, share.tasks_by_role[at], counts[at]) for at, role in enumerate(roles)),
        tuple(share.gpus[at] for at in gpus),
        counts,
        tuple(_amounts(share, places, request)),
        tuple(share.gpu_memory_mib[at] for at in gpus if share.gpu_memory_mib),
        (),
        (),
        tuple(share.gpu_roles[at] for at in gpus if share.gpu_roles),
    )


def _gpus_at(share: HostShare, number: int, places: Collection[int], role: RoleRequest) -> list[int]:
    """Places in the share's GPUs of those that these tasks hold."""
    mine = [at for at in range(len(share.gpus)) if not share.gpu_roles or share.gpu_roles[at] == number]
    if not role.gpus_per_task:
        return mine if places and len(places) == share.tasks_by_role[number] else []
    return [mine[place * role.gpus + one] for place in sorted(places) for one in range(role.gpus)]


def _memory(role: RoleRequest, here: int, less: int) -> int:
    """Memory that ``less`` of a role's tasks on a host release."""
    return _memory_for(role, here) - _memory_for(role, here - less)


def _memory_for(role: RoleRequest, tasks: int) -> int:
    if not tasks:
        return 0
    more = (amount_for(one, tasks, False, False) for one in wants_of(role).reserves if one.name == MEMORY)
    return role.memory_mib + sum(-(-amount // PARTS) for amount in more)


def _amounts(share: HostShare, places: Places, request: Request) -> Iterator[ResourceShare]:
    """Site-defined resources that these tasks hold."""
    for held in share.resources:
        amount, devices = 0, list[int]()
        for number, role in enumerate(request.roles):
            for one in wants_of(role).reserves if places[number] else ():
                if one.name == held.name:
                    at = _devices_at(held, number, places[number], share.tasks_by_role[number], one)
                    amount += _amount(one, len(places[number]), share.tasks_by_role[number])
                    devices += at
        if amount:
            roles = tuple(held.device_roles[at] for at in devices if held.device_roles)
            found = tuple(held.devices[at] for at in devices)
            yield ResourceShare(held.name, min(amount, held.amount), found, roles)


def _amount(one: Reserve, less: int, here: int) -> int:
    if one.per is Per.TASK:
        return one.largest * less
    return one.largest if less == here and one.per is not Per.JOB else 0


def _devices_at(held: ResourceShare, number: int, places: Collection[int], here: int, one: Reserve) -> list[int]:
    """Places in the resource's devices of those that these tasks of a role hold."""
    mine = [at for at in range(len(held.devices)) if not held.device_roles or held.device_roles[at] == number]
    if one.per is not Per.TASK:
        return mine if len(places) == here else []
    each = len(mine) // here
    return [mine[place * each + more] for place in sorted(places) for more in range(each)]


# -- what a job could release ------------------------------------------------------------------------------------------


def spare_of(allocation: Allocation, request: Request) -> list[int]:
    """Number of tasks that each role has beyond its minimum."""
    sizes = sizes_of(allocation, len(request.roles))
    return [have - role.tasks_min for have, role in zip(sizes, request.roles, strict=True)]


def could_release(
    allocation: Allocation,
    request: Request,
    tasks: int,
    wanted: Mapping[str, int] | None = None,
    most: Sequence[int] | None = None,
) -> Allocation:
    """Parts that a job of tasks could release to lose ``tasks`` tasks, or as many as its roles' minima allow.

    Hosts that joined last are released first, on each host the last role first. ``wanted``: number of slots on these
    hosts, about, and none on others. ``most``: of each role's tasks, in place of those beyond its minimum.
    """
    spare = spare_of(allocation, request) if most is None else list(most)
    gives = list[HostShare]()
    for share in reversed(allocation):
        left = 1 if keeps_first_host(request) and share is allocation[0] else 0
        slots = None if wanted is None else wanted.get(share.host, 0)
        less = _less_of(share, request, spare, min(tasks, sum(share.tasks_by_role) - left), slots)
        if any(less):
            gives.append(last_of(share, less, request))
            tasks -= sum(less)
            spare = [one - gone for one, gone in zip(spare, less, strict=True)]
    return tuple(reversed(gives))


def _less_of(
    share: HostShare, request: Request, spare: Sequence[int], tasks: int, slots: int | None
) -> tuple[int, ...]:
    """Number of tasks of each role that a host could lose, up to ``tasks`` in all and about so many slots."""
    less = [0] * len(request.roles)
    for number, role in reversed(list(enumerate(request.roles))):
        most = tasks if slots is None else min(tasks, -(-slots // role.slots_per_task))
        less[number] = max(0, min(share.tasks_by_role[number], spare[number], most))
        tasks -= less[number]
        slots = None if slots is None else max(0, slots - less[number] * role.slots_per_task)
    if is_divisible_of(share) or tuple(less) == share.tasks_by_role:
        return tuple(less)
    return (0,) * len(less)


def is_divisible_of(share: HostShare) -> bool:
    """True if a job of tasks can release a part of its share: no processors are bound."""
    return not share.cpus


def first_released(share: HostShare, gives: HostShare, tasks: int, request: Request) -> HostShare:
    """Smaller part in place of ``gives``: the ``tasks`` tasks of it that are released first."""
    less = [0] * len(request.roles)
    for number in reversed(range(len(less))):
        less[number] = min(tasks, gives.tasks_by_role[number])
        tasks -= less[number]
    return last_of(share, less, request)
