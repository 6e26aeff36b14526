"""Every process of a job is gone after its end, also forked, detached and daemonised ones and those that ignore
signals.

On one host and on both hosts of a parallel job, as root and as an ordinary user, with control groups and without.
"""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance import zoo
from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

PYTHON = "/usr/bin/python3"
GONE_S = 60.0  # from a job's end, or the last step of bkill
INTERVAL_S = 0.5  # between the steps INT, TERM, KILL


@pytest.fixture(scope="module", params=["groups", "no groups"])
def mode_cluster(
    request: pytest.FixtureRequest, open_directory: Path, public_commands: Path, account: str
) -> Iterator[Cluster]:
    """A cluster whose agents have control groups, and one whose agents have none."""
    if not Path(PYTHON).exists():
        pytest.skip(f"no {PYTHON}")
    without = request.param == "no groups"
    directory = open_directory / ("tree" if without else "groups")
    shutil.copy(zoo.__file__, open_directory / "zoo.py")
    settings = {"LAVA_TERMINATE_INTERVAL": str(INTERVAL_S)}
    with pytest.MonkeyPatch.context() as patch:
        if without:
            patch.setenv("LAVA_NO_CGROUPS", "1")
        with a_cluster(directory, 2, 4, commands=public_commands, **settings) as cluster:
            groups = (directory / "hosts" / "lava1" / "groups").exists()
            assert groups is not without
            yield cluster


def _alive(token: str) -> list[int]:
    """Processes with this token in their command line, dead ones not counted."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                words = Path("/proc", name, "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if token.encode() in words:
                found.append(int(name))
    return found


def _hosts_of(pids: list[int]) -> set[int]:
    """Their networks, one for each host."""
    found = set()
    for pid in pids:
        try:
            found.add(os.stat(f"/proc/{pid}/ns/net").st_ino)
        except OSError:
            continue
    return found


def _submit(cluster: Cluster, directory: Path, token: str, what: str, hosts: int) -> int:
    command = f"{PYTHON} -S {directory}/zoo.py {token} {what}"
    if hosts == 1:
        return cluster.submit("-o", "/dev/null", command)
    return cluster.submit("-o", "/dev/null", "-n", str(hosts), "-R", "span[ptile=1]", f"blaunch '{command}'")


@pytest.mark.parametrize("hosts", [1, 2])
@pytest.mark.parametrize("who", ["root", "user"])
def test_nothing_is_left(
    mode_cluster: Cluster, open_directory: Path, account: str, hosts: int, who: str, request: pytest.FixtureRequest
) -> None:
    """No process is left, of a job that ends by itself and of one that needs SIGKILL."""
    cluster = mode_cluster.as_seen_by(account) if who == "user" else mode_cluster
    token = f"zoo{abs(hash(request.node.name)) % 10**9}"
    ends = _submit(cluster, open_directory, f"{token}e", "end", hosts)
    stays = _submit(cluster, open_directory, f"{token}s", "stay", hosts)
    wait_for(lambda: cluster.state(ends) == "EXIT", 60, "the job to end")
    _expect_nothing(f"{token}e", GONE_S)
    assert cluster.states(ends)[0] == ("EXIT", 3)

    wait_for(lambda: len(_hosts_of(_alive(f"{token}s"))) == hosts, 60, "processes on all hosts")
    wait_for(lambda: len(_alive(f"{token}s")) >= hosts * len(zoo.ANIMALS), 60, "all of them to be there")
    cluster.becomes(stays, "RUN")
    assert cluster.run("bkill", str(stays)).returncode == 0
    _expect_nothing(f"{token}s", 2 * INTERVAL_S + GONE_S)
    wait_for(lambda: cluster.state(stays) == "EXIT", 60, "the end to be known")


def _expect_nothing(token: str, within_s: float) -> None:
    began = time.monotonic()
    wait_for(lambda: not _alive(token), within_s, "everything to be gone", 0.05)
    assert time.monotonic() - began < within_s
    assert not _alive(token)  # also no process that forked between two scans of /proc
