"""The tour of commands on booted hosts is complete, and its complaints are heard; nothing is booted here."""

import re
from pathlib import Path

from tests.real_hosts import tour
from tests.real_hosts.containers import REPOSITORY
from tests.real_hosts.story import CHILDREN


def test_the_tour_takes_in_every_command() -> None:
    """Each program of setup.cfg, each subcommand and each of Slurm's names; a new command needs a line in tour.txt."""
    assert sorted(tour.commands() - tour.exercised(tour.uses())) == []


def test_asking_for_help_is_no_use(tmp_path: Path) -> None:
    """Lines in which a command is asked for its usage or version do not count."""
    path = tmp_path / "tour.txt"
    path.write_text("On n001 as alice:\n    bhist -h\n    lavactl backup --help\n    bjobs\n", encoding="utf-8")
    assert tour.exercised(tour.uses(path)) == {"bjobs"}


def test_what_a_command_should_say_is_compared(tmp_path: Path) -> None:
    """An exit code, a missing word or a traceback is a complaint."""
    path = tmp_path / "tour.txt"
    path.write_text("On n001 as alice:\n    bhist\n        ~ Completed\n        = 3\n", encoding="utf-8")
    (use,) = tour.uses(path)
    assert (use.host, use.user, use.line) == ("n001", "alice", "bhist")
    assert use.complaint("x Completed y", 3) == ""
    assert "exit code 0, not 3" in use.complaint("x Completed y", 0)
    assert use.complaint("", 3)
    assert use.complaint("Completed\nTraceback (most recent call last)", 3)


def test_the_names_of_the_children_of_lavad_are_those_in_the_sources() -> None:
    """A new child process with a name is looked for on booted hosts."""
    sources = "".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "lavad").rglob("*.py"))
    assert sorted(re.findall(r'take_name\("([^"]+)"\)', sources)) == sorted(CHILDREN)
