"""PyTorch: the variables of init_process_group, one rank for each task, and those of torchrun (PET_...)."""

from agents.job_setup.told.scene import Scene
from agents.job_setup.told.table import Task, port_of
from agents.job_setup.told.values import Told
from agents.job_setup.told.volcano import names_of

PORT = 23456
PORT_NAMES = ("pytorch", "pytorchjob-port")
RENDEZVOUS_PORT = 29400
RENDEZVOUS_NAMES = ("torchelastic", "rdzv", *PORT_NAMES)


def tell(scene: Scene) -> Told:
    """Tell master, rank and size. Options: master, worker (names of roles), port, nproc-per-node, style=pytorchjob."""
    tasks = _tasks(scene)
    if scene.task not in tasks:
        return Told(names=names_of(scene))
    first, width = tasks[0], max(1, scene.number("nproc-per-node", 1))
    port = port_of(first, PORT_NAMES, scene.number("port", PORT))
    environment = {
        "MASTER_ADDR": scene.reach(first),
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(len(tasks) * width),
        "RANK": str(tasks.index(scene.task)),
    }
    if scene.option("style", "") == "pytorchjob":
        environment |= {
            "PYTHONUNBUFFERED": "1",
            "PET_MASTER_ADDR": scene.reach(first),
            "PET_MASTER_PORT": str(port),
            "PET_NODE_RANK": str(tasks.index(scene.task)),
            "PET_NNODES": str(len(tasks)),
        }
        if scene.options.get("nproc-per-node"):
            environment["PET_NPROC_PER_NODE"] = scene.options["nproc-per-node"]
    return Told(environment, names=names_of(scene))


def tell_elastic(scene: Scene) -> Told:
    """Tell torchrun's options, one torchrun for each task.

    Options: worker, master (names of roles), nnodes or min and max, nproc-per-node, rdzv-backend, rdzv-host, rdzv-port,
    rdzv-id, rdzv-conf, max-restarts, standalone.
    """
    tasks = _tasks(scene)
    if scene.task not in tasks:
        return Told(names=names_of(scene))
    count = str(len(tasks))
    least, most = scene.option("min", ""), scene.option("max", "")
    nodes = f"{least or most}:{most or count}" if least or most else count
    environment = {
        "PET_NNODES": scene.option("nnodes", nodes),
        "PET_RDZV_BACKEND": scene.option("rdzv-backend", "c10d"),
        "PET_RDZV_ENDPOINT": _endpoint(scene, tasks[0]),
        "PET_RDZV_ID": scene.option("rdzv-id", f"{scene.blob.job}-{scene.host.key[2]}"),
        # Without it the agents hang when the job grows, on a store that none fills.
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }
    for option in ("nproc-per-node", "max-restarts", "rdzv-conf"):
        if scene.options.get(option):
            environment[f"PET_{option.upper().replace('-', '_')}"] = scene.options[option]
    if scene.has("standalone"):
        environment["PET_STANDALONE"] = ""
    return Told(environment, names=names_of(scene))


def _endpoint(scene: Scene, first: Task) -> str:
    host = scene.option("rdzv-host", scene.reach(first))
    return f"{host}:{port_of(first, RENDEZVOUS_NAMES, scene.number('rdzv-port', RENDEZVOUS_PORT))}"


def _tasks(scene: Scene) -> tuple[Task, ...]:
    """Return the masters, then the workers: in the order of their ranks."""
    table = scene.table
    return table.tasks_of(scene.option("master", "master")) + table.tasks_of(scene.option("worker", "worker"))
