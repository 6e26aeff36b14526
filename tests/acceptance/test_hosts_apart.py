"""Hosts with exclusive resources, and the job accept interval of hosts, with real processes."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

SHARED = """\
Begin Cluster
ClusterName
site
End Cluster
Begin Resource
RESOURCENAME  TYPE     INTERVAL  INCREASING  DESCRIPTION
bigmem        Boolean  ()        ()          (much memory)
End Resource
"""
CLUSTER = """\
Begin Host
HOSTNAME  model  type  server  RESOURCES
{first}   !      !     1       ()
{second}  !      !     1       (!bigmem)
End Host
"""
QUEUES = "Begin Queue\nQUEUE_NAME = normal\nPRIORITY = 30\nEnd Queue\n"
PARAMETERS = (
    "Begin Parameters\nDEFAULT_QUEUE = normal\nMBD_SLEEP_TIME = {turn}\nJOB_ACCEPT_INTERVAL = {turns}\nEnd Parameters\n"
)


@pytest.fixture(scope="module")
def site(open_directory: Path) -> Iterator[Cluster]:
    """Two hosts of four slots; the second has an exclusive resource."""
    with a_cluster(open_directory / "A", 2, 4) as made:
        first, second = made.hosts()
        files = {
            "lsf.shared": SHARED,
            "lsf.cluster.site": CLUSTER.format(first=first, second=second),
            "lsb.queues": QUEUES,
            "lsb.params": PARAMETERS.format(turn=8, turns=0),
        }
        made.reconfigure(files)
        yield made


def _where(cluster: Cluster, job: int) -> str:
    wait_for(lambda: cluster.state(job) == "RUN", 60, f"job {job} to run")
    return cluster.run("bjobs", "-noheader", "-o", "exec_host", str(job)).stdout.strip()


def test_an_exclusive_resource_keeps_others_away(site: Cluster) -> None:
    """Five jobs: four fill the first host, the fifth is pending although the second is idle; a job that names it runs
    there.
    """
    first, second = site.hosts()
    assert {_where(site, site.submit("sleep 300")) for _ in range(4)} == {first}
    waiting = site.submit("sleep 300")
    assert _where(site, site.submit("-R", "bigmem", "sleep 300")) == second
    assert _where(site, site.submit("-R", "select[bigmem && maxslots >= 4]", "sleep 300")) == second

    reason = "Job's resource requirements not satisfied: 1 host;"
    wait_for(lambda: reason in site.run("bjobs", "-l", str(waiting)).stdout, 60, "the reason")
    site.run("bkill", "0")
    wait_for(lambda: not site.run("bjobs", "-noheader").stdout, 60, "all jobs to end")


def test_a_host_rests_between_two_starts(site: Cluster) -> None:
    """An accept interval: the second job shows the reason, and starts when the interval is over."""
    first, _ = site.hosts()
    site.reconfigure({"lsb.params": PARAMETERS.format(turn=600, turns=1)})
    began = time.monotonic()
    started = site.submit("-m", first, "sleep 300")
    waiting = site.submit("-m", first, "sleep 300")
    reason = "Just started a job recently"
    wait_for(lambda: reason in site.run("bjobs", "-l", str(waiting)).stdout, 60, "the reason")
    soon = int(time.monotonic() - began) + 3  # by then the rules are read, and only the clock lets the job start
    site.reconfigure({"lsb.params": PARAMETERS.format(turn=soon, turns=1)})
    assert [_where(site, job) for job in (started, waiting)] == [first, first]
