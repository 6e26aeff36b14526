"""Ordered list of the free slots of open hosts, from which slots-only requests take in turn.

Most jobs request slots only, so they take this fast path. Hosts are in natural order of names; those before ``start``
have no free slots left.
"""

import numpy as np
from numpy.typing import NDArray

from lavad.core.model import Allocation, RoleRequest
from lavad.core.state.hosts.table import HostTable


class SlotList:
    """Slot list of one slice. ``work`` counts hosts examined; ``taken`` lists what was taken, as rows and slots."""

    __slots__ = ("_rows", "_slots", "_table", "start", "taken", "work")

    def __init__(self, table: HostTable, rows: NDArray[np.intp]) -> None:
        """Build the list from ``rows``, all hosts with free slots."""
        self._table = table
        self._rows = rows
        self._slots: list[int] = table.slots_free[rows].tolist()
        self.start = 0
        self.taken: list[tuple[list[int], list[int]]] = []
        self.work = 0

    def take(self, role: RoleRequest) -> Allocation | None:
        """Take as many of the role's tasks as there are slots for; None if fewer than its minimum."""
        first, slots_now = self.start, self._slots
        last, left = _walk(slots_now, first, role.tasks_max)
        self.work += 1 + last - first
        if left > role.tasks_max - role.tasks_min:
            return None
        rows: list[int] = self._rows[first:last].tolist()
        chosen = slots_now[first:last]
        if left < 0:  # only a part of the last host's slots
            chosen[-1] += left
            slots_now[last - 1] = -left
            last -= 1
        self.start = last
        self.taken.append((rows, chosen))
        return self._table.plain.many(rows, chosen)


def free_slots_of(table: HostTable) -> SlotList:
    """Slot list of the present free slots."""
    found = SlotList(table, table.rows_with_slots())
    found.work = len(table) // 64
    return found


def _walk(slots_now: list[int], at: int, left: int) -> tuple[int, int]:
    """Return the index behind the last host needed, and the slots then missing (negative: surplus).

    Runs of hosts with equal free slots are taken together.
    """
    hosts = len(slots_now)
    while left > 0 and at < hosts:
        here = slots_now[at]
        alike = slots_now[at : at + left // here] if 0 < 2 * here <= left else ()
        total = sum(alike)
        if 0 < total <= left:
            left -= total
            at += len(alike)
        else:
            left -= here
            at += 1
    return at, left
