"""The options of all commands: what is refused says why, and no option that LSF has is unknown."""

import runpy
from pathlib import Path

import pytest

from lavactl.absent import ABSENT
from lavactl.main import COMMANDS, SUBCOMMANDS
from lavactl.options import Ignored
from lavactl.parsers import every, parsers, refused, title_of
from protos import __version__
from tests.lavactl.scripted import Desk

ROOT = Path(__file__).resolve().parents[2]
LSF = runpy.run_path(str(ROOT / "packaging" / "lsf_options.py"))
OF_THE_MASTER = ("adopt", "backup", "compact", "restore", "migrate-database", "simulate")  # the help of its programs


@pytest.mark.parametrize("command", [name for name in every() if name not in OF_THE_MASTER])
def test_every_command_answers_h(desk: Desk, command: str) -> None:
    """-h shows on standard output how the command is called."""
    for option in ("-h", "--help"):
        shown = desk.type("lavactl", command, option)
        assert (shown.code, shown.err) == (0, "")
        assert shown.out.startswith("Usage: ")
        assert title_of(command) in shown.out.partition("\n")[0]


@pytest.mark.parametrize("command", every())
def test_every_command_answers_v(desk: Desk, command: str) -> None:
    """-V is the version, also of the commands that are programs of the master."""
    for option in ("-V", "--version"):
        shown = desk.type("lavactl", command, option)
        assert (shown.code, shown.out, shown.err) == (0, f"lava {__version__}\n", "")


@pytest.mark.parametrize("command", [name for name in every() if parsers(name)])
def test_a_refused_option_says_why(desk: Desk, command: str) -> None:
    """An option of LSF that lava knows and does not honour is one sentence on standard error, and exit code 255."""
    for parser in parsers(command):
        for option, kind in parser.kinds.items():
            if not isinstance(kind, str):
                continue
            assert kind.endswith(".")
            said = desk.type(*parser.command.split(), f"-{option}", "1")
            assert (said.code, said.out) == (255, "")
            assert said.err.startswith(f"{parser.command} -{option}: {kind.rstrip('.')}")
            assert said.err.count("\n") == 1


@pytest.mark.parametrize("command", ["badmin", "lsadmin"])
def test_a_refused_subcommand_says_why(desk: Desk, command: str) -> None:
    """A subcommand of LSF without a meaning in lava is one sentence, and exit code 255."""
    assert refused(command)
    for name, why in refused(command).items():
        said = desk.type(command, name)
        assert (said.code, said.out, said.err) == (255, "", f"{command} {name}: {why}\n")


def test_a_command_that_lava_does_not_have_says_why(desk: Desk) -> None:
    """`lavactl bmig` is one sentence and exit code 255; what lava has is not called absent."""
    for name, why in ABSENT.items():
        said = desk.type("lavactl", name, "1201")
        assert (said.code, said.out, said.err) == (255, "", f"{name}: {why}\n")
    assert not set(ABSENT) & {*COMMANDS, *SUBCOMMANDS}


def test_an_ignored_option_is_told(desk: Desk) -> None:
    """`badmin mbdrestart -p` reads the files anew, as it does without."""
    done = desk.type("badmin", "mbdrestart", "-p")
    assert done.err.startswith("badmin mbdrestart -p: the master answers requests while it reads the files.\n")
    assert done.code == 0


def test_reasons_of_ignored_options_are_sentences() -> None:
    """Each begins small, behind the option's name, and ends with a full stop."""
    kinds = [kind for name in every() for parser in parsers(name) for kind in parser.kinds.values()]
    reasons = {kind.why for kind in kinds if isinstance(kind, Ignored)}
    assert reasons
    assert [why for why in reasons if not (why[0].islower() and why.endswith("."))] == []


def test_the_facts_are_read_as_they_are_written() -> None:
    """Options of a table, of a list and of a sentence are found, each under its command."""
    text = (
        "### 1.2 bsub\n| `-I -Ip` | x | x | L adds -tty |\n"
        "### 1.3 bjobs\nOptions: V `-a -w`. L adds `-p0..-p3`.\n"
        "### 1.4 Control\n| bkill | `-l` + `-stat` | `Job <1>` ; with -s: x |\n"
        "### 1.7 Base\nlsid: line 1. lsplace `-L -n hosts`: names. lsmake: `-j n`.\n"
        "### 1.9 Other\n| bwait | wait (`-w`, `-t min`) |\n"
    )
    assert LSF["named"](text) == {
        "bsub": {"I", "Ip", "tty"},
        "bjobs": {"a", "w", "p0", "p1", "p2", "p3"},
        "bkill": {"l", "stat"},
        "lsplace": {"L", "n"},
        "lsmake": {"j"},
        "bwait": {"w", "t"},
    }


@pytest.mark.skipif(not LSF["FACTS"].exists(), reason="needs the collected facts beside the repository (../shared)")
def test_no_option_of_lsf_is_unknown() -> None:
    """Every option that the facts name for a command of lava is honoured, or refused by name."""
    text = LSF["FACTS"].read_text(encoding="utf-8")
    assert len(LSF["named"](text)["bsub"]) > 80
    assert LSF["missing"](text) == []
    assert set(LSF["named"](text)) & set(COMMANDS) > {"bsub", "bjobs", "bkill", "bhist", "lsload"}
    assert {"bsub", "bmig", "lsid", "brsvadd", "xlsbatch"} <= LSF["inventory"](text)
