"""Kubeflow's Trainer and JAXJob: nodes of a training job, told by its framework where the first of them is."""

from agents.job_setup.told import mpi
from agents.job_setup.told.scene import Scene
from agents.job_setup.told.table import Task, port_of
from agents.job_setup.told.values import Names, Told
from agents.job_setup.told.volcano import names_of

PORT, PORT_NAMES = 29500, ("trainer",)
JAX_PORT, JAX_PORT_NAMES = 6666, ("jaxjob-port",)


def tell_trainjob(scene: Scene) -> Told:
    """Tell the nodes of a TrainJob in the words of its framework.

    Options: framework (torch, jax, xgboost, mpi), worker (the role of the nodes), nproc-per-node, port; of mpi also
    launcher, slots, launcher-as-worker.
    """
    names = scene.once("nodes", lambda: _names(scene))
    if scene.option("framework", "") == "mpi":
        return mpi.tell_set(scene, _name).joined(Told(names=names))
    nodes = scene.table.tasks_of(scene.option("worker", "node"))
    tellers = {"torch": _torch, "jax": _jax, "xgboost": _xgboost}
    teller = tellers.get(scene.option("framework", ""))
    if teller is None or scene.task not in nodes:
        return Told(names=names)
    port = str(port_of(nodes[0], PORT_NAMES, scene.number("port", PORT)))
    return Told(teller(scene, nodes, _address(scene, nodes[0]), port), names=names)


def _names(scene: Scene) -> Names:
    return tuple((task.address, (_name(scene, task),)) for task in scene.table.tasks)


def _name(scene: Scene, task: Task) -> str:
    """Return the name of a pod of the JobSet that a TrainJob becomes: each of its roles is one job there."""
    domain = scene.table.domain
    return f"{domain}-{task.role}-0-{task.index}.{domain}"


def _address(scene: Scene, first: Task) -> str:
    return _name(scene, first) if scene.host.is_private else first.address


def _torch(scene: Scene, nodes: tuple[Task, ...], address: str, port: str) -> dict[str, str]:
    """Return torchrun's options: neither RANK nor WORLD_SIZE, which torchrun sets itself."""
    return {
        "PET_NNODES": str(len(nodes)),
        "PET_NPROC_PER_NODE": scene.option("nproc-per-node", "auto"),
        "PET_NODE_RANK": str(nodes.index(scene.task)),
        "PET_MASTER_ADDR": address,
        "PET_MASTER_PORT": port,
    }


def _jax(scene: Scene, nodes: tuple[Task, ...], address: str, port: str) -> dict[str, str]:
    return {
        "JAX_NUM_PROCESSES": str(len(nodes)),
        "JAX_PROCESS_ID": str(nodes.index(scene.task)),
        "JAX_COORDINATOR_ADDRESS": f"{address}:{port}",
    }


def _xgboost(scene: Scene, nodes: tuple[Task, ...], address: str, port: str) -> dict[str, str]:
    return {
        "DMLC_TRACKER_URI": address,
        "DMLC_TRACKER_PORT": port,
        "DMLC_TASK_ID": str(nodes.index(scene.task)),
        "DMLC_NUM_WORKER": str(len(nodes) * scene.number("nproc-per-node", 1)),
    }


def tell_jaxjob(scene: Scene) -> Told:
    """Tell the workers of a JAXJob their coordinator, which is the first of them. Options: worker (role), port."""
    workers = scene.table.tasks_of(scene.option("worker", "worker"))
    if scene.task not in workers:
        return Told(names=names_of(scene))
    environment = {
        "PYTHONUNBUFFERED": "1",
        "COORDINATOR_ADDRESS": scene.pod(workers[0]) if scene.host.is_private else workers[0].address,
        "COORDINATOR_PORT": str(port_of(workers[0], JAX_PORT_NAMES, scene.number("port", JAX_PORT))),
        "NUM_PROCESSES": str(len(workers)),
        "PROCESS_ID": str(workers.index(scene.task)),
    }
    return Told(environment, names=names_of(scene))
