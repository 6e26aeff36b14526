"""Jobs of several roles that run on while the database under their master is replaced by an older one."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

GANG = """\
name: {name}
restarts: 5
policies:
  - {{on: failed, do: restart-task}}
roles:
  ps:
    tasks: 1
    command: {run}
  worker:
    tasks: 3
    requirement: span[ptile=2]
    command: {run}
"""


RUN = (
    "echo $LAVA_ROLE/$LAVA_ROLE_INDEX $LAVA_TASK_RUN $$ >> {where}/{name}; until [ -e {where}/go ]; do sleep 0.1; done"
)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Cluster]:
    """Two hosts, with a database that is replaced."""
    with a_cluster(tmp_path / "C", 2, 8, LAVA_HEARTBEAT="1", LAVA_SILENT_AFTER="5") as made:
        yield made


def starts(where: Path, name: str) -> list[tuple[str, int, int]]:
    """Task, run and process id of each start of a gang."""
    path = where / name
    found = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return [(task, int(run), int(pid)) for task, run, pid in found]


def begin(cluster: Cluster, where: Path, name: str) -> int:
    """Run a gang."""
    file = where / f"{name}.yaml"
    file.write_text(GANG.format(name=name, run=RUN.format(name=name, where=where)))
    job = int(re.findall(r"Job <(\d+)>", cluster.run("lavactl", "run", "-f", str(file)).stdout)[0])
    wait_for(lambda: len(starts(where, name)) == 4, 60, f"all tasks of {name} to start")
    return job


def fail(where: Path, name: str, task: str) -> None:
    """Kill the newest run of a task; its policy starts it again."""
    before = starts(where, name)
    os.kill(next(pid for one, _, pid in reversed(before) if one == task), signal.SIGKILL)
    wait_for(lambda: len(starts(where, name)) == len(before) + 1, 60, f"{task} of {name} to start again")


def lavactl(cluster: Cluster, *words: str) -> str:
    """A command for the master's own machine."""
    command = [str(Path(sys.executable).parent / "lavactl"), words[0], "--conf", str(cluster.directory), *words[1:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done
    return done.stdout


def tasks(cluster: Cluster, job: int) -> dict[str, tuple[str, str, str]]:
    """State, host and run of each task."""
    rows = [line.split() for line in cluster.says("lavactl", "tasks", str(job)).splitlines()[1:]]
    return {row[0]: (row[1], row[2], row[3]) for row in rows}


def test_gangs_go_on_under_an_older_database(two: Cluster, tmp_path: Path) -> None:
    """One that the backup knows, with tasks started anew since, and one that is younger: after `lavactl adopt` no task
    is killed or started twice, each is where it was, and the policies of both go on, also for one that failed
    meanwhile.
    """
    known = begin(two, tmp_path, "known")
    lavactl(two, "backup", str(tmp_path / "backup.db"))
    fail(tmp_path, "known", "worker/1")
    young = begin(two, tmp_path, "young")
    fail(tmp_path, "young", "ps/0")
    again = {known: "worker/1", young: "ps/0"}
    for job, failed in again.items():
        wait_for(lambda job=job: {one[0] for one in tasks(two, job).values()} == {"RUN"}, 60, "all tasks to run")
        wait_for(lambda job=job, failed=failed: tasks(two, job)[failed][2] == "2", 60, "the run after the failure")
    before = {job: tasks(two, job) for job in (known, young)}
    ran = {name: starts(tmp_path, name) for name in ("known", "young")}
    two.end("lavad")
    lavactl(two, "restore", str(tmp_path / "backup.db"))
    os.kill(next(pid for task, _, pid in ran["young"] if task == "worker/0"), signal.SIGKILL)
    up = subprocess.Popen(
        [str(Path(sys.executable).parent / "lavactl"), "up", "--dir", str(two.directory)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: "problem=adoption" in two.log("lavad"), 60, "lavad to notice")
    said = lavactl(two, "adopt")
    assert up.wait(60) == 0
    assert {two.state(job) for job in (known, young)} == {"RUN"}, said
    wait_for(lambda: len(starts(tmp_path, "young")) == len(ran["young"]) + 1, 60, "the task that failed to run again")
    before[young]["worker/0"] = (*before[young]["worker/0"][:2], "2")
    wait_for(lambda: tasks(two, young) == before[young], 60, f"all tasks to be where they were: {before}")
    wait_for(lambda: tasks(two, known) == before[known], 60, f"no task to have moved: {before} {said}")
    assert starts(tmp_path, "known") == ran["known"]
    assert starts(tmp_path, "young")[:-1] == ran["young"]
    fail(tmp_path, "known", "worker/1")
    fail(tmp_path, "young", "worker/2")
    two.says("bkill", f"{young}[ps/0]")
    (tmp_path / "go").touch()
    two.becomes(known, "DONE")
    runs = {name: [f"{task} {run}" for task, run, _ in starts(tmp_path, name)] for name in ran}
    for name, found in runs.items():
        assert len(set(found)) == len(found), (name, found)
    assert "worker/1 3" in runs["known"]
    assert "worker/2 2" in runs["young"]
    wait_for(lambda: two.state(young) in ("DONE", "EXIT"), 60, "the young gang to end")
