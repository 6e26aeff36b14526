"""Questions, notices and reports of jobs by their socket, on a real cluster: preemption, restarts, other processes."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

QUEUES = """
    Begin Queue
    QUEUE_NAME = urgent
    PRIORITY = 50
    PREEMPTION = PREEMPTIVE[[normal]]
    End Queue

    Begin Queue
    QUEUE_NAME = normal
    PRIORITY = 30
    TERMINATE_WHEN = PREEMPT
    JOB_ACTION_WARNING_TIME = 60s
    BACKFILL = Y
    End Queue
"""
ASK = 'curl -s --unix-socket "$LAVA_JOB_SOCKET" http://job/v1/'


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One host of two slots."""
    directory = tmp_path_factory.mktemp("notices") / "D"
    settings = {"LAVA_TERMINATE_INTERVAL": "1", "LAVA_HEARTBEAT": "1"}
    with a_cluster(directory, 1, 2, lsf_files={"lsb.queues": QUEUES}, **settings) as made:
        yield made


def said(path: Path) -> list[str]:
    """Lines that a job has written."""
    return path.read_text().splitlines() if path.exists() else []


def test_a_job_reports_hears_and_saves_before_it_is_preempted(cluster: Cluster, tmp_path: Path) -> None:
    """Its progress is shown, believed by the estimate of a waiting job, and known after a restart of master and agent;
    the preempting job starts when it has gone, which a job that hears does long before its time is over.
    """
    out = tmp_path / "out"
    script = f"""lavactl job progress 25 --left 120 --text 'epoch 1' && lavactl job notice --wait >> {out}
        echo saved >> {out}; exit 0"""
    job = cluster.submit("-q", "normal", "-n", "2", "-W", "30", "-wt", "45s", script)
    cluster.becomes(job, "RUN")
    fields = ("bjobs", "-noheader", "-o", "progress progress_text delimiter='|'", str(job))
    wait_for(lambda: cluster.run(*fields).stdout.strip() == "25%|epoch 1", 60, "the report")
    waiting = cluster.submit("-q", "normal", "-n", "2", "-W", "1", "true")
    wait_for(lambda: "running jobs report" in cluster.run("bjobs", "-l", str(waiting)).stdout, 60, "the estimate")
    cluster.run("bkill", str(waiting))
    for daemon in ("lavad", f"agent-{cluster.hosts()[0]}"):
        cluster.kill(daemon)
    cluster.up()
    wait_for(lambda: cluster.run(*fields).stdout.strip() == "25%|epoch 1", 60, "the report, again")
    urgent = cluster.submit("-q", "urgent", "-n", "2", "sleep 1")
    wait_for(lambda: len(said(out)) == 2, 60, "the job to hear and to save")
    event, seconds, *why = said(out)[0].split()
    assert (event, " ".join(why), said(out)[1]) == ("preempt", f"preempted by job {urgent}", "saved")
    assert 0 < int(seconds) <= 45
    cluster.becomes(urgent, "DONE")
    cluster.clear()


@pytest.mark.root
def test_other_processes_are_refused(cluster: Cluster, tmp_path: Path) -> None:
    """One of another user in the job, one of the same user outside it, with the job's whole environment."""
    out = tmp_path / "out"
    dump = f"cat /proc/self/environ > {out}.environment; setpriv --reuid 65533 {ASK}whoami > {out}; sleep 300"
    job = cluster.submit(f"{ASK}whoami > {out}.own; {dump}")
    wait_for(lambda: out.exists() and out.stat().st_size > 0, 60, "the answers")
    assert json.loads(Path(f"{out}.own").read_text())["job"] == job
    assert "belongs to uid 65533" in json.loads(out.read_text())["error"]
    lines = Path(f"{out}.environment").read_bytes().split(b"\0")
    environment = dict(line.partition(b"=")[::2] for line in lines if line)
    outside = subprocess.run(["/bin/sh", "-c", f"{ASK}whoami"], env=environment, capture_output=True, check=True)
    assert json.loads(outside.stdout) == {"error": "this process belongs to no job on this host"}
    if shutil.which("bwrap"):  # a container with process numbers of its own, and only the directory of the socket
        hidden = 'd=$(dirname "$LAVA_JOB_SOCKET"); bwrap --ro-bind /usr /usr --ro-bind /etc /etc --ro-bind /lib /lib'
        hidden += ' --ro-bind /lib64 /lib64 --bind "$d" "$d" --unshare-all --proc /proc --dev /dev '
        inside = cluster.submit(f"{hidden} {ASK}whoami > {out}.inside")
        cluster.becomes(inside, "DONE")
        assert json.loads(Path(f"{out}.inside").read_text())["job"] == inside
    cluster.clear()
