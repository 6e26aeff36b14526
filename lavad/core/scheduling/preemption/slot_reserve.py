"""Slot reservation (SLOT_RESERVE, RESOURCE_RESERVE): a blocked parallel job gathers free slots for a limited time.

The gathered slots are a claim that grows whenever slots become free; the job starts as soon as it fits into its claim
and the free slots together. When the time is over the claim is released, and the job gathers nothing for as long again,
so that other jobs can run.

A claim keeps slots idle: nothing is backfilled into it. In a queue with BACKFILL a job therefore gathers slots only
while the start of its reservation cannot be predicted; from then on the reservation keeps other jobs from delaying it,
and lets those run that end before.
"""

from dataclasses import replace

from lavad.core.cluster_view import ClusterView
from lavad.core.model import Allocation, Alternative, HostShare, Request, RoleRequest
from lavad.core.model.rules.queues import Queue
from lavad.core.plan import ReserveSlots, Start
from lavad.core.scheduling.capacity.constraint import Ceilings
from lavad.core.scheduling.capacity.constraints import allowance_of
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.placement.feasibility import choices_on_usable
from lavad.core.scheduling.placement.place import place
from lavad.core.scheduling.placement.within_limits import place_capped
from lavad.core.scheduling.queueing.cursor import JobCursor
from lavad.core.state.hosts.table import HostTable
from lavad.core.state.pending import BucketKey

FROM_SAVINGS = "in slots that were reserved for it"


def may_save(cluster: ClusterView, key: BucketKey) -> bool:
    """True if jobs of this bucket gather free slots."""
    queue = cluster.policy.by_name[key.queue]
    return queue.slot_reserve_s > 0 and key.request.slots_min > 1 and not key.request.exclusive


def save(cluster: ClusterView, cursor: JobCursor, now: float) -> ReserveSlots | Start | None:
    """Start the job in its claim and the free slots, else extend the claim; None if there is nothing to add."""
    key = cursor.key
    queue, job = cluster.policy.by_name[key.queue], (cursor.job, cursor.index)
    saved = cluster.claims.get(job)
    if saved is None and cluster.slot_reserve_pauses.get(job, 0.0) > now:
        return None
    waited_s = now - cluster.jobs[cursor.job].submitted_at if key.request.alternatives else 0.0
    choice = _choice(cluster.table, key.request, waited_s)
    if choice is None:
        return None
    table = cluster.table.copy()
    for share in saved.allocation if saved is not None else ():
        table.give_back(table.rows[share.host], share, False)
    mine = saved.allocation if saved is not None else ()
    demand = key.demand._replace(run_limit_s=cursor.run_limit_s, given=mine)
    ceilings = allowance_of(cluster, now).limit(demand).on_hosts
    room = FreeResources(table)
    if ceilings is None:
        allocation = place(room, key.request, waited_s)
    else:
        allocation = place_capped(room, ceilings, key.request, waited_s)
    if allocation is not None:
        return Start(*job, allocation, FROM_SAVINGS)
    more = _all_free(table, key.request, choice, queue, ceilings)
    if _size(more) <= (_size(saved.allocation) if saved is not None else (0, 0)):
        return None
    return ReserveSlots(*job, more, saved.until if saved is not None else now + queue.slot_reserve_s)


def _choice(table: HostTable, request: Request, waited_s: float) -> Alternative | None:
    """First alternative that already applies and fits on idle usable hosts.

    None: slots gathered for the job would only be lost to others.
    """
    return next((one for one in choices_on_usable(table, request) if waited_s >= one.delay_s), None)


def _size(allocation: Allocation) -> tuple[int, int]:
    """Slots and MiB of a claim; it is extended if either grows."""
    return sum(share.slots for share in allocation), sum(share.memory_mib for share in allocation)


def _all_free(
    table: HostTable, request: Request, choice: Alternative, queue: Queue, ceilings: Ceilings | None
) -> Allocation:
    """Free slots on hosts that could take a part of the job, as many as it needs; hosts with free memory first."""
    left, found = sum(role.tasks_min * role.slots_per_task for role in choice.roles), {}
    for role in choice.roles:
        memory_mib = 0 if queue.reserves_memory else role.memory_mib  # memory not free yet may be claimed later
        one_task = replace(
            role, tasks_min=1, tasks_max=1, one_host=False, ptile=0, block=0, stripe=0, memory_mib=memory_mib
        )
        probe = replace(request, roles=(one_task,), exclusive=False, same="", cu="", alternatives=(), reservation="")
        rows = list(FreeResources(table).candidates(probe, probe.roles, 0, 0).all_rows())
        if queue.reserves_memory:
            rows.sort(key=lambda row: -_keepable(table, row, role))
        for row in rows:
            free = int(table.slots_free[row])
            slots = min(left, _usable(free if ceilings is None else ceilings.slots_on(row, free), role))
            if slots > 0 and table.is_open(row) and row not in found:
                memory = _keepable(table, row, role) if queue.reserves_memory else 0
                found[row] = HostShare(table.names[row], slots, memory)
                left -= slots
    return tuple(found.values())


def _keepable(table: HostTable, row: int, role: RoleRequest) -> int:
    """MiB of a host that the job can claim: the free part of its need."""
    return min(role.memory_mib, max(0, int(table.memory_free_mib[row])))


def _usable(free: int, role: RoleRequest) -> int:
    """Slots for whole tasks, at most those allowed on one host."""
    tasks = free // role.slots_per_task
    return (min(tasks, role.ptile) if role.ptile > 0 else tasks) * role.slots_per_task
