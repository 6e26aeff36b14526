"""Lives of imported jobs in the core: which exit codes restart a task, how often, after which pause, and what then.

Each rule is that of the kind's own controller; ``docs/reference/kinds`` names it.
"""

import pytest

from lavactl.io import Io
from lavactl.job_files import submitting
from lavactl.job_files.understanding import understand_text
from lavactl.options import Options
from lavad.core.model import HostFacts, Key
from lavad.core.model.task_rules import TaskAction
from protos import jobs_pb2
from tests.builders import a_host
from tests.task_jobs import TaskStory, submission

BATCH = "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: j}}\nspec:\n  {}\n  template: {{spec: {{restartPolicy: {}, "
BATCH += "containers: [{{name: c, command: [run]}}]}}}}\n"
TF = (
    "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: j}\nspec: {tfReplicaSpecs: {Worker: {replicas: 2, "
    "restartPolicy: ExitCode, template: {spec: {containers: [{name: tensorflow, command: [run]}]}}}}}\n"
)
PYTORCH = (
    TF.replace("TFJob", "PyTorchJob").replace("tfReplicaSpecs", "pytorchReplicaSpecs").replace("tensorflow", "pytorch")
)
MPI_V1 = (
    "apiVersion: kubeflow.org/v1\nkind: MPIJob\nmetadata: {name: j}\nspec: {mpiReplicaSpecs: {Launcher: {"
    "template: {spec: {containers: [{name: c, command: [mpirun, x]}]}}}, "
    "Worker: {replicas: 1, template: {spec: {containers: [{name: c}]}}}}}\n"
)
PAI = (
    "protocolVersion: 2\nname: j\ntype: job\nprerequisites: [{name: i, type: dockerimage, uri: u}]\n"
    "taskRoles: {a: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}, commands: [run]}}\n"
)
FAIL_42 = "podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [42]}}, "
FAIL_42 += "{action: Ignore, onExitCodes: {operator: In, values: [7]}}]}"


def begun(text: str, *hosts: HostFacts) -> tuple[TaskStory, Key]:
    """The job of a file, whose tasks all run."""
    story = TaskStory(*(hosts or (a_host("h1", 8),)))
    (job,) = understand_text(text, "f", "ann").jobs
    made = submitting.submission_of(job, Options(), Io(raw_environ=[], cwd="/h", umask=0o22)).spec
    spec = jobs_pb2.JobSpec.FromString(made.SerializeToString())
    spec.queues[:] = ["normal"]
    number = story.do(submission(spec)).reply.job
    story.plan()
    key = story.key(number)
    story.stage(key)
    story.runs(key)
    return story, key


def again(story: TaskStory, key: Key, role: int = 0, index: int = 0) -> float:
    """Let a task that failed run anew; the pause before that, in seconds."""
    pause = max(story.task(key, role, index).not_before - story.now, 0.0)
    story.wait(pause)
    story.runs(key)
    return pause


@pytest.mark.parametrize("text", [TF, PYTORCH], ids=["TFJob", "PyTorchJob"])
def test_exit_codes_from_128_on_restart_a_task_alone(text: str) -> None:
    """Again and again, after a pause that doubles; the other task runs on, and 1 to 127 fails the job."""
    story, key = begun(text)
    pauses = []
    for _ in range(3):
        story.ends(key, 0, 0, code=137)
        assert story.tasks(key).verdict is None
        pauses.append(again(story, key))
    assert pauses == [10.0, 20.0, 40.0]
    story.ends(key, 0, 1, code=127)
    assert story.tasks(key).verdict is not None


def test_a_job_fails_at_once_where_its_policy_says_so() -> None:
    """The rules of podFailurePolicy come before a retry, and an ignored failure is not counted as one."""
    story, key = begun(BATCH.format(f"backoffLimit: 1\n  {FAIL_42}", "Never"))
    for code in (7, 7, 3):
        story.ends(key, 0, 0, code=code)
        assert story.tasks(key).verdict is None
        again(story, key)
    assert story.tasks(key).restarts == 1
    story.ends(key, 0, 0, code=3)
    assert story.tasks(key).verdict is not None
    story, key = begun(BATCH.format(f"backoffLimit: 6\n  {FAIL_42}", "Never"))
    story.ends(key, 0, 0, code=42)
    assert story.tasks(key).verdict is not None


@pytest.mark.parametrize(("policy", "retries"), [("Never", 2), ("OnFailure", 1)])
def test_a_backoff_limit_counts_one_less_on_failure(policy: str, retries: int) -> None:
    """Pods that are replaced fail beyond the limit, containers that restart fail at it."""
    story, key = begun(BATCH.format("backoffLimit: 2", policy))
    for _ in range(retries):
        story.ends(key, 0, 0, code=1)
        assert story.tasks(key).verdict is None
        assert again(story, key) >= 10
    story.ends(key, 0, 0, code=1)
    assert story.tasks(key).verdict is not None


def test_each_index_has_its_own_limit() -> None:
    """An index that has used its retries up is failed; the others go on, and the job fails at its end."""
    limits = "{parallelism: 2, completions: 2, completionMode: Indexed, backoffLimitPerIndex: 1}"
    story, key = begun(BATCH.format(limits[1:-1].replace(", ", "\n  "), "Never"))
    story.ends(key, 0, 0, code=1)
    again(story, key)
    story.ends(key, 0, 0, code=1)
    story.ends(key, 0, 1, code=1)
    assert story.tasks(key).verdict is None
    again(story, key, 0, 1)
    story.ends(key, 0, 1)
    verdict = story.tasks(key).verdict
    assert verdict is not None
    assert verdict.action is TaskAction.TERMINATE


def test_the_launcher_of_the_first_mpi_operators_pods_is_not_retried() -> None:
    """In v1 the launcher is a pod that is never made anew; in v2beta1 a Job with six retries."""
    story, key = begun(MPI_V1)
    story.ends(key, 0, 0, code=1)
    assert story.tasks(key).verdict is not None
    story, key = begun(MPI_V1.replace("org/v1", "org/v2beta1"))
    story.ends(key, 0, 0, code=1)
    assert story.tasks(key).verdict is None


def test_a_free_exit_code_of_openpai_waits_before_the_next_run() -> None:
    """137 restarts the job without counting, after 10 s, 20 s and so on, and not at once."""
    story, key = begun(PAI)
    assert [_paused(story, key) for _ in range(3)] == [10.0, 20.0, 40.0]


def _paused(story: TaskStory, key: Key) -> float:
    story.ends(key, 0, 0, code=137)
    return again(story, key)


def test_a_role_without_gpus_leaves_hosts_with_gpus_to_the_others() -> None:
    """A parameter server beside workers with GPUs goes to a host without, where there is one."""
    text = (
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: {tasks: ["
        "{name: ps, replicas: 1, template: {spec: {restartPolicy: Never, containers: [{name: c, command: [ps]}]}}}, "
        "{name: w, replicas: 1, template: {spec: {restartPolicy: Never, containers: [{name: c, command: [w], "
        "resources: {limits: {nvidia.com/gpu: 1}}}]}}}]}\n"
    )
    story, key = begun(text, a_host("h1", 8, gpus=2), a_host("h2", 8))
    assert (story.task(key, 0, 0).host, story.task(key, 1, 0).host) == ("h2", "h1")
