"""Sets of array indices as a few ranges, so that a million pending elements are one small object.

Kept sorted and disjoint. Single elements are added and removed (a requeue, a kill); whole arrays in one step.
"""

import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


class Ranges:
    """A mutable set of positive integers. Iteration is in ascending order."""

    __slots__ = ("_count", "_parts")

    def __init__(self, parts: Iterable[range] = ()) -> None:
        self._parts = _normalised(parts)
        self._count = sum(map(len, self._parts))

    @classmethod
    def of(cls, *indices: int) -> "Ranges":
        """Set of these indices."""
        return cls(range(index, index + 1) for index in indices)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        for part in self._parts:
            yield from part

    def __contains__(self, index: int) -> bool:
        parts = self._parts
        if len(parts) < 2:  # like those of most arrays
            return bool(parts) and index in parts[0]
        place = self._place(index)
        return place >= 0 and index in parts[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ranges) and list(self) == list(other)

    def __hash__(self) -> int:  # pragma: no cover - sets of sets are not wanted
        raise TypeError("Ranges are mutable")

    def __repr__(self) -> str:
        return f"Ranges({self.text()})"

    def _place(self, index: int) -> int:
        """Number of the part that could contain the index: the last that begins at or before it; -1 for none."""
        return bisect.bisect_right(self._parts, index, key=_first) - 1

    def part_with(self, index: int) -> range:
        """The part that contains the index, which is in the set."""
        return self._parts[self._place(index)]

    def first(self) -> int:
        """Smallest index.

        Raises:
            IndexError: the set is empty.
        """
        return self._parts[0][0]

    def discard(self, index: int) -> bool:
        """Remove the index; False if it was not in the set."""
        place = self._place(index)
        if place < 0 or index not in self._parts[place]:
            return False
        part = self._parts[place]
        at = part.index(index)
        self._parts[place : place + 1] = [piece for piece in (part[:at], part[at + 1 :]) if piece]
        self._count -= 1
        return True

    def add(self, index: int) -> None:
        """Add the index."""
        if index in self:
            return
        place = self._place(index)
        before = self._parts[place] if place >= 0 else None
        if before is not None and before[-1] > index:  # inside a stepped range: split it
            at = bisect.bisect_left(before, index)
            self._parts[place : place + 1] = [before[:at], range(index, index + 1), before[at:]]
        else:
            self._insert_joined(place, index)
        self._count += 1

    def _insert_joined(self, place: int, index: int) -> None:
        first, last = index, index
        after = self._parts[place + 1] if place + 1 < len(self._parts) else None
        lo, hi = place + 1, place + 1
        if place >= 0 and _dense(self._parts[place]) and self._parts[place][-1] == index - 1:
            first, lo = self._parts[place][0], place
        if after is not None and _dense(after) and after[0] == index + 1:
            last, hi = after[-1], place + 2
        self._parts[lo:hi] = [range(first, last + 1)]

    def update(self, other: "Ranges") -> None:
        """Add all indices of the other set."""
        if not self._parts:
            self._parts, self._count = list(other._parts), other._count
            return
        if len(other) >= _MANY and self._is_dense and other._is_dense:
            self._take_over(_swept(self._parts, other._parts, lambda left, right: left or right))
            return
        for index in other:
            self.add(index)

    def difference_update(self, other: "Ranges") -> None:
        """Remove all indices of the other set; whole ranges in one step."""
        if self._parts == other._parts:
            self._parts, self._count = [], 0
            return
        if len(other) >= _MANY and self._is_dense and other._is_dense:
            self._take_over(_swept(self._parts, other._parts, lambda left, right: left and not right))
            return
        for index in other:
            self.discard(index)

    def intersection(self, other: "Ranges") -> "Ranges":
        """Set of the indices in both."""
        if self._parts == other._parts:
            return self.copy()
        if min(len(self), len(other)) >= _MANY and self._is_dense and other._is_dense:
            made = Ranges()
            made._take_over(_swept(self._parts, other._parts, lambda left, right: left and right))
            return made
        small, large = (self, other) if len(self) <= len(other) else (other, self)
        return Ranges.from_sorted(index for index in small if index in large)

    @classmethod
    def from_sorted(cls, indices: Iterable[int]) -> "Ranges":
        """Set of ascending indices, neighbours joined."""
        parts: list[range] = []
        for index in indices:
            if parts and parts[-1].stop == index:
                parts[-1] = range(parts[-1].start, index + 1)
            else:
                parts.append(range(index, index + 1))
        made = cls()
        made._parts, made._count = parts, sum(map(len, parts))
        return made

    @classmethod
    def from_column(cls, column: NDArray[np.bool_]) -> "Ranges":
        """Set of the places at which a column is true."""
        edges = np.flatnonzero(np.diff(np.concatenate(([False], column, [False])).astype(np.int8)))
        return cls(range(first, stop) for first, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))

    @property
    def _is_dense(self) -> bool:
        return all(map(_dense, self._parts))

    def _take_over(self, parts: list[range]) -> None:
        self._parts, self._count = parts, sum(map(len, parts))

    def copy(self) -> "Ranges":
        """An independent copy."""
        made = Ranges()
        made._parts, made._count = list(self._parts), self._count
        return made

    def parts(self) -> tuple[range, ...]:
        """The ranges, ascending."""
        return tuple(self._parts)

    def text(self) -> str:
        """Index list as LSF writes it: 1-10:2,15."""
        return ",".join(_part_text(part) for part in self._parts)

    @classmethod
    def parse(cls, text: str) -> "Ranges":
        """Parse the text of a set.

        Raises:
            ValueError: not an index list.
        """
        return cls(_parse_part(word) for word in text.split(",") if word)


_MANY = 64  # number of indices from which a sweep over all ranges is faster


def _swept(left: list[range], right: list[range], keeps: Callable[[bool, bool], bool]) -> list[range]:
    """Combine dense sets in one sweep over the ends of all ranges."""
    ends = sorted(
        [(part[0], 0, 1) for part in left]
        + [(part[-1] + 1, 0, -1) for part in left]
        + [(part[0], 1, 1) for part in right]
        + [(part[-1] + 1, 1, -1) for part in right]
    )
    inside, begun, made = [0, 0], -1, list[range]()
    for number, (at, side, change) in enumerate(ends):
        inside[side] += change
        if number + 1 < len(ends) and ends[number + 1][0] == at:
            continue  # a begin and an end at one place are one change
        is_kept = keeps(inside[0] > 0, inside[1] > 0)
        if is_kept and begun < 0:
            begun = at
        elif not is_kept and begun >= 0:
            made.append(range(begun, at))
            begun = -1
    return made


def _first(part: range) -> int:
    return part[0]


def _dense(part: range) -> bool:
    return part.step == 1 or len(part) == 1


def _part_text(part: range) -> str:
    if len(part) == 1:
        return str(part[0])
    return f"{part[0]}-{part[-1]}" + (f":{part.step}" if part.step != 1 else "")


def _parse_part(word: str) -> range:
    span, _, step = word.partition(":")
    first, _, last = span.partition("-")
    return range(int(first), int(last or first) + 1, int(step or 1))


def _normalised(parts: Iterable[range]) -> list[range]:
    """Sort by first index; if two overlap or interleave, write all out and join them again."""
    kept = [part for part in parts if part]
    if len(kept) < 2:  # like those of most arrays, and of each job that is none
        return kept
    kept.sort(key=_first)
    if all(left[-1] < right[0] for left, right in pairwise(kept)):
        return kept
    everything = sorted({index for part in kept for index in part})
    return list(Ranges.from_sorted(everything).parts())


def keys_in(table: Mapping[int, object], indices: Ranges | tuple[int]) -> list[int]:
    """Keys of the table that are among these indices, ascending; it looks through whichever are fewer."""
    if len(indices) < len(table):
        return [index for index in indices if index in table]
    return sorted(index for index in table if index in indices)
