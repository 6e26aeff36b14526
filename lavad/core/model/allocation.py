"""Allocations: sums and differences of host shares, and what a job could release.

Invariant: an allocation has one share a host, in the order in which hosts were allocated; the first is the lead host.
Memory, devices and the like belong to a host's part as a whole: they are allocated with its first task there and
released with its last. ``PlainAllocation``, of slots alone, knows the rows of its hosts in the host table, so that the
slots of hundreds of hosts are booked in a few steps over columns; it equals an allocation that does not know them.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from lavad.core.model import Allocation, HostShare, RoleRequest

HOST = itemgetter(HostShare._fields.index("host"))  # of a share, in a loop of C: gangs have hundreds of hosts
_SLOTS = itemgetter(HostShare._fields.index("slots"))


def slots_of(allocation: Allocation) -> int:
    """How many slots it holds in all."""
    if len(allocation) == 1:
        return allocation[0].slots
    return allocation.total if type(allocation) is PlainAllocation else sum(map(_SLOTS, allocation))


def slots_by_host(allocation: Allocation) -> list[int]:
    """How many slots it holds on each host."""
    return [allocation[0].slots] if len(allocation) == 1 else list(map(_SLOTS, allocation))


def tasks_of(allocation: Allocation) -> int:
    """How many tasks it holds in all."""
    return sum(sum(share.tasks_by_role) for share in allocation)


def is_divisible(role: RoleRequest) -> bool:
    """May tasks come and go on a host that the job keeps? Not where they have something of their own besides slots."""
    return not (role.gpus or role.gpu or role.rusage or role.affinity or role.ptile < 0 or role.ptile_by)


def is_whole(share: HostShare) -> bool:
    """Is it more than slots alone: a host's whole part?"""
    return bool(share.memory_mib or share.gpus or share.resources or share.cpus)


def plus(one: HostShare, more: HostShare) -> HostShare:
    """Two shares of one host as one; only one of them has more than slots."""
    whole, rest = (more, one) if is_whole(more) else (one, more)
    tasks = tuple(a + b for a, b in zip_longest(one.tasks_by_role, more.tasks_by_role, fillvalue=0))
    return whole._replace(slots=whole.slots + rest.slots, tasks_by_role=tasks)


def minus(one: HostShare, less: HostShare) -> HostShare:
    """What is left of a share; of all that is not slots either everything or nothing is taken away."""
    tasks = tuple(a - b for a, b in zip_longest(one.tasks_by_role, less.tasks_by_role, fillvalue=0))
    if is_whole(one) and is_whole(less):
        return HostShare(one.host, one.slots - less.slots, 0, (), tasks)
    return one._replace(slots=one.slots - less.slots, tasks_by_role=tasks)


def grown(allocation: Allocation, additions: Allocation) -> Allocation:
    """The allocation with these shares; new hosts come last."""
    if not additions:
        return allocation
    found = {share.host: share for share in allocation}
    for share in additions:
        found[share.host] = plus(found[share.host], share) if share.host in found else share
    return tuple(found.values())


def shrunk(allocation: Allocation, gives: Allocation) -> Allocation:
    """The allocation without these shares; a host of which no task is left is gone."""
    less = {share.host: share for share in gives}
    left = (minus(share, less[share.host]) if share.host in less else share for share in allocation)
    return tuple(share for share in left if share.slots > 0)


def given_up(before: Allocation, after: Allocation) -> Allocation:
    """What the one has and the other has not, host by host."""
    kept = {share.host: share for share in after}
    parts = (minus(share, kept[share.host]) if share.host in kept else share for share in before)
    return tuple(part for part in parts if part.slots > 0)


def part_of(share: HostShare, tasks: int, role: RoleRequest) -> HostShare:
    """So many tasks of a share: all of it, or slots alone."""
    if tasks == sum(share.tasks_by_role):
        return share
    return HostShare(share.host, tasks * role.slots_per_task, 0, (), (tasks,))


def could_give(
    allocation: Allocation, role: RoleRequest, tasks: int, wanted: Mapping[str, int] | None = None
) -> Allocation:
    """What the attempt would give up to have so many tasks less, or as many of them as it can spare.

    The hosts that came last go first. The lead host stays, and where tasks are not divisible hosts go as a whole.
    ``wanted``: about so many slots on these hosts and nothing on others.
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


class PlainAllocation(tuple[HostShare, ...]):
    """``slots`` on the hosts in ``rows``, ``total`` in all.

    The rows are those of the table that has these ``names``; ``at`` are the same rows for use as an index.
    """

    names: Sequence[str]
    rows: list[int]
    at: NDArray[np.int64]
    slots: NDArray[np.int64]
    total: int


def plain_allocation(
    shares: tuple[HostShare, ...],
    names: Sequence[str],
    rows: list[int],
    slots: list[int],
    at: NDArray[np.int64] | None = None,
) -> PlainAllocation:
    """These shares, of so many slots each, on these rows of the table; ``at``: the rows once more, if they are there
    as a column."""
    made = PlainAllocation(shares)
    made.names, made.rows = names, rows
    made.at = np.array(rows) if at is None else at
    made.slots = _column(slots[0], len(slots)) if slots.count(slots[0]) == len(slots) else np.array(slots)
    made.total = sum(slots)
    return made


@lru_cache(maxsize=1024)
def _column(slots: int, hosts: int) -> NDArray[np.int64]:
    """As many slots on each of so many hosts. To be read alone."""
    return np.full(hosts, slots)
