"""Values by key of an attempt, in pages of neighbouring jobs.

A dictionary that has outgrown its table moves as a whole: with hundreds of thousands of entries somebody waits 40 ms
for the one that came last. Pages stay small, whoever works through jobs in their order finds the same page again, and a
page that has become empty is dropped.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from lavad.core.model import Key

Value = TypeVar("Value")

_NO_PAGE: Mapping[Key, Any] = MappingProxyType({})
_BITS = 10  # jobs a page: 1024; elements of an array count as so many jobs


class Paged(Generic[Value]):
    """What of a dictionary its users need, in the order of the pages."""

    __slots__ = ("_pages",)

    def __init__(self, items: Iterable[tuple[Key, Value]] = ()) -> None:
        self._pages: dict[int, dict[Key, Value]] = {}
        for key, value in items:
            self[key] = value

    def __getitem__(self, key: Key) -> Value:
        return self._pages[key[0] + key[1] >> _BITS][key]

    def get(self, key: Key) -> Value | None:
        """The value, or None."""
        return self._pages.get(key[0] + key[1] >> _BITS, _NO_PAGE).get(key)

    def __setitem__(self, key: Key, value: Value) -> None:
        number = key[0] + key[1] >> _BITS
        page = self._pages.get(number)
        if page is None:
            page = self._pages[number] = {}
        page[key] = value

    def update(self, items: Mapping[Key, Value]) -> None:
        """Enter all of these; those that are neighbours should come together."""
        pages, last, page = self._pages, -1, dict[Key, Value]()
        for key, value in items.items():
            number = key[0] + key[1] >> _BITS
            if number != last:
                page, last = pages.setdefault(number, {}), number
            page[key] = value

    def pop(self, key: Key) -> Value | None:
        """Take the value out; None if there is none."""
        number = key[0] + key[1] >> _BITS
        page = self._pages.get(number)
        if page is None:
            return None
        found = page.pop(key, None)
        if not page:
            del self._pages[number]
        return found

    def numbers(self) -> list[int]:
        """Of all pages there are."""
        return list(self._pages)

    def page(self, number: int) -> Iterable[Key]:
        """The keys of one page; none when it is not there any more."""
        return self._pages.get(number, ())

    def clear(self) -> None:
        """Take all out."""
        self._pages.clear()

    def __contains__(self, key: Key) -> bool:
        return key in self._pages.get(key[0] + key[1] >> _BITS, ())

    def __iter__(self) -> Iterator[Key]:
        for page in self._pages.values():
            yield from page

    def values(self) -> Iterator[Value]:
        """All values."""
        for page in self._pages.values():
            yield from page.values()

    def items(self) -> Iterator[tuple[Key, Value]]:
        """All keys with their values."""
        for page in self._pages.values():
            yield from page.items()

    def __len__(self) -> int:
        return sum(map(len, self._pages.values()))

    def __bool__(self) -> bool:
        return bool(self._pages)
