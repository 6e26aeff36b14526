"""Accounting of real processes: bacct through agent, master and reader."""

import pytest

from tests.acceptance.personal import Cluster

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]


def test_bacct_sums_up_what_ran(cluster: Cluster) -> None:
    """A done, a failed and a killed job, selected by their project; in sums, in a line each, and in full."""
    done = cluster.submit("-P", "counted", "-n", "2", "true")
    failed = cluster.submit("-P", "counted", "exit 3")
    killed = cluster.submit("-P", "counted", "-H", "true")
    cluster.run("bkill", str(killed))
    for job, state in ((done, "DONE"), (failed, "EXIT"), (killed, "EXIT")):
        cluster.becomes(job, state)
    out = cluster.run("bacct", "-P", "counted").stdout
    assert " Total number of done jobs:       1      Total number of exited jobs:     2\n" in out
    assert "  - accounted on projects counted,\n" in out
    lines = cluster.run("bacct", "-b", "-P", "counted", "-e").stdout.splitlines()
    assert len([line for line in lines if " normal " in line]) == 2
    told = cluster.run("bacct", "-l", str(killed)).stdout
    assert f"Job <{killed}>" in told
    assert "TERM_OWNER: job killed by owner." in " ".join(told.split())
    assert cluster.run("bacct", "999999").returncode == 255
