"""A cluster on PostgreSQL: it runs jobs, and neither the master's death nor the database's loses one."""

import signal
from pathlib import Path

import pytest

from tests.acceptance import markers
from tests.acceptance.personal import a_cluster, wait_for
from tests.fakes.postgres import PostgresServer

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root, pytest.mark.postgres]

JOBS = 40


def test_jobs_survive_the_death_of_master_and_database(tmp_path: Path) -> None:
    """SIGKILL of lavad, then a crash and restart of PostgreSQL, under an array: 0 lost, 0 twice, codes exact."""
    path = tmp_path / "marks"
    with PostgresServer() as server, a_cluster(tmp_path / "cluster", 2, 4, "--db", server.url) as cluster:
        text = markers.script(path, "i % 3", "i % 7")
        job = cluster.submit("-J", f"pg[1-{JOBS}]", "-o", "/dev/null", text)
        wait_for(lambda: path.exists() and len(markers.read(path)) > JOBS // 4, 60, "jobs to run")
        cluster.kill("lavad", signal.SIGKILL)
        cluster.up()
        wait_for(lambda: len(markers.read(path)) > JOBS, 60, "more jobs to run")
        server.stop("immediate")
        server.start()
        # Refused while the database is away; later acknowledgements are durable as before.
        eager = cluster.with_environment(LSB_NTRIES="1")
        wait_for(lambda: eager.run("bsub", "-J", "late", "-o", "/dev/null", "exit 6").returncode == 0, 60, "a submit")
        late = int(cluster.run("bjobs", "-a", "-J", "late", "-noheader", "-o", "jobid").stdout.split()[-1])
        counts = cluster.counts
        wait_for(lambda: sum(counts(job)[name] for name in ("DONE", "EXIT")) == JOBS, 120, "all elements to end", 0.5)
        wait_for(lambda: cluster.states(late)[0] == ("EXIT", 6), 60, "the late job to end")
        assert cluster.states(job) == {
            index: ("EXIT" if index % 7 else "DONE", index % 7) for index in range(1, JOBS + 1)
        }
        assert markers.starts(markers.read(path)) == {(job, index): 1 for index in range(1, JOBS + 1)}
