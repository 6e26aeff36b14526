"""Earliest start of a blocked job, found by simulating running jobs to their run limits until it fits."""

import numpy as np
from numpy.typing import NDArray

from lavad.core.language.requirements.parsed import all_roles, names_of, watched_by
from lavad.core.model import Allocation, Request
from lavad.core.scheduling.backfill.simulated_future import FuturePlacer, PendingRequest, SimulatedFuture
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.capacity.usable_hosts import usable
from lavad.core.scheduling.placement.place import MinimumNeed, smallest_need
from lavad.core.state.hosts.table import HostTable

TRIES_MAX = 200  # placements tried for one job before its start counts as unpredictable
STEPS_MAX = 20_000  # events simulated for one job


def could_take(table: HostTable, request: Request) -> NDArray[np.bool_]:
    """Mask of the hosts that could run a part of the job if they were open and empty."""
    need, hosts = smallest_need(request), len(table)
    found = table.slots_max[:hosts] >= need.slots
    if need.memory_mib:
        found &= table.values("maxmem") >= need.memory_mib
    if need.gpus:
        found &= table.values("ngpus") >= need.gpus
    if request.has_host_preferences:
        found &= usable(table, request).contains
    selects = {role.select for role in all_roles(request)}
    if len(selects) == 1 and (select := selects.pop()) and all(map(table.is_fixed, names_of(select))):
        found &= FreeResources(table).mask(select)
    return np.asarray(found)


def earliest(
    future: SimulatedFuture, asked: PendingRequest, relevant: NDArray[np.bool_]
) -> tuple[Allocation, FuturePlacer] | None:
    """Simulate until the job fits and can keep its hosts until its run limit.

    Returns None if the start cannot be predicted within ``STEPS_MAX`` events and ``TRIES_MAX`` placements.
    """
    table, request = future.table, asked.demand.request
    need = smallest_need(request)
    is_watching = future.allowance.concerns(asked.demand) or any(
        table.site.amounts(name) for name in watched_by(request)
    )
    is_due, tries = True, 0
    for _ in range(STEPS_MAX):
        if is_due and _is_enough(table, request, relevant, need):
            placing = future.placing()
            allocation = placing.place(asked)
            if allocation is not None:
                return allocation, placing
            tries += 1
            is_due = False
        if tries >= TRIES_MAX or not future.advance():
            return None
        is_due = is_due or is_watching or _has_room(table, future.freed, need.slots, need.memory_mib, need.gpus)
    return None


def _is_enough(table: HostTable, request: Request, relevant: NDArray[np.bool_], need: MinimumNeed) -> bool:
    """True if the free resources hold as many tasks as the job needs: a cheap test before a placement."""
    if table.slots_open < need.slots_in_all:
        return False
    if need.tasks == 1:
        return True
    hosts, (role, *_) = len(table), request.roles
    fits = relevant & table.open_rows() & (table.memory_free_mib[:hosts] >= need.memory_mib)
    fits &= table.gpus_free[:hosts] >= need.gpus
    if request.exclusive:
        fits &= table.attempts[:hosts] == 0
    tasks = np.minimum(table.slots_free[:hosts][fits] // need.slots_per_task, need.tasks_per_host)
    if role.gpus and role.gpus_per_task and not role.gpu:
        tasks = np.minimum(tasks, table.gpus_free[:hosts][fits] // role.gpus)
    return int(tasks.clip(0).sum()) >= need.tasks


def _has_room(table: HostTable, rows: set[int], slots: int, memory_mib: int, gpus: int) -> bool:
    return any(
        table.slots_free[row] >= slots and table.memory_free_mib[row] >= memory_mib and table.gpus_free[row] >= gpus
        for row in rows
    )
