"""Conventions of Kubernetes' job kinds: JobSet, LeaderWorkerSet, indexed Job; and the rank for Ascend's rank table."""

from agents.job_setup.told.scene import Scene
from agents.job_setup.told.table import Task
from agents.job_setup.told.values import Told


def tell_jobset(scene: Scene) -> Told:
    """Tell the index of the task's job and of its pod in it.

    Options: ROLE.pods (pods of one of its jobs), network, subdomain.
    """
    job, pod = _of_jobset(scene, scene.task)
    told = Told({"JOB_INDEX": str(job), "JOB_COMPLETION_INDEX": str(pod)})
    if not scene.has("network", default=True):
        return told
    pods = [_jobset_pod(scene, task) for task in scene.table.tasks]
    return told.joined(Told(names=_names(scene, pods, scene.option("subdomain", scene.table.domain))))


def tell_leaderworkerset(scene: Scene) -> Told:
    """Tell the leader, the group's size and the place in it: the leader has 0. Option: size."""
    tasks = scene.table.tasks
    leader = scene.table.tasks_of("leader")[:1] or tasks[:1]
    order = [*leader, *(task for task in tasks if task not in leader)]
    domain = scene.table.domain
    pods = {task.number: f"{domain}-0-{place}" if place else f"{domain}-0" for place, task in enumerate(order)}
    address = f"{pods[leader[0].number]}.{domain}" if scene.host.is_private else leader[0].address
    environment = {
        "LWS_LEADER_ADDRESS": address,
        "LWS_GROUP_SIZE": scene.option("size", str(len(order))),
        "LWS_WORKER_INDEX": str(order.index(scene.task)),
    }
    return Told(environment, names=_names(scene, [pods[task.number] for task in tasks]))


def tell_indexed(scene: Scene) -> Told:
    """Tell the index; the names are JOB-INDEX."""
    pods = [f"{scene.table.domain}-{task.index}" for task in scene.table.tasks]
    return Told({"JOB_COMPLETION_INDEX": str(scene.task.index)}, names=_names(scene, pods))


def tell_hcclrank(scene: Scene) -> Told:
    """Tell the rank of masters, then workers, as Volcano's plugin notes it. Options: master, worker (roles)."""
    table = scene.table
    tasks = table.tasks_of(scene.option("master", "master")) + table.tasks_of(scene.option("worker", "worker"))
    return Told({"HCCL_RANK_INDEX": str(tasks.index(scene.task))} if scene.task in tasks else {})


def _of_jobset(scene: Scene, task: Task) -> tuple[int, int]:
    return divmod(task.index, max(1, scene.number(f"{task.role}.pods", 1)))


def _jobset_pod(scene: Scene, task: Task) -> str:
    job, pod = _of_jobset(scene, task)
    return f"{scene.table.domain}-{task.role}-{job}-{pod}"


def _names(scene: Scene, pods: list[str], domain: str = "") -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the names of all tasks in turn: each pod's, alone and below the job."""
    return tuple(
        (task.address, (scene.pod(task), pod, f"{pod}.{domain or scene.table.domain}"))
        for task, pod in zip(scene.table.tasks, pods, strict=True)
    )
