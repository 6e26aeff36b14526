"""Priority queue of due buckets: a heap while short, divided into pages by position when long.

A heap of 100,000 tuples fits in no processor cache, and each pop goes through 17 levels of it. So the entries of a page
stay unsorted until the page is opened, and are then sorted at once: a fraction of the cost of popping them one by one.

Invariants: every entry of a later page comes after all of the open page and of the heap; both are empty only if the
queue is.
"""

import heapq
from collections.abc import Iterable
from operator import itemgetter

from lavad.core.scheduling.queueing.ordering import QueueEntry

_NEAR_MAX = 4096  # entries in the heap before it is divided into pages
_WIDTH = 1024  # positions in a page: as many jobs, unless btop or bbot moved some
_FIRST = float("-inf")
_Page = tuple[int, float, float]
_position, _job = itemgetter(2), itemgetter(3)


def _page_of(entry: QueueEntry) -> _Page:
    queue, job_priority, position, _, _ = entry
    return queue, job_priority, position // _WIDTH if position > _FIRST else position


class DueQueue:
    """Priority queue of queue entries."""

    __slots__ = ("_far", "_heap", "_open", "_page", "_pages")

    def __init__(self, entries: Iterable[QueueEntry] = ()) -> None:
        self._heap = list(entries)  # with pages: entries pushed for the open page or an earlier one
        heapq.heapify(self._heap)
        self._open: list[QueueEntry] = []  # the open page, first entry at the end
        self._page: _Page | None = None  # key of the open page; None: no pages
        self._pages: list[_Page] = []  # heap of later pages
        self._far: dict[_Page, list[QueueEntry]] = {}

    def __bool__(self) -> bool:
        return bool(self._open or self._heap)

    @property
    def first(self) -> QueueEntry:
        """Entry that ``pop`` would return; the queue must not be empty."""
        if not self._heap:
            return self._open[-1]
        return min(self._heap[0], self._open[-1]) if self._open else self._heap[0]

    def push(self, entry: QueueEntry) -> None:
        """Add an entry."""
        if self._page is not None and (page := _page_of(entry)) > self._page:
            self._put_aside(page, entry)
            return
        heapq.heappush(self._heap, entry)
        if self._page is None and len(self._heap) > _NEAR_MAX:
            self._divide()

    def pop(self) -> QueueEntry:
        """Remove and return the first entry."""
        near, heap = self._open, self._heap
        entry = near.pop() if near and not (heap and heap[0] < near[-1]) else heapq.heappop(heap)
        if not (near or heap) and self._page is not None:
            self._turn_over()
        return entry

    def push_pop(self, entry: QueueEntry) -> QueueEntry:
        """Add an entry, then remove and return the first one."""
        if self._page is None:
            return heapq.heappushpop(self._heap, entry)
        page = _page_of(entry)
        if page <= self._page:
            heapq.heappush(self._heap, entry)
        elif page in self._far:
            self._far[page].append(entry)
        else:
            self._put_aside(page, entry)
        return self.pop()

    def _put_aside(self, page: _Page, entry: QueueEntry) -> None:
        entries = self._far.get(page)
        if entries is None:
            self._far[page] = [entry]
            heapq.heappush(self._pages, page)
        else:
            entries.append(entry)

    def _divide(self) -> None:
        entries, self._heap = self._heap, []
        for entry in entries:
            self._put_aside(_page_of(entry), entry)
        self._turn_over()

    def _turn_over(self) -> None:
        """Open the next page."""
        if not self._pages:
            self._page = None
            return
        self._page = heapq.heappop(self._pages)
        self._open = self._far.pop(self._page)
        self._open.sort(key=_job, reverse=True)  # by one field after the other: tuples take five times as long
        self._open.sort(key=_position, reverse=True)
