"""The table of faults: an ordinary user submits continuously while parts of lava are killed, paused, cut off or full.

Small here; ``LAVA_FAULT_JOBS=500 LAVA_FAULT_PAUSE_S=20 LAVA_FAULTS=all`` is the size of the published table. Every row
must show 0 lost, 0 twice and 0 wrong; a job killed with its shepherd is reported as killed.
"""

import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster
from tests.fakes.postgres import PostgresServer
from tests.found.faults import ON_POSTGRES, ON_SQLITE, Fault, Site
from tests.found.sweep import Account, Sweep

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

IS_FULL = os.environ.get("LAVA_FAULTS") == "all"
JOBS = int(os.environ.get("LAVA_FAULT_JOBS", "32"))
SEED = int(os.environ.get("LAVA_FAULT_SEED", "20261122"))
SMALL = ("SIGKILL shepherds", "SIGKILL everything of lava at once")
SETTINGS = {"LAVA_HEARTBEAT": "1", "LAVA_SILENT_AFTER": "6", "LAVA_TERMINATE_INTERVAL": "1"}
DISK_MIB = 1024 if IS_FULL else 48
KILLING_S = 5.0  # after a fault that kills: till then a job without its shepherd may run on and write its last mark


@pytest.fixture(scope="module")
def small_disk(open_directory: Path) -> Iterator[Path]:
    """File system for a cluster's directory, which a test may fill."""
    directory = open_directory / "disk"
    directory.mkdir()
    options = f"size={DISK_MIB}m,mode=755"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", directory], check=True)
    yield directory
    subprocess.run(["umount", "-l", directory], check=True)


@pytest.fixture(scope="module")
def sqlite_cluster(small_disk: Path, public_commands: Path) -> Iterator[Cluster]:
    """Two hosts of four slots, and a login host."""
    with a_cluster(small_disk / "D", 2, 4, commands=public_commands, **SETTINGS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def postgres_site(open_directory: Path, public_commands: Path) -> Iterator[tuple[Cluster, PostgresServer]]:
    """The same on PostgreSQL."""
    options = ("--db",)
    with (
        PostgresServer() as server,
        a_cluster(open_directory / "P", 2, 4, *options, server.url, commands=public_commands, **SETTINGS) as cluster,
    ):
        yield cluster, server


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Print a row of the table."""

    def row(text: str) -> None:
        with capsys.disabled():
            print(f"\n{text}", end="")

    return row


def _play(name: str, fault: Fault, times: int, site: Site, user: str, say: Callable[[str], None]) -> Account:
    marks = Path(site.cluster.directory.parent.parent, f"marks-{time.monotonic_ns()}")
    sweep = Sweep(site.cluster.as_seen_by(user), marks, JOBS)
    took = []
    for number in range(times):
        sweep.wait_told(JOBS * (number + 1) // (times + 1))
        began, at = time.monotonic(), time.time()
        fault(site)
        took.append(time.monotonic() - began)
        sweep.killings.append((at, at + took[-1] + KILLING_S))
    account = sweep.finish()
    say(f"fault={name!r} times={times} {account} slowest_s={max(took):.1f} refused={len(sweep.refused)}")
    assert account.jobs + len(sweep.refused) == JOBS
    assert account.jobs
    assert not account.killed or "shepherds" in name or "everything" in name
    return account


@pytest.mark.parametrize("name", [name for name in ON_SQLITE if IS_FULL or name in SMALL])
def test_no_job_is_lost_or_runs_twice_or_is_told_a_wrong_code(
    name: str, sqlite_cluster: Cluster, account: str, say: Callable[[str], None]
) -> None:
    """One row of the table, on SQLite."""
    fault, times = ON_SQLITE[name]
    site = Site(sqlite_cluster, random.Random(SEED))
    found = _play(name, fault, times if IS_FULL else 1, site, account, say)
    assert found.is_clean, found.problems


@pytest.mark.postgres
@pytest.mark.parametrize("name", [name for name in ON_POSTGRES if IS_FULL or name == "pg_terminate_backend"])
def test_nor_on_postgresql(
    name: str, postgres_site: tuple[Cluster, PostgresServer], account: str, say: Callable[[str], None]
) -> None:
    """One row of the table, on PostgreSQL."""
    (cluster, server), (fault, times) = postgres_site, ON_POSTGRES[name]
    site = Site(cluster, random.Random(SEED), server)
    found = _play(name, fault, times if IS_FULL else 1, site, account, say)
    assert found.is_clean, found.problems
