"""Commands about configured queues, groups and limits, with wrong output for administrators."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

FILES = {
    "lsb.queues": """\
        Begin Queue
        QUEUE_NAME = short
        RUNLIMIT = 1 10
        MEMLIMIT = 100000 200000
        PRE_EXEC = /bin/true
        POST_EXEC = /bin/true
        End Queue
        """,
    "lsb.params": "Begin Parameters\nDEFAULT_QUEUE = short\nEnd Parameters\n",
    "lsb.users": """\
        Begin UserGroup
        GROUP_NAME GROUP_MEMBER
        chem (root)
        End UserGroup
        Begin User
        USER_NAME MAX_JOBS
        default 20
        End User
        """,
    "lsb.hosts": """\
        Begin HostGroup
        GROUP_NAME GROUP_MEMBER
        fast (lava2)
        others_than_one (all ~lava1)
        End HostGroup
        """,
    "lsf.shared": """\
        Begin Resource
        RESOURCENAME TYPE INTERVAL INCREASING DESCRIPTION
        lic_cfd Numeric () N (licences)
        End Resource
        """,
    "lsb.resources": "Begin Limit\nNAME = l\nRESOURCE = [lic_cfd,2]\nTMP = 5G\nEnd Limit\n",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two hosts with two slots each under these files."""
    with a_cluster(tmp_path_factory.mktemp("commands") / "D", 2, 2, lsf_files=FILES) as made:
        yield made


def test_the_default_limits_of_a_queue_are_shown(site: Cluster) -> None:
    """everyday 14: the job ended after a minute, and no command had shown a run limit."""
    job = site.submit("sleep", "60")
    site.becomes(job, "RUN")
    assert " RUNLIMIT\n 1.0 min" in site.says("bjobs", "-l", str(job))
    limit, left, finish = site.says(
        "bjobs", "-noheader", "-o", "runtimelimit time_left finish_time delimiter='|'", str(job)
    ).split("|")
    assert (limit, left[-2:], finish[-2:]) == ("1.0", " L", " L")
    site.run("bkill", str(job))


def test_the_queue_shows_what_it_does(site: Cluster) -> None:
    """administration 79 and 122: lines were missing, and PRE_EXEC was not run."""
    shown = site.says("bqueues", "-l", "short")
    assert "Interval for a host to accept two jobs is 0 seconds" in shown
    assert "loadSched" in shown
    assert "PRE_EXEC:  /bin/true" in shown
    assert "PRE_EXEC" not in site.run("badmin", "ckconfig").stderr


def test_figures_of_groups_and_parameters(site: Cluster) -> None:
    """administration 85 and 117."""
    assert "chem/                  -     20" in site.says("busers", "chem")
    lines = site.says("bparams").splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "Default Queues",
        "Default Host Specification",
        "Job Dispatch Interval",
        "Job Checking Interval",
        "Job Accepting Interval",
    ]
    assert site.says("bmgroup", "-r", "others_than_one").splitlines()[1].split()[1:] == ["lava2"]
    configured = site.says("blimits", "-c")
    assert "RESOURCE            = [lic_cfd,2]\n" in configured
    site.reconfigure({"lsb.resources": configured + "\n"})
    assert site.says("blimits", "-c") == configured


def test_the_status_has_lsfs_lines(site: Cluster) -> None:
    """commands-by-clients 6: ``(current/peak)`` and ``n/m`` were missing."""
    shown = site.says("badmin", "showstatus")
    assert "Available local hosts (current/peak):" in shown
    assert f"      {'Servers:':<34} 2/2" in shown
    assert "Latest mbatchd reconfiguration:" in shown


def test_a_group_of_first_hosts(site: Cluster) -> None:
    """everyday 8: ``-m "fast!"`` pended for ever, and so did a host that runs no jobs."""
    for words in (["-m", "fast!"], ["-n", "3", "-m", "fast! lava1"], ["-n", "3", "-m", "fast! all"]):
        job = site.submit(*words, "sleep", "60")
        site.becomes(job, "RUN")
        assert site.says("bjobs", "-noheader", "-o", "first_host", str(job)) == "lava2"
        site.run("bkill", str(job))
        site.becomes(job, "EXIT")
    login = socket.gethostname().partition(".")[0]
    done = site.run("bsub", "-m", login, "true")
    assert (done.returncode, done.stderr) == (
        255,
        f"{login}: Host or host group runs no jobs. Job not submitted.\n",
    )


def test_an_estimated_start_is_a_field(site: Cluster, tmp_path: Path) -> None:
    """everyday 63, administration 81: ``-o estimated_start_time`` was ``-`` for a job whose -l showed it."""
    full = site.submit("-n", "4", "sleep", "60")
    site.becomes(full, "RUN")
    waits = site.submit("-n", "4", "sleep", "60")

    def is_told_alike() -> bool:
        """The estimate may move between two questions, as the time of the start is first that of the dispatch."""
        shown = site.says("bjobs", "-noheader", "-o", "estimated_start_time", str(waits))
        return shown != "-" and f"Estimated start: {shown}" in site.says("bjobs", "-l", str(waits))

    wait_for(is_told_alike, 60, "the estimate to be a field")
    site.run("bkill", str(waits), str(full))
