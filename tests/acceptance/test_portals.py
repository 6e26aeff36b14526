"""Calls as Open OnDemand's adapter for LSF makes them: the cluster's name first, one wide table parsed by place."""

import pytest

from tests.acceptance.personal import Cluster

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

COLUMNS = (
    "JOBID USER STAT QUEUE FROM_HOST EXEC_HOST JOB_NAME SUBMIT_TIME PROJ_NAME CPU_USED MEM SWAP PIDS START_TIME "
    "FINISH_TIME"
)
LISTING = ("-u", "all", "-a", "-w", "-W")


def _job(cluster: Cluster, name: str, job: int) -> dict[str, str]:
    """The job's row by columns, of which only the name may have blanks; empty if there is none."""
    done = cluster.run("bjobs", "-m", name, *LISTING, str(job))
    assert done.returncode == 0, done.stderr
    if not done.stdout:
        return {}
    header, row = done.stdout.splitlines()
    assert header.split() == COLUMNS.split()
    words = row.split()
    return dict(zip(COLUMNS.split(), [*words[:6], " ".join(words[6:-8]), *words[-8:]], strict=True))


def test_a_session_from_its_submission_to_its_end(cluster: Cluster) -> None:
    """Submitted as a script on standard input, held, released, deleted; a job that is not known is no error."""
    name = cluster.run("lsid").stdout.partition("My cluster name is ")[2].splitlines()[0]
    options = ("-P", "chem", "-cwd", "/tmp", "-J", "my web session", "-rn", "-W", "10", "-L", "/bin/bash", "-n", "2")
    done = cluster.run("bsub", "-m", name, *options, stdin="#!/bin/bash\nsleep 300\n")
    assert done.returncode == 0, done.stderr
    job = int(done.stdout.partition("Job <")[2].partition(">")[0])
    cluster.becomes(job, "RUN")
    row = _job(cluster, name, job)
    assert (row["JOB_NAME"], row["PROJ_NAME"], row["STAT"]) == ("my web session", "chem", "RUN")
    assert row["EXEC_HOST"].startswith(("lava", "2*lava"))
    for command, state in (("bstop", "USUSP"), ("bresume", "RUN"), ("bkill", "EXIT")):
        assert cluster.run(command, "-m", name, str(job)).returncode == 0
        cluster.becomes(job, state)
    assert _job(cluster, name, job)["STAT"] == "EXIT"
    assert _job(cluster, name, 999_999) == {}
    assert cluster.run("bqueues", "-m", name).stdout == cluster.run("bqueues").stdout
    assert "Bad host name" in cluster.run("bsub", "-m", f"{name} {name}", "true").stderr
