"""Turns of due buckets, the first one first: a heap as long as they are few, in pages by position when they are many.

A heap of 100,000 tuples is in no processor cache, and each pop goes through 17 levels of it. So only the turns of the
first page stand in a heap; those of later pages lie there as they came until it is their page's time.

Invariants: every turn of a later page goes after all of the heap; the heap is empty only when all is.
"""

import heapq
from collections.abc import Iterable

from lavad.core.scheduling.ordering import Turn

_NEAR_MAX = 4096  # turns in the heap before they are put into pages
_WIDTH = 1024  # positions a page: as many jobs, if they were not moved
_FIRST = float("-inf")
_Page = tuple[int, float, float]


def _page_of(turn: Turn) -> _Page:
    position = turn[2]
    return turn[0], turn[1], position // _WIDTH if position > _FIRST else position


class Turns:
    """A priority queue. ``near[0]`` is the first turn."""

    __slots__ = ("_far", "_page", "_pages", "near")

    def __init__(self, turns: Iterable[Turn] = ()) -> None:
        self.near = list(turns)
        heapq.heapify(self.near)
        self._page: _Page | None = None  # the last one that stands in the heap; None: there are no pages
        self._pages: list[_Page] = []  # a heap
        self._far: dict[_Page, list[Turn]] = {}

    def __bool__(self) -> bool:
        return bool(self.near)

    def push(self, turn: Turn) -> None:
        """One more turn."""
        if self._page is not None and (page := _page_of(turn)) > self._page:
            self._put_aside(page, turn)
            return
        heapq.heappush(self.near, turn)
        if self._page is None and len(self.near) > _NEAR_MAX:
            self._divide()

    def pop(self) -> Turn:
        """Take the first turn out."""
        turn = heapq.heappop(self.near)
        if not self.near and self._page is not None:
            self._turn_over()
        return turn

    def push_pop(self, turn: Turn) -> Turn:
        """One more turn, and then the first one out."""
        if self._page is None or (page := _page_of(turn)) <= self._page:
            return heapq.heappushpop(self.near, turn)
        self._put_aside(page, turn)
        return self.pop()

    def _put_aside(self, page: _Page, turn: Turn) -> None:
        turns = self._far.get(page)
        if turns is None:
            self._far[page] = [turn]
            heapq.heappush(self._pages, page)
        else:
            turns.append(turn)

    def _divide(self) -> None:
        turns, self.near = self.near, []
        for turn in turns:
            self._put_aside(_page_of(turn), turn)
        self._turn_over()

    def _turn_over(self) -> None:
        """The next page's time has come."""
        if not self._pages:
            self._page = None
            return
        self._page = heapq.heappop(self._pages)
        self.near = self._far.pop(self._page)
        heapq.heapify(self.near)
