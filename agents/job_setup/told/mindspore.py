"""MindSpore's dynamic cluster: one scheduler, workers, and parameter servers."""

from agents.job_setup.told.scene import Scene
from agents.job_setup.told.table import port_of
from agents.job_setup.told.values import Told
from agents.job_setup.told.volcano import names_of

PORT = 8118


def tell(scene: Scene) -> Told:
    """Tell the role, the scheduler's address and the numbers. Options: scheduler, worker, server (roles), port."""
    table = scene.table
    roles = {
        scene.option("scheduler", "scheduler"): "MS_SCHED",
        scene.option("worker", "worker"): "MS_WORKER",
        scene.option("server", "server"): "MS_PSERVER",
    }
    role = roles.get(scene.task.role)
    scheduler = table.tasks_of(scene.option("scheduler", "scheduler"))
    workers = table.tasks_of(scene.option("worker", "worker"))
    where = (scheduler or workers)[:1]
    if role is None or not where:
        return Told(names=names_of(scene))
    environment = {
        "MS_ROLE": role,
        "MS_SCHED_HOST": where[0].address,  # a name is not taken
        "MS_SCHED_PORT": str(port_of(where[0], ("mindspore",), scene.number("port", PORT))),
        "MS_WORKER_NUM": str(len(workers)),
        "MS_SERVER_NUM": str(len(table.tasks_of(scene.option("server", "server")))),
    }
    if role != "MS_SCHED":
        environment["MS_NODE_ID"] = str(scene.task.index)
    return Told(environment, names=names_of(scene))
