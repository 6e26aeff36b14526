"""Job groups with real processes: made, limited, counted, controlled, and there again after a restart of the master."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

PARAMETERS = """
    Begin Parameters
    DEFAULT_JOBGROUP = /of/%u
    End Parameters
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One host of four slots."""
    files = {"lsb.params": PARAMETERS}
    with a_cluster(tmp_path_factory.mktemp("groups") / "D", 1, 4, lsf_files=files) as made:
        yield made


def _group(cluster: Cluster, path: str) -> list[str]:
    """Columns of bjgroup from NJOBS to JLIMIT, without the class."""
    return cluster.says("bjgroup", path).splitlines()[1].split()[1:-1]


def test_a_job_group_from_bgadd_to_bgdel(cluster: Cluster, tmp_path: Path) -> None:
    """Its limit keeps jobs waiting, also those below it; -g chooses its jobs; a restart changes nothing."""
    assert cluster.says("bgadd", "-L", "2", "/md") == "Job group </md> is added."
    jobs = [cluster.submit("-g", path, "sleep 300") for path in ("/md", "/md/long", "/md/long")]
    cluster.becomes(jobs[1], "RUN")
    cluster.becomes(jobs[0], "RUN")
    wait_for(lambda: "job group limit has been reached" in cluster.says("bjobs", "-p", str(jobs[2])), 60, "the reason")
    assert _group(cluster, "/md") == ["3", "1", "2", "0", "0", "0", "()", "2/2"]
    assert "Job Group </md>" in cluster.says("bjobs", "-l", str(jobs[0]))
    assert cluster.says("bjobs", "-g", "/md/long", "-noheader", "-o", "jobid").split() == [str(one) for one in jobs[1:]]

    cluster.kill("lavad")
    cluster.up()
    assert _group(cluster, "/md") == ["3", "1", "2", "0", "0", "0", "()", "2/2"]
    assert cluster.says("bkill", "-g", "/md", "0") == f"Job <{jobs[0]}> is being terminated"
    cluster.becomes(jobs[2], "RUN")
    assert cluster.says("bgmod", "-Ln", "/md") == "Job group </md> is modified."

    said = tmp_path / "said"
    named = cluster.submit("-H", "-o", str(said), "echo in $LSB_JOBGROUP")
    assert cluster.says("bmod", "-g", "/md/new", str(named)) == f"Parameters of job <{named}> are being changed"
    cluster.says("bresume", str(named))
    cluster.becomes(named, "DONE")
    wait_for(lambda: "in /md/new" in said.read_text(), 60, "the job's output")
    own = next(line.split()[0] for line in cluster.says("bjgroup").splitlines() if line.startswith("/of/"))
    assert cluster.says("bgdel", "-c", "/of") == f"Job group <{own}> is deleted.\nJob group </of> is deleted."
    assert "has jobs" in cluster.run("bgdel", "/md/new").stderr
