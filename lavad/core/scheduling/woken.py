"""Blocked buckets that hosts with more room might fit, in scheduling order, looked at no further than somebody asks.

Of 100,000 that fit the one free slot of a host one job starts, and then there is room for nobody. So they come in
parts, and a part is looked into only when its bound says that the first of all may be there.
"""

import heapq
from collections.abc import Callable, Iterable

First = tuple[float, float, float, float]  # the rank of a bucket's first job


class Part:
    """Some blocked buckets. None of those that ``find`` finds goes before ``bound``."""

    __slots__ = ("_find", "_places", "bound")

    def __init__(self, bound: First, find: Callable[[], list[int]]) -> None:
        self.bound = bound
        self._find = find
        self._places: list[int] | None = None

    @property
    def places(self) -> list[int]:
        """Those that are left, the first at the end."""
        if self._places is None:
            self._places = self._find()
        return self._places


class Woken:
    """Places of blocked buckets; false when none is left.

    ``rank`` tells the rank at a place, ``is_hopeful`` whether the bucket there is to be looked at at all.
    """

    __slots__ = ("_heap", "_is_hopeful", "_rank")

    def __init__(self, parts: Iterable[Part], rank: Callable[[int], First], is_hopeful: Callable[[int], bool]) -> None:
        self._heap = [(part.bound, number, part) for number, part in enumerate(parts)]
        heapq.heapify(self._heap)
        self._rank = rank
        self._is_hopeful = is_hopeful

    def __bool__(self) -> bool:
        """Also brings the place that goes first to the top."""
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
        """The place that goes first; somebody must have asked whether one is left."""
        return self._heap[0][2].places[-1]

    def pop(self) -> int:
        """Take the first one out; somebody must have asked whether one is left."""
        return self._heap[0][2].places.pop()


def _nowhere(_: int) -> First:
    raise AssertionError("there are no places")


NOBODY_WOKEN = Woken((), _nowhere, bool)
