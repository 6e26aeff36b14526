"""Paths of job groups: names for %u and %p."""

import tracemalloc

import pytest

from lavad.core.language.job_groups import PATH_MAX, filled_in
from lavad.core.model.reasons import Refused


@pytest.mark.parametrize(
    ("path", "filled"),
    [
        ("/a/b", "/a/b"),
        ("/%u/%p", "/ann/md_npt"),
        ("/of/%u_%u/%%p/%x", "/of/ann_ann/%md_npt/%x"),
        ("/%p" + "x" * (PATH_MAX - 7), "/md_npt" + "x" * (PATH_MAX - 7)),
    ],
)
def test_marks_stand_for_names(path: str, filled: str) -> None:
    """A slash in a name makes no further group; other percent signs stay, and so does what a name brings along."""
    assert filled_in(path, "ann", "md/npt") == filled
    assert filled_in(path, "ann", "md_%u") == filled.replace("md_npt", "md_%u")


@pytest.mark.parametrize(
    ("path", "project"),
    [("/" + "%p" * 10_000, "x" * 1000), ("/" + "%p" * 250, "x" * 100_000), ("/%p" + "x" * (PATH_MAX - 6), "md_npt")],
    ids=["long path", "long project", "one character too long"],
)
def test_a_path_that_would_be_too_long_is_not_made(path: str, project: str) -> None:
    """Refused by its length alone: 10,000 times %p and a project of 100 kB once took 1 GB of the master's memory."""
    tracemalloc.start()
    try:
        with pytest.raises(Refused, match=f"Bad job group name: longer than {PATH_MAX} characters"):
            filled_in(path, "ann", project)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
