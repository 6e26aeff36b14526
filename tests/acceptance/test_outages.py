"""Daemons and hosts that fail and return while jobs run: running jobs, reported states, and their timing."""

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance import markers
from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

RUN_LIMIT_S = int(os.environ.get("LAVA_RUN_LIMIT_S", "8"))
SETTINGS = {"LAVA_SILENT_AFTER": "3", "LAVA_HEARTBEAT": "1", "LAVA_TERMINATE_INTERVAL": "1"}


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster to break: two hosts, quick to call one silent."""
    with a_cluster(tmp_path_factory.mktemp("fragile") / "cluster", 2, 4, **SETTINGS) as cluster:
        yield cluster


@pytest.fixture
def patient(fragile: Cluster) -> Iterator[Cluster]:
    """The cluster, whose next master calls no host silent while an agent starts again, however busy the machine is."""
    fragile.configure(LAVA_SILENT_AFTER="60")
    yield fragile
    fragile.configure(**SETTINGS)
    fragile.end("lavad")
    fragile.up()


def _script(path: Path, go: Path, code: int) -> str:
    """A job that marks its start and, when a file is there, its end."""
    return markers.script(path, "0", str(code)).replace("sleep $((0))", f"while [ ! -e {go} ]; do sleep 0.1; done")


def _started(path: Path, count: int) -> bool:
    return path.exists() and sum(mark.what == "start" for mark in markers.read(path)) >= count


def test_every_daemon_is_restarted_in_turn_and_no_job_minds(patient: Cluster, tmp_path: Path) -> None:
    """SIGTERM and ``up`` for the master and each agent, with a job on one host, one on two, and one on hold."""
    path, go = tmp_path / "marks", tmp_path / "go"
    text = _script(path, go, 5)
    single = patient.submit("-o", "/dev/null", text)
    wide = patient.submit("-n", "2", "-R", "span[ptile=1]", "-o", "/dev/null", text)
    waiting = patient.submit("-H", "true")
    wait_for(lambda: _started(path, 2), 60, "both jobs to run")
    for daemon in ("lavad", "agent-lava1", "agent-lava2"):
        patient.kill(daemon, signal.SIGTERM)
        wait_for(lambda daemon=daemon: not patient.is_running(daemon), 60, f"{daemon} to end")
        patient.up()
    go.touch()
    for job in (single, wide):
        wait_for(lambda job=job: patient.state(job) == "EXIT", 60, "the job to end")
        assert patient.states(job)[0] == ("EXIT", 5), patient.history(job)
    assert markers.starts(markers.read(path)) == {(single, 0): 1, (wide, 0): 1}
    assert patient.state(waiting) == "PSUSP"
    assert patient.run("bkill", str(waiting)).returncode == 0


def test_limits_are_kept_and_ends_recorded_while_nobody_watches(fragile: Cluster, tmp_path: Path) -> None:
    """Master and agents are dead from start to end: the run limit ends one job, the other ends by itself."""
    path = tmp_path / "marks"
    endless = _submit_limited(fragile, "-o", "/dev/null", markers.script(path, "600", "0"))
    short = fragile.submit("-o", "/dev/null", markers.script(path, "3", "9"))
    wait_for(lambda: _started(path, 2), 60, "both jobs to run")
    daemons = ["lavad", *(f"agent-{host}" for host in fragile.hosts())]
    for daemon in daemons:
        fragile.kill(daemon)
    began = next(mark.at for mark in markers.read(path) if mark.job == endless)
    wait_for(lambda: not _processes_of(fragile, endless), RUN_LIMIT_S + 60, "the run limit to be kept")
    lasted_s = time.time() - began
    assert RUN_LIMIT_S - 2 < lasted_s < RUN_LIMIT_S + 60
    assert not any(fragile.is_running(daemon) for daemon in daemons)
    fragile.up()
    wait_for(lambda: (fragile.state(endless), fragile.state(short)) == ("EXIT", "EXIT"), 60, "the ends to be known")
    assert fragile.states(short)[0] == ("EXIT", 9)
    assert "TERM_RUNLIMIT" in fragile.history(endless)
    ended = re.search(r"(\d\d):(\d\d):(\d\d)(?: \d{4})?: Exited", fragile.history(endless))
    assert ended, fragile.history(endless)
    told = time.localtime(began + RUN_LIMIT_S)
    apart_s = sum(
        (int(said) - known) * weight
        for said, known, weight in zip(
            ended.groups(), (told.tm_hour, told.tm_min, told.tm_sec), (3600, 60, 1), strict=True
        )
    )
    assert -2 <= (apart_s + 2) % 86400 - 2 <= lasted_s - RUN_LIMIT_S + 2  # when it ended, not when that became known


def test_other_limits_hold_for_a_running_job_whatever_is_killed(fragile: Cluster, tmp_path: Path) -> None:
    """Extended it outlives its old limit; shortened, while its agent is dead, it ends by the new one."""
    path = tmp_path / "marks"
    text = markers.script(path, "600", "0")
    shorter = fragile.submit("-o", "/dev/null", text)
    longer = _submit_limited(fragile, "-o", "/dev/null", text)
    wait_for(lambda: _started(path, 2), 60, "the jobs to run", 0.05)
    fragile.change(longer, run_limit_s=600)
    began = next(mark.at for mark in markers.read(path) if mark.job == longer)
    daemons = ["lavad", *(f"agent-{host}" for host in fragile.hosts())]
    for daemon in daemons[1:]:
        fragile.kill(daemon)
    fragile.change(shorter, run_limit_s=1)
    fragile.kill("lavad")
    fragile.up()
    wait_for(lambda: fragile.state(shorter) == "EXIT", 60, "the shorter limit to be kept")
    assert "TERM_RUNLIMIT" in fragile.history(shorter)
    wait_for(lambda: time.time() > began + RUN_LIMIT_S + 2, 60, "the old limit to be over")
    fragile.becomes(longer, "RUN")
    assert _processes_of(fragile, longer)
    assert "Parameters of Job are changed: run limit" in fragile.history(longer)
    assert fragile.run("bkill", str(longer)).returncode == 0
    fragile.becomes(longer, "EXIT")


def _submit_limited(cluster: Cluster, *words: str) -> int:
    """bsub -W, which counts minutes, of a number of seconds."""
    job = cluster.submit("-H", *words)
    cluster.change(job, run_limit_s=RUN_LIMIT_S)
    assert cluster.run("bresume", str(job)).returncode == 0
    return job


def _processes_of(cluster: Cluster, job: int) -> list[str]:
    """Processes of a job of this cluster, dead ones not counted."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "environ").read_bytes().split(b"\0")
                is_its = f"LAVA_JOB_KEY={job}.0.1".encode() in words
                if is_its and f"LAVA_ENVDIR={cluster.directory}".encode() in words:
                    found.append(entry.name)
            except OSError:
                continue
    return found


def test_a_crashed_host_loses_its_jobs_and_only_those(fragile: Cluster, tmp_path: Path) -> None:
    """UNKWN while it is away; then the rerunnable job runs again, the other one has ended with a reason."""
    path, go = tmp_path / "marks", tmp_path / "go"
    text = _script(path, go, 4)
    other = fragile.submit("-m", "lava1", "-o", "/dev/null", text)
    plain = fragile.submit("-m", "lava2", "-o", "/dev/null", text)
    again = fragile.submit("-m", "lava2", "-r", "-o", "/dev/null", text)
    wait_for(lambda: _started(path, 3), 60, "all jobs to run")
    _crash(fragile, "lava2")
    wait_for(lambda: [fragile.state(job) for job in (plain, again)] == ["UNKWN", "UNKWN"], 60, "the host to be missed")
    assert "unreach" in fragile.run("bhosts", "lava2").stdout
    fragile.up()
    go.touch()
    wait_for(lambda: fragile.state(plain) == "EXIT", 60, "the loss to be known")
    assert "Completed <exit>; supervisor lost" in fragile.history(plain)
    wait_for(lambda: fragile.state(again) == "EXIT", 60, "the second run to end")
    fragile.becomes(other, "EXIT")
    assert fragile.states(again)[0] == ("EXIT", 4)
    assert fragile.states(other)[0] == ("EXIT", 4)
    marks = markers.read(path)
    assert markers.starts(marks) == {(other, 0): 1, (plain, 0): 1, (again, 0): 2}
    attempts = {mark.attempt for mark in marks if mark.job == again}
    assert attempts == {f"{again}.0.1", f"{again}.0.2"}


def _crash(cluster: Cluster, host: str) -> None:
    """Kill every process in a host's network namespace, including the one that holds it."""
    network = os.stat(f"/proc/{cluster.pid(f'agent-{host}')}/ns/net").st_ino

    def living() -> list[int]:
        found = []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and os.stat(f"/proc/{name}/ns/net").st_ino == network:
                    found.append(int(name))
            except OSError:
                continue
        return found

    def sweep() -> bool:
        pids = living()
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        return not pids

    wait_for(sweep, 60, "the host to be dead", 0.05)
