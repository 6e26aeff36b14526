"""lsmon: the screen as a function of the hosts and of the keys that are pressed."""

from pathlib import Path

import pytest

from lavactl.admin.load_screen import LoadScreen
from lavactl.commands.lsmon import GRAMMAR
from tests.lavactl.scripted import Desk
from tests.lavactl.test_cluster_commands import a_host


def screen(desk: Desk, *argv: str) -> LoadScreen:
    """The screen of a command, which was not begun: the desk is no terminal."""
    assert "a terminal is needed; lsload prints the same once" in desk.type("lsmon", *argv).err
    assert desk.last_io is not None
    return LoadScreen(GRAMMAR.parse(list(argv)), 10, desk.last_io)


def shown(one: LoadScreen, lines: int = 6, columns: int = 79) -> list[str]:
    """Lines on the terminal."""
    text = one.frame(one.look(), lines, columns).decode()
    return text.replace("\x1b[H", "").replace("\x1b[K", "").replace("\x1b[J", "").split("\r\n")


def press(one: LoadScreen, keys: str) -> None:
    """Press keys, one after the other."""
    for key in keys:
        one.press(key)


def test_the_table_of_lsload(desk: Desk) -> None:
    """Below a head line, cut to the terminal's size; the last line is kept free."""
    desk.client.host_records = [a_host(f"n00{number}") for number in range(1, 8)]
    lines = shown(screen(desk, "-n", "6"), lines=5, columns=40)
    assert lines[0].startswith("Hostname: ")
    assert lines[1] == "HOST_NAME       status  r15s   r1m  r15m   ut    pg  ls    it   tmp   swp   mem"[:40]
    assert [line[:4] for line in lines[2:]] == ["n001", "n002", ""]
    assert max(map(len, lines)) <= 40


def test_options_are_changed_by_keys(desk: Desk) -> None:
    """N and E switch, n, R, I and i ask; what is typed wrongly is said and changes nothing; q leaves."""
    desk.client.host_records = [a_host("n001")]
    one = screen(desk, "-N")
    assert "Refresh rate:  10 secs   Normalized" in shown(one)[0]
    press(one, "E")
    assert "Effective" in shown(one)[0]
    press(one, "EI")
    assert shown(one)[-1] == "Load indices: "
    press(one, "r1mx\x7f:mem\r")
    assert shown(one)[1].split() == ["HOST_NAME", "status", "r1m", "mem"]
    press(one, "i25\rRmem>1\r")
    assert "Refresh rate:  25 secs" in shown(one)[0]
    assert desk.client.asked[-1].requirement == "mem>1"
    press(one, "nmany\r")
    assert one.frame([], 3, 79).decode().count("Number of hosts: many is no number that can be") == 1
    press(one, "n\x1bq")
    assert one._is_over


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["-i", "0"], "lsmon: -i takes 1 to 86400 seconds, not 0"),
        (["-n", "few"], "lsmon: -n takes a number of hosts, not few"),
        (["-N", "-E"], "lsmon: -E and -N cannot be used together"),
    ],
)
def test_wrong_options(desk: Desk, argv: list[str], sentence: str) -> None:
    """One sentence, then the usage."""
    result = desk.type("lsmon", *argv)
    assert (result.code, result.err.splitlines()[0]) == (255, sentence)


def test_the_file_grows(desk: Desk, tmp_path: Path) -> None:
    """-L: each look with its time."""
    desk.client.host_records = [a_host("n001")]
    path = tmp_path / "load"
    one = screen(desk, "-L", str(path))
    one._append(one.look())
    one._append(one.look())
    lines = path.read_text().split("\n")
    assert [line.split()[0] for line in lines if line][::3] == ["Sat", "Sat"]
    assert sum(line.startswith("n001") for line in lines) == 2
