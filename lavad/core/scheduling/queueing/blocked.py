"""Blocked buckets by their minimum need: skipped until some host has enough free resources for that need.

Those that freed hosts unblock are found in scheduling order without examining each: see ``blocked_columns``.
"""

from collections.abc import Container, Iterable, Iterator
from functools import partial

import numpy as np

from lavad.core.language.requirements.parsed import watched_by
from lavad.core.scheduling.placement.place import MinimumNeed
from lavad.core.scheduling.queueing.blocked_columns import (
    BlockedColumns,
    First,
    HostsFree,
    UnblockedBuckets,
    UnblockedPart,
)
from lavad.core.scheduling.queueing.ordering import Rank
from lavad.core.state.hosts.table import HostTable
from lavad.core.state.pending import BucketKey

_NO_VALUES: frozenset[str] = frozenset()
_FEW = 32  # compared one by one: arrays would take longer
_NEVER = int(np.iinfo(np.int64).max)
_NO_NEED = MinimumNeed(*[_NEVER] * len(MinimumNeed._fields))
_NO_RANK: First = (float("inf"), float("inf"), float("inf"), float("inf"))
_BEFORE_ALL: First = (float("-inf"), 0.0, 0.0, 0.0)


class BlockedBuckets:
    """Blocked buckets with their needs and ranks. A bucket's place is a column number."""

    def __init__(self) -> None:
        self._needs: list[MinimumNeed] = []
        self._ranks: list[First] = []
        self._keys: list[BucketKey | None] = []
        self._share_queues: list[int] = []
        self._places: dict[BucketKey, int] = {}
        self._spare: list[int] = []
        self.others = 0  # number of those that need more than slots
        self._least = _NEVER  # lower bound of the slots any of them needs; raised after a vain search
        self._watching: dict[str, set[BucketKey]] = {}  # by the resource value they wait for
        self._columns = BlockedColumns(self._needs, self._ranks)  # the same data for vector comparison

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[BucketKey]:
        return iter(self._places)

    def __contains__(self, key: BucketKey) -> bool:
        return key in self._places

    def add(self, key: BucketKey, need: MinimumNeed, rank: Rank, share_queue: int = 0) -> None:
        """Block a bucket whose first job has this rank, in this share queue."""
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = self._spare.pop() if self._spare else self._new_place()
            self._keys[place] = key
            self.others += not key.is_slots_only
            if not (key.is_slots_only or key.task_size):  # these depend on no resource values
                for name in watched_by(key.request):
                    self._watching.setdefault(name, set()).add(key)
        if need.slots_in_all < self._least:
            self._least = need.slots_in_all
        self._needs[place] = need
        self._ranks[place] = rank
        self._share_queues[place] = share_queue
        self._columns.note(place)

    def _new_place(self) -> int:
        self._needs.append(_NO_NEED)
        self._ranks.append(_NO_RANK)
        self._keys.append(None)
        self._share_queues.append(0)
        return len(self._keys) - 1

    def discard(self, key: BucketKey) -> None:
        """Unblock a bucket, because it is due or empty."""
        place = self._places.pop(key, None)
        if place is not None:
            self._keys[place] = None
            self.others -= not key.is_slots_only
            self._needs[place], self._ranks[place] = _NO_NEED, _NO_RANK
            self._columns.note(place)
            self._spare.append(place)
            if not (key.is_slots_only or key.task_size):
                for name in watched_by(key.request):
                    self._unwatch(name, key)

    def _unwatch(self, name: str, key: BucketKey) -> None:
        keys = self._watching.get(name)
        if keys is not None:
            keys.discard(key)
            if not keys:
                del self._watching[name]

    @property
    def awaited_values(self) -> frozenset[str]:
        """Names of the resource values for which some of these buckets wait."""
        return frozenset(self._watching) if self._watching else _NO_VALUES

    def watching(self, names: Iterable[str]) -> list[BucketKey]:
        """Buckets that wait for one of these values, oldest first."""
        found = {key for name in names for key in self._watching.get(name, ())}
        return sorted(found)

    def key(self, place: int) -> BucketKey | None:
        """Bucket at a place; None if it is not blocked any more."""
        return self._keys[place]

    def need(self, place: int) -> MinimumNeed:
        """Minimum need of the bucket at a place."""
        return self._needs[place]

    def rank(self, place: int) -> First:
        """Rank of the bucket's first job when it was blocked."""
        return self._ranks[place]

    def of_queues(self, queues: Container[str]) -> list[int]:
        """Places of the blocked buckets of these queues, first in scheduling order at the end."""
        found = [place for key, place in self._places.items() if key.queue in queues]
        return sorted(found, key=self.rank, reverse=True)

    def fitting(self, slots: int) -> list[BucketKey]:
        """Buckets that need at most ``slots`` slots in total."""
        if len(self._places) > _FEW:
            return [key for place in self._columns.fitting(slots) if (key := self._keys[place]) is not None]
        needs_now = self._needs
        found = [key for key, place in self._places.items() if needs_now[place].slots_in_all <= slots]
        if not found:
            self._least = self._least_now()
        return found

    def may_fit(self, slots: int) -> bool:
        """True if one of them might need at most ``slots`` slots in total; it may err on the side of true."""
        return self._least <= slots and bool(self._places)

    def _least_now(self) -> int:
        return min([self._needs[place].slots_in_all for place in self._places.values()], default=_NEVER)

    def unblocked_by(
        self, table: HostTable, rows: set[int], tried: Container[BucketKey], has_share_queues: bool
    ) -> dict[int, UnblockedBuckets]:
        """Buckets whose need fits one of these hosts now, by share queue, without those already tried (``tried``).

        If fairshare is not used (``has_share_queues`` false), all of them are in share queue 0.
        """
        if not self._places or not rows:
            return {}
        if len(self._places) <= _FEW:
            by_lane = self._by_lane(self._few_fitting(table, rows))
        else:
            rooms = HostsFree(_largest(_distinct_rooms(table, rows)), table.slots_open)
            parts = self._columns.parts(rooms)
            by_lane = (
                self._by_lane(place for part in parts for place in part.places) if has_share_queues else {0: parts}
            )
        gangs = _Gangs(table)

        def is_hopeful(place: int) -> bool:
            key = self._keys[place]
            return key is not None and key not in tried and gangs.have_room(self._needs[place])

        return {share_queue: UnblockedBuckets(parts, self.rank, is_hopeful) for share_queue, parts in by_lane.items()}

    def _few_fitting(self, table: HostTable, rows: set[int]) -> list[int]:
        needs, slots_open = self._needs, table.slots_open
        hopeful = [place for place in self._places.values() if needs[place].slots_in_all <= slots_open]
        if not hopeful:
            self._least = self._least_now()
        rooms = _distinct_rooms(table, rows) if hopeful else set()
        return [place for place in hopeful if _fits_one(needs[place], rooms)]

    def _by_lane(self, places: Iterable[int]) -> dict[int, list[UnblockedPart]]:
        """One part for each share queue, sorted on first use."""
        found: dict[int, list[int]] = {}
        for place in places:
            found.setdefault(self._share_queues[place], []).append(place)
        return {
            share_queue: [UnblockedPart(_BEFORE_ALL, partial(self._sorted, some))]
            for share_queue, some in found.items()
        }

    def _sorted(self, places: list[int]) -> list[int]:
        return sorted(places, key=self.rank, reverse=True)


class _Gangs:
    """Parallel jobs that fit on the free slots of all open hosts; one count serves all jobs of equal task size."""

    def __init__(self, table: HostTable) -> None:
        self._table = table
        self._tasks: dict[tuple[int, int], int] = {}  # by slots per task and tasks per host

    def have_room(self, need: MinimumNeed) -> bool:
        """False if too few tasks of that need fit on all hosts; always true for needs of one task."""
        return need.tasks <= 1 or need.tasks <= self._most(need.slots_per_task, need.tasks_per_host)

    def _most(self, slots_per_task: int, tasks_per_host: int) -> int:
        found = self._tasks.get((slots_per_task, tasks_per_host))
        if found is None:
            table = self._table
            free = table.slots_free[: len(table)][table.open_rows()]
            found = int(np.minimum(free // slots_per_task, tasks_per_host).clip(0).sum())
            self._tasks[slots_per_task, tasks_per_host] = found
        return found


def _fits_one(need: MinimumNeed, rooms: set[tuple[int, int, int]]) -> bool:
    return any(need.slots <= slots and need.memory_mib <= memory and need.gpus <= gpus for slots, memory, gpus in rooms)


def _largest(rooms: set[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Free resources of hosts not dominated by another's: what fits any host fits one of these."""
    found: list[tuple[int, int, int]] = []
    for slots, memory, gpus in sorted(rooms, reverse=True):
        if not any(memory <= more_memory and gpus <= more_gpus for _, more_memory, more_gpus in found):
            found.append((slots, memory, gpus))
    return found


def _distinct_rooms(table: HostTable, rows: set[int]) -> set[tuple[int, int, int]]:
    """Distinct free (slots, memory, GPUs) of the open ones of these hosts."""
    if len(rows) <= _FEW:
        return {table.room_of(row) for row in rows if table.is_open(row)}
    open_rows = table.open_rows()
    chosen = np.array([row for row in rows if open_rows[row]], dtype=np.int64)
    columns = (table.slots_free[chosen], table.memory_free_mib[chosen], table.gpus_free[chosen])
    return set(zip(*(column.tolist() for column in columns), strict=True))
