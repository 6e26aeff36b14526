"""badmin and lsadmin without a subcommand: the prompt."""

import pytest

from protos import cluster_pb2
from tests.lavactl.scripted import Desk, FixedIo


def test_lines_are_subcommands(desk: Desk) -> None:
    """Each as if it had been typed behind the command, quotes and all; an empty line is nothing; quit ends it."""
    desk.client.control_reply.results.add(name="n001")
    done = desk.type("badmin", stdin=b"\nhclose -C 'new disk' n001\n  quit\nhopen n001\n")
    assert (done.code, done.out, done.err) == (0, "", "Close <n001> ...... done\n")
    (asked,) = desk.client.asked
    assert (asked.action, asked.comment, list(asked.names)) == (cluster_pb2.CLOSE_HOST, "new disk", ["n001"])
    assert desk.type("lsadmin", stdin=b"limlock n001").err == "Lock <n001> ...... done\n"


@pytest.mark.parametrize("command", ["badmin", "lsadmin"])
def test_an_error_keeps_the_prompt(desk: Desk, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """At a terminal the prompt comes again; the end of the input ends the line, and the last failure counts."""
    monkeypatch.setattr(FixedIo, "is_terminal", lambda *_: True)
    done = desk.type(command, stdin=b"nonsense\nreconfig 'x\nhelp reconfig\n-x\n")
    assert done.code == 255
    assert done.out.startswith(f"{command}>{command}>{command}>{command} reconfig")
    assert done.out.endswith(f"{command}>{command}>\n")
    said = [line for line in done.err.splitlines() if not line.startswith((" ", "Usage"))]
    assert said == [
        f"{command}: nonsense: no such subcommand",
        "A quote is not closed.",
        f"{command}: illegal option -- x",
    ]


@pytest.mark.parametrize("command", ["badmin", "lsadmin"])
def test_help_and_quit_are_subcommands(desk: Desk, command: str) -> None:
    """All of the usage, or what is said of one subcommand."""
    whole, quitted = desk.type(command, "help"), desk.type(command, "quit")
    assert (whole.code, whole.out) == (0, desk.type(command, "-h").out)
    assert (quitted.code, quitted.out) == (0, "")
    asked = desk.type(command, stdin=b"? ckconfig\nhelp nothing\n")
    assert asked.out == f"{command} ckconfig [-v]\n"
    assert (asked.code, asked.err.splitlines()[0]) == (255, f"{command} help: nothing: no such subcommand")
