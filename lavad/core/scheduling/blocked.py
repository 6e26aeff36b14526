"""Buckets for which nothing fitted, by their smallest need: not looked at again until room for that need appears.

Columns over blocked buckets, so that freed hosts are compared with all of them at once, and those that could fit come
out in scheduling order without a look at each.
"""

from collections.abc import Container, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from lavad.core.indexes.hosts import HostTable
from lavad.core.indexes.pending import BucketKey
from lavad.core.scheduling.ordering import Rank
from lavad.core.scheduling.placement import Need
from lavad.core.scheduling.wants import watched_by

_GROWTH = 256
_FEW = 32  # so many are compared one by one: arrays would take longer
_STALE_MAX = 1024  # entered in the columns together, so that nobody has to wait for all of a pass
_NEVER = int(np.iinfo(np.int64).max)
_FIELDS = len(Need._fields)
_NO_NEED = Need(*[_NEVER] * _FIELDS)


class BlockedBuckets:
    """Which buckets wait for room, for how much, and with which rank. A bucket's place is a column number."""

    def __init__(self) -> None:
        self._needs: list[Need] = []
        self._ranks: list[tuple[float, float, float]] = []
        self._keys: list[BucketKey | None] = []
        self._lanes: list[int] = []
        self._places: dict[BucketKey, int] = {}
        self._spare: list[int] = []
        self.others = 0  # how many of them are not plain
        self._watching: dict[str, set[BucketKey]] = {}  # by the value that may let them start
        # The same as columns, for many at once; what has changed since is entered when they are next asked.
        self._need_columns: NDArray[np.int64] = np.full((_FIELDS, _GROWTH), _NEVER, np.int64)
        self._rank_columns: NDArray[np.float64] = np.zeros((3, _GROWTH), np.float64)
        self._stale: set[int] = set()

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: BucketKey) -> bool:
        return key in self._places

    def add(self, key: BucketKey, need: Need, rank: Rank, lane: int = 0) -> None:
        """Nothing fitted for this bucket, whose first job has that rank in that lane."""
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = self._spare.pop() if self._spare else self._new_place()
            self._keys[place] = key
            self.others += not key.is_plain
            for name in watched_by(key.request):
                self._watching.setdefault(name, set()).add(key)
        self._needs[place] = need
        self._ranks[place] = rank[:3]
        self._lanes[place] = lane
        self._stale.add(place)
        if len(self._stale) >= _STALE_MAX:
            self._columns()

    def _new_place(self) -> int:
        self._needs.append(_NO_NEED)
        self._ranks.append((0.0, 0.0, 0.0))
        self._keys.append(None)
        self._lanes.append(0)
        return len(self._keys) - 1

    def discard(self, key: BucketKey) -> None:
        """The bucket is to be looked at, or is gone."""
        place = self._places.pop(key, None)
        if place is not None:
            self._keys[place] = None
            self.others -= not key.is_plain
            self._needs[place] = _NO_NEED
            self._stale.add(place)
            self._spare.append(place)
            for name in watched_by(key.request):
                self._unwatch(name, key)

    def _unwatch(self, name: str, key: BucketKey) -> None:
        keys = self._watching.get(name)
        if keys is not None:
            keys.discard(key)
            if not keys:
                del self._watching[name]

    @property
    def watched(self) -> Mapping[str, object]:
        """Values that some of these buckets wait for, as they are now and will be."""
        return self._watching

    def watching(self, names: Iterable[str]) -> list[BucketKey]:
        """Buckets that wait for one of these values, the oldest first."""
        found = {key for name in names for key in self._watching.get(name, ())}
        return sorted(found)

    def by_lane(self, places: list[int]) -> dict[int, list[int]]:
        """The same places, apart by lane, in the same order."""
        found: dict[int, list[int]] = {}
        for place in places:
            found.setdefault(self._lanes[place], []).append(place)
        return found

    def key(self, place: int) -> BucketKey | None:
        """The bucket at a place; None when it is not blocked any more."""
        return self._keys[place]

    def need(self, place: int) -> Need:
        """What the bucket at a place waits for."""
        return self._needs[place]

    def rank(self, place: int) -> tuple[float, float, float]:
        """(queue, job priority, position) of the bucket's first job when it was blocked."""
        return self._ranks[place]

    def _columns(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        used = len(self._keys)
        while used > self._need_columns.shape[1]:
            self._need_columns = np.concatenate([self._need_columns, np.full_like(self._need_columns, _NEVER)], axis=1)
            self._rank_columns = np.concatenate([self._rank_columns, np.zeros_like(self._rank_columns)], axis=1)
        if self._stale:
            places = list(self._stale)
            self._need_columns[:, places] = np.array([self._needs[place] for place in places]).T
            self._rank_columns[:, places] = np.array([self._ranks[place] for place in places]).T
            self._stale.clear()
        return self._need_columns[:, :used], self._rank_columns[:, :used]

    def of_queues(self, queues: Container[str]) -> list[int]:
        """Places of all blocked buckets of these queues, the one that goes first at the end."""
        found = [place for key, place in self._places.items() if key.queue in queues]
        return sorted(found, key=self.rank, reverse=True)

    def fitting(self, slots: int) -> list[BucketKey]:
        """Buckets that need no more slots in all."""
        if len(self._places) > _FEW:
            needs, _ = self._columns()
            return [key for place in np.flatnonzero(needs[3] <= slots) if (key := self._keys[place]) is not None]
        needs_now = self._needs
        return [key for key, place in self._places.items() if needs_now[place].slots_in_all <= slots]

    def woken_by(self, table: HostTable, rows: set[int]) -> list[int]:
        """Places of the buckets whose need fits one of these hosts now, the one that goes first at the end."""
        if not self._places or not rows:
            return []
        if len(self._places) <= _FEW:
            return self._few_woken_by(table, rows)
        needs, ranks = self._columns()
        rooms = _distinct_rooms(table, rows)
        hit = np.zeros(needs.shape[1], dtype=bool)
        for slots, memory, gpus in rooms:
            hit |= (needs[0] <= slots) & (needs[1] <= memory) & (needs[2] <= gpus)
        hit &= needs[3] <= table.slots_open
        places = self._without_hopeless_gangs(table, np.flatnonzero(hit))
        return places[_in_order(*ranks[:, places])[::-1]].tolist()  # type: ignore[no-any-return]

    def _few_woken_by(self, table: HostTable, rows: set[int]) -> list[int]:
        needs, slots_open = self._needs, table.slots_open
        hopeful = [place for place in self._places.values() if needs[place].slots_in_all <= slots_open]
        if not hopeful:
            return []
        rooms = _distinct_rooms(table, rows)
        found = [place for place in hopeful if _fits_one(needs[place], rooms)]
        return sorted(found, key=self.rank, reverse=True)

    def _without_hopeless_gangs(self, table: HostTable, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """Leave out those that need more tasks than all open hosts together have slots for.

        Many gangs share slots per task and tasks per host, so the count is made once for each such pair.
        """
        tasks, slots, most = self._need_columns[4:7, places]
        keep = tasks <= 1
        pairs = set(zip(slots[~keep].tolist(), most[~keep].tolist(), strict=True))
        free = table.slots_free[: len(table)][table.open_rows()]
        for slots_per_task, tasks_per_host in pairs:
            capacity = int(np.minimum(free // slots_per_task, tasks_per_host).clip(0).sum())
            keep |= (slots == slots_per_task) & (most == tasks_per_host) & (tasks <= capacity)
        hopeful: NDArray[np.intp] = places[keep]
        return hopeful


def _in_order(
    queue: NDArray[np.float64], job_priority: NDArray[np.float64], position: NDArray[np.float64]
) -> NDArray[np.intp]:
    """Where ranks stand in their order. Of very many most differ in nothing but the position."""
    if len(position) and (queue == queue[0]).all() and (job_priority == job_priority[0]).all():
        return np.argsort(position, kind="stable")
    return np.lexsort((position, job_priority, queue))


def _fits_one(need: Need, rooms: set[tuple[int, int, int]]) -> bool:
    return any(need.slots <= slots and need.memory_mib <= memory and need.gpus <= gpus for slots, memory, gpus in rooms)


def _distinct_rooms(table: HostTable, rows: set[int]) -> set[tuple[int, int, int]]:
    """Free (slots, memory, gpus) of those of the hosts that are open; many hosts are alike."""
    if len(rows) <= _FEW:
        return {table.room_of(row) for row in rows if table.is_open(row)}
    open_rows = table.open_rows()
    chosen = np.array([row for row in rows if open_rows[row]], dtype=np.int64)
    columns = (table.slots_free[chosen], table.memory_free_mib[chosen], table.gpus_free[chosen])
    return set(zip(*(column.tolist() for column in columns), strict=True))
