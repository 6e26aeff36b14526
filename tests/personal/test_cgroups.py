"""Control groups of a personal cluster, on a tree of plain files."""

from pathlib import Path

import pytest

from lavactl.personal.hosts import cgroups


def test_an_agent_of_version_2_enters_the_group_beside_its_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host's group delegates controllers to those of its jobs, so a restarted agent could not enter it."""
    root = tmp_path / "lava-1"
    root.mkdir()
    (root / "cgroup.controllers").write_text("cpu memory pids\n")
    (root / "cgroup.subtree_control").write_text("")
    monkeypatch.setattr(cgroups, "roots", lambda cluster: [root])
    assert cgroups.make("1", "lava1") == [f"{root}/lava1/supervisor"]
    assert cgroups.make("1", "lava1") == [f"{root}/lava1/supervisor"]
    assert (root / "cgroup.subtree_control").read_text() in ("+cpu", "+memory", "+pids")


def test_an_agent_of_version_1_enters_the_host_s_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of version 1 take processes at any level."""
    monkeypatch.setattr(cgroups, "roots", lambda cluster: [tmp_path / "pids" / "lava-1"])
    (tmp_path / "pids").mkdir()
    assert cgroups.make("1", "lava1") == [f"{tmp_path}/pids/lava-1/lava1"]
