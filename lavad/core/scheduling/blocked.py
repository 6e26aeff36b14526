"""Buckets for which nothing fitted, by their smallest need: not looked at again until room for that need appears.

Columns over blocked buckets, so that one freed host is compared with all of them at once.
"""

import numpy as np
from numpy.typing import NDArray

from lavad.core.indexes.hosts import HostTable
from lavad.core.indexes.pending import BucketKey
from lavad.core.scheduling.placement import Need

_GROWTH = 256
_NEVER = np.iinfo(np.int64).max


class BlockedBuckets:
    """Which buckets wait for room, and for how much."""

    def __init__(self) -> None:
        self._needs: NDArray[np.int64] = np.full((4, _GROWTH), _NEVER, np.int64)
        self._keys: list[BucketKey | None] = []
        self._places: dict[BucketKey, int] = {}
        self._spare: list[int] = []

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: BucketKey) -> bool:
        return key in self._places

    def add(self, key: BucketKey, need: Need) -> None:
        """Nothing fitted for this bucket."""
        if key in self._places:
            return
        place = self._spare.pop() if self._spare else self._new_place()
        self._keys[place] = key
        self._places[key] = place
        self._needs[:, place] = (need.slots, need.memory_mib, need.gpus, need.slots_in_all)

    def _new_place(self) -> int:
        if len(self._keys) == self._needs.shape[1]:
            self._needs = np.concatenate([self._needs, np.full_like(self._needs, _NEVER)], axis=1)
        self._keys.append(None)
        return len(self._keys) - 1

    def discard(self, key: BucketKey) -> None:
        """The bucket is to be looked at, or is gone."""
        place = self._places.pop(key, None)
        if place is not None:
            self._keys[place] = None
            self._needs[:, place] = _NEVER
            self._spare.append(place)

    def woken_by(self, table: HostTable, rows: set[int]) -> list[BucketKey]:
        """Buckets whose smallest need fits one of these hosts now, and whose total fits all open hosts together."""
        if not self._places or not rows:
            return []
        open_rows = table.open_rows()
        chosen = np.array([row for row in rows if open_rows[row]], dtype=np.int64)
        if not len(chosen):
            return []
        needs = self._needs[:, : len(self._keys)]
        hit = np.zeros(needs.shape[1], dtype=bool)
        for slots, memory, gpus in _distinct_rooms(table, chosen):
            hit |= (needs[0] <= slots) & (needs[1] <= memory) & (needs[2] <= gpus)
        hit &= needs[3] <= table.slots_open()
        return [key for place in np.flatnonzero(hit) if (key := self._keys[place]) is not None]


def _distinct_rooms(table: HostTable, rows: NDArray[np.int64]) -> set[tuple[int, int, int]]:
    """Free (slots, memory, gpus) of some hosts; many hosts are alike."""
    columns = (table.slots_free[rows], table.memory_free_mib[rows], table.gpus_free[rows])
    return set(zip(*(column.tolist() for column in columns), strict=True))
