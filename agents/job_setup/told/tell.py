"""Entry point: what one task of a job is told, by the conventions that its job names and by the base of all tasks.

Tasks that have the same table are told from one `Table`: build it once for an order, not once for each task.
"""

from collections.abc import Callable, Sequence
from types import MappingProxyType

from agents.job_setup import task_code
from agents.job_setup.told import (
    base,
    clusters,
    kubernetes,
    launchers,
    mpi,
    pai,
    pytorch,
    slurm,
    ssh,
    tensorflow,
    trainer,
    volcano,
)
from agents.job_setup.told.scene import Scene, options_of
from agents.job_setup.told.table import Table
from agents.job_setup.told.values import TREE, CannotTell, HostFacts, Told
from protos.agents_pb2 import JobSpecBlob
from protos.common_pb2 import TaskHost, TaskRun

CONVENTIONS: dict[str, Callable[[Scene], Told]] = {
    "env": volcano.tell_env,
    "svc": volcano.tell_svc,
    "dns": volcano.tell_dns,
    "ssh": ssh.tell,
    "tensorflow": tensorflow.tell,
    "tfjob": tensorflow.tell_tfjob,
    "pytorch": pytorch.tell,
    "pytorchjob": pytorch.tell_pytorchjob,
    "torchelastic": pytorch.tell_elastic,
    "mpi": mpi.tell,
    "mpijob": mpi.tell_mpijob,
    "horovod": launchers.tell_horovod,
    "deepspeed": launchers.tell_deepspeed,
    "mindspore": clusters.tell_mindspore,
    "ray": clusters.tell_ray,
    "rayjob": clusters.tell_rayjob,
    "pai": pai.tell,
    "slurm": slurm.tell,
    "jobset": kubernetes.tell_jobset,
    "leaderworkerset": kubernetes.tell_leaderworkerset,
    "indexed": kubernetes.tell_indexed,
    "trainjob": trainer.tell_trainjob,
    "jaxjob": trainer.tell_jaxjob,
    "hcclrank": kubernetes.tell_hcclrank,
    task_code.NAME: task_code.tell,
}
FILELESS = ("env", "slurm", "hcclrank", task_code.NAME)  # no files at fixed paths, no names
# The kernel's bound on one NAME=VALUE with its end (MAX_ARG_STRLEN), and a half of that on all (a quarter of the usual
# stack limit): beyond them no program starts.
VARIABLE_MAX = 128 * 1024 - 1
ENVIRONMENT_MAX = 1024 * 1024


def tell(blob: JobSpecBlob, run: TaskRun, table: Table | Sequence[TaskHost], host: HostFacts) -> Told:
    """Return what this task is told.

    Raises:
        CannotTell: the table has no such task, or the job names a convention that is not known here.
    """
    whole = table if isinstance(table, Table) else Table.of(blob, table)
    scene = _scene(blob, run, whole, host)
    told = base.tell(scene)
    for convention in blob.spec.tasks.conventions:
        teller = CONVENTIONS.get(convention.name)
        if teller is None:
            raise CannotTell(f"The convention {convention.name} is not known on {host.host}.")
        told = told.joined(teller(_with(scene, convention.options)))
    return _bounded(_where(told, host))


def needs_files(blob: JobSpecBlob) -> bool:
    """Return True if the job's tasks have files at fixed paths or names, whatever its table will be."""
    return any(convention.name not in FILELESS for convention in blob.spec.tasks.conventions)


def _scene(blob: JobSpecBlob, run: TaskRun, table: Table, host: HostFacts) -> Scene:
    task = table.task(run.role, run.index)
    if task is None:
        raise CannotTell(f"Role {run.role} has no task {run.index} in the table of job {blob.job}.")
    return Scene(blob, table, table.roles[run.role], task, run.run, host, MappingProxyType({}))


def _with(scene: Scene, options: Sequence[str]) -> Scene:
    return Scene(
        scene.blob, scene.table, scene.role, scene.task, scene.run, scene.host, MappingProxyType(options_of(options))
    )


def _where(told: Told, host: HostFacts) -> Told:
    """Name the directory that has the files at fixed paths."""
    if not told.files:
        return told
    return told.joined(Told({"LAVA_TASK_FILES": f"{host.directory}/{TREE}"}))


def _bounded(told: Told) -> Told:
    """Leave out variables that are too long for the kernel, the longest first, and say which."""
    values = told.environment.items()
    sizes = {name: len(name) + len(value.encode("utf-8", "surrogateescape")) + 2 for name, value in values}
    total, left_out = sum(sizes.values()), []
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        if sizes[name] <= VARIABLE_MAX and total <= ENVIRONMENT_MAX:
            break
        left_out.append(name)
        total -= sizes[name]
    if not left_out:
        return told
    kept = {name: value for name, value in told.environment.items() if name not in set(left_out)}
    kept["LAVA_TASK_LEFT_OUT"] = " ".join(sorted(left_out))[:4096]
    return Told(kept, told.files, told.own, told.names, told.path_prefix)
