"""Seed rows 1 to 16: what Volcano, TensorFlow and MindSpore jobs expect, on hosts without Kubernetes.

The job files are of these tests' own; those of the projects themselves are tried by tests/job_files where they are.
"""

import contextlib
import json
import re
import signal
import time
from pathlib import Path

import pytest

from tests.acceptance.personal import wait_for
from tests.seeds.site import Site

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

DUMP = "env; sleep 0.2"


def volcano(
    name: str, ps: str = "sleep 600", worker: str = "exit 0", workers: int = 2, extra: str = "", worker_extra: str = ""
) -> str:
    """A parameter-server job of one server and some workers."""
    return f"""
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: {name}
spec:
  minAvailable: {1 + workers}
  schedulerName: volcano
  plugins:
    env: []
    svc: []
{extra}
  tasks:
    - name: ps
      replicas: 1
      template:
        spec:
          containers:
            - name: tensorflow
              image: docker.io/example/dist-mnist:1
              command: ["sh", "-c", {json.dumps(ps)}]
          restartPolicy: Never
    - name: worker
      replicas: {workers}
{worker_extra}
      template:
        spec:
          containers:
            - name: tensorflow
              image: docker.io/example/dist-mnist:1
              command: ["sh", "-c", {json.dumps(worker)}]
          restartPolicy: Never
"""


WORKERS_COMPLETE = "      policies:\n        - {event: TaskCompleted, action: CompleteJob}"


def test_row_1_a_job_is_configuration(site: Site) -> None:
    """The Volcano file is taken as it is, can be shown again, and what is ignored is said."""
    text = volcano("mnist", worker_extra=WORKERS_COMPLETE)
    dry = site.cluster.run("lavactl", "run", "-f", str(site.file(text)), "--dry-run")
    assert dry.returncode == 0
    assert "image: docker.io/example/dist-mnist:1" in dry.stdout
    job = site.run(text)
    shown = site.cluster.says("lavactl", "show", str(job), "-o", "yaml")
    assert "mnist" in shown
    assert "worker" in shown
    site.ends(job)


def test_row_2_a_gang_starts_as_a_whole_or_not_at_all(site: Site) -> None:
    """With too few slots the job waits with a reason and nothing of it runs; then all its tasks start together."""
    blocking = site.cluster.submit("-n", "4", "sleep", "600")
    site.cluster.becomes(blocking, "RUN")
    job = site.run(volcano("gang", worker="sleep 600"))
    time.sleep(1.5)
    assert site.cluster.state(job) == "PEND"
    assert set(site.phases(job).values()) <= {"WAIT"}
    assert site.cluster.says("bjobs", "-p", str(job)).count("\n") >= 1
    site.cluster.run("bkill", str(blocking))
    site.runs(job, "ps/0", "worker/0", "worker/1")


def test_row_3_two_gangs_never_hold_a_part_each(site: Site) -> None:
    """Each of two gangs needs all slots: one runs, the other has nothing; then it is the other's turn."""
    for turn in range(2):
        jobs = [site.run(volcano(f"all-{turn}-{one}", "sleep 0.3", "sleep 0.3", workers=5)) for one in range(2)]
        seen: list[list[str]] = []
        # Twelve tasks: seconds of an idle machine, and minutes at a load of 15.
        wait_for(lambda: _are_done(site, jobs, seen), 280, "both gangs to end", 0.05)  # noqa: B023
        assert ["RUN", "RUN"] not in seen


def _are_done(site: Site, jobs: list[int], seen: list[list[str]]) -> bool:
    listed = site.cluster.run("bjobs", "-a", "-noheader", "-o", "stat", *map(str, jobs))
    seen.append(listed.stdout.split())
    return seen[-1] == ["DONE", "DONE"]


def test_row_4_the_queue_must_exist_and_be_open(site: Site) -> None:
    """A queue that does not exist is named in the refusal."""
    assert "nope" in site.refusal(volcano("q", extra="  queue: nope"))


def test_row_5_several_roles_with_their_own_commands(site: Site) -> None:
    """Each role has its number of tasks and its command."""
    job = site.run(volcano("roles", "echo I am ps", "echo I am worker $VK_TASK_INDEX"))
    site.ends(job)
    assert sorted(site.tasks(job)) == ["ps/0", "worker/0", "worker/1"]
    assert site.log(job, "ps/0") == "I am ps\n"
    assert site.log(job, "worker/1") == "I am worker 1\n"


def test_row_6_plugins_tell_tasks_what_they_need(site: Site) -> None:
    """Environment, host files at their fixed path, TF_CONFIG; two such jobs on the same hosts see their own."""
    command = "cat /etc/volcano/ps.host; echo; cat /etc/volcano/worker.host; echo; env"
    extra = "    tensorflow: []"
    text = volcano("one", command, command, extra=extra), volcano("two", command, command, extra=extra)
    jobs = [site.run(one, name=f"{number}.yaml") for number, one in enumerate(text)]
    for job, name in zip(jobs, ("one", "two"), strict=True):
        site.ends(job)
        told = site.log(job, "worker/1")
        assert re.search(rf"^{name}-ps-0", told, re.MULTILINE), told
        assert f"{name}-worker-0" in told
        found = site.environment(job, "worker/1")
        assert (found["VC_TASK_INDEX"], found["VK_TASK_INDEX"], found["VC_WORKER_NUM"]) == ("1", "1", "2")
        config = json.loads(found["TF_CONFIG"])
        assert (len(config["cluster"]["ps"]), len(config["cluster"]["worker"])) == (1, 2)
        assert config["task"] == {"type": "worker", "index": 1}


def test_row_7_tasks_reach_each_other_by_name(site: Site) -> None:
    """A name of the job resolves inside it, to the host of that task."""
    job = site.run(volcano("net", "sleep 5", "getent hosts net-ps-0.net; getent hosts net-worker-0"))
    site.wait(lambda: site.phases(job).get("worker/0") == "DONE", "worker 0 to end")
    lines = site.log(job, "worker/0").splitlines()
    assert len(lines) == 2, lines


def test_row_8_ssh_between_tasks_needs_no_sshd(site: Site) -> None:
    """ssh to another task runs there, with its exit code, and leaves no keys behind."""
    worker = "ssh -o BatchMode=yes shell-ps-0 'echo there on $(hostname); exit 7'; echo code $?"
    job = site.run(volcano("shell", "sleep 600", worker, workers=1, extra="    ssh: []", worker_extra=WORKERS_COMPLETE))
    site.ends(job)
    said = site.log(job, "worker/0")
    assert "there on" in said
    assert "code 7" in said


def test_row_9_an_eviction_restarts_the_whole_gang(site: Site) -> None:
    """A task ended by hand counts as evicted: all tasks start anew, as often as maxRetry allows."""
    extra = "  maxRetry: 2\n  policies:\n    - {event: PodEvicted, action: RestartJob}"
    job = site.run(volcano("evicted", "sleep 600", "sleep 600", extra=extra))
    site.runs(job)
    site.cluster.says("bkill", f"{job}[worker/1]")
    site.wait(lambda: {row["RUN"] for row in site.tasks(job).values()} == {"2"}, "all tasks to run again")
    site.runs(job)
    site.cluster.says("bkill", f"{job}[worker/1]")
    site.ends(job, "EXIT")


def test_row_10_the_workers_completion_completes_the_job(site: Site) -> None:
    """The parameter server never ends by itself; it is ended, and the job is done with exit code 0."""
    job = site.run(volcano("complete", "sleep 600", "exit 0", worker_extra=WORKERS_COMPLETE))
    site.ends(job)
    assert "Done successfully" in site.cluster.says("bhist", "-l", str(job))


@pytest.mark.parametrize(
    ("action", "code", "runs", "state"),
    [
        ("RestartJob", 3, {"ps/0": "2", "worker/0": "2", "worker/1": "2"}, ""),
        ("RestartTask", 3, {"ps/0": "1", "worker/0": "2", "worker/1": "2"}, ""),
        ("RestartPod", 3, {"ps/0": "1", "worker/0": "1", "worker/1": "2"}, ""),
        ("TerminateJob", 3, {}, "EXIT"),
        ("CompleteJob", 3, {}, "DONE"),
        ("AbortJob", 3, {}, "PSUSP"),
    ],
)
def test_row_11_a_failing_member_leads_to_the_policys_action(
    site: Site, action: str, code: int, runs: dict[str, str], state: str
) -> None:
    """Worker 1 fails in its first run; the policy for its exit code says what follows."""
    fails_once = f'if [ "$VK_TASK_INDEX" = 1 ] && [ "$LAVA_TASK_RUN" = 1 ]; then exit {code}; fi; sleep 600'
    policy = f"      policies:\n        - {{exitCode: {code}, action: {action}}}"
    job = site.run(volcano(f"fails-{action.lower()}", "sleep 600", fails_once, worker_extra=policy))
    if runs:
        site.wait(lambda: {name: row["RUN"] for name, row in site.tasks(job).items()} == runs, f"{action}")
        site.runs(job)
    else:
        site.cluster.becomes(job, state)


def test_row_11_without_a_policy_nothing_is_restarted(site: Site) -> None:
    """A failed task stays failed, the others go on; at the end the job has failed."""
    go = site.folder / "go"
    job = site.run(volcano("default", f"until [ -e {go} ]; do sleep 0.1; done", "exit $VK_TASK_INDEX"))
    site.wait(lambda: site.phases(job).get("worker/1") == "EXIT", "worker 1 to fail")
    site.runs(job, "ps/0")
    go.touch()
    site.ends(job, "EXIT")
    assert {row["RUN"] for row in site.tasks(job).values()} == {"1"}


def test_row_13_addresses_are_known_and_equal_before_user_code(site: Site) -> None:
    """Two servers and two workers print the same cluster, four addresses that all differ."""
    text = volcano("cluster", DUMP, DUMP, extra="    tensorflow: []").replace("replicas: 1", "replicas: 2", 1)
    job = site.run(text.replace("minAvailable: 3", "minAvailable: 4"))
    site.ends(job)
    tasks = ("ps/0", "ps/1", "worker/0", "worker/1")
    configs = [json.loads(site.environment(job, task)["TF_CONFIG"])["cluster"] for task in tasks]
    assert all(one == configs[0] for one in configs)
    assert len({address for addresses in configs[0].values() for address in addresses}) == 4


def test_row_14_logs_for_each_task_and_no_process_left(site: Site) -> None:
    """bkill ends every process of every task."""
    mark = f"{time.time_ns()}"
    job = site.run(
        volcano("tree", f"echo up; sleep 600 & exec -a lava{mark} sleep 600", "sleep 600").replace('"sh"', '"bash"')
    )
    site.runs(job)
    site.wait(lambda: site.log(job, "ps/0") == "up\n", "its output")
    site.wait(lambda: _processes_of(mark), "its process")
    site.cluster.says("bkill", str(job))
    site.ends(job, "EXIT")
    site.wait(lambda: not _processes_of(mark), "its processes to be gone")


def _processes_of(mark: str) -> bool:
    """True if a process has this mark in its command line."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes():
                return True
    return False


def test_row_15_each_worker_has_a_device_of_its_own(site: Site) -> None:
    """Workers with one GPU each see one each; the master sees none."""
    text = volcano("gpus", DUMP, DUMP)
    limits = "              resources: {limits: {nvidia.com/gpu: 1}}\n"
    head, tail = text.split("    - name: worker", 1)
    tail = tail.replace("          restartPolicy:", limits + "          restartPolicy:", 1)
    job = site.run(f"{head}    - name: worker{tail}")
    site.ends(job)
    devices = {
        (site.tasks(job)[one]["HOST"], site.environment(job, one)["CUDA_VISIBLE_DEVICES"])
        for one in ("worker/0", "worker/1")
    }
    assert len(devices) == 2
    assert all(len(device) == 1 for _, device in devices), devices
    assert site.environment(job, "ps/0").get("CUDA_VISIBLE_DEVICES", "") in ("", "-1", "NoDevFiles")


def test_a_killed_master_loses_no_task(site: Site) -> None:
    """Rows 14 and 34: the master is killed; tasks go on, and the end of one is acted upon after its restart."""
    cluster = site.cluster
    go, over = site.folder / "go", site.folder / "over"
    worker = f"until [ -e {go} ]; do sleep 0.1; done; echo >> {over}"
    job = site.run(volcano("adopted", "sleep 600", worker, worker_extra=WORKERS_COMPLETE))
    site.runs(job)
    cluster.end("lavad", signal.SIGKILL)
    go.touch()
    site.wait(lambda: over.exists() and over.read_text() == 2 * "\n", "both workers to end")
    cluster.up()
    site.ends(job)
    assert {row["RUN"] for row in site.tasks(job).values()} == {"1"}
