"""Expected ends of attempts, as their run limits tell.

Invariants: entries are in order of time; an attempt without a run limit is at ``NEVER``; one that has ended, and only
has hosts to release, is at time 0. Kept up to date lazily: callers pass what has changed.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from lavad.core.model import Key
from lavad.core.state.attempts import Attempt
from lavad.core.state.paged import Paged

NEVER = float("inf")
_AT_ONCE = 0.0
_PAGE_MAX = 1024  # entries


class ExpectedEnd(NamedTuple):
    """Expected end of an attempt, and its slots."""

    at: float
    slots: int
    key: Key


class ExpectedEnds:
    """Attempts in order of their expected ends, in pages: an insertion moves one page only."""

    def __init__(self) -> None:
        self._pages: list[list[ExpectedEnd]] = []
        self._firsts: list[ExpectedEnd] = []  # of each page
        self._by_key: Paged[ExpectedEnd] = Paged()

    def __iter__(self) -> Iterator[ExpectedEnd]:
        return chain.from_iterable(self._pages)

    def __len__(self) -> int:
        return sum(map(len, self._pages))

    def first(self) -> float:
        """Time of the next expected end."""
        return self._firsts[0].at if self._firsts else NEVER

    def of(self, key: Key) -> ExpectedEnd | None:
        """Expected end of an attempt; None if it is not entered."""
        return self._by_key.get(key)

    def update(self, changed: dict[Key, ExpectedEnd | None]) -> None:
        """Enter new expected ends; None: the attempt holds nothing any more."""
        for key, entry in changed.items():
            old = self._by_key.pop(key)
            if old is not None:
                self._remove(old)
            if entry is not None:
                self._insert(entry)
                self._by_key[key] = entry

    def _remove(self, entry: ExpectedEnd) -> None:
        number = bisect_right(self._firsts, entry) - 1
        page = self._pages[number]
        del page[bisect_left(page, entry)]
        if page:
            self._firsts[number] = page[0]
        else:
            del self._pages[number], self._firsts[number]

    def _insert(self, entry: ExpectedEnd) -> None:
        number = max(0, bisect_right(self._firsts, entry) - 1)
        if not self._pages:
            self._pages.append([])
            self._firsts.append(entry)
        page = self._pages[number]
        insort(page, entry)
        self._firsts[number] = page[0]
        if len(page) > _PAGE_MAX:
            half = page[_PAGE_MAX // 2 :]
            del page[_PAGE_MAX // 2 :]
            self._pages.insert(number + 1, half)
            self._firsts.insert(number + 1, half[0])


def expected_end(attempt: Attempt, run_limit_s: int, slots: int) -> ExpectedEnd:
    """Expected end by the run limit, counted from the start, or from the dispatch until then."""
    if attempt.over:
        at = _AT_ONCE
    elif run_limit_s:
        at = (attempt.started_at or attempt.dispatched_at) + run_limit_s
    else:
        at = NEVER
    return ExpectedEnd(at, slots, attempt.key)
