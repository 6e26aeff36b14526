"""Exceptions of jobs with real processes: bjobs shows them, and the site's eadmin is told of them all at once."""

from pathlib import Path

import pytest

from tests.acceptance.personal import a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

QUEUES = """
    Begin Queue
    QUEUE_NAME   = normal
    JOB_OVERRUN  = 1
    JOB_UNDERRUN = 2
    JOB_IDLE     = 0.5
    End Queue
"""
PARAMS = """
    Begin Parameters
    DEFAULT_QUEUE         = normal
    DETECT_IDLE_JOB_AFTER = 0
    End Parameters
"""


def test_idle_jobs_and_early_ends_reach_eadmin(tmp_path: Path) -> None:
    """A job that sleeps is idle, one that fails at once an underrun; one that succeeds at once is none."""
    told, server = tmp_path / "told", tmp_path / "server"
    server.mkdir()
    (server / "eadmin").write_text(f"#!/bin/sh\ncat >>{told}\n")
    (server / "eadmin").chmod(0o755)
    files = {"lsb.queues": QUEUES, "lsb.params": PARAMS}
    with a_cluster(tmp_path / "cluster", 1, 4, lsf_files=files) as cluster:
        cluster.reconfigure({"lsf.conf": f"LSF_SERVERDIR={server}\n"})
        failed, done = cluster.submit("exit 3"), cluster.submit("true")
        idle = cluster.submit("sleep 600")
        for job, state in ((failed, "EXIT"), (done, "DONE"), (idle, "RUN")):
            cluster.becomes(job, state)
        listed = ("bjobs", "-x", "-noheader", "-o", "jobid exception_status")
        wait_for(lambda: f"{idle} idle" in " ".join(cluster.run(*listed).stdout.split()), 60, "the job is idle")
        assert "job idle: its CPU time over its run time is 0.00" in " ".join(
            cluster.run("bjobs", "-l", str(idle)).stdout.split()
        )
        shown = cluster.run("bqueues", "-l", "normal").stdout
        assert "JOB EXCEPTION PARAMETERS\n" in shown
        assert " Threshold             1             2           0.5\n" in shown
        wait_for(lambda: told.exists() and "idle" in told.read_text(), 120, "eadmin was told")
        lines = [line.split() for line in told.read_text().splitlines()]
        user = cluster.run("bjobs", "-noheader", "-o", "user", str(idle)).stdout.strip()
        assert [line[:4] for line in lines if line[0] == "underrun"] == [["underrun", str(failed), user, "normal"]]
        assert [line[:4] for line in lines if line[0] == "idle"] == [["idle", str(idle), user, "normal"]]
