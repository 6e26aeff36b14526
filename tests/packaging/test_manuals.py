"""Manual pages and the completion for bash, which are written from the parsers of the commands."""

import shutil
import subprocess
from pathlib import Path

import pytest

from lavactl import manuals
from lavactl.main import COMMANDS, SUBCOMMANDS
from lavactl.parsers import parsers, title_of

SCRIPT = vars(manuals)
PARSED = [name for name in (*COMMANDS, *SUBCOMMANDS) if parsers(name)]


@pytest.fixture(scope="module")
def completion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The completion as a file that bash reads."""
    path: Path = tmp_path_factory.mktemp("completion") / "lava"
    path.write_text(SCRIPT["completion"](), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["bjobs", "-noh"], "-noheader"),
        (["/opt/lava/bin/bjobs", "-noh"], "-noheader"),
        (["bsub", "-nn"], "-nnodes"),
        (["bsub", "-Lp"], ""),  # known, and not supported
        (["bjobs", ""], ""),  # names of files
        (["badmin", "hcl"], "hclose"),
        (["badmin", "hclose", "-re"], "-revoke"),
        (["badmin", "hclose", "qo"], ""),
        (["lavactl", "migr"], "migrate-database"),
        (["lavactl", "badmin", "hcl"], "hclose"),
        (["lavactl", "bjobs", "-noh"], "-noheader"),
        (["lavactl", "up", "--ho"], "--hosts"),
        (["lavactl", "job", "progress", "--l"], "--left"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bash_completes_a_word(completion: Path, words: list[str], offered: str) -> None:
    """bash offers subcommands and options that are honoured; where there are none, it goes on to names of files."""
    code = f'. {completion}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _lava; echo "${{COMPREPLY[*]}}"'
    done = subprocess.run(["bash", "-c", code, "bash", *words], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"{offered}\n", "")


def test_every_command_is_completed(completion: Path) -> None:
    """bash knows the function for each name that a user types."""
    code = f". {completion}; complete -p"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert {line.split()[-1] for line in done.stdout.splitlines()} == {"lavactl", *COMMANDS}


@pytest.mark.parametrize("command", PARSED)
def test_a_manual_page_has_the_usual_parts(command: str) -> None:
    """Name and purpose in one line, the usage as -h prints it, and each option."""
    text = SCRIPT["manual"](command)
    name = title_of(command).replace(" ", "\\-")
    assert f"\n.SH NAME\n{name} \\- " in text
    assert "\n.SH SYNOPSIS\n.nf\n" in text
    for parser in parsers(command):
        assert [option for option in parser.kinds if f"\\-{SCRIPT['roff'](option)}" not in text] == []
    assert text.startswith(".TH ")


def test_the_page_of_lavactl_names_every_command() -> None:
    """Each command is there with what it does."""
    text = SCRIPT["manual_of_lavactl"]()
    assert [name for name in (*COMMANDS, *SUBCOMMANDS) if f"\n.B {SCRIPT['roff'](name)}\n" not in text] == []


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_groff_has_nothing_to_complain_about() -> None:
    """The pages are formatted without a warning, and show dashes and backslashes as they are typed."""
    text = SCRIPT["manual"]("bsub") + SCRIPT["manual"]("badmin")
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tascii", "-P-c"], input=text, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert "-hang time" in done.stdout
    assert "\n       bsub [options] < script" in done.stdout
