"""lsrun and lsgrun: refusals, and the choice of hosts; acceptance/test_interactive.py runs them."""

from pathlib import Path

import pytest

from lavactl.commands import lsgrun
from tests.lavactl.scripted import Desk
from tests.lavactl.test_cluster_commands import a_host


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["lsrun"], "lsrun: a command is missing"),
        (["lsrun", "-P", "-S", "sh"], "lsrun: -P and -S cannot be used together"),
        (["lsrun", "-p", "sh"], "lsrun -p: not supported: there is no local task list; every command is a job."),
        (["lsgrun", "-m", "n001"], "lsgrun: a command is missing"),
        (["lsgrun", "date"], "lsgrun: name the hosts with -f, -m, -n or -R"),
        (["lsgrun", "-m", "n001", "-n", "2", "date"], "lsgrun: -m and -n cannot be used together"),
        (["lsgrun", "-m", "n001", "-R", "mem>1", "date"], "lsgrun: -m and -R cannot be used together"),
        (["lsgrun", "-p", "-P", "-m", "n001", "date"], "lsgrun: -p gives no terminal: -P and -S cannot be used with"),
        (["lsgrun", "-m", " ", "date"], "lsgrun: no host is named"),
        (["lsgrun", "-n", "0", "date"], "lsgrun: -n takes a number of hosts, not 0"),
        (["lsgrun", "-f", "/none", "date"], "lsgrun: /none: the file can't be read."),
        (["lsgrun", "-n", "3", "date"], "lsgrun: Not enough host(s) currently eligible"),
    ],
)
def test_what_is_refused(desk: Desk, argv: list[str], sentence: str) -> None:
    """One sentence, and nothing was submitted."""
    result = desk.type(*argv)
    assert result.code == 255
    assert result.err.startswith(sentence)
    assert not [one for one in desk.client.asked if type(one).__name__ == "SubmitItem"]


def test_the_hosts_of_lsgrun(desk: Desk, tmp_path: Path) -> None:
    """From a file, by name, or the least loaded ones that are up."""
    path = tmp_path / "hosts"
    path.write_text("n002\nn001\n\nn002\n")
    down = a_host("n001")
    down.status = "unavail"
    desk.client.host_records = [down, a_host("n002"), a_host("n003")]
    desk.type("lsid")
    io = desk.last_io
    assert io is not None

    def hosts(*argv: str) -> list[str]:
        return lsgrun.hosts_of(lsgrun.GRAMMAR.parse([*argv, "date"]), io)

    assert hosts("-f", str(path)) == ["n002", "n001"]
    assert hosts("-m", "n001 n009") == ["n001", "n009"]
    assert hosts("-R", "mem>100") == ["n002", "n003"]
    assert desk.client.asked[-1].requirement == "mem>100"
    assert hosts("-n", "1") == ["n002"]
    assert desk.client.asked[-1].requirement == "order[r15s:pg]"


def test_lsgrun_asks(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """-i: for all hosts, else for each; the end of the input is a no."""
    runs: list[list[str]] = []
    monkeypatch.setattr(lsgrun, "run", lambda hosts, *_: runs.append(hosts) or 0)
    assert desk.type("lsgrun", "-i", "-m", "n001 n002", "date", stdin=b"y\n").code == 0
    asked = desk.type("lsgrun", "-i", "-m", "n001 n002", "date", stdin=b"n\nno\nYes\n")
    assert asked.err.splitlines() == [
        "Run the command on n001 n002? [y/n]", "Run it on n001? [y/n]", "Run it on n002? [y/n]",
    ]  # fmt: skip
    none = desk.type("lsgrun", "-i", "-m", "n001", "date")
    assert (none.code, none.err.splitlines()[-1]) == (255, "lsgrun: the command runs on no host.")
    assert runs == [["n001", "n002"], ["n002"]]
