"""TrainJobs: processes of each node by Trainer's own rules, and runtimes of the same file."""

import pytest

from lavactl.job_files.model import JobFile
from lavactl.job_files.understanding import understand_text
from lavactl.wire import messages

JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: t}}
spec:
  runtimeRef: {{name: {runtime}}}
  trainer: {{command: [run], {trainer}}}
"""
RUNTIME = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: mine}
spec:
  mlPolicy: {numNodes: 3, mpi: {}}
  template:
    spec:
      successPolicy: {operator: All, targetReplicatedJobs: [launcher]}
      replicatedJobs:
        - name: node
          template: {spec: {template: {spec: {containers: [{name: node, command: [/usr/sbin/sshd, -De]}]}}}}
        - name: launcher
          dependsOn: [{name: node, status: Ready}]
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
            spec:
              template:
                spec:
                  containers:
                    - {name: node, command: [mpirun, old.py], env: [{name: A, value: "1"}, {name: B, value: "2"}],
                       resources: {limits: {nvidia.com/gpu: 4}}}
"""


def understood(trainer: str, runtime: str = "torch-distributed", before: str = "") -> JobFile:
    """The only job of a file with this trainer."""
    (found,) = understand_text(f"{before}\n---\n{JOB.format(runtime=runtime, trainer=trainer)}", "f", "ann").jobs
    return found


def options(job: JobFile) -> dict[str, str]:
    """Options of the convention that tells the nodes."""
    assert job.rules is not None
    (found,) = (one for one in job.rules.conventions if one.name == "trainjob")
    return {name: value for name, _, value in (one.partition("=") for one in found.options)}


@pytest.mark.parametrize(
    ("trainer", "processes"),
    [
        ("numNodes: 1", "1"),
        ("resourcesPerNode: {limits: {nvidia.com/gpu: 4}}", "auto"),
        ("resourcesPerNode: {requests: {cpu: 2}}", "2"),
        ("resourcesPerNode: {requests: {cpu: 1500m}, limits: {cpu: 8}}", "2"),
        ("resourcesPerNode: {limits: {cpu: 3}}", "3"),
        ("numProcPerNode: 5, resourcesPerNode: {requests: {cpu: 2}}", "5"),
        ("numProcPerNode: auto, resourcesPerNode: {limits: {amd.com/gpu: 1, cpu: 6}}", "auto"),
    ],
)
def test_processes_of_torchrun(trainer: str, processes: str) -> None:
    """Torchrun counts GPUs itself; without any Trainer gives it the processors, requested or else allowed."""
    assert options(understood(trainer))["nproc-per-node"] == processes


@pytest.mark.parametrize(
    ("runtime", "trainer", "option", "value"),
    [
        ("deepspeed-distributed", "resourcesPerNode: {limits: {nvidia.com/gpu: 4}}", "slots", "4"),
        ("deepspeed-distributed", "numProcPerNode: 3, resourcesPerNode: {limits: {nvidia.com/gpu: 4}}", "slots", "3"),
        ("xgboost-distributed", "resourcesPerNode: {limits: {nvidia.com/gpu: 2}}", "nproc-per-node", "2"),
        ("xgboost-distributed", "numProcPerNode: 7", "nproc-per-node", "1"),
    ],
)
def test_processes_of_other_frameworks(runtime: str, trainer: str, option: str, value: str) -> None:
    """Slots of an MPI node are its GPUs where the runtime has 1; XGBoost has a worker for each GPU."""
    assert options(understood(trainer, runtime))[option] == value


def test_a_runtime_of_the_same_file() -> None:
    """Its command, variables and resources hold where the job has none; its launcher alone runs the command."""
    job = understood('env: [{name: B, value: "3"}]', "mine", RUNTIME)
    node, launcher = job.roles
    assert (node.name, node.launch, node.tasks_max) == ("node", messages.LAUNCH_NONE, 3)
    assert (launcher.name, list(launcher.argv), launcher.tasks_max) == ("launcher", ["run", "old.py"][:1], 1)
    assert sorted(launcher.environment) == [b"A=1", b"B=3"]
    assert launcher.gpu.num == 4
    assert (launcher.succeeded_enough, list(launcher.after)) == (1, ["node"])
    assert options(job) == {
        "framework": "mpi",
        "worker": "node",
        "launcher": "launcher",
        "slots": "4",
    }


@pytest.mark.parametrize(("wanted", "nodes"), [(1, 1), (2, 1), (4, 3)])
def test_a_launcher_that_is_a_node_counts_as_one(wanted: int, nodes: int) -> None:
    """There is one node beside it at least, as Trainer has it."""
    job = understood(f"numNodes: {wanted}", "deepspeed-distributed")
    assert {role.name: role.tasks_max for role in job.roles} == {"node": nodes, "launcher": 1}
    assert options(job)["launcher-as-worker"] == "yes"


def test_initializers_run_before_the_nodes_where_their_program_is_known() -> None:
    """One without a command is left out, with its source in the remark."""
    text = RUNTIME.replace("mpi: {}", "torch: {}").replace(
        "- name: node\n",
        "- name: model-initializer\n"
        "          template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: model-initializer}}, "
        "spec: {template: {spec: {containers: [{name: model-initializer, COMMAND}]}}}}\n"
        "        - name: node\n",
    )
    job = JOB.format(runtime="mine", trainer="numNodes: 2") + "  initializer: {model: {storageUri: 'hf://a/b'}}\n"
    (known,) = understand_text(f"{text.replace('COMMAND', 'command: [get]')}---\n{job}", "f", "ann").jobs
    assert [role.name for role in known.roles] == ["model-initializer", "node", "launcher"]
    assert list(known.roles[0].environment) == [b"STORAGE_URI=hf://a/b"]
    (unknown,) = understand_text(f"{text.replace('COMMAND', 'image: i')}---\n{job}", "f", "ann").jobs
    assert [role.name for role in unknown.roles] == ["node", "launcher"]
    assert any("hf://a/b is not fetched" in note.text for note in unknown.notes)
