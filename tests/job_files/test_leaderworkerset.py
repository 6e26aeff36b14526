"""LeaderWorkerSets: any end of a task recreates its group, after a pause, and no group ends by itself."""

import pytest

from lavactl.job_files.model import UNLIMITED, JobFile
from lavactl.job_files.understanding import understand_text
from lavactl.wire import messages

SET = """\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {{name: s}}
spec:
  replicas: {replicas}
  leaderWorkerTemplate:
    {policy}
    size: 2
    workerTemplate: {{spec: {{containers: [{{name: c, command: [run]}}]}}}}
"""


def understood(policy: str = "", replicas: int = 1) -> list[JobFile]:
    """Jobs of a set of groups of two."""
    return understand_text(SET.format(policy=policy, replicas=replicas), "f", "ann").jobs


@pytest.mark.parametrize(
    "policy", ["", "restartPolicy: RecreateGroupOnPodRestart", "restartPolicy: RecreateGroupAfterStart"]
)
def test_any_end_of_a_task_recreates_its_group_after_a_pause(policy: str) -> None:
    """A success, too: pods of a set are restarted always. The pause is a node's: 10 s, doubled up to 5 min."""
    (job,) = understood(policy)
    assert job.rules is not None
    assert job.rules.restarts_max == UNLIMITED
    for role in job.roles:
        (only,) = role.policies
        assert (only.action, sorted(only.events)) == (
            messages.RESTART_JOB,
            sorted([messages.TASK_FAILED, messages.TASK_SUCCEEDED, messages.TASK_EVICTED]),
        )
        assert (role.restart_pause_s, role.restart_pause_max_s, role.stable_s) == (10.0, 300.0, 600.0)


@pytest.mark.parametrize("word", ["None", "Default"])
def test_without_recreation_a_task_restarts_alone(word: str) -> None:
    """However it ended, with the same pause."""
    (job,) = understood(f"restartPolicy: {word}")
    assert [(role.restart, role.restarts_max, role.restart_pause_s) for role in job.roles] == [
        (messages.RESTART_ALWAYS, UNLIMITED, 10.0)
    ] * 2


def test_each_group_is_a_job_that_knows_its_number() -> None:
    """Its tasks are named after the set and the group."""
    jobs = understood(replicas=2)
    assert [job.name for job in jobs] == ["s-0", "s-1"]
    told = [(job.rules.owner_name, list(job.rules.conventions[0].options)) for job in jobs if job.rules is not None]
    assert told == [("s", ["size=2", "group=0"]), ("s", ["size=2", "group=1"])]
