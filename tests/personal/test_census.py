"""Waiting for hosts that the master keeps waiting: `lavactl up` tells why, in time to act on it."""

import io as memory
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lavactl.commands import up
from lavactl.errors import CommandError
from lavactl.io import Io
from lavactl.personal.hosts import wait_hosts
from lavactl.wire.connection import LostError

OLDER = "The database is older than the cluster. Run:  lavactl adopt"


def _wait(tell: Callable[[str], None], patience_s: float = 0.1) -> None:
    wait_hosts.wait_for_hosts(Path("socket"), ("vm", "lava1"), Path("log"), patience_s, lambda: None, tell)


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Answers of a master whose hosts are kept away; asked for its problems at once."""
    answers: dict[str, Any] = {"hosts": {}, "problems": [OLDER]}
    monkeypatch.setattr(wait_hosts, "PROBLEMS_S", 0.0)
    monkeypatch.setattr(wait_hosts, "ask", lambda socket: answers["hosts"])
    monkeypatch.setattr(wait_hosts, "problems_of", lambda socket: answers["problems"])
    return answers


def test_a_master_that_waits_for_its_administrator_is_heard(master: dict[str, Any]) -> None:
    """Its sentence is told once while there is time, and is the reason at the end: not "the master has not seen it"."""
    told: list[str] = []
    with pytest.raises(wait_hosts.HeldUpError) as caught:
        _wait(told.append)
    assert told == [OLDER]
    assert str(caught.value) == f"Host vm is not ready in time: {OLDER}\nSee also the logs in log."


def test_hosts_that_come_after_the_remedy_are_waited_for(master: dict[str, Any]) -> None:
    """The administrator, told the problem, types the command meanwhile."""
    told: list[str] = []

    def adopt(problem: str) -> None:
        told.append(problem)
        master["hosts"] = {"vm": "ok", "lava1": "closed_Full"}

    _wait(adopt, 60.0)
    assert told == [OLDER]


def test_without_a_problem_the_host_is_named(master: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """As before, also where the master does not answer."""
    master["problems"] = []
    told: list[str] = []
    with pytest.raises(CommandError, match="Host vm is not ready in time: the master has not seen it; see the logs"):
        _wait(told.append)
    monkeypatch.setattr(wait_hosts, "ask", _lost)
    with pytest.raises(CommandError, match="Host vm is not ready in time: no answer; see the logs in log"):
        _wait(told.append)
    assert not told


def _lost(socket: Path) -> dict[str, str]:
    raise LostError("no answer")


@pytest.mark.parametrize("problems", [[OLDER], []])
def test_a_cluster_that_can_be_helped_is_left_running(
    master: dict[str, Any], monkeypatch: pytest.MonkeyPatch, problems: list[str]
) -> None:
    """`lavactl adopt` needs a lavad; without a problem of the master the cluster is taken down again."""
    master["problems"] = problems
    taken_down: list[Path] = []
    cluster: Any = SimpleNamespace(hosts=("lava1",), login="vm", socket=lambda host: Path("socket"))
    monkeypatch.setattr(up, "HOSTS_READY_S", 0.0)
    monkeypatch.setattr(up, "HOSTS_READY_S_PER_HOST", 0.1)
    for name in ("all_names", "missing"):
        monkeypatch.setattr(up.daemons, name, lambda *_: ["lavad"])
    monkeypatch.setattr(up.daemons, "removed", lambda *_: ())
    monkeypatch.setattr(up.daemons, "check_running", lambda *_: None)
    monkeypatch.setattr(up.up_down, "bring_up", lambda directory, cluster: cluster)
    monkeypatch.setattr(up.up_down, "take_down", lambda directory, cluster: taken_down.append(directory))
    stderr = memory.BytesIO()
    with pytest.raises(CommandError) as caught:
        up._start(Path("/data/D"), cluster, Io(stderr=stderr))
    assert taken_down == ([] if problems else [Path("/data/D")])
    said = stderr.getvalue().decode()
    assert said == (f"{OLDER}\nCommands about its database take  --conf /data/D  in other shells than its own.\n"
                    if problems else "")  # fmt: skip
    assert str(caught.value).endswith("The cluster is left running.") is bool(problems)
