"""Slurm's variables of a job that was submitted by sbatch, srun or salloc: those of its batch step.

What follows from the options alone (SLURM_NTASKS, SLURM_CPUS_PER_TASK, ...) the command has put into the submitted
environment; here comes what the allocation decides. The shepherd adds what differs between elements and attempts.
"""

from collections.abc import Sequence

from agents.job_setup.host_context import HostContext
from agents.job_setup.task_devices import gpus_of
from protos import names
from protos.agents_pb2 import JobSpecBlob, Stage
from protos.common_pb2 import HostShare
from protos.jobs_pb2 import JobSpec
from protos.slurm_words import FOR_LAUNCHERS, compressed, repeated


def variables(blob: JobSpecBlob, stage: Stage, host: HostContext) -> dict[str, str]:
    """Return the variables of the batch step on this host; none for a job in other words."""
    if not blob.spec.HasField("slurm"):
        return {}
    return _about_job(blob, stage) | _about_host(stage, host) | _about_array(blob) | FOR_LAUNCHERS


def _about_job(blob: JobSpecBlob, stage: Stage) -> dict[str, str]:
    spec, allocation = blob.spec, stage.allocation
    hosts = compressed(share.host for share in allocation)
    count = str(len(allocation))
    tasks = repeated(tasks_of(spec, share) for share in allocation)
    return {
        "SLURM_JOB_ID": str(blob.job),
        "SLURM_JOBID": str(blob.job),
        "SLURM_JOB_NAME": spec.name or names.of_command(spec.command),
        "SLURM_JOB_NODELIST": hosts,
        "SLURM_NODELIST": hosts,
        "SLURM_JOB_NUM_NODES": count,
        "SLURM_NNODES": count,
        "SLURM_JOB_CPUS_PER_NODE": repeated(share.slots for share in allocation),
        "SLURM_TASKS_PER_NODE": tasks,
        "SLURM_JOB_PARTITION": stage.queue or blob.queue,
        "SLURM_JOB_ACCOUNT": spec.project or "default",
        "SLURM_JOB_USER": blob.user,
        "SLURM_JOB_UID": str(blob.uid),
        "SLURM_JOB_GID": str(blob.gid),
        "SLURM_CLUSTER_NAME": blob.cluster,
        "SLURM_SUBMIT_DIR": spec.submit_cwd or spec.cwd,
        "SLURM_SUBMIT_HOST": spec.submit_host,
    }


def tasks_of(spec: JobSpec, share: HostShare) -> int:
    """Return the number of tasks that a job in Slurm's words, which has one role, has on a host."""
    width = max((role.slots_per_task for role in spec.roles), default=1) or 1
    return sum(share.tasks_by_role) or max(1, share.slots // width)


def _about_host(stage: Stage, host: HostContext) -> dict[str, str]:
    mine = next((share for share in stage.allocation if share.host == host.host), HostShare())
    found = {
        "SLURMD_NODENAME": host.host,
        "SLURM_CPUS_ON_NODE": str(mine.slots),
        "SLURM_NODEID": str(_position(stage.allocation, host.host)),
        "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0",
        "SLURM_TOPOLOGY_ADDR": host.host,
        "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
    }
    if gpus := gpus_of(stage, host.host):
        found["SLURM_GPUS_ON_NODE"] = str(len(gpus))
        found["SLURM_JOB_GPUS"] = ",".join(map(str, gpus))
    return found


def _position(allocation: Sequence[HostShare], host: str) -> int:
    return next((number for number, share in enumerate(allocation) if share.host == host), 0)


def _about_array(blob: JobSpecBlob) -> dict[str, str]:
    """Return what all elements of an array are told of it, in the numbers of its user."""
    spec = blob.spec
    if not spec.array:
        return {}
    base = spec.slurm.array_base
    steps = {part.step or 1 for part in spec.array if part.last > part.first}
    return {
        "SLURM_ARRAY_JOB_ID": str(blob.job),
        "SLURM_ARRAY_TASK_MIN": str(min(part.first for part in spec.array) - base),
        "SLURM_ARRAY_TASK_MAX": str(max(part.last for part in spec.array) - base),
        "SLURM_ARRAY_TASK_STEP": str(steps.pop() if len(steps) == 1 else 1),
        "SLURM_ARRAY_TASK_COUNT": str(sum((part.last - part.first) // (part.step or 1) + 1 for part in spec.array)),
    }


def program_arguments(spec: JobSpec) -> tuple[str, ...]:
    """Return the arguments of the job's script."""
    return tuple(spec.slurm.arguments) if spec.HasField("slurm") else tuple(spec.script_arguments)
