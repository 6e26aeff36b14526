"""Patterns of job names: -J of bjobs, bkill and the others."""

import pytest

from lavad.core.language.job_names import name_pattern
from lavad.core.model.ranges import Ranges


@pytest.mark.parametrize(
    ("typed", "meant", "others"),
    [
        ("md_npt", ["md_npt"], ["md_npt2", "amd_npt", ""]),
        ("md_*", ["md_", "md_npt", "md_a\nb"], ["amd_"]),
        ("*rule*", ["a rule b", "rule"], ["Rule"]),
        ("**", ["", "x"], []),
        ("a?c", ["a?c"], ["abc"]),
        ("a[bc]*", ["a[bc]", "a[bc]d"], ["ab", "ac"]),
        ("a]b[!x]", ["a]b[!x]"], ["a]by"]),
        ("a.c+(x)", ["a.c+(x)"], ["abcc(x)"]),
    ],
)
def test_only_a_star_stands_for_others(typed: str, meant: list[str], others: list[str]) -> None:
    """Characters that are special to a shell or a regular expression match themselves."""
    pattern = name_pattern(typed)
    assert [name for name in (*meant, *others) if pattern.admits(name)] == meant
    assert pattern.elements is None


@pytest.mark.parametrize("typed", ["sweep[3]", "sw*[3]", "*[3]"])
def test_an_element_of_an_array(typed: str) -> None:
    """The name is the array's."""
    pattern = name_pattern(typed)
    assert (pattern.admits("sweep"), pattern.admits("sweep3"), pattern.elements) == (
        True,
        "*" in typed,
        Ranges.of(3),
    )


def test_there_is_no_element_0() -> None:
    """Arrays begin with 1: an index 0 selects no element, and certainly not all."""
    assert name_pattern("sweep[0]").elements == Ranges.of(0)


def test_elements_of_an_array() -> None:
    """everyday 65: ``bkill -J "arr[2-3]"`` found nothing. Lists with too much overlap are taken as a name."""
    elements = name_pattern("arr[2-6:2,9]").elements
    assert elements is not None
    assert list(elements) == [2, 4, 6, 9]
    assert name_pattern("arr[1-2000000000,2-2000000000]").elements is None


def test_many_stars_take_no_time() -> None:
    """A pattern can't take long to match."""
    assert not name_pattern("*a" * 500 + "b").admits("a" * 4000)
