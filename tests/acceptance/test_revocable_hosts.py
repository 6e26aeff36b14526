"""A revocable host of real processes that knows itself when it is taken away: notice, restarts, withdrawal."""

from pathlib import Path

import pytest

from tests.acceptance.personal import a_cluster, wait_for
from tests.seeds.elastic_jobs import ends, starts, workers
from tests.seeds.site import Site

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

SHARED = "Begin Cluster\nClusterName\nsite\nEnd Cluster\n"
HOSTS = "Begin Host\nHOSTNAME model type server RESOURCES\nlava1 ! ! 1 ()\nlava2 ! ! 1 (revocable)\nEnd Host\n"
NOTICE_S = 12


def _is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_a_host_gives_notice_itself(tmp_path: Path) -> None:
    """The job goes on without it, whatever is restarted within the notice; the host is open again when it stays."""
    program = tmp_path / "notice"
    program.write_text(f"#!/bin/sh\n[ -e {tmp_path}/going ] || exit 0\necho '{NOTICE_S} the owner is back'\nexit 2\n")
    program.chmod(0o755)
    settings = {"LAVA_REVOCATION_NOTICE": str(program), "LAVA_REVOCATION_INTERVAL": "1", "LAVA_TERMINATE_INTERVAL": "1"}
    files = {"lsf.shared": SHARED, "lsf.cluster.site": HOSTS}
    with a_cluster(tmp_path / "cluster", 2, 1, lsf_files=files, **settings) as cluster:
        site = Site(cluster, tmp_path)
        job = site.run(workers(site, 1, 2, lingers=600))
        wait_for(lambda: len(starts(tmp_path)) == 2, 60, "both workers")
        assert site.tasks(job)["worker/1"]["HOST"] == "lava2"
        pid = starts(tmp_path)[1][0]
        (tmp_path / "going").touch()
        wait_for(lambda: "the owner is back" in cluster.run("bhosts", "-l", "lava2").stdout, 60, "the notice")
        cluster.kill("lavad")
        cluster.kill("agent-lava2")
        cluster.up()
        wait_for(lambda: 1 in ends(tmp_path), 60, "the task to be told to end")
        wait_for(lambda: not _is_there(pid), NOTICE_S + 60, "the task to be killed at the end of the notice")
        wait_for(lambda: cluster.state(job) == "RUN", 60, "the job to go on")
        assert len(starts(tmp_path)[0]) == 1
        (tmp_path / "going").unlink()
        listing = ("bhosts", "-noheader", "-o", "status", "lava2")
        wait_for(lambda: cluster.run(*listing).stdout.strip() in ("ok", "closed_Full"), 60, "the host to be open again")
        wait_for(lambda: len(starts(tmp_path)[1]) == 2, 60, "the job to grow back")
