"""Free slots of all open hosts as a list, from which plain requests take one after the other: first come, first taken.

That is what most jobs ask for, so it goes the short way. Hosts come in natural order of their names; those in front of
``start`` have nothing left.
"""

import numpy as np
from numpy.typing import NDArray

from lavad.core.model import Allocation, RoleRequest
from lavad.core.state.hosts.table import HostTable


class SlotList:
    """``work`` counts hosts looked at; ``taken`` is what was taken since the list was made, as rows and slots."""

    __slots__ = ("_rows", "_slots", "_table", "start", "taken", "work")

    def __init__(self, table: HostTable, rows: NDArray[np.intp]) -> None:
        """``rows`` of all hosts with free slots."""
        self._table = table
        self._rows = rows
        self._slots: list[int] = table.slots_free[rows].tolist()
        self.start = 0
        self.taken: list[tuple[list[int], list[int]]] = []
        self.work = 0

    def take(self, role: RoleRequest) -> Allocation | None:
        """As many tasks of the role as it wants, or as there are slots for; None where these are not enough."""
        first, slots_now = self.start, self._slots
        last, left = _walk(slots_now, first, role.tasks_max)
        self.work += 1 + last - first
        if left > role.tasks_max - role.tasks_min:
            return None
        at, chosen = self._rows[first:last].copy(), slots_now[first:last]
        if left < 0:  # the last host gives only a part
            chosen[-1] += left
            slots_now[last - 1] = -left
            last -= 1
        self.start = last
        rows: list[int] = at.tolist()
        self.taken.append((rows, chosen))
        return self._table.plain.many(rows, chosen, at)


def free_slots_of(table: HostTable) -> SlotList:
    """As they are now."""
    found = SlotList(table, table.rows_with_slots())
    found.work = len(table) // 64
    return found


def _walk(slots_now: list[int], at: int, left: int) -> tuple[int, int]:
    """Behind the last of the hosts that are needed from that one on, and what is missing then (negative: too much).

    Hosts that are alike are taken together.
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
