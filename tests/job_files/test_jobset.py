"""JobSets: what their webhook fills in, and what a failed job of a set leads to."""

import pytest

from lavactl.job_files.model import JobFile
from lavactl.job_files.understanding import understand_text
from lavactl.wire import messages

SET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: s}}
spec:
  {spec}
  replicatedJobs:
    - name: leader
      template: {{spec: {{template: {{spec: {{containers: [{{name: c, command: [lead]}}]}}}}}}}}
    - name: worker
      replicas: 2
      template:
        spec:
          {job}
          template: {{spec: {{containers: [{{name: c, command: [work]}}]}}}}
"""


def understood(spec: str = "", job: str = "") -> JobFile:
    """The set with these lines in its specification and in that of the worker's jobs."""
    (found,) = understand_text(SET.format(spec=spec, job=job), "f", "ann").jobs
    return found


def policies(job: JobFile, role: str) -> list[tuple[object, ...]]:
    """Policies of a role: events, exit codes, action, whether it counts."""
    (found,) = (one for one in job.roles if one.name == role)
    return [(list(one.events), list(one.exit_codes), one.action, not one.uncounted) for one in found.policies]


def test_pods_without_a_restart_policy_restart_on_failure() -> None:
    """The webhook writes OnFailure, Indexed, and a Job's one completion; each of the jobs has restarts of its own,
    one less than its backoffLimit."""
    leader, worker = understood().roles
    assert (leader.restart, leader.restarts_max, leader.tasks_max, leader.group) == (
        messages.RESTART_ON_FAILURE,
        5,
        1,
        0,
    )
    assert (worker.restart, worker.restarts_max, worker.tasks_max, worker.group) == (
        messages.RESTART_ON_FAILURE,
        5,
        2,
        1,
    )
    assert not understood().notes


def test_without_a_failure_policy_the_first_failed_job_fails_the_set() -> None:
    """Whichever role it is of."""
    assert [role.failed_enough for role in understood().roles] == [1, 1]
    assert [role.failed_enough for role in understood("failurePolicy: {maxRestarts: 1}").roles] == [0, 0]


@pytest.mark.parametrize(
    ("word", "action", "is_counted"),
    [
        ("FailJobSet", messages.TERMINATE_JOB, True),
        ("RestartJobSet", messages.RESTART_JOB, True),
        ("RestartJobSetAndIgnoreMaxRestarts", messages.RESTART_JOB, False),
        ("RestartJob", messages.RESTART_GROUP, True),
        ("RestartJobAndIgnoreMaxRestarts", messages.RESTART_GROUP, False),
    ],
)
def test_each_action_of_a_rule(word: str, action: int, is_counted: bool) -> None:
    """For the roles that it names; the others keep the default, a restart of the set."""
    job = understood(f"failurePolicy: {{maxRestarts: 3, rules: [{{action: {word}, targetReplicatedJobs: [worker]}}]}}")
    assert job.rules is not None
    assert job.rules.restarts_max == 3
    assert policies(job, "worker") == [([messages.TASK_FAILED], [], action, is_counted)]
    assert policies(job, "leader") == [([messages.TASK_FAILED], [], messages.RESTART_JOB, True)]


def test_the_first_rule_for_a_reason_counts() -> None:
    """A job fails by its deadline, by a rule of its pods' failures, or with no restarts left."""
    rules = (
        "{action: FailJobSet, onJobFailureReasons: [PodFailurePolicy]}, "
        "{action: RestartJob, onJobFailureReasons: [DeadlineExceeded]}, "
        "{action: FailJobSet, onJobFailureReasons: [DeadlineExceeded, BackoffLimitExceeded]}"
    )
    codes = "podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [3]}}]}"
    never = "{spec: {restartPolicy: Never, containers: [{name: c, command: [work]}]}}"
    text = SET.format(spec=f"failurePolicy: {{rules: [{rules}]}}", job=f"activeDeadlineSeconds: 9\n          {codes}")
    head, _, _ = text.rpartition("template: {spec")
    (job,) = understand_text(f"{head}template: {never}\n", "f", "ann").jobs
    assert job.rules is not None
    assert list(job.rules.final_codes) == [3]  # before a restart in place
    assert policies(job, "worker") == [
        ([], [3], messages.TERMINATE_JOB, True),
        ([messages.TASK_TIMEOUT], [], messages.RESTART_GROUP, True),
        ([messages.TASK_FAILED], [], messages.TERMINATE_JOB, True),
    ]


def test_several_targets_are_all_needed() -> None:
    """With one of them its success is enough; with Any that of one job."""
    job = understood("successPolicy: {targetReplicatedJobs: [worker]}")
    assert [role.succeeded_enough for role in job.roles] == [0, 2]
    job = understood("successPolicy: {operator: Any}")
    assert job.rules is not None
    assert ([role.succeeded_enough for role in job.roles], job.rules.needs_each) == ([1, 1], False)
