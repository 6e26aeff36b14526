"""Places for further tasks of a running job of tasks, by the rules of each role.

A role grows on hosts that it has first, then on others that the job has, then on further ones; tasks that are dealt out
go to the host with the fewest. Hosts where a role has tasks already have its amounts for each host.
"""

from collections.abc import Sequence
from dataclasses import replace
from heapq import heapify, heappop, heapreplace

from lavad.core.language.requirements.parsed import ParsedRole, wants_of
from lavad.core.language.requirements.rusage import Per
from lavad.core.model import Allocation, Request, RoleRequest
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.placement.host_part import HostPart, room_for, take
from lavad.core.scheduling.placement.place import share_of
from lavad.core.scheduling.placement.span import TaskDistributor, live_rows
from lavad.core.state.hosts.compute_units import unit_rows

LATER = 1  # a role number above 0: amounts for the job were taken with its first host


def further_tasks(
    room: FreeResources, request: Request, held: Allocation, closed: frozenset[str], more: Sequence[int]
) -> Allocation:
    """Shares of up to ``more`` further tasks of each role, taken from ``room``; none on the ``closed`` hosts."""
    rows = room.table.rows
    here = {rows[share.host]: share.tasks_by_role for share in held}
    parts = list[HostPart]()
    for number, role in enumerate(request.roles):
        if more[number] > 0:
            had = {row: tasks[number] for row, tasks in here.items() if tasks[number]}
            growth = _RoleGrowth(room, request, number, role, had, {rows[name] for name in closed})
            parts += growth.take(more[number], [row for row in here if row not in had])
    by_row: dict[int, list[HostPart]] = {}
    for part in parts:
        by_row.setdefault(part.row, []).append(part)
    return tuple([share_of(room.table, row, some, len(request.roles)) for row, some in by_row.items()])


class _RoleGrowth:
    """Further tasks of one role. ``had``: number of its tasks on each row where it has some."""

    def __init__(
        self,
        room: FreeResources,
        request: Request,
        number: int,
        role: RoleRequest,
        had: dict[int, int],
        closed: set[int],
    ) -> None:
        self.room, self.role, self.number, self.had = room, role, number, had
        self.wants = wants_of(role)
        self.beside = _beside(role), _beside_wants(role, self.wants)
        self.request = request
        self.closed = closed

    def take(self, more: int, of_job: list[int]) -> list[HostPart]:
        """Take up to ``more`` tasks; ``of_job``: rows of the job where the role has none yet."""
        role, beside = self.role, set(of_job)
        own = [row for row in self.had if row not in self.closed and self.room.table.is_open(row)]
        if role.one_host and self.had:
            rows = list[int]()
        else:
            rows = [row for row in self._candidates() if row not in self.had and row not in self.closed]
            rows.sort(key=lambda row: row not in beside)  # stable: the role's own order otherwise
        if self.wants.affinity is not None:  # processors are bound to the tasks of a share in the order of their roles
            own, rows = [], [row for row in rows if row not in beside]
        found = self._dealt([*own, *rows], more) if role.stripe else self._filled(own, rows, more)
        for part in found:
            part.role = self.number
        return found

    def _candidates(self) -> list[int]:
        alone = replace(self.role, tasks_min=1)
        wanted = replace(self.request, roles=(alone,))
        rows = self.room.candidates(wanted, wanted.roles, 0, 0).all_rows()
        return self._alike(self._in_units(list(rows)))

    def _in_units(self, rows: list[int]) -> list[int]:
        """Rows in the compute units that the role is in; in one unit if it is in none."""
        units = self.wants.units
        if units is None:
            return rows
        groups = unit_rows(self.room.table, units.type)
        mine = [group for group in groups if any(row in self.had for row in group)]
        if units.most and not self.had:
            mine = [group for group in groups if any(row in group for row in rows)][:1]
        elif not units.most or len(mine) < units.most:
            mine = groups if not units.most else [*mine, *[one for one in groups if one not in mine]][: units.most]
        allowed = {row for group in mine for row in group}
        return [row for row in rows if row in allowed]

    def _alike(self, rows: list[int]) -> list[int]:
        """Rows with the values of same[...] that the role's hosts have."""
        columns = [self.room.values(name) for name in self.wants.same]
        sample = next(iter(self.had), rows[0] if rows else None)
        if not columns or sample is None:
            return rows
        return [row for row in rows if all(column[row] == column[sample] for column in columns)]

    def _room_on(self, row: int, most: int) -> int:
        role, wants = self.beside if row in self.had else (self.role, self.wants)
        # Less than nothing is free where suspended jobs have lent what they hold.
        return max(0, room_for(self.room, row, role, wants, most)) if most > 0 else 0

    def _take(self, row: int, tasks: int) -> HostPart:
        role, wants = self.beside if row in self.had else (self.role, self.wants)
        return take(self.room, role, wants, LATER, row, tasks, False)

    def _filled(self, own: list[int], rows: list[int], more: int) -> list[HostPart]:
        """As many as fit on each host in turn, its own hosts first."""
        found = list[HostPart]()
        limited = TaskDistributor(self.room, replace(self.role, tasks_min=1), self.wants, LATER, False, set())
        for row in own:
            tasks = self._room_on(row, min(more, limited.tile_of(row) - self.had[row]) if self.role.ptile else more)
            if tasks:
                found.append(self._take(row, tasks))
                more -= tasks
        if more and rows:
            limited.role = replace(self.role, tasks_min=1, tasks_max=more)
            limited.fill(live_rows(limited, rows))
            found += limited.chosen
        return found

    def _dealt(self, rows: list[int], more: int) -> list[HostPart]:
        """One task after the other, each on the host with the fewest of the role."""
        most = self.role.stripe if self.role.stripe > 0 else more + max(self.had.values(), default=0)
        heap = [(self.had.get(row, 0), at, row) for at, row in enumerate(rows)]
        heapify(heap)
        counts = dict[int, int]()
        while heap and sum(counts.values()) < more:
            tasks, at, row = heap[0]
            if tasks < most and self._room_on(row, counts.get(row, 0) + 1) > counts.get(row, 0):
                counts[row] = counts.get(row, 0) + 1
                heapreplace(heap, (tasks + 1, at, row))
            else:
                heappop(heap)
        return [self._take(row, tasks) for row, tasks in counts.items()]


def _beside(role: RoleRequest) -> RoleRequest:
    """The role on a host where it has tasks: without its amounts for each host."""
    return replace(role, memory_mib=0, gpus=role.gpus if role.gpus_per_task else 0)


def _beside_wants(role: RoleRequest, wants: ParsedRole) -> ParsedRole:
    reserves = tuple(one for one in wants.reserves if one.per is Per.TASK)
    return replace(wants, reserves=reserves, gpus=wants.gpus if role.gpus_per_task else None)
