"""Slurm's variables of a step, by which JAX, Lightning, NeMo, submitit and others find their ranks.

Nodes are in the order of the ranks, so that the first of the list has rank 0.
"""

from typing import NamedTuple

from agents.job_setup.told.scene import Scene
from agents.job_setup.told.table import Task
from agents.job_setup.told.values import Told
from protos.slurm_words import FOR_LAUNCHERS, compressed, repeated


def tell(scene: Scene) -> Told:
    """Tell one step of all tasks. Options: roles (comma-separated; all)."""
    step = scene.once("slurm", lambda: Step.of(scene))
    if scene.task.number not in step.ranks:
        return Told()
    common = scene.once("slurm variables", lambda: _about_job(scene, step) | _about_step(step) | FOR_LAUNCHERS)
    return Told(common | _about_task(scene, step))


class Step(NamedTuple):
    """Tasks of the step by host, ranks by their numbers among all, and what is told of both."""

    nodes: dict[str, list[Task]]
    ranks: dict[int, int]
    hosts: str
    per_node: str

    @staticmethod
    def of(scene: Scene) -> "Step":
        """Count the tasks of the step."""
        nodes: dict[str, list[Task]] = {}
        tasks = _tasks(scene)
        for task in tasks:
            nodes.setdefault(task.host, []).append(task)
        ranks = {task.number: rank for rank, task in enumerate(tasks)}
        return Step(nodes, ranks, compressed(nodes), repeated(map(len, nodes.values())))


def _tasks(scene: Scene) -> list[Task]:
    wanted = scene.option("roles", "").split(",")
    return [task for task in scene.table.tasks if wanted == [""] or task.role in wanted]


def _about_job(scene: Scene, step: Step) -> dict[str, str]:
    blob, (job, index, attempt) = scene.blob, scene.host.key
    slots = {role.name: role.slots for role in scene.table.roles}
    found = {
        "SLURM_JOB_ID": str(job),
        "SLURM_JOBID": str(job),
        "SLURM_JOB_NAME": scene.table.job,
        "SLURM_JOB_NODELIST": step.hosts,
        "SLURM_NODELIST": step.hosts,
        "SLURM_JOB_NUM_NODES": str(len(step.nodes)),
        "SLURM_NNODES": str(len(step.nodes)),
        "SLURM_JOB_CPUS_PER_NODE": repeated(sum(slots[task.role] for task in found) for found in step.nodes.values()),
        "SLURM_JOB_PARTITION": blob.queue,
        "SLURM_JOB_USER": blob.user,
        "SLURM_JOB_UID": str(blob.uid),
        "SLURM_JOB_GID": str(blob.gid),
        "SLURM_CLUSTER_NAME": blob.cluster,
        "SLURM_SUBMIT_DIR": blob.spec.submit_cwd or blob.spec.cwd,
        "SLURM_SUBMIT_HOST": blob.spec.submit_host,
        "SLURM_TASKS_PER_NODE": step.per_node,
        # Lightning takes a job of several tasks without it for one that was started by mistake.
        "SLURM_NTASKS_PER_NODE": str(max(map(len, step.nodes.values()))),
        "SLURM_JOB_ACCOUNT": blob.spec.project,
    }
    if index:
        found |= {"SLURM_ARRAY_JOB_ID": str(job), "SLURM_ARRAY_TASK_ID": str(index)}
    if attempt > 1:
        found["SLURM_RESTART_COUNT"] = str(attempt - 1)
    return found


def _about_step(step: Step) -> dict[str, str]:
    first, count = next(iter(step.nodes.values()))[0], len(step.ranks)
    return {
        "SLURM_NTASKS": str(count),
        "SLURM_NPROCS": str(count),
        "SLURM_STEP_ID": "0",
        "SLURM_STEPID": "0",
        "SLURM_STEP_NODELIST": step.hosts,
        "SLURM_STEP_NUM_NODES": str(len(step.nodes)),
        "SLURM_STEP_NUM_TASKS": str(count),
        "SLURM_STEP_TASKS_PER_NODE": step.per_node,
        "SLURM_DISTRIBUTION": "block",
        "SLURM_LAUNCH_NODE_IPADDR": first.address,
        "SLURM_SRUN_COMM_HOST": first.address,
    }


def _about_task(scene: Scene, step: Step) -> dict[str, str]:
    task, here = scene.task, step.nodes[scene.task.host]
    slots = {role.name: role.slots for role in scene.table.roles}
    found = {
        "SLURM_PROCID": str(step.ranks[task.number]),
        "SLURM_LOCALID": str(here.index(task)),
        "SLURM_NODEID": str(list(step.nodes).index(task.host)),
        "SLURM_GTIDS": ",".join(str(step.ranks[one.number]) for one in here),
        "SLURMD_NODENAME": task.host,
        "SLURM_TOPOLOGY_ADDR": task.host,
        "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
        "SLURM_CPUS_PER_TASK": str(scene.role.slots),
        "SLURM_CPUS_ON_NODE": str(sum(slots[one.role] for one in here)),
    }
    gpus = {role.name: role.gpus for role in scene.table.roles}
    if on_node := sum(gpus[one.role] for one in here):
        found |= {"SLURM_GPUS_ON_NODE": str(on_node), "SLURM_GPUS_PER_TASK": str(scene.role.gpus)}
    if scene.host.gpus:
        found["SLURM_STEP_GPUS"] = ",".join(map(str, scene.host.gpus))
    return found
