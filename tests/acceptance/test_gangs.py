"""Two jobs that each need every slot of two hosts, while hosts are stopped or disconnected between stage and launch.

Judged by markers of the tasks on both hosts: never two jobs at once, never a job with part of its tasks left running
for more than 30 s.
"""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

ROUNDS = int(os.environ.get("LAVA_GANG_ROUNDS", "4"))
SEED = int(os.environ.get("LAVA_GANG_SEED", "7"))
PART_LEFT_S = 30.0


def _script(path: Path) -> str:
    """Every slot of both hosts marks its start, lives a second, marks its end."""
    mark = 'printf "%s %s %s %s\\n" "$LSB_JOBID" WHAT "$(hostname)" "$(date +%s.%N)" >> ' + str(path)
    # A task that is told to end, as one of an attempt that is taken back, marks its end as well.
    task = f'trap "exit 1" INT TERM; trap end EXIT; {mark.replace("WHAT", "start")}; sleep 1'
    return f"blaunch 'end() {{ {mark.replace('WHAT', 'end')}; }}; {task}'"


def _marks(path: Path) -> list[tuple[int, str, str, float]]:
    if not path.exists():
        return []
    rows = [line.split() for line in path.read_text().splitlines()]
    return [(int(job), what, host, float(at)) for job, what, host, at in rows]


def _disturb(cluster: Cluster, host: str, way: str) -> None:
    if way == "stop":
        cluster.kill(f"agent-{host}", signal.SIGSTOP)
    else:
        _link(cluster, host, "down")


def _heal(cluster: Cluster, host: str, way: str) -> None:
    if way == "stop":
        cluster.kill(f"agent-{host}", signal.SIGCONT)
    else:
        _link(cluster, host, "up")


def _link(cluster: Cluster, host: str, state: str) -> None:
    """Disconnect a host, or reconnect it, at its own end of its only link."""
    agent = str(cluster.pid(f"agent-{host}"))
    subprocess.run(["nsenter", "-t", agent, "-n", "ip", "link", "set", "eth0", state], check=True)
    if state == "up":  # the route went with the link
        done = subprocess.run(
            ["nsenter", "-t", agent, "-n", "ip", "-4", "-o", "addr", "show", "dev", "eth0"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        network = done.stdout.split()[3].rsplit(".", 1)[0]
        gateway = ["nsenter", "-t", agent, "-n", "ip", "route", "replace", "default", "via", f"{network}.254"]
        subprocess.run(gateway, check=True)


def _check(path: Path) -> None:
    """No moment with tasks of two jobs; no job with tasks on one host only for longer than allowed."""
    running: dict[int, dict[str, int]] = {}
    partial_since: dict[int, float] = {}
    for job, what, host, at in sorted(_marks(path), key=lambda mark: mark[3]):
        here = running.setdefault(job, {})
        here[host] = here.get(host, 0) + (1 if what == "start" else -1)
        alive = {other for other, hosts in running.items() if any(hosts.values())}
        assert len(alive) <= 1, f"tasks of jobs {alive} ran at the same time, {at}"
        hosts_used = sum(1 for count in here.values() if count)
        if hosts_used == 1:
            partial_since.setdefault(job, at)
        elif job in partial_since:
            assert at - partial_since.pop(job) < PART_LEFT_S, f"job {job} ran in part for too long"


def _round(cluster: Cluster, path: Path, rng: random.Random, disturbed: bool) -> None:
    jobs = [cluster.submit("-n", "8", "-R", "span[ptile=4]", "-r", "-o", "/dev/null", _script(path)) for _ in range(2)]
    if disturbed:
        host, way = rng.choice(cluster.hosts()), rng.choice(["stop", "cut"])
        time.sleep(rng.uniform(0.0, 0.05))  # somewhere between dispatch, stage and launch
        _disturb(cluster, host, way)
        time.sleep(rng.uniform(1.0, 6.0))
        _heal(cluster, host, way)
    wait_for(lambda: all(_is_over(cluster, job) for job in jobs), 120, f"jobs {jobs} to end", 0.3)
    for job in jobs:
        assert not _alive_tasks(path, job), f"job {job} has ended but a task of it is left"


def _is_over(cluster: Cluster, job: int) -> bool:
    return cluster.state(job) in ("DONE", "EXIT")


def _alive_tasks(path: Path, job: int) -> list[str]:
    """Processes of that job that still sleep, on any host of this machine."""
    key = f"LSB_JOBID={job}\0".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment, words = ((entry / name).read_bytes() for name in ("environ", "cmdline"))
            except OSError:
                continue
            if key in environment and str(path).encode() in words:
                found.append(entry.name)
    return found


def test_gangs_never_overlap_and_are_never_left_in_part(tmp_path: Path) -> None:
    """In half of the rounds a host is stopped or cut off somewhere between dispatch and launch."""
    rng = random.Random(SEED)
    path = tmp_path / "markers"
    settings = {"LAVA_SILENT_AFTER": "3", "LAVA_STAGING_TIMEOUT": "2.5", "LAVA_AVOID_HOST": "2", "LAVA_HEARTBEAT": "1"}
    with a_cluster(tmp_path / "cluster", 2, 4, **settings) as cluster:
        for number in range(ROUNDS):
            _round(cluster, path, rng, disturbed=number % 2 == 1)
    _check(path)
    started = {job for job, what, _, _ in _marks(path) if what == "start"}
    assert len(started) == 2 * ROUNDS
