"""Conventions of Kubernetes' job kinds: JobSet, LeaderWorkerSet, indexed Job; and the rank for Ascend's rank table."""

from agents.job_setup.told.scene import Scene
from agents.job_setup.told.table import Task
from agents.job_setup.told.values import Names, Told

NAMESPACE = "default"  # as names have it: lava has none


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
    """Tell the leader, the group's size and the place in it: the leader has 0.

    Options: size, group (its number), subdomain (shared by all groups of the set; else the set's name).
    """
    tasks, group = scene.table.tasks, f"{scene.table.domain}-{scene.number('group', 0)}"
    leader = scene.table.tasks_of("leader")[:1] or tasks[:1]
    order = [*leader, *(task for task in tasks if task not in leader)]
    pods = {task.number: f"{group}-{place}" if place else group for place, task in enumerate(order)}
    domain = scene.option("subdomain", scene.table.domain)
    environment = {
        "LWS_LEADER_ADDRESS": f"{group}.{domain}.{NAMESPACE}" if scene.host.is_private else leader[0].address,
        "LWS_GROUP_SIZE": scene.option("size", str(len(order))),
        "LWS_WORKER_INDEX": str(order.index(scene.task)),
    }
    names = _names(scene, [pods[task.number] for task in tasks], domain)
    return Told(environment, names=tuple((address, (*known, f"{known[-1]}.{NAMESPACE}")) for address, known in names))


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


def _names(scene: Scene, pods: list[str], domain: str = "") -> Names:
    """Return the names of all tasks in turn: each pod's, alone and below the job."""
    return tuple(
        (task.address, (scene.pod(task), pod, f"{pod}.{domain or scene.table.domain}"))
        for task, pod in zip(scene.table.tasks, pods, strict=True)
    )
