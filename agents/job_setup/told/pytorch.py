"""PyTorch: the variables of init_process_group, one rank for each task, and those of torchrun (PET_...)."""

from dataclasses import replace

from agents.job_setup.told.scene import Scene
from agents.job_setup.told.table import RoleTable, Task, port_of
from agents.job_setup.told.values import Told
from agents.job_setup.told.volcano import names_of

PORT = 23456
PORT_NAMES = ("pytorch", "pytorchjob-port")
RENDEZVOUS_PORT = 29400
ELASTIC = ("min", "max", "rdzv-backend", "rdzv-host", "rdzv-port", "rdzv-id", "rdzv-conf", "standalone")
RENDEZVOUS_NAMES = ("torchelastic", "rdzv", *PORT_NAMES)
# A task that leaves costs each torchrun that stays one of its restarts, and there are none by default.
RESTARTS = 100


def tell(scene: Scene) -> Told:
    """Tell master, rank and size. Options: master, worker (names of roles), port, nproc-per-node, style."""
    if scene.option("style", "") == "pytorchjob":
        return tell_pytorchjob(replace(scene, options={**scene.options, "style": ""}))
    tasks = _tasks(scene)
    if scene.task not in tasks:
        return Told(names=names_of(scene))
    environment = {
        "MASTER_ADDR": scene.reach(tasks[0]),
        "MASTER_PORT": str(port_of(tasks[0], PORT_NAMES, scene.number("port", PORT))),
        "WORLD_SIZE": str(_size(scene) * max(1, scene.number("nproc-per-node", 1))),
        "RANK": str(_rank(scene)),
    }
    return Told(environment, names=names_of(scene))


def tell_pytorchjob(scene: Scene) -> Told:
    """Tell the same, and torchrun's options: for a fixed number of nodes, or of the rendezvous if some are given."""
    tasks, told = _tasks(scene), tell(scene)
    if scene.task not in tasks:
        return told
    told = told.joined(Told({"PYTHONUNBUFFERED": "1"}))
    if any(option in scene.options for option in ELASTIC):
        return told.joined(tell_elastic(_with_port(scene)))
    environment = {
        "PET_MASTER_ADDR": told.environment["MASTER_ADDR"],
        "PET_MASTER_PORT": told.environment["MASTER_PORT"],
        "PET_NODE_RANK": told.environment["RANK"],
        "PET_NNODES": str(_size(scene)),
    }
    return told.joined(Told(environment | _given(scene, "nproc-per-node", "max-restarts")))


def _with_port(scene: Scene) -> Scene:
    """Let the rendezvous be at the job's own port if it names none."""
    return replace(scene, options={"rdzv-port": str(PORT), **scene.options})


def tell_elastic(scene: Scene) -> Told:
    """Tell torchrun's options, one torchrun for each task.

    Options: worker, master (names of roles), nnodes or min and max, nproc-per-node, rdzv-backend, rdzv-host, rdzv-port,
    rdzv-id, rdzv-conf, max-restarts, standalone.
    """
    tasks = _tasks(scene)
    if scene.task not in tasks:
        return Told(names=names_of(scene))
    nodes = scene.option("nnodes", _nodes(scene, _size(scene)))
    environment = {
        "PET_NNODES": nodes,
        "PET_RDZV_BACKEND": scene.option("rdzv-backend", "c10d"),
        "PET_RDZV_ENDPOINT": _endpoint(scene, tasks[0]),
        "PET_RDZV_ID": scene.option("rdzv-id", f"{scene.blob.job}-{scene.host.key[2]}"),
        # Without it the agents hang when the job grows, on a store that none fills.
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }
    if ":" in nodes:
        environment["PET_MAX_RESTARTS"] = str(RESTARTS)
    if scene.role.gpus > 1:
        environment["PET_NPROC_PER_NODE"] = str(scene.role.gpus)
    environment |= _given(scene, "nproc-per-node", "max-restarts", "rdzv-conf")
    if scene.has("standalone"):
        environment["PET_STANDALONE"] = ""
    return Told(environment, names=names_of(scene))


def _nodes(scene: Scene, now: int) -> str:
    """Return the number of nodes, or least and most: of the options, else the range of the roles."""
    least, most = scene.option("min", ""), scene.option("max", "")
    if least or most:
        return f"{least or most}:{most or now}"
    specs = [role.spec for role in scene.table.roles if role.name in _roles(scene)]
    fewest = max(1, sum(spec.tasks_min for spec in specs))
    largest = sum(max(spec.tasks_min, spec.tasks_max) for spec in specs)
    return f"{fewest}:{largest}" if largest > fewest else str(now)


def _given(scene: Scene, *options: str) -> dict[str, str]:
    """Return torchrun's variables of those options that are given."""
    given = {option: scene.options[option] for option in options if scene.options.get(option)}
    return {f"PET_{option.upper().replace('-', '_')}": value for option, value in given.items()}


def _endpoint(scene: Scene, first: Task) -> str:
    host = scene.option("rdzv-host", scene.reach(first))
    return f"{host}:{port_of(first, RENDEZVOUS_NAMES, scene.number('rdzv-port', RENDEZVOUS_PORT))}"


def _tasks(scene: Scene) -> tuple[Task, ...]:
    """Return the masters, then the workers: in the order of their ranks."""
    return tuple(task for role in _roles(scene) for task in scene.table.tasks_of(role))


def _found_roles(scene: Scene) -> list[RoleTable]:
    return [role for name in _roles(scene) if (role := scene.table.role(name)) is not None]


def _size(scene: Scene) -> int:
    return sum(role.size for role in _found_roles(scene))


def _rank(scene: Scene) -> int:
    before = 0
    for role in _found_roles(scene):
        if role.name == scene.task.role:
            break
        before += role.size
    return before + scene.role.place_of(scene.task)


def _roles(scene: Scene) -> tuple[str, ...]:
    """Return the names of both roles; of a job with one role of another name that one, unless the options say which."""
    named = scene.option("master", "master"), scene.option("worker", "worker")
    names = [role.name for role in scene.table.roles]
    is_open = not (scene.options.get("master") or scene.options.get("worker"))
    return tuple(names) if is_open and len(names) == 1 and names[0] not in named else named
