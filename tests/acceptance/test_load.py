"""Load thresholds with real load reports of an agent: the thresholds are moved past the load, and back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, stands_still, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

QUEUE = """
    Begin Queue
    QUEUE_NAME = normal
    PRIORITY = 30
    {}
    End Queue
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One host whose agent reports every second."""
    directory = tmp_path_factory.mktemp("load") / "D"
    files = {"lsb.queues": QUEUE.format("")}
    with a_cluster(directory, 1, 4, lsf_files=files, LAVA_HEARTBEAT="1", LAVA_TERMINATE_INTERVAL="1") as made:
        yield made


def test_jobs_stop_and_go_on_with_the_load(cluster: Cluster, tmp_path: Path) -> None:
    """With a mem threshold above the host's memory, jobs are suspended one after the other and none starts, with the
    reason; when it is lowered they resume.
    """
    files = [tmp_path / name for name in ("one", "two")]
    jobs = [
        cluster.submit("-q", "normal", "-o", "/dev/null", f"while :; do echo x >> {path}; sleep 0.1; done")
        for path in files
    ]
    for job, path in zip(jobs, files, strict=True):
        wait_for(path.exists, 60, f"job {job} to tick")
    cluster.reconfigure({"lsb.queues": QUEUE.format("mem = 900000000/800000000")})
    wait_for(lambda: sorted(cluster.state(job) for job in jobs)[-1] == "SSUSP", 60, "one to be suspended")
    stopped = next(job for job in jobs if cluster.state(job) == "SSUSP")
    assert "Host load exceeded threshold: mem" in cluster.run("bjobs", "-l", str(stopped)).stdout
    wait_for(lambda: stands_still(files[jobs.index(stopped)]), 60, "its ticks to end")
    waiting = cluster.submit("-q", "normal", "true")
    assert cluster.state(waiting) == "PEND"
    cluster.reconfigure({"lsb.queues": QUEUE.format("mem = 2/1")})
    wait_for(lambda: all(cluster.state(job) == "RUN" for job in jobs), 60, "both to run again")
    before = [path.stat().st_size for path in files]
    wait_for(lambda: all(path.stat().st_size > size for path, size in zip(files, before, strict=True)), 60, "ticks")
    assert cluster.run("bkill", "0").returncode == 0
