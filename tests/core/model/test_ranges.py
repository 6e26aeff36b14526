"""Ranges compared with a set of integers, under any operations."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from lavad.core.model.ranges import Ranges

small = st.integers(1, 40)
pieces = st.builds(range, small, small, st.integers(1, 5))
ranges = st.lists(pieces, max_size=5)


def members(parts: list[range]) -> set[int]:
    """The plain set."""
    return {index for part in parts for index in part}


class RangesAreSets(RuleBasedStateMachine):
    """Apply each operation to Ranges and to a set."""

    def __init__(self) -> None:
        super().__init__()
        self.made = Ranges()
        self.plain: set[int] = set()

    @rule(parts=ranges)
    def begin_anew(self, parts: list[range]) -> None:
        """Start with stepped, overlapping and empty parts."""
        self.made, self.plain = Ranges(parts), members(parts)

    @rule(index=small)
    def add(self, index: int) -> None:
        """Add one index."""
        self.made.add(index)
        self.plain.add(index)

    @rule(index=small)
    def discard(self, index: int) -> None:
        """Discard one index; the result tells if it was there."""
        assert self.made.discard(index) == (index in self.plain)
        self.plain.discard(index)

    @rule(parts=ranges)
    def update(self, parts: list[range]) -> None:
        """Add many."""
        self.made.update(Ranges(parts))
        self.plain |= members(parts)

    @rule(parts=ranges)
    def difference_update(self, parts: list[range]) -> None:
        """Discard many."""
        self.made.difference_update(Ranges(parts))
        self.plain -= members(parts)

    @rule(parts=ranges)
    def intersection(self, parts: list[range]) -> None:
        """Intersect; neither changes."""
        other = Ranges(parts)
        assert set(self.made.intersection(other)) == self.plain & members(parts)
        assert set(other) == members(parts)

    @rule()
    def empty_a_copy(self) -> None:
        """Empty a copy, which is independent."""
        copy = self.made.copy()
        for index in self.plain:
            copy.discard(index)
        assert not copy

    @invariant()
    def is_the_same_set(self) -> None:
        """Compare members, order, number, first, text; parts are disjoint and ascending."""
        assert list(self.made) == sorted(self.plain)
        assert len(self.made) == len(self.plain)
        assert all((index in self.made) == (index in self.plain) for index in range(45))
        assert Ranges.parse(self.made.text()) == self.made
        parts = self.made.parts()
        assert all(part and part.step > 0 for part in parts)
        assert all(left[-1] < right[0] for left, right in pairwise(parts))
        if self.plain:
            assert self.made.first() == min(self.plain)


TestRangesAreSets = pytest.mark.slow(RangesAreSets.TestCase)


@given(ranges)
def test_text_is_read_back(parts: list[range]) -> None:
    """The text of a set parses to the same set."""
    assert Ranges.parse(Ranges(parts).text()) == Ranges(parts)


@pytest.mark.parametrize("text", ["x", "1-y", "1-5:0", "-", "1:2:3"])
def test_what_is_no_index_list_is_refused(text: str) -> None:
    """A ValueError is raised."""
    with pytest.raises(ValueError, match=r"invalid|zero"):
        Ranges.parse(text)


def test_a_million_is_one_part() -> None:
    """Removing both ends leaves one part."""
    million = Ranges([range(1, 1_000_001)])
    million.discard(1)
    million.discard(1_000_000)
    assert million.parts() == (range(2, 1_000_000),)
