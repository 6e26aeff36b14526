"""HOSTS of queues, with real processes: jobs run on the queue's hosts only, also after reconfiguration and bswitch."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

QUEUE = """\
Begin Queue
QUEUE_NAME = {name}
PRIORITY   = 30
HOSTS      = {hosts}
End Queue
"""
GROUPS = "Begin HostGroup\nGROUP_NAME GROUP_MEMBER\nlast ({last})\nEnd HostGroup\n"


def _queues(**hosts: str) -> str:
    return "".join(QUEUE.format(name=name, hosts=text) for name, text in hosts.items())


@pytest.fixture(scope="module")
def site(open_directory: Path) -> Iterator[Cluster]:
    """Two hosts of two slots: one queue has a group with the second in it, one all but that, one prefers it."""
    with a_cluster(open_directory / "H", 2, 2) as made:
        _, last = made.hosts()
        queues = _queues(inside="last/", outside="all ~last", liking=f"others {last}+3")
        made.reconfigure({"lsb.hosts": GROUPS.format(last=last), "lsb.queues": queues})
        yield made


def _where(cluster: Cluster, job: int) -> str:
    """The host on which the job runs, once it does."""
    wait_for(lambda: cluster.state(job) == "RUN", 60, f"job {job} to run")
    return cluster.run("bjobs", "-noheader", "-o", "exec_host", str(job)).stdout.strip()


def test_jobs_run_on_hosts_of_their_queue(site: Cluster) -> None:
    """Each host is a process of its own, so the job itself reports it; a pending job shows the reason."""
    first, last = site.hosts()
    assert _where(site, site.submit("-q", "liking", "sleep 300")) == last
    assert _where(site, site.submit("-q", "inside", "sleep 300")) == last
    assert _where(site, site.submit("-q", "outside", "sleep 300")) == first
    waiting = site.submit("-q", "inside", "sleep 300")
    assert _where(site, site.submit("-q", "liking", "sleep 300")) == first
    said = site.run("bjobs", "-l", str(waiting)).stdout
    assert "Not usable to the queue: 1 host;" in said
    assert "bmod -mn" not in said
    refused = site.run("bsub", "-q", "inside", "-m", first, "true")
    assert f"{first}: Host or host group is not used by the queue. Job not submitted." in refused.stderr
    shown = site.run("bqueues", "-m", last).stdout.splitlines()[1:]
    assert [line.split()[0] for line in shown] == ["inside", "liking", "default"]
    nobody = site.run("bqueues", "-m", "nohost")
    assert (nobody.returncode, nobody.stdout) == (255, "")
    assert nobody.stderr == "nohost: Bad host name, host group name or cluster name\n"
    site.run("bkill", "-q", "outside", "0")
    assert site.run("bswitch", "outside", str(waiting)).returncode == 0
    assert _where(site, waiting) == first


def test_new_files_reach_jobs_that_wait(site: Cluster) -> None:
    """The queue's host is replaced while a job is pending for it: the job starts on the new one."""
    first, last = site.hosts()
    site.run("bkill", "0")
    wait_for(lambda: not site.run("bjobs", "-noheader").stdout, 60, "all jobs to end")
    filling = site.submit("-q", "inside", "-n", "2", "sleep 300")
    assert set(_where(site, filling).split(":")) <= {f"2*{last}", last}
    waiting = site.submit("-q", "inside", "sleep 300")
    site.reconfigure({"lsb.queues": _queues(inside=first)})
    assert _where(site, waiting) == first
    assert last in _where(site, filling)


def test_a_host_file_is_changed_while_the_job_waits(site: Cluster, tmp_path: Path) -> None:
    """bmod -hostfile before the start; the file is shown as it was read, after the end, too. -hostfilen removes it."""
    first, last = site.hosts()
    site.clear()
    site.becomes_idle()
    files = {"two": f"{last} 2\n", "each": f"{last}\n{first}\n"}
    two, each = (tmp_path / name for name in files)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    moved = site.submit("-H", "-R", "rusage[mem=1]", "-hostfile", str(two), "sleep 300")
    freed = site.submit("-H", "-R", "rusage[mem=1]", "-hostfile", str(each), "sleep 300")
    site.says("bmod", "-hostfile", str(each), str(moved))
    each.write_text("gone")
    site.says("bmod", "-hostfilen", str(freed))
    site.says("bresume", str(moved))
    assert _where(site, moved) == f"{last}:{first}"
    shown = site.says("bjobs", "-UF", "-hostfile", str(moved))
    table = f"\n USER-SPECIFIED HOST FILE:\n HOST                SLOTS\n {last:<19} 1\n {first:<19} 1"
    assert f"Requested Resources <rusage[mem=1] span[ptile=1]>, Host file <{each}>;" in shown
    assert shown.endswith(table)
    site.says("bkill", str(moved))
    site.becomes(moved, "EXIT")
    told = site.says("bhist", "-UF", "-hostfile", str(moved))
    assert told.endswith(table)
    assert f"host file from <{two}> to <{each}>" in told
    assert site.says("bjobs", "-noheader", "-o", "host_file nreq_slot", str(freed)).split() == ["-", "2"]
    assert "Requested Resources <rusage[mem=1]>" in site.says("bjobs", "-UF", str(freed))
