"""Slurm's variables of a step, by which JAX, Lightning, NeMo, submitit and others find their ranks.

Nodes are in the order of the ranks, so that the first of the list has rank 0.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from agents.job_setup.told.scene import Scene
from agents.job_setup.told.table import Task
from agents.job_setup.told.values import Told


def tell(scene: Scene) -> Told:
    """Tell one step of all tasks. Options: roles (comma-separated; all)."""
    step = scene.once("slurm", lambda: Step.of(scene))
    if scene.task.number not in step.ranks:
        return Told()
    common = scene.once("slurm variables", lambda: _about_job(scene, step) | _about_step(step) | _for_launchers())
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


def _for_launchers() -> dict[str, str]:
    """Return what keeps an mpirun within a task from srun, which is not there."""
    return {
        "OMPI_MCA_plm": "rsh",
        "OMPI_MCA_ras": "^slurm",
        "PRTE_MCA_plm": "ssh",
        "PRTE_MCA_ras": "^slurm",
        "HYDRA_RMK": "lsf",
        "HYDRA_LAUNCHER": "lsf",
    }


def repeated(counts: Iterable[int]) -> str:
    """Return counts in Slurm's notation: 2(x3),1."""
    groups = ((count, len(list(same))) for count, same in groupby(counts))
    return ",".join(f"{count}(x{times})" if times > 1 else str(count) for count, times in groups)


def compressed(hosts: Iterable[str]) -> str:
    """Return hosts in Slurm's notation, in their order: n[01-03,07],login."""
    parts: list[str] = []
    for prefix, same in groupby(map(_parted, hosts), key=lambda part: part[0]):
        digits = [text for _, text in same]
        if not digits[0]:
            parts += [prefix] * len(digits)
        elif len(digits) == 1:
            parts.append(prefix + digits[0])
        else:
            parts.append(f"{prefix}[{_ranges(digits)}]")
    return ",".join(parts)


def _parted(host: str) -> tuple[str, str]:
    """Part a host name into the rest and the digits at its end."""
    digits = re.search(r"[0-9]*$", host)
    end = digits.start() if digits else len(host)
    return host[:end], host[end:]


def _ranges(digits: Sequence[str]) -> str:
    """Join numbers that follow each other and are written in the same width."""
    found: list[list[str]] = []
    for text in digits:
        if found and f"{int(found[-1][-1]) + 1:0{len(found[-1][-1])}d}" == text:
            found[-1].append(text)
        else:
            found.append([text])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else run[0] for run in found)
