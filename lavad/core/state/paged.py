"""Dictionary by attempt key, in pages of neighbouring jobs.

A plain dictionary that outgrows its table moves as a whole: with hundreds of thousands of entries one insertion takes
40 ms. Pages stay small, loops over neighbouring jobs find the same page again, and empty pages are dropped.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar

from lavad.core.model import Key

Value = TypeVar("Value")
Read = TypeVar("Read", covariant=True)

_NO_PAGE: Mapping[Key, Any] = MappingProxyType({})
_BITS = 10  # jobs per page: 1024; each element of an array counts


class PagedView(Protocol[Read]):
    """Read-only view of such a dictionary; the methods are described there."""

    def __getitem__(self, key: Key, /) -> Read: ...
    def __contains__(self, key: Key, /) -> bool: ...
    def __iter__(self) -> Iterator[Key]: ...
    def __len__(self) -> int: ...
    def get(self, key: Key, /) -> Read | None: ...
    def values(self) -> Iterator[Read]: ...
    def items(self) -> Iterator[tuple[Key, Read]]: ...
    def numbers(self) -> list[int]: ...
    def page(self, number: int, /) -> Iterable[Key]: ...


class Paged(Generic[Value]):
    """Dictionary with the methods that are used, iterated page by page."""

    __slots__ = ("_pages",)

    def __init__(self, items: Iterable[tuple[Key, Value]] = ()) -> None:
        self._pages: dict[int, dict[Key, Value]] = {}
        for key, value in items:
            self[key] = value

    def __getitem__(self, key: Key) -> Value:
        return self._pages[key[0] + key[1] >> _BITS][key]

    def get(self, key: Key) -> Value | None:
        """Return the value, or None."""
        return self._pages.get(key[0] + key[1] >> _BITS, _NO_PAGE).get(key)

    def __setitem__(self, key: Key, value: Value) -> None:
        number = key[0] + key[1] >> _BITS
        page = self._pages.get(number)
        if page is None:
            page = self._pages[number] = {}
        page[key] = value

    def update(self, items: Mapping[Key, Value]) -> None:
        """Insert all items; neighbours should be together."""
        pages, last, page = self._pages, -1, dict[Key, Value]()
        for key, value in items.items():
            number = key[0] + key[1] >> _BITS
            if number != last:
                page, last = pages.setdefault(number, {}), number
            page[key] = value

    def pop(self, key: Key) -> Value | None:
        """Remove and return the value; None if there is none."""
        number = key[0] + key[1] >> _BITS
        page = self._pages.get(number)
        if page is None:
            return None
        found = page.pop(key, None)
        if not page:
            del self._pages[number]
        return found

    def numbers(self) -> list[int]:
        """Numbers of all pages."""
        return list(self._pages)

    def page(self, number: int) -> Iterable[Key]:
        """Keys of one page; empty if the page was dropped."""
        return self._pages.get(number, ())

    def clear(self) -> None:
        """Remove all items."""
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
        """All items."""
        for page in self._pages.values():
            yield from page.items()

    def __len__(self) -> int:
        return sum(map(len, self._pages.values()))

    def __bool__(self) -> bool:
        return bool(self._pages)
