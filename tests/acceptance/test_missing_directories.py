"""Real hosts one of which lacks a directory that the others have, as after a mount that failed: it costs no job."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """The current directory of the cluster's user, below one that a host lacks."""
    directory = tmp_path / "shared" / "run"
    directory.mkdir(parents=True)
    return directory


@pytest.fixture
def cluster(tmp_path: Path, shared: Path) -> Iterator[Cluster]:
    """Three hosts of four slots; another file system hides the directory on lava2."""
    with a_cluster(tmp_path / "cluster", 3, 4, LAVA_AVOID_HOST="2") as cluster:
        agent = str(cluster.pid("agent-lava2"))
        subprocess.run(["nsenter", "-t", agent, "-m", "mount", "-t", "tmpfs", "none", shared.parent], check=True)
        yield cluster.at(shared)


def test_jobs_go_to_the_hosts_that_have_the_directory(cluster: Cluster, shared: Path) -> None:
    """A5: an array in a rerunnable queue lost 60 elements in 20 s, and a parallel job ended as its ranks began."""
    array = cluster.submit("-r", "-J", "a[1-60]", "-o", "/dev/null", "hostname >> hosts")
    parallel = cluster.submit("-n", "8", "-R", "span[ptile=4]", "-o", "/dev/null", "blaunch hostname >> ranks")
    cluster.becomes(parallel, "DONE")
    wait_for(lambda: cluster.counts(array)["DONE"] == 60, 60, "the array to be done")
    assert set((shared / "hosts").read_text().split()) == {"lava1", "lava3"}
    assert set((shared / "ranks").read_text().split()) == {"lava1", "lava3"}


def test_a_job_for_that_host_alone_waits_and_says_why(cluster: Cluster, shared: Path) -> None:
    """The directory was there when the job was submitted, and may come back; one that -cwd names ends the job."""
    job = cluster.submit("-m", "lava2", "-o", "/dev/null", "true")
    why = f"The host lacks what the job needs to start (working directory {shared})"
    wait_for(lambda: why in cluster.says("bjobs", "-p", str(job)), 30, "the reason of the job")
    named = cluster.submit("-m", "lava2", "-cwd", "/none", "-o", "/dev/null", "true")
    cluster.becomes(named, "EXIT")
    assert "TERM_CWD_NOTEXIST" in cluster.says("bjobs", "-l", str(named))
