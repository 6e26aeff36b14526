"""Jobs of tasks from submission to their end, with real processes on two hosts."""

import os
import re
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from protos.common_pb2 import (
    COMPLETE_JOB,
    RESTART_ON_FAILURE,
    RESTART_TASK,
    ROLE_COMPLETED,
    TASK_FAILED,
    TaskPolicy,
)
from protos.jobs_pb2 import TaskRules
from tests.acceptance.personal import Cluster, a_cluster, wait_for
from tests.acceptance.task_jobs import role, submit

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]


@pytest.fixture(scope="module")
def two_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two hosts with four slots each."""
    directory = tmp_path_factory.mktemp("cluster") / "D"
    with a_cluster(directory, 2, 4, LAVA_TERMINATE_INTERVAL="1", LAVA_HEARTBEAT="1") as made:
        yield made


@pytest.fixture(autouse=True)
def _free_hosts(two_hosts: Cluster) -> Iterator[None]:
    """No job of another test is left."""
    yield
    two_hosts.complete()
    two_hosts.clear()


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_a_completed_role_completes_the_job(two_hosts: Cluster, tmp_path: Path) -> None:
    """The workers end well; so the job is done, and the parameter servers, which never end, are ended with it."""
    job = submit(
        two_hosts,
        tmp_path,
        role("ps", f"echo $$ >> {tmp_path}/ps; sleep 1000", 2),
        role("worker", "echo I am $LAVA_ROLE/$LAVA_ROLE_INDEX of $LAVA_ROLE_COUNT", 4, policies=[
            TaskPolicy(events=[ROLE_COMPLETED], action=COMPLETE_JOB)
        ]),
        output="out.%R.%T.%N",
    )  # fmt: skip
    two_hosts.becomes(job, "DONE")
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in _lines(tmp_path / "ps")), 60, "servers to end")
    said = {path.name: path.read_text() for path in tmp_path.glob("out.worker.*")}
    assert said == {f"out.worker.{index}.1": f"I am worker/{index} of 4\n" for index in range(4)}


def test_a_task_that_is_killed_runs_again_at_once(two_hosts: Cluster, tmp_path: Path) -> None:
    """On its host, by its role's policy, while the others run on; each run's output stays readable."""
    mark = f"echo $LAVA_ROLE_INDEX $LAVA_TASK_RUN $$ $(date +%s.%N) >> {tmp_path}/starts; echo run $LAVA_TASK_RUN"
    restart = TaskPolicy(events=[TASK_FAILED], action=RESTART_TASK)
    job = submit(
        two_hosts,
        tmp_path,
        role("w", f"{mark}; exec sleep 1000", 8, policies=[restart]),
        rules=TaskRules(restarts_max=3),
        output="out.%T.%N",
    )
    two_hosts.becomes(job, "RUN")
    wait_for(lambda: len(_lines(tmp_path / "starts")) == 8, 60, "all tasks to start")
    index, _, pid, _ = next(line.split() for line in _lines(tmp_path / "starts") if line.startswith("5 "))
    killed_at = time.time()
    os.kill(int(pid), signal.SIGKILL)
    wait_for(lambda: len(_lines(tmp_path / "starts")) == 9, 60, "the task to start again", 0.01)
    again = _lines(tmp_path / "starts")[-1].split()
    assert again[:2] == [index, "2"]
    assert float(again[3]) - killed_at < 30.0  # a tenth of a second, if no other test needs the processors
    for run in (1, 2):
        assert (tmp_path / f"out.5.{run}").read_text() == f"run {run}\n"
    assert two_hosts.run("bkill", str(job)).returncode == 0
    two_hosts.becomes(job, "EXIT")
    pids = [line.split()[2] for line in _lines(tmp_path / "starts")]
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), 60, "all tasks to end")


def test_tasks_outlive_their_agents_and_the_master(two_hosts: Cluster, tmp_path: Path) -> None:
    """Ends meanwhile are known afterwards, and started again in place; no run is started twice."""
    waits = f"while [ ! -e {tmp_path}/go ]; do sleep 0.1; done"
    fails_once = f"echo $LAVA_ROLE_INDEX $LAVA_TASK_RUN >> {tmp_path}/starts; {waits}; [ $LAVA_TASK_RUN -gt 1 ]"
    job = submit(two_hosts, tmp_path, role("w", fails_once, 8, restart=RESTART_ON_FAILURE, restarts_max=8))
    wait_for(lambda: len(_lines(tmp_path / "starts")) == 8, 60, "all tasks to start")
    for host in two_hosts.hosts():
        two_hosts.kill(f"agent-{host}")
    two_hosts.kill("lavad")
    (tmp_path / "go").touch()
    time.sleep(1)
    two_hosts.up()
    two_hosts.becomes(job, "DONE", 60)
    starts = sorted(_lines(tmp_path / "starts"))
    assert starts == sorted(f"{index} {run}" for index in range(8) for run in (1, 2))


def test_roles_wait_for_those_they_need(two_hosts: Cluster, tmp_path: Path) -> None:
    """The launcher starts after all workers run, and is told where they are and on which ports."""
    all_told = f"until [ $(cat {tmp_path}/w | wc -l) = 5 ]; do sleep 0.1; done"  # they run, and may not have said so
    tell = f"cp $LAVA_TASKS_FILE {tmp_path}/table; {all_told}"
    job = submit(
        two_hosts,
        tmp_path,
        role("launcher", tell, after=["w"], policies=[TaskPolicy(events=[ROLE_COMPLETED], action=COMPLETE_JOB)]),
        role("w", f"echo $LAVA_TASK_PORTS >> {tmp_path}/w; sleep 1000", 5, ports=[{"name": "data"}]),
    )
    two_hosts.becomes(job, "DONE")
    ports = _lines(tmp_path / "w")
    assert len(ports) == 5
    assert all(re.search(rf"\b{port}\b", (tmp_path / "table").read_text()) for port in ports)


def test_jobs_that_name_one_port_wait_for_it(two_hosts: Cluster, tmp_path: Path) -> None:
    """The second starts when the first has ended, and never with another port; a job that can never run says so."""
    with socket.create_server(("", 0)) as probe:
        port = probe.getsockname()[1]
    serve = f"{sys.executable} -m http.server {port} & until [ -e {tmp_path}/go ]; do sleep 0.1; done; kill $!"
    where = f"select[hname=={two_hosts.hosts()[0]}]"  # both hosts have the ports of this machine

    def start(tasks: int) -> int:
        ports = [{"name": "web", "number": port}]
        return submit(two_hosts, tmp_path, role("w", serve, tasks, ports=ports, requirement=where))

    first, second = start(1), start(1)
    two_hosts.becomes(first, "RUN")
    reason = f"A port that the job's tasks name is in use on the host (port {port})"
    wait_for(lambda: reason in two_hosts.says("bjobs", "-p", str(second)), 30, "the reason to be told", 0.2)
    never = start(2)
    (tmp_path / "go").touch()
    two_hosts.becomes(first, "DONE")
    two_hosts.becomes(second, "DONE")
    reason = f"Not enough hosts for tasks that name the same port (port {port}: each host has it once)"
    wait_for(lambda: reason in two_hosts.says("bjobs", "-p", str(never)), 30, "the reason to be told", 0.2)


def test_each_run_of_a_task_is_read_by_command(two_hosts: Cluster, tmp_path: Path) -> None:
    """Without an output file each run has its own on its host, readable while the job runs and after its end."""
    says = "echo run $LAVA_TASK_RUN of $LAVA_ROLE_INDEX; [ $LAVA_TASK_RUN -gt 1 ]"
    job = submit(two_hosts, tmp_path, role("w", says, 5, restart=RESTART_ON_FAILURE, restarts_max=8))
    two_hosts.becomes(job, "DONE", 60)
    said = two_hosts.says("lavactl", "logs", str(job))
    assert sorted(said.splitlines()) == [f"w/{index}: run 2 of {index}" for index in range(5)]
    assert two_hosts.says("lavactl", "logs", "--attempt", "1", str(job), "w/3") == "run 1 of 3"


GANG = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: gang}}
spec:
  minAvailable: 3
  plugins: {{env: []}}
  tasks:
    - name: w
      replicas: 20
      template:
        spec:
          restartPolicy: Never
          containers: [{{name: w, image: i, command: [sh, -c, "sleep 0.2; echo $VC_TASK_INDEX >> {marks}"]}}]
"""
QUEUE = """
apiVersion: batch/v1
kind: Job
metadata: {{name: items}}
spec:
  parallelism: 3
  completions: 12
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: w
          image: i
          command: [sh, -c]
          args: ["echo + >> {marks}; sleep 0.2; echo - >> {marks}; echo $JOB_COMPLETION_INDEX >> {marks}.ends"]
"""


def _handed_in(cluster: Cluster, path: Path, text: str) -> int:
    path.write_text(text)
    return int(re.findall(r"Job <(\d+)>", cluster.run("lavactl", "run", "-f", str(path)).stdout)[0])


def test_a_minimum_is_for_the_start_and_all_replicas_run(two_hosts: Cluster, tmp_path: Path) -> None:
    """Twenty tasks of a gang that may start with three, on eight slots: the job is done after twenty."""
    job = _handed_in(two_hosts, tmp_path / "gang.yaml", GANG.format(marks=tmp_path / "marks"))
    two_hosts.becomes(job, "DONE")
    assert sorted(map(int, _lines(tmp_path / "marks"))) == list(range(20))


def test_a_work_queue_keeps_to_its_parallelism(two_hosts: Cluster, tmp_path: Path) -> None:
    """Twelve completions, three at once: also where there is room for eight."""
    job = _handed_in(two_hosts, tmp_path / "items.yaml", QUEUE.format(marks=tmp_path / "marks"))
    two_hosts.becomes(job, "DONE")
    assert sorted(map(int, _lines(tmp_path / "marks.ends"))) == list(range(12))
    running = most = 0
    for mark in _lines(tmp_path / "marks"):
        running += 1 if mark == "+" else -1
        most = max(most, running)
    assert most == 3
    rows = two_hosts.run("lavactl", "tasks", str(job)).stdout
    assert rows.count("DONE") == 12


PAUSES = """
name: pauses
roles:
  w:
    command: date +%s.%N >> {marks}; exit 1
    restart: on-failure
    restarts: 2
    restart-pause: 2s
"""


def test_a_pause_before_a_restart_doubles_and_is_shown(two_hosts: Cluster, tmp_path: Path) -> None:
    """Two seconds, then four; meanwhile the lists say how often the task has ended, and when it starts again."""
    job = _handed_in(two_hosts, tmp_path / "pauses.yaml", PAUSES.format(marks=tmp_path / "marks"))
    told = re.compile(r"ended [12] times? in a row, starts at \w")
    wait_for(lambda: told.search(two_hosts.run("lavactl", "tasks", str(job)).stdout), 60, "the pause to be shown", 0.1)
    two_hosts.becomes(job, "EXIT")
    first, second, third = map(float, _lines(tmp_path / "marks"))
    assert second - first >= 1.9
    assert third - second >= 3.9


def test_a_gang_that_started_small_grows_by_what_it_owes(two_hosts: Cluster, tmp_path: Path) -> None:
    """It has three places beside another job, and more when that has ended; all twenty tasks run, each once."""
    blocker = two_hosts.submit("-n", "5", "sleep", "1000")
    two_hosts.becomes(blocker, "RUN")
    text = GANG.replace("sleep 0.2", "touch {marks}.$VC_TASK_INDEX.runs; while [ ! -e {marks}.go ]; do sleep 0.1; done")
    job = _handed_in(two_hosts, tmp_path / "gang.yaml", text.format(marks=tmp_path / "marks"))
    wait_for(lambda: len(list(tmp_path.glob("marks.*.runs"))) == 3, 60, "three tasks to run")
    two_hosts.run("bkill", str(blocker))
    wait_for(lambda: len(list(tmp_path.glob("marks.*.runs"))) == 8, 60, "all slots to be used")
    (tmp_path / "marks.go").touch()
    two_hosts.becomes(job, "DONE")
    assert sorted(map(int, _lines(tmp_path / "marks"))) == list(range(20))
