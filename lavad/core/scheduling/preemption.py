"""Whom to ask for room: the fewest running jobs, whole, whose room lets a waiting job start with all its hosts.

Among sets of equal size the one is taken that LSF would take first: by preference of the queues, then those that have
run for the shortest time. Finding the fewest is a covering problem, so there are two ways. Where there are few
candidates, sets are tried in that order, smallest first. Else they are gathered greedily, the one that helps most
first, and then given back one by one as long as the job still fits. Either way the placement that decides is the
scheduler's own, on a copy of the host table in which the victims' room is free.
"""

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice

from lavad.core.cluster import Cluster
from lavad.core.indexes.hosts import HostTable
from lavad.core.model import Allocation, HostShare, Key, Request
from lavad.core.scheduling.placement import place
from lavad.core.scheduling.room import Room, chunk_of
from lavad.core.standing import on_their_way_out, shares_of

CANDIDATES_MAX = 4096  # so many are considered, those first that LSF takes first; all of them only if that is too few
_SETS_MAX = 6000  # sets of victims that are weighed, ...
_TRIALS_SMALL, _TRIALS_LARGE = 400, 24  # ... and placed on a copy of the table; fewer where copies are large
_LARGE = 256  # hosts
_HALF = 0.5  # what a host counts that is on the way to holding one more task


@dataclass(frozen=True, slots=True)
class Victim:
    """A running attempt that may be asked, and what it would give: all it holds, or what it lends while suspended."""

    key: Key
    requeues: bool
    gives: tuple[HostShare, ...]


@dataclass(frozen=True, slots=True)
class Clearing:
    """Room for a job, and who is to make it. Without victims there is room enough that others lend or are leaving."""

    allocation: Allocation
    victims: tuple[Victim, ...]


def lent_part(share: HostShare, what: tuple[str, ...]) -> HostShare:
    """What others may use of a share whose holder is suspended."""
    slots = share.slots if "slots" in what else 0
    memory = share.memory_mib if "mem" in what else 0
    return HostShare(share.host, slots, memory, share.gpus if "gpus" in what else ())


Together = Callable[[Sequence[Victim]], bool]


def clear(
    cluster: Cluster,
    request: Request,
    lenders: Iterable[Key],
    victims: Iterable[Victim],
    may_go_together: Together = lambda victims: True,
) -> Clearing | None:
    """The fewest victims that let the request be placed; None if all of them together don't.

    Args:
        lenders: suspended attempts whose lent room the job may use.
        victims: in the order in which they should be taken.
        may_go_together: which sets may be taken; what holds for a set holds for each part of it.
    """
    table = cluster.table.copy()
    for key in lenders:
        what = cluster.attempts[key].lends
        _give_back(table, [lent_part(share, what) for share in shares_of(cluster, key)])
    for key in on_their_way_out(cluster):
        _give_back(table, shares_of(cluster, key))
    search = _Search(table, request, may_go_together)
    allocation = search.try_with(())
    if allocation is not None:
        return Clearing(allocation, ())
    source = iter(victims)
    some = list(islice(source, CANDIDATES_MAX))
    if search.try_with(some) is None:
        some += source
        if len(some) <= CANDIDATES_MAX or search.try_with(some) is None:
            return None
    chosen = search.fewest(some)
    allocation = search.try_with(chosen) if chosen else None
    return Clearing(allocation, tuple(chosen)) if allocation is not None else None


def _give_back(table: HostTable, shares: Iterable[HostShare]) -> None:
    for share in shares:
        table.give_back(table.rows[share.host], share, False)


class _Search:
    """Of victims for one request, on a table of its own."""

    def __init__(self, table: HostTable, request: Request, may_go_together: Together) -> None:
        self.table = table
        self.request = request
        self.may_go_together = may_go_together
        self.trials_left = _TRIALS_SMALL if len(table) <= _LARGE else _TRIALS_LARGE

    def try_with(self, victims: Sequence[Victim]) -> Allocation | None:
        """Where the job would start if these made room."""
        return place(Room(self._freed(victims)), self.request)

    def _freed(self, victims: Sequence[Victim]) -> HostTable:
        if not victims:
            return self.table
        table = self.table.copy()
        for victim in victims:
            _give_back(table, victim.gives)
        return table

    def fewest(self, candidates: list[Victim]) -> list[Victim]:
        """Out of candidates that are enough together; none where those that may go together are not."""
        measure = _Measure(self.table, self._freed(candidates), self.request)
        useful = [one for one in candidates if measure.concerns(one)]
        gathered = self._without_needless(self._gathered(useful, measure))
        return self._smallest_set(useful, measure, len(gathered) or len(useful)) or gathered

    def _gathered(self, useful: list[Victim], measure: "_Measure") -> list[Victim]:
        """The most helpful first, until the job fits; none if it does not."""
        chosen: list[Victim] = []
        taken: set[int] = set()
        heap = [(-measure.gain(one), number) for number, one in enumerate(useful)]
        heapq.heapify(heap)
        while heap:
            _, number = heapq.heappop(heap)
            if number in taken:
                continue
            gain = measure.gain(useful[number])
            if heap and -gain > heap[0][0]:
                heapq.heappush(heap, (-gain, number))
                continue
            taken.add(number)
            if not self.may_go_together([*chosen, useful[number]]):
                continue
            chosen.append(useful[number])
            for other in measure.add(useful[number]):  # who helps more now that these hosts are nearly free
                heapq.heappush(heap, (-measure.gain(useful[other]), other))
            if measure.is_enough and self.try_with(chosen) is not None:
                return chosen
        return chosen if self.try_with(chosen) is not None else []

    def _without_needless(self, chosen: list[Victim]) -> list[Victim]:
        kept = list(chosen)
        for one in reversed(chosen):
            if self.trials_left <= 0 or len(kept) <= 1:
                break
            self.trials_left -= 1
            without = [other for other in kept if other is not one]
            if self.try_with(without) is not None:
                kept = without
        return kept

    def _smallest_set(self, useful: list[Victim], measure: "_Measure", most: int) -> list[Victim] | None:
        """The first set of the smallest size, in the order of taking; None when there are too many to look at."""
        sets_left = _SETS_MAX
        for size in range(1, most + 1):
            for chosen in combinations(useful, size):
                sets_left -= 1
                if sets_left <= 0 or self.trials_left <= 0:
                    return None
                if not (measure.may_be_enough(chosen) and self.may_go_together(chosen)):
                    continue
                self.trials_left -= 1
                if self.try_with(chosen) is not None:
                    return list(chosen)
        return None


def _rows_for(table: HostTable, request: Request, number: int) -> list[int]:
    """Hosts that could take some of a role."""
    return Room(table).candidates(request, request.roles, 0, number).all_rows()


class _Measure:
    """How near hosts are to holding the job, in tasks. A quick count that leaves the last word to the placement."""

    def __init__(self, table: HostTable, all_freed: HostTable, request: Request) -> None:
        role = request.roles[0]
        self._chunk = (
            chunk_of(role if role.one_host else replace(role, ptile=0)) if len(request.roles) == 1 else (1, 0, 0)
        )
        self._needed = 1 if role.one_host else role.tasks_min
        self._most = 1 if role.one_host else max(role.ptile, 0) or role.tasks_min
        self._per_task_gpus = role.gpus_per_task
        if len(request.roles) > 1:
            self._needed = self._most = request.slots_min
        self._rows = {row for number in range(len(request.roles)) for row in _rows_for(all_freed, request, number)}
        self._table = table
        self._free: dict[int, tuple[int, int, int]] = {}
        self._tasks: dict[int, float] = {}
        self._total = 0
        for row in self._rows:
            self._free[row] = free = (
                int(table.slots_free[row]), int(table.memory_free_mib[row]), int(table.gpus_free[row])
            )  # fmt: skip
            self._tasks[row] = self._worth(free)
            self._total += int(self._tasks[row])
        self._by_row: dict[int, list[int]] = {}
        self._numbers: dict[Key, int] = {}

    @property
    def is_enough(self) -> bool:
        """Do the tasks add up?"""
        return self._total >= self._needed

    def concerns(self, victim: Victim) -> bool:
        """Does it hold anything where the job could run?"""
        rows = [self._table.rows[share.host] for share in victim.gives]
        if not any(row in self._rows for row in rows):
            return False
        number = self._numbers[victim.key] = len(self._numbers)
        for row in rows:
            self._by_row.setdefault(row, []).append(number)
        return True

    def gain(self, victim: Victim) -> float:
        """How many tasks more there would be room for; parts of one count less than a half."""
        gain = 0.0
        for row, free in self._with(victim):
            gain += self._worth(free) - self._tasks[row]
        return min(gain, self._needed - self._total + _HALF)

    def add(self, victim: Victim) -> set[int]:
        """Take its room as free; the numbers of the others on its hosts."""
        others: set[int] = set()
        for row, free in self._with(victim):
            self._total -= int(self._tasks[row])
            self._free[row], self._tasks[row] = free, self._worth(free)
            self._total += int(self._tasks[row])
            others.update(self._by_row.get(row, ()))
        mine = self._numbers.pop(victim.key)
        for row in [self._table.rows[share.host] for share in victim.gives]:
            self._by_row[row].remove(mine)
        return others - {mine}

    def may_be_enough(self, victims: Sequence[Victim]) -> bool:
        """Without changing anything: do the tasks add up with these, from where no victim was taken?"""
        free: dict[int, list[int]] = {}
        for victim in victims:
            for share in victim.gives:
                row = self._table.rows[share.host]
                if row in self._rows:
                    here = free.setdefault(row, list(self._before(row)))
                    for place, more in enumerate((share.slots, share.memory_mib, len(share.gpus))):
                        here[place] += more
        base = sum(int(self._worth(self._before(row))) for row in self._rows if row not in free)
        return base + sum(int(self._worth((x[0], x[1], x[2]))) for x in free.values()) >= self._needed

    def _before(self, row: int) -> tuple[int, int, int]:
        table = self._table
        return int(table.slots_free[row]), int(table.memory_free_mib[row]), int(table.gpus_free[row])

    def _with(self, victim: Victim) -> Iterable[tuple[int, tuple[int, int, int]]]:
        for share in victim.gives:
            row = self._table.rows[share.host]
            if row in self._rows:
                slots, memory, gpus = self._free[row]
                yield row, (slots + share.slots, memory + share.memory_mib, gpus + len(share.gpus))

    def _worth(self, free: tuple[int, int, int]) -> float:
        slots, memory, gpus = free
        wanted, wanted_memory, wanted_gpus = self._chunk
        parts = [max(0, slots) / wanted]
        if wanted_gpus:
            parts.append(gpus / wanted_gpus if self._per_task_gpus or gpus < wanted_gpus else self._most)
        if wanted_memory:
            parts.append(self._most if memory >= wanted_memory else max(0, memory) / wanted_memory)
        tasks = min(*parts, self._most) if len(parts) > 1 else min(parts[0], self._most)
        whole = int(tasks)
        return whole + (_HALF * (tasks - whole))
