"""Ray's kinds: how many workers a group has, and clusters of the same file."""

import pytest

from lavactl.job_files.model import UNLIMITED
from lavactl.job_files.understanding import understand_text
from lavactl.wire import messages

CLUSTER = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {{name: c}}
spec:
  {scaled}
  headGroupSpec: {{template: {{spec: {{containers: [{{name: ray{command}}}]}}}}}}
  workerGroupSpecs: [{{groupName: w, {group}, template: {{spec: {{containers: [{{name: ray}}]}}}}}}]
"""
JOB = """\
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: j}
spec: {clusterSelector: {ray.io/cluster: c}, entrypoint: python x.py}
"""


def workers(group: str, scaled: str = "") -> tuple[int, int]:
    """Least and most tasks of the group; (0, 0) if it has none."""
    (job,) = understand_text(CLUSTER.format(scaled=scaled, group=group, command=""), "f", "ann").jobs
    found = [role for role in job.roles if role.name == "w"]
    return (found[0].tasks_min, found[0].tasks_max) if found else (0, 0)


@pytest.mark.parametrize(
    ("group", "count"),
    [
        ("replicas: 1, minReplicas: 0, maxReplicas: 5", 1),
        ("minReplicas: 2, maxReplicas: 5", 2),
        ("replicas: 9, minReplicas: 2, maxReplicas: 5", 5),
        ("replicas: 1, minReplicas: 2, maxReplicas: 5", 2),
        ("replicas: 2, numOfHosts: 3", 6),
        ("replicas: 2, suspend: true", 0),
        ("maxReplicas: 3", 0),
    ],
)
def test_without_autoscaling_a_group_keeps_to_its_replicas(group: str, count: int) -> None:
    """Within minReplicas and maxReplicas, whatever room there is."""
    assert workers(group) == (count, count)


def test_with_autoscaling_a_group_has_its_range() -> None:
    """Of replicas, each of which may have several hosts."""
    scaled = "enableInTreeAutoscaling: true"
    assert workers("replicas: 1, minReplicas: 1, maxReplicas: 5", scaled) == (1, 5)
    assert workers("replicas: 1, minReplicas: 1, maxReplicas: 2, numOfHosts: 2", scaled) == (2, 4)


def test_workers_restart_with_pauses() -> None:
    """As containers of a node, without end."""
    (job,) = understand_text(CLUSTER.format(scaled="", group="replicas: 1", command=""), "f", "ann").jobs
    worker = job.roles[1]
    assert (worker.restart, worker.restarts_max, worker.restart_pause_s) == (messages.RESTART_ALWAYS, UNLIMITED, 10.0)


def test_a_job_for_a_cluster_of_the_same_file() -> None:
    """In whichever order they stand there is one job, with that cluster and the entry point."""
    cluster = CLUSTER.format(scaled="", group="replicas: 2", command="")
    for text in (f"{cluster}---\n{JOB}", f"{JOB}---\n{cluster}"):
        (job,) = understand_text(text, "f", "ann").jobs
        assert [(role.name, role.tasks_max) for role in job.roles] == [("head", 1), ("w", 2), ("submitter", 1)]
        assert job.roles[-1].command.endswith("-- python x.py")


def test_a_command_of_the_head_runs_before_ray_start() -> None:
    """One that starts Ray itself does not: the ports are the job's."""
    head = [
        understand_text(CLUSTER.format(scaled="", group="replicas: 1", command=f", command: {words}"), "f", "ann").jobs[
            0
        ]
        for words in ("[echo, ready]", "[ray start --head]")
    ]
    assert head[0].roles[0].command.startswith("echo ready && eval ")
    assert head[1].roles[0].command.startswith("eval ")
