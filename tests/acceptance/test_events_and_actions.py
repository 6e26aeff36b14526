"""Every action after every event of a task, with real processes: the matrix that the core's tests have, on three hosts.

One test an event: it submits a job for each action, in one file, and brings the event about in all of them.
"""

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

ACTIONS = ("restart-task", "restart-group", "restart-role", "restart-job", "terminate", "complete", "abort")
ENDS = {"terminate": "EXIT", "complete": "DONE", "abort": "PSUSP"}
# A task of another role that never ends, and two workers, of which the second one meets the event in its first run.
JOB = """\
name: cell-{action}
restarts: 2
{rules}
roles:
  ps: {{tasks: 1, command: exec sleep 600}}
  worker:
    tasks: 2
    group: 1
    {role}
    policies: [{{{on}, do: {action}}}]
    command: |
      i=$LAVA_ROLE_INDEX n=$LAVA_TASK_RUN
      {command}
      exec sleep 600
"""
FIRST = '[ "$i$n" = 11 ]'
# Event: the policy's part for it, what worker 1 does, further lines of the role and of the job.
CELLS = {
    "exit code": ("exit-codes: [3]", f"if {FIRST}; then exit 3; fi", "", ""),
    "failed": ("on: failed", f"if {FIRST}; then kill -9 $$; fi", "", ""),
    "succeeded": ("on: succeeded", f"if {FIRST}; then exit 0; fi", "", ""),
    "evicted": ("on: evicted", "", "", ""),
    "timeout": ("on: timeout", f"if ! {FIRST}; then exit 0; fi", "run-limit: 1s", ""),
    "role completed": ("on: role-completed", 'if [ "$n" = 1 ]; then sleep $i; exit 0; fi', "", ""),
    "role failed": ("on: role-failed", 'if [ "$i" = 1 ] && [ "$n" -le 2 ]; then exit 3; fi', (
        "restart: on-failure\n    restarts: 1"
    ), ""),
    # In its second run a worker writes, so that the job does not hang again.
    "hangs": ("on: hangs", 'while [ "$n" -gt 1 ]; do echo $n; sleep 0.2; done', "", (
        "hang: {after: 3s, network: 100000000000, stacks: no}"
    )),
}  # fmt: skip


@pytest.fixture(scope="module")
def three_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three hosts with room for all jobs of an event; one is declared lost some seconds after its agent's end."""
    settings = {"LAVA_HEARTBEAT": "0.5", "LAVA_SILENT_AFTER": "2", "LAVA_FENCE_AFTER": "4"}
    with a_cluster(tmp_path_factory.mktemp("cluster") / "D", 3, 16, LAVA_TERMINATE_INTERVAL="1", **settings) as made:
        yield made
        made.up()
        made.clear()


@pytest.fixture(autouse=True)
def _free_hosts(three_hosts: Cluster) -> Iterator[None]:
    """No job of another test is left."""
    yield
    three_hosts.clear()


def begin(cluster: Cluster, folder: Path, documents: list[str]) -> list[int]:
    """Submit jobs in one file; their numbers."""
    file = folder / "jobs.yaml"
    file.write_text("---\n".join(documents))
    done = cluster.at(folder).run("lavactl", "run", "-f", str(file))
    jobs = [int(number) for number in re.findall(r"Job <(\d+)> is submitted", done.stdout)]
    assert len(jobs) == len(documents), done
    return jobs


def runs(cluster: Cluster, job: int) -> dict[str, int]:
    """Number of the newest run of each task."""
    done = cluster.run("lavactl", "tasks", "-json", str(job))
    rows = json.loads(done.stdout)["RECORDS"] if done.returncode == 0 else []
    return {row["TASK"]: int(row["RUN"]) for row in rows}


def has_run(cluster: Cluster, job: int, wanted: dict[str, int]) -> None:
    """Wait until the newest runs of the tasks have these numbers."""
    wait_for(lambda: runs(cluster, job) == wanted, 60, f"job {job} to have the runs {wanted}: {runs(cluster, job)}")


def one_has_run_again(cluster: Cluster, job: int) -> None:
    """Wait until one of the tasks, whichever it is, has its second run; the others may hang as well by then."""
    wait_for(lambda: max(runs(cluster, job).values(), default=0) > 1, 60, f"one restart: {runs(cluster, job)}")
    assert "restarted(1of2)" in "".join(cluster.history(job).split())  # lines are broken within words


def expected(action: str, before: int) -> dict[str, int]:
    """Runs after a restart; ``before``: those that the task had without it."""
    others = 1 + (action in ("restart-role", "restart-job"))
    return {"ps/0": 1 + (action == "restart-job"), "worker/0": others, "worker/1": before + 1}


@pytest.mark.parametrize("event", CELLS)
def test_an_event_leads_to_each_action(three_hosts: Cluster, tmp_path: Path, event: str) -> None:
    """A restart takes along what it is for, and nothing else; the other actions end the job as they say."""
    on, command, role, rules = CELLS[event]
    texts = {one: JOB.format(on=on, command=command, role=role, rules=rules, action=one) for one in ACTIONS}
    jobs = dict(zip(ACTIONS, begin(three_hosts, tmp_path, list(texts.values())), strict=True))
    if event == "evicted":
        for job in jobs.values():
            has_run(three_hosts, job, {"ps/0": 1, "worker/0": 1, "worker/1": 1})
        three_hosts.says("bkill", *(f"{job}[worker/1]" for job in jobs.values()))
    before = 2 if event == "role failed" else 1
    for action, job in jobs.items():
        if action in ENDS:
            three_hosts.becomes(job, ENDS[action])
        elif event == "hangs" and action in ("restart-task", "restart-group"):  # any one of the tasks
            three_hosts.becomes(job, "RUN")
            one_has_run_again(three_hosts, job)
        else:
            has_run(three_hosts, job, expected(action, before))


PENDING = """\
name: pending-{action}
restarts: 2
policies: [{{on: pending, after: 1s, do: {action}}}]
roles: {{worker: {{tasks: 500, command: exec sleep 600}}}}
"""


def test_a_job_that_waits_for_too_long_meets_each_action(three_hosts: Cluster, tmp_path: Path) -> None:
    """In its queue, as there is no room for it: a restart there uses up one of two, and the third is too much."""
    documents = [PENDING.format(action=one) for one in ACTIONS]
    jobs = dict(zip(ACTIONS, begin(three_hosts, tmp_path, documents), strict=True))
    for action, job in jobs.items():
        three_hosts.becomes(job, ENDS.get(action, "EXIT"))
    told = "".join(three_hosts.says("bhist", "-l", str(jobs["restart-job"])).split())  # lines are broken within words
    assert "Jobisrestartedinitsqueue" in told
    assert "waitedformorethan1sforaplace,after2restarts" in told


LOST = """\
name: lost-{action}
restarts: 2
replace-within: 30s
roles:
  worker:
    tasks: 2
    requirement: span[ptile=1]
    policies: [{{on: host-lost, do: {action}}}]
    command: exec sleep 600
"""

# The task of the host that stays fails in its first run, which aborts the job; it is told to the other one in vain.
RESUMED = """\
name: resumed
restarts: 2
policies: [{exit-codes: [3], do: abort}, {on: host-lost, do: resume}]
roles:
  worker:
    tasks: 2
    requirement: span[ptile=1]
    command: |
      [ $LAVA_TASK_RUN = 1 ] || exec sleep 600
      until [ -e fails-on-$(hostname) ]; do sleep 0.1; done
      exit 3
"""


def hosts(cluster: Cluster, job: int) -> dict[str, str]:
    """Host of each task."""
    done = cluster.run("lavactl", "tasks", "-json", str(job))
    rows = json.loads(done.stdout)["RECORDS"] if done.returncode == 0 else []
    return {row["TASK"]: row["HOST"] for row in rows}


def test_a_lost_host_leads_to_each_action(three_hosts: Cluster, tmp_path: Path) -> None:
    """Each job has a task on it. The task that is started anew is on the third host, the job in its first attempt.

    A job that is being aborted when the host is lost is resumed by that: it is dispatched anew.
    """
    documents = [textwrap.dedent(LOST.format(action=one)) for one in ACTIONS]
    *_, third = three_hosts.hosts()
    assert three_hosts.run("badmin", "hclose", third).returncode == 0  # until all run on the other two
    jobs = dict(zip((*ACTIONS, "resume"), begin(three_hosts, tmp_path, [*documents, RESUMED]), strict=True))
    for job in jobs.values():
        three_hosts.becomes(job, "RUN")
    assert three_hosts.run("badmin", "hopen", third).returncode == 0
    places = {action: hosts(three_hosts, job) for action, job in jobs.items()}
    lost = places["restart-task"]["worker/1"]
    gone = {action: next(task for task, host in found.items() if host == lost) for action, found in places.items()}
    three_hosts.kill(f"agent-{lost}")
    resumed = jobs.pop("resume")
    (stays,) = {*places.pop("resume").values()} - {lost}
    (tmp_path / f"fails-on-{stays}").touch()
    for action, job in jobs.items():
        if action in ENDS:
            three_hosts.becomes(job, ENDS[action], 60)
            continue
        again = {task: 1 + (task == gone[action] or action != "restart-task") for task in places[action]}
        has_run(three_hosts, job, again)
        assert lost not in hosts(three_hosts, job).values()
    has_run(three_hosts, resumed, {"worker/0": 2, "worker/1": 2})
    assert "restarted(1):resumed:HOST_LOST" in "".join(three_hosts.history(resumed).split())
    three_hosts.up()
