"""Search for victims: the fewest running jobs, whole, whose resources let a pending job start with all its hosts.

Elastic jobs shrink before any job is suspended or requeued, as few of them and by as little as possible.

Among sets of equal size LSF's order decides: preference of the queues, then the shortest run time. Finding the minimum
is a covering problem, so there are two ways. With few candidates, sets are tried in that order, smallest first. With
many, they are gathered greedily by gain, then dropped one by one as long as the job still fits. In both cases the
scheduler's own placement decides, on a copy of the host table in which the victims' resources are free.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, islice, tee

from lavad.core.cluster_view import ClusterView
from lavad.core.model import Allocation, HostShare, Key, Request
from lavad.core.model.allocation import shrunk
from lavad.core.scheduling.capacity.constraint import Ceilings
from lavad.core.scheduling.capacity.free_resources import FreeResources, smallest_share
from lavad.core.scheduling.placement.place import place
from lavad.core.scheduling.placement.within_limits import place_capped
from lavad.core.scheduling.preemption.lent_resources import leaving, shares_of
from lavad.core.scheduling.preemption.shrink import all_but_one, givers, in_part, lacking
from lavad.core.scheduling.preemption.victim import PreemptionMode, Together, Victim, lent_part
from lavad.core.state.advance_reservations import Slots
from lavad.core.state.hosts.table import HostTable

CANDIDATES_MAX = 4096  # candidates considered, in LSF's order; all of them only if these do not suffice
_SETS_MAX = 6000  # sets of victims estimated, ...
_TRIALS_SMALL, _TRIALS_LARGE = 400, 24  # ... and placed on a copy of the table; fewer where copies are large
_LARGE = 256  # hosts
_SHARES_TRIED = 8  # hosts of an elastic job tried one by one, so that the newest are released
_HALF = 0.5  # weight of a fraction of a task


@dataclass(frozen=True, slots=True)
class VictimSet:
    """Allocation for a job, and the victims that must release it; none if lent or leaving resources suffice."""

    allocation: Allocation
    victims: tuple[Victim, ...]


def clear(
    cluster: ClusterView,
    request: Request,
    lenders: Iterable[Key],
    victims: Iterable[Victim],
    may_go_together: Together = lambda victims: True,
    elastic: Sequence[Key] = (),
    most: Slots | None = None,
) -> VictimSet | None:
    """Find the fewest victims that let the request be placed; None if all of them together do not.

    Args:
        lenders: suspended attempts whose lent resources the job may use.
        victims: candidates, in order of preference.
        may_go_together: predicate for sets of victims; true for a set implies true for its subsets.
        elastic: attempts that may shrink, in order; preferred to suspending or requeueing any job.
        most: most slots the job may have on each host; None: all.
    """
    table = cluster.table.copy()
    for key in lenders:
        what = cluster.attempts[key].lends
        _give_back(table, [lent_part(share, what) for share in shares_of(cluster, key)])
    _give_back(table, [share for _, share in leaving(cluster)])
    search = _Search(cluster, table, request, may_go_together, most)
    if (allocation := search.try_with(())) is not None:
        return VictimSet(allocation, ())
    chosen = search.with_shrinks(elastic, victims) if elastic else search.fewest_of(victims)
    allocation = search.try_with(chosen) if chosen else None
    return VictimSet(allocation, tuple(chosen)) if allocation is not None else None


def _give_back(table: HostTable, shares: Iterable[HostShare]) -> None:
    for share in shares:
        table.give_back(table.rows[share.host], share, False)


class _Search:
    """Search of victims for one request, on its own copy of the host table."""

    def __init__(
        self,
        cluster: ClusterView,
        table: HostTable,
        request: Request,
        may_go_together: Together,
        most: Slots | None = None,
    ) -> None:
        self.cluster = cluster
        self.table = table
        self.most = most
        self.request = request
        self.may_go_together = may_go_together
        self.trials_left = self._trials = _TRIALS_SMALL if len(table) <= _LARGE else _TRIALS_LARGE

    def besides(self, taken: Sequence[Victim]) -> "_Search":
        """Search for further victims, with the resources of these free."""
        together: Together = lambda more: self.may_go_together([*taken, *more])  # noqa: E731
        return _Search(self.cluster, self._freed(taken), self.request, together, self.most)

    def try_with(self, victims: Sequence[Victim]) -> Allocation | None:
        """Allocation of the job if these victims release their shares; None if it does not fit."""
        room = FreeResources(self._freed(victims))
        return place(room, self.request) if self.most is None else place_capped(room, Ceilings(self.most), self.request)

    def _freed(self, victims: Sequence[Victim]) -> HostTable:
        if not victims:
            return self.table
        table = self.table.copy()
        for victim in victims:
            _give_back(table, victim.gives)
        return table

    # -- fewest victims ------------------------------------------------------------------------------------------------

    def fewest_of(self, victims: Iterable[Victim]) -> list[Victim]:
        """Fewest of these victims, of the first ``CANDIDATES_MAX`` if those suffice; empty if all do not."""
        source = iter(victims)
        some = list(islice(source, CANDIDATES_MAX))
        if self.try_with(some) is None:
            some += source
            if len(some) <= CANDIDATES_MAX or self.try_with(some) is None:
                return []
        return self._fewest(some)

    def with_shrinks(self, elastic: Sequence[Key], victims: Iterable[Victim]) -> list[Victim]:
        """Only shrinking jobs if they suffice; else the fewest whole victims, with or without shrinking jobs."""
        first, victims = tee(victims)
        within_reach = self._within_reach(elastic, islice(first, CANDIDATES_MAX))
        anywhere = givers(self.cluster, elastic, within_reach, self.may_go_together)
        just_there = givers(self.cluster, elastic, self._ideal(elastic), self.may_go_together)
        found = [chosen for some in (anywhere, just_there) if (chosen := self.fewest_of(some))]
        if found:
            return self._sparing(min(found, key=len))
        both, victims = tee(victims)
        alone = self.fewest_of(victims)
        mixed = self._mixed(anywhere, both)
        whole = sum(one.way is not PreemptionMode.SHRINK for one in mixed)
        return self._sparing(mixed) if mixed and not 0 < len(alone) <= whole else alone

    def _within_reach(self, elastic: Sequence[Key], victims: Iterable[Victim]) -> dict[str, int]:
        """Hosts, with all their slots, where the request could run if all these jobs released their shares."""
        table = self.table.copy()
        for key in elastic:
            _give_back(table, shares_of(self.cluster, key))
        keys = set(elastic)
        for one in victims:
            if one.key not in keys:
                _give_back(table, one.gives)
        room = FreeResources(table)
        rows = {row for role in self.request.roles for row in room.rows_for(self.request, role)}
        return {table.names[row]: table.facts[row].slots for row in rows}

    def _ideal(self, elastic: Iterable[Key]) -> dict[str, int]:
        """Slots the request lacks by host, in the allocation it would get if these jobs released nearly everything."""
        allocation = self.try_with(all_but_one(self.cluster, elastic))
        return lacking(self.table, allocation) if allocation else {}

    def _mixed(self, givers: Sequence[Victim], victims: Iterable[Victim]) -> list[Victim]:
        """Fewest whole victims that suffice beside shrinking jobs, and few of the latter; empty if none do."""
        gives, whole = {one.key: one.gives for one in givers}, {}

        def rest(victim: Victim) -> Victim:
            whole[victim.key] = victim
            return replace(victim, gives=shrunk(victim.gives, gives.get(victim.key, ())))

        chosen = [whole[one.key] for one in self.besides(givers).fewest_of(map(rest, victims))]
        keys = {one.key for one in chosen}
        others = self.besides(chosen)
        if not chosen or others.try_with(()) is not None:
            return chosen
        more = others.fewest_of([one for one in givers if one.key not in keys])
        return [*chosen, *more] if more else []

    def _fewest(self, candidates: list[Victim]) -> list[Victim]:
        """Fewest of the candidates, which suffice together; empty if those that may go together do not."""
        measure = _FreedCapacity(self.table, self._freed(candidates), self.request)
        useful = [one for one in candidates if measure.concerns(one)]
        gathered = self._without_needless(self._gathered(useful, measure))
        return self._smallest_set(useful, measure, len(gathered) or len(useful)) or gathered

    def _gathered(self, useful: list[Victim], measure: "_FreedCapacity") -> list[Victim]:
        """Gather victims by gain, highest first, until the job fits; empty if it does not."""
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
            for other in measure.add(useful[number]):  # their gain may have risen with these hosts nearly free
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

    def _smallest_set(self, useful: list[Victim], measure: "_FreedCapacity", most: int) -> list[Victim] | None:
        """First set of the smallest size, in order of preference; None if there are too many sets to try."""
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

    # -- smallest shrinks ----------------------------------------------------------------------------------------------

    def _sparing(self, chosen: list[Victim]) -> list[Victim]:
        """Reduce what shrinking jobs release to what is needed, starting with the last of them."""
        self.trials_left = self._trials
        for number, one in reversed(list(enumerate(chosen))):
            if one.way is PreemptionMode.SHRINK:
                others = [*chosen[:number], *chosen[number + 1 :]]
                chosen[number] = in_part(
                    self.cluster, self._where_needed(one, chosen), partial(self._is_enough, others)
                )
        return [one for one in chosen if one.gives]

    def _where_needed(self, victim: Victim, chosen: Sequence[Victim]) -> Victim:
        """Restrict a shrink over many hosts to those of the job's allocation, if that suffices."""
        if len(victim.gives) <= _SHARES_TRIED:
            return victim
        allocation = self.try_with(chosen) or ()
        hosts = {share.host for share in allocation}
        less = replace(victim, gives=tuple([share for share in victim.gives if share.host in hosts]))
        others = [one for one in chosen if one is not victim]
        return less if self._is_enough(others, less) else victim

    def _is_enough(self, others: Sequence[Victim], one: Victim) -> bool:
        if self.trials_left <= 0:
            return False
        self.trials_left -= 1
        return self.try_with([*others, one]) is not None


def _rows_for(table: HostTable, request: Request, number: int) -> list[int]:
    """Rows that could take tasks of a role."""
    return FreeResources(table).candidates(request, request.roles, 0, number).all_rows()


class _FreedCapacity:
    """Estimate, in tasks, of how close hosts are to holding the job; the placement has the last word."""

    def __init__(self, table: HostTable, all_freed: HostTable, request: Request) -> None:
        role = request.single_role
        if role is None:  # of several roles only slots are estimated
            self._chunk, self._per_task_gpus = (1, 0, 0), False
            self._needed = self._most = request.slots_min
        else:
            self._chunk = smallest_share(role if role.one_host else replace(role, ptile=0))
            self._per_task_gpus = role.gpus_per_task
            self._needed = 1 if role.one_host else role.tasks_min
            self._most = 1 if role.one_host else max(role.ptile, 0) or role.tasks_min
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
        """True if the estimated tasks reach the minimum."""
        return self._total >= self._needed

    def concerns(self, victim: Victim) -> bool:
        """True if the victim holds resources where the job could run; it is then counted in."""
        rows = [self._table.rows[share.host] for share in victim.gives]
        if not any(row in self._rows for row in rows):
            return False
        number = self._numbers[victim.key] = len(self._numbers)
        for row in rows:
            self._by_row.setdefault(row, []).append(number)
        return True

    def gain(self, victim: Victim) -> float:
        """Tasks gained by this victim; fractions of a task count half."""
        gain = 0.0
        for row, free in self._with(victim):
            gain += self._worth(free) - self._tasks[row]
        return min(gain, self._needed - self._total + _HALF)

    def add(self, victim: Victim) -> set[int]:
        """Count the victim's resources as free; return the numbers of the other victims on its hosts."""
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
        """True if the estimated tasks reach the minimum with only these victims; changes nothing."""
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
