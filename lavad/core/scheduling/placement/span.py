"""Distribution of one role's tasks over the usable hosts: span[...], or as many as fit on each."""

from collections.abc import Callable, Iterable, Iterator

from lavad.core.language.requirements.parsed import ParsedRole
from lavad.core.model import RoleRequest
from lavad.core.scheduling.capacity.free_resources import FreeResources, smallest_share
from lavad.core.scheduling.placement.host_part import HostPart, room_for, take, undo


class TaskDistributor:
    """Distribution of one role's tasks to hosts; ``chosen`` are the parts so far, which can be undone as a whole.

    ``mine`` are the rows an exclusive job has already; it may use no other host that runs a job.
    """

    def __init__(
        self, room: FreeResources, role: RoleRequest, wants: ParsedRole, number: int, exclusive: bool, mine: set[int]
    ) -> None:
        self.room = room
        self.role = role
        self.wants = wants
        self.number = number
        self.exclusive = exclusive
        self.mine = mine
        self.chosen: list[HostPart] = []
        self.task_size = smallest_share(role)
        self._part_of: dict[int, int] = {}  # index of a host's group in ``_left_of``
        self._left_of: list[int] = []  # tasks each group may still take

    def allow(self, parts: Iterable[tuple[list[int], int]]) -> None:
        """Cap the tasks of each of these groups of hosts; hosts in no group are not capped."""
        groups = list(parts)
        self._part_of = {row: at for at, (rows, _) in enumerate(groups) for row in rows}
        self._left_of = [most for _, most in groups]

    def fill(self, rows: Iterable[int]) -> bool:
        """Take as many tasks as the role may have; False, and nothing taken, if fewer than its minimum."""
        left = self._way()(rows) if self.role.tasks_max else 0
        if self.role.tasks_max - left >= self.role.tasks_min:
            return True
        self.undo()
        return False

    def undo(self) -> None:
        """Release everything taken."""
        for part in reversed(self.chosen):
            undo(self.room, part)
            self._note(part.row, -part.tasks)
        self.chosen.clear()

    def _way(self) -> Callable[[Iterable[int]], int]:
        role = self.role
        if role.one_host:
            return self._packed
        if role.stripe:
            return self._striped
        if role.block:
            return self._in_blocks
        if role.ptile:
            return self._tiled
        return self._packed

    def room_on(self, row: int, tasks_max: int) -> int:
        """Number of tasks that fit on a host now."""
        free = self.room.free(row)
        self.room.work += 1
        if self.exclusive and free.attempts and row not in self.mine:
            return 0
        if row in self._part_of:
            tasks_max = min(tasks_max, self._left_of[self._part_of[row]])
        return room_for(self.room, row, self.role, self.wants, tasks_max, self._is_first)

    def _note(self, row: int, tasks: int) -> None:
        if row in self._part_of:
            self._left_of[self._part_of[row]] -= tasks

    @property
    def _is_first(self) -> bool:
        return self.number == 0 and not self.chosen

    def _take(self, row: int, tasks: int) -> None:
        self.chosen.append(take(self.room, self.role, self.wants, self.number, row, tasks, self._is_first))
        self.mine.add(row)
        self._note(row, tasks)

    def _packed(self, rows: Iterable[int]) -> int:
        """Fill each host with as many tasks as fit; return the number left over."""
        left = self.role.tasks_max
        for row in rows:
            tasks = self.room_on(row, left)
            if tasks and (not self.role.one_host or tasks >= self.role.tasks_min):
                self._take(row, tasks)
                left -= tasks
                if not left or self.role.one_host:
                    break
        return left

    def tile_of(self, row: int) -> int:
        """Tasks per host (ptile) on this host."""
        role, facts = self.role, self.room.table.facts[row]
        for name, tasks in role.ptile_by:
            if name in (facts.type, facts.model):
                return tasks
        return role.ptile if role.ptile > 0 else max(1, facts.slots // role.slots_per_task)

    def _tiled(self, rows: Iterable[int]) -> int:
        """Put exactly ptile tasks on each host; fewer on the last one, where most of the remainder fits."""
        left, used, rest = self.role.tasks_max, set(), []
        for row in rows:
            tasks = min(self.tile_of(row), left)
            if self.room_on(row, tasks) >= tasks:
                self._take(row, tasks)
                used.add(row)
                left -= tasks
                if not left:
                    return 0
            else:
                rest.append(row)
        return left - self._add_last(rest, left, lambda row: self.tile_of(row) - 1)

    def _add_last(self, rows: Iterable[int], left: int, most: Callable[[int], int]) -> int:
        best, best_row = 0, -1
        for row in rows:
            tasks = self.room_on(row, min(left, most(row)))
            if tasks > best:
                best, best_row = tasks, row
        if best:
            self._take(best_row, best)
        return best

    def _in_blocks(self, rows: Iterable[int]) -> int:
        """Place whole blocks of ``block`` tasks, each on one host; the last block may have fewer."""
        block, left, seen = self.role.block, self.role.tasks_max, []
        for row in rows:
            seen.append(row)
            tasks = self.room_on(row, left // block * block) // block * block
            if tasks:
                self._take(row, tasks)
                left -= tasks
            if not left:
                return 0
        return left - self._add_rest(seen, min(left, block - 1))

    def _add_rest(self, rows: list[int], most: int) -> int:
        """Place the incomplete last block where most of its tasks fit, on a new host or beside other blocks."""
        parts = {part.row: at for at, part in enumerate(self.chosen)}
        best, best_row = 0, -1
        for row in rows:
            tasks = self._widen(parts[row], most, False) if row in parts else self.room_on(row, most)
            if tasks > best:
                best, best_row = tasks, row
        if best_row in parts:
            self._widen(parts[best_row], best, True)
        elif best:
            self._take(best_row, best)
        return best

    def _widen(self, at: int, most: int, stays: bool) -> int:
        """Tasks that could be added to a host already chosen: amounts per host are taken only once."""
        part, is_first = self.chosen[at], self.number == 0 and at == 0
        undo(self.room, part)
        total = room_for(self.room, part.row, self.role, self.wants, part.tasks + most, is_first)
        tasks = total if stays else part.tasks
        self.chosen[at] = take(self.room, self.role, self.wants, self.number, part.row, tasks, is_first)
        return total - part.tasks

    def _striped(self, rows: Iterable[int]) -> int:
        """Deal tasks out one per host in rounds, up to the lowest level at which all of them fit."""
        most = self.role.stripe if self.role.stripe > 0 else self.role.tasks_max
        rooms = [(row, tasks) for row in rows if (tasks := self.room_on(row, min(most, self.role.tasks_max)))]
        wanted = min(self.role.tasks_max, sum(tasks for _, tasks in rooms))
        level = _level(sorted(tasks for _, tasks in rooms), wanted)
        spare = sum(min(tasks, level) for _, tasks in rooms) - wanted  # tasks fewer in the last round
        at_level = sum(tasks >= level for _, tasks in rooms)
        left = self.role.tasks_max
        for row, tasks in rooms:
            if tasks >= level:
                at_level -= 1
                tasks = level - (at_level < spare)
            tasks = self.room_on(row, tasks)
            if tasks:
                self._take(row, tasks)
                left -= tasks
        return left


def _level(rooms: list[int], wanted: int) -> int:
    """Lowest level up to which hosts with these capacities must be filled to hold ``wanted`` tasks."""
    for place, room in enumerate(rooms):
        others = len(rooms) - place
        if room * others >= wanted:
            return -(-wanted // others)
        wanted -= room
    return rooms[-1] if rooms else 0


def live_rows(filler: TaskDistributor, rows: list[int]) -> Iterator[int]:
    """Rows with slots, memory and GPUs for at least one task: a cheap filter before tasks are counted."""
    slots, memory, gpus = filler.task_size
    room = filler.room
    for row in rows:
        free = room.free(row)
        room.work += 1
        if free.slots >= slots and free.memory_mib >= memory and free.gpus.bit_count() >= gpus:
            yield row
