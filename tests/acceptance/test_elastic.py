"""An elastic job that grows into idle slots and releases hosts, with real processes: host lists, tasks, command."""

import re
import signal
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

# The program of an elastic launcher, in short: it polls its host list and keeps one task on each host.
ELASTIC = """\
import os, subprocess, sys, time
from pathlib import Path

folder, tasks = Path(sys.argv[1]), {}
(folder / "listed").write_text(f"/proc/{os.getpid()}/root{os.environ['LSB_DJOB_HOSTFILE']}")
while not (folder / "stop").exists():
    lines = subprocess.run([os.environ["LAVA_DISCOVER_HOSTS"]], capture_output=True, text=True).stdout.split()
    hosts = [line.partition(":")[0] for line in lines]
    listed = Path(os.environ["LSB_DJOB_HOSTFILE"]).read_text().split()
    with open(folder / "seen", "a") as seen:
        print(" ".join(lines), "|", " ".join(listed), file=seen)
    for host in hosts[1:]:
        if host not in tasks or tasks[host].poll() is not None:
            tasks[host] = subprocess.Popen(["blaunch", host, f"echo $$ > {folder}/task-$(hostname); exec sleep 300"])
    time.sleep(0.2)
"""


def _last_seen(folder: Path) -> tuple[str, list[str]]:
    path = folder / "seen"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    told, _, listed = lines[-1].partition(" | ") if lines else ("", "", "")
    return told, listed.split()


def _size(cluster: Cluster, job: int) -> int:
    text = cluster.run("bjobs", "-noheader", "-o", "slots", str(job)).stdout.strip()
    return int(text) if text.isdigit() else 0


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _task(folder: Path, host: str) -> int:
    path = folder / f"task-{host}"
    text = path.read_text().strip() if path.exists() else ""
    return int(text) if text.isdigit() else 0


def test_an_elastic_job_grows_and_gives_back(tmp_path: Path) -> None:
    """It grows when another job ends, and shrinks by bresize: a host leaves its lists first, then its task there ends.

    A master or an agent killed in the middle loses nothing.
    """
    (tmp_path / "elastic.py").write_text(ELASTIC)
    notes = tmp_path / "notes"
    notify = f'echo "$LSB_RESIZE_EVENT $LSB_RESIZE_HOSTS" >> {notes}'
    with a_cluster(tmp_path / "cluster", 3, 2) as cluster:
        first, second, third = sorted(cluster.hosts())
        blocking = cluster.submit("-n", "4", "-R", f"select[hname!={first}]", "sleep", "300")
        wait_for(lambda: cluster.states(blocking)[0][0] == "RUN", 60, "the first job")
        job = cluster.submit(
            "-ar", "-n", "2,6", "-rnc", notify, "-o", f"{tmp_path}/out",
            "python3", f"{tmp_path}/elastic.py", str(tmp_path),
        )  # fmt: skip
        wait_for(lambda: _last_seen(tmp_path)[0] == f"{first}:2", 60, "the elastic job on one host")
        assert cluster.run("bkill", str(blocking)).returncode == 0
        wait_for(lambda: _size(cluster, job) == 6, 60, "the job to grow")
        listed = sorted(2 * [first, second, third])
        wait_for(lambda: sorted(_last_seen(tmp_path)[1]) == listed, 60, "all hosts in its lists")
        wait_for(lambda: _task(tmp_path, second) and _task(tmp_path, third), 60, "a task on each new host")
        wait_for(lambda: notes.exists() and notes.read_text().startswith("grow "), 60, "the notification")

        leaving = _task(tmp_path, third)
        cluster.kill("lavad")
        cluster.up()
        wait_for(lambda: cluster.run("bresize", "release", third, str(job)).returncode == 0, 60, "bresize")
        cluster.kill(f"agent-{first}")
        cluster.up()
        wait_for(lambda: not _is_alive(leaving), 60, "the task on the host that leaves to end")
        listed_in = Path((tmp_path / "listed").read_text())  # what the job has seen of it may be older
        assert third not in listed_in.read_text().split(), "it was told to end before the job could know"
        assert _is_alive(_task(tmp_path, second))
        wait_for(lambda: _size(cluster, job) == 4, 60, "the smaller allocation")
        wait_for(lambda: f"shrink {third} 2" in notes.read_text(), 60, "the notification")
        refused = cluster.run("bresize", "release", first, str(job))
        assert refused.returncode != 0
        assert "first host" in refused.stderr

        other = cluster.submit("-n", "2", "-m", third, "true")
        wait_for(lambda: cluster.states(other)[0][0] == "DONE", 60, "a job on the host that was given back")
        (tmp_path / "stop").touch()
        wait_for(lambda: cluster.states(job)[0][0] == "DONE", 60, "the end of the elastic job")
        history = cluster.history(job)
        assert re.search(r"Resized to 6 slots", history)
        assert re.search(r"Resized to 4 slots", history)
        report = (tmp_path / "out").read_text()
        named = re.findall(r"[<(] *(2\*[\w.-]+)>", report)
        assert named == [f"2*{host}" for host in (first, second, third)], "hosts that came and went as well"
        assert f"Not counted in it: what was used on {third}, given up before the job's end." in report
        wait_for(lambda: not _is_alive(_task(tmp_path, second)), 60, "its last task")


def test_a_growth_that_the_job_will_not_have_is_taken_back(tmp_path: Path) -> None:
    """After a failed notification command the job keeps its allocation, and the offered hosts are free again."""
    with a_cluster(tmp_path / "cluster", 2, 2) as cluster:
        _, second = sorted(cluster.hosts())
        blocking = cluster.submit("-n", "2", "-m", second, "sleep", "300")
        wait_for(lambda: cluster.states(blocking)[0][0] == "RUN", 60, "the first job")
        job = cluster.submit("-ar", "-n", "2,4", "-rnc", '[ "$LSB_RESIZE_EVENT" = shrink ]', "sleep", "300")
        wait_for(lambda: cluster.states(job)[0][0] == "RUN", 60, "the resizable job")
        assert cluster.run("bkill", str(blocking)).returncode == 0
        wait_for(lambda: "notification command failed" in cluster.history(job), 60, "the growth to be taken back")
        wait_for(lambda: _size(cluster, job) == 2, 60, "its old size")
        other = cluster.submit("-n", "2", "-m", second, "true")
        wait_for(lambda: cluster.states(other)[0][0] == "DONE", 60, "a job in the room that it did not take")
        assert cluster.states(job)[0][0] == "RUN"


def test_an_elastic_job_goes_on_without_a_lost_host(tmp_path: Path) -> None:
    """The host leaves its lists and the job is notified; when the host returns, remaining processes there end, and the
    job grows again.
    """
    (tmp_path / "elastic.py").write_text(ELASTIC)
    notes = tmp_path / "notes"
    notify = f'echo "$LSB_RESIZE_EVENT $LSB_RESIZE_HOSTS" >> {notes}'
    with a_cluster(tmp_path / "cluster", 3, 2, LAVA_HEARTBEAT="1", LAVA_SILENT_AFTER="4") as cluster:
        first, second, third = sorted(cluster.hosts())
        options = ("-ar", "-n", "3,6", "-m", f"{first}+2 {second} {third}", "-rnc", notify)
        job = cluster.submit(*options, "python3", f"{tmp_path}/elastic.py", str(tmp_path))
        wait_for(lambda: _task(tmp_path, second) and _task(tmp_path, third), 60, "a task on each host")
        lost = _task(tmp_path, third)
        cluster.kill(f"agent-{third}", signal.SIGSTOP)
        wait_for(lambda: _size(cluster, job) == 4, 60, "the job to go on without the lost host")
        wait_for(lambda: third not in _last_seen(tmp_path)[1], 60, "the host to leave its lists")
        wait_for(lambda: f"shrink {third} 2" in notes.read_text(), 60, "the notification")
        assert cluster.states(job)[0][0] == "RUN"
        assert _is_alive(_task(tmp_path, second))
        cluster.kill(f"agent-{third}", signal.SIGCONT)
        wait_for(lambda: not _is_alive(lost), 60, "what was left on the lost host to end")
        wait_for(lambda: _size(cluster, job) == 6, 60, "the job to grow back")
        assert f"{third}ofthejob'shostsislost" in "".join(cluster.history(job).split())
        (tmp_path / "stop").touch()
        wait_for(lambda: cluster.states(job)[0][0] == "DONE", 60, "the end of the job")
