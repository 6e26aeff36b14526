"""lsmake: its own options and those of make, the job that it submits, and the locks of slots."""

import os
from pathlib import Path

import pytest

from lavactl.commands import lsmake
from lavactl.tasks import make_slots
from tests.lavactl.scripted import Desk


def test_words_for_make() -> None:
    """All from the first word that is no option of lsmake."""
    options, words = lsmake.parse(["-v", "-j4", "-m", "n001 n002", "-f", "Makefile.all", "-j", "2", "all"])
    assert (options.last("j"), options.last("m"), "v" in options) == ("4", "n001 n002", True)
    assert words == ["-f", "Makefile.all", "-j", "2", "all"]


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["-j", "many"], "lsmake: -j takes a number of at least 1, not many"),
        (["-j", "0"], "lsmake: -j takes a number of at least 1, not 0"),
        (["-R"], "lsmake: option requires an argument -- R"),
    ],
)
def test_wrong_options(desk: Desk, argv: list[str], sentence: str) -> None:
    """One sentence, then the usage."""
    result = desk.type("lsmake", *argv)
    assert (result.code, result.err.splitlines()[0]) == (255, sentence)


def test_each_line_has_a_slot(tmp_path: Path) -> None:
    """A slot that is held is passed over; it is free again when its holder has gone."""
    directory = make_slots.make_directory(["n001", "n001", "n002"])
    held = [make_slots.lock_slot(directory) for _ in range(3)]
    assert [host for _, host in held] == ["n001", "n001", "n002"]
    os.close(held[1][0])
    again, host = make_slots.lock_slot(directory)
    assert host == "n001"
    for descriptor in (held[0][0], held[2][0], again):
        os.close(descriptor)
    make_slots.remove_directory(directory)
    with pytest.raises(OSError, match="No such file"):
        make_slots.lock_slot(directory)


@pytest.mark.parametrize(
    ("line", "is_make"),
    [("cd sub && make all", True), ("/usr/bin/gmake -C x", True), ("cmake --build .", False), ("echo makefile", False)],
)
def test_make_within_make_stays_where_it_is(line: str, is_make: bool) -> None:
    """It shares the bound on lines at once with the make that began it."""
    assert bool(lsmake._MAKE.search(line)) is is_make
