"""Needs and ranks of blocked buckets as columns, in blocks, and the search for those that freed hosts unblock.

Many needs are compared at once, and no column is copied to grow. Each block has a bound, a rank that none of its
buckets precedes, so a search for the first one skips most blocks. Unblocked buckets come in parts in scheduling order,
and a part is read only when its bound may be first: of 100,000 buckets that fit one free slot one job starts, and then
no host has free slots.
"""

import heapq
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lavad.core.scheduling.placement.place import MinimumNeed

if TYPE_CHECKING:
    from numpy.typing import NDArray


First = tuple[float, float, float, float]  # the rank of a bucket's first job


class UnblockedPart:
    """Part of the unblocked buckets; none that ``find`` returns precedes ``bound``."""

    __slots__ = ("_find", "_places", "bound")

    def __init__(self, bound: First, find: Callable[[], list[int]]) -> None:
        self.bound = bound
        self._find = find
        self._places: list[int] | None = None

    @property
    def places(self) -> list[int]:
        """Remaining places, first in scheduling order at the end."""
        if self._places is None:
            self._places = self._find()
        return self._places


class UnblockedBuckets:
    """Places of unblocked buckets in scheduling order; false if none is left.

    ``rank`` returns the rank at a place; ``is_hopeful`` is false for buckets to skip.
    """

    __slots__ = ("_heap", "_is_hopeful", "_rank")

    def __init__(
        self, parts: Iterable[UnblockedPart], rank: Callable[[int], First], is_hopeful: Callable[[int], bool]
    ) -> None:
        self._heap = [(part.bound, number, part) for number, part in enumerate(parts)]
        heapq.heapify(self._heap)
        self._rank = rank
        self._is_hopeful = is_hopeful

    def __bool__(self) -> bool:
        """True if a bucket is left; its place is then at the top of the heap."""
        heap = self._heap
        while heap:
            bound, number, part = heap[0]
            places = part.places
            while places and not self._is_hopeful(places[-1]):
                places.pop()
            if not places:
                heapq.heappop(heap)
                continue
            first = self._rank(places[-1])
            if first == bound:
                return True
            heapq.heapreplace(heap, (first, number, part))
        return False

    @property
    def first(self) -> int:
        """Place that is first in scheduling order; valid after a true ``bool()``."""
        return self._heap[0][2].places[-1]

    def pop(self) -> int:
        """Remove and return the first place; valid after a true ``bool()``."""
        return self._heap[0][2].places.pop()


def _nowhere(_: int) -> First:
    raise AssertionError("there are no places")


NONE_UNBLOCKED = UnblockedBuckets((), _nowhere, bool)


_BITS = 10
_WIDTH = 1 << _BITS  # places a block
_NEVER = int(np.iinfo(np.int64).max)
_NOTED_MAX = 1024  # entered together, so that a slice never has to enter those of a whole pass
_FIELDS = 4  # of a need: slots, memory and GPUs on one host, slots in all
_PARTS = 4  # of a rank


class HostsFree(NamedTuple):
    """Free resources: (slots, memory in MiB, GPUs) of some hosts, and the free slots of all hosts."""

    of_hosts: list[tuple[int, int, int]]
    slots_open: int


class _Block:
    """Block of consecutive places. Empty ones have a need that is never met."""

    def __init__(self, number: int) -> None:
        self.begins = number << _BITS
        self.bound: First = (0.0, 0.0, 0.0, 0.0)
        self._needs: NDArray[np.int64] = np.full((_FIELDS, _WIDTH), _NEVER, np.int64)
        self._ranks: NDArray[np.float64] = np.full((_PARTS, _WIDTH), np.inf)

    def enter(self, places: list[int], needs: Sequence[MinimumNeed], ranks: Sequence[First]) -> None:
        """Copy the needs and ranks of these places into the columns."""
        at = np.array(places) - self.begins
        count = len(places)
        values = chain.from_iterable([needs[place][:_FIELDS] for place in places])
        self._needs[:, at] = np.fromiter(values, np.int64, count * _FIELDS).reshape(count, _FIELDS).T
        values_of_ranks = chain.from_iterable([ranks[place] for place in places])
        self._ranks[:, at] = np.fromiter(values_of_ranks, np.float64, count * _PARTS).reshape(count, _PARTS).T
        self.bound = self._first()

    def _first(self) -> First:
        """Lower bound of the ranks here, which differs from the first rank at most in the job number."""
        queue, job_priority, position, _ = self._ranks
        first_queue = queue.min()
        leads = queue == first_queue
        first_priority = job_priority[leads].min()
        leads &= job_priority == first_priority
        return float(first_queue), float(first_priority), float(position[leads].min()), 0.0

    def fitting(self, slots: int) -> list[int]:
        """Places that need at most ``slots`` slots in total."""
        return (np.flatnonzero(self._needs[3] <= slots) + self.begins).tolist()

    def find(self, rooms: HostsFree) -> list[int]:
        """Places whose need fits one of the hosts and the total, first in scheduling order at the end."""
        needs = self._needs
        hit = np.zeros(_WIDTH, dtype=bool)
        for slots, memory, gpus in rooms.of_hosts:
            hit |= (needs[0] <= slots) & (needs[1] <= memory) & (needs[2] <= gpus)
        hit &= needs[3] <= rooms.slots_open
        at = np.flatnonzero(hit)
        order = np.lexsort(self._ranks[::-1, at])
        return (at[order[::-1]] + self.begins).tolist()  # type: ignore[no-any-return]


class BlockedColumns:
    """Columns of all places, made from ``needs`` and ``ranks``; the owner notes where these change."""

    def __init__(self, needs: Sequence[MinimumNeed], ranks: Sequence[First]) -> None:
        self._needs = needs
        self._ranks = ranks
        self._blocks: list[_Block] = []
        self._noted: set[int] = set()

    def note(self, place: int) -> None:
        """Note that need or rank at this place has changed."""
        self._noted.add(place)
        if len(self._noted) >= _NOTED_MAX:
            self._enter()

    def _enter(self) -> None:
        by_block: dict[int, list[int]] = {}
        for place in self._noted:
            by_block.setdefault(place >> _BITS, []).append(place)
        self._noted.clear()
        for number, places in by_block.items():
            while number >= len(self._blocks):
                self._blocks.append(_Block(len(self._blocks)))
            self._blocks[number].enter(places, self._needs, self._ranks)

    def fitting(self, slots: int) -> list[int]:
        """Places that need at most ``slots`` slots in total."""
        self._enter()
        return [place for block in self._blocks for place in block.fitting(slots)]

    def parts(self, rooms: HostsFree) -> list[UnblockedPart]:
        """One part for each block, searched on first use."""
        self._enter()
        return [UnblockedPart(block.bound, partial(block.find, rooms)) for block in self._blocks]
