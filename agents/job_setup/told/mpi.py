"""MPI: Volcano's plugin mpi (MPI_HOST), and MPIJobs (/etc/mpi: host file and discovery script)."""

from collections.abc import Callable

from agents.job_setup.told import ssh
from agents.job_setup.told.scene import Scene
from agents.job_setup.told.table import Task
from agents.job_setup.told.values import File, Told
from agents.job_setup.told.volcano import names_of

FOLDER = "/etc/mpi"
HOST_FILE, DISCOVER, REMOTE = f"{FOLDER}/hostfile", f"{FOLDER}/discover_hosts.sh", f"{FOLDER}/kubexec.sh"
CONNECTION_ATTEMPTS = "-o ConnectionAttempts=10"


def tell(scene: Scene) -> Told:
    """Tell the master the workers' hosts, as Volcano's plugin does. Options: master, worker (names of roles)."""
    told = _with_launcher(scene, Told(names=names_of(scene)))
    if scene.task.role != scene.option("master", "master"):
        return told
    workers = scene.table.tasks_of(scene.option("worker", "worker"))
    return told.joined(Told({"MPI_HOST": ",".join(scene.in_job(task) for task in workers)}))


def tell_mpijob(scene: Scene) -> Told:
    """Tell an MPIJob's launcher its workers.

    Options: implementation (OpenMPI, Intel, MPICH), slots, style (v2beta1, v1, v1alpha1), launcher, worker
    (names of roles), launcher-as-worker.
    """
    launcher, worker = scene.option("launcher", "launcher"), scene.option("worker", "worker")
    is_launcher = scene.task.role == launcher
    slots, files = scene.number("slots", 1), scene.once("mpijob", lambda: _files(scene, launcher, worker))
    environment = {"K_MPI_JOB_ROLE": "launcher" if is_launcher else "worker"} if _is_v2(scene) else {}
    told = _with_launcher(scene, Told(environment, files, names=scene.once("full names", lambda: _full_names(scene))))
    if is_launcher:
        told = told.joined(Told(_for_launcher(scene, slots)))
    return _with_remote(scene, told) if not _is_v2(scene) else told


def tell_set(scene: Scene, name_of: Callable[[Scene, Task], str]) -> Told:
    """Tell the launcher of a TrainJob its nodes.

    Options: launcher, worker (names of roles), slots, launcher-as-worker.

    Args:
        name_of: the name of a task within the job.
    """
    launcher = scene.option("launcher", "launcher")
    nodes = [*scene.table.tasks_of(launcher)] if scene.has("launcher-as-worker") else []
    nodes += scene.table.tasks_of(scene.option("worker", "node"))
    program = ssh.program(scene, {name_of(scene, task): task for task in scene.table.tasks})
    if scene.task.role != launcher:
        return program
    slots = scene.number("slots", 1)
    hosts = [name_of(scene, task) if scene.host.is_private else task.host for task in nodes]
    files = {HOST_FILE: File("".join(f"{host} slots={slots}\n" for host in hosts).encode(), 0o444)}
    return program.joined(Told(_remote_agents(scene) | _open_mpi(scene, slots), files))


def _files(scene: Scene, launcher: str, worker: str) -> dict[str, File]:
    slots, workers = scene.number("slots", 1), list(scene.table.tasks_of(worker))
    if scene.has("launcher-as-worker"):
        workers = [*scene.table.tasks_of(launcher), *workers]
    names = [_host(scene, task) for task in workers]
    return {
        HOST_FILE: File("".join(f"{_line(scene, name, slots)}\n" for name in names).encode()),
        DISCOVER: File(_discovery(scene, sorted(names), slots).encode(), 0o555),
    }


def _is_v2(scene: Scene) -> bool:
    return scene.option("style", "v2beta1") == "v2beta1"


def _host(scene: Scene, task: Task) -> str:
    """Return a worker's name: as a service since v2beta1, and JOB-ROLE-INDEX before."""
    if not scene.host.is_private:
        return task.host
    if not _is_v2(scene):
        return scene.pod(task)
    domain = scene.table.domain
    pod = f"{domain}-{task.role}" if task.role == scene.option("launcher", "launcher") else scene.pod(task)
    return f"{pod}.{domain}.default.svc"


def _full_names(scene: Scene) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((task.address, scene.full_names(task)) for task in scene.table.tasks)


def _is_colon(scene: Scene) -> bool:
    return scene.option("implementation", "OpenMPI").lower() != "openmpi"


def _line(scene: Scene, host: str, slots: int) -> str:
    return f"{host}:{slots}" if _is_colon(scene) else f"{host} slots={slots}"


def _discovery(scene: Scene, names: list[str], slots: int) -> str:
    ends = "" if _is_v2(scene) else f":{slots}"
    return "".join(f"{line}\n" for line in ("#!/bin/sh", *(f"echo {name}{ends}" for name in names)))


def _for_launcher(scene: Scene, slots: int) -> dict[str, str]:
    """Return the launcher's variables; one that is not a worker has no devices."""
    own = {} if scene.has("launcher-as-worker") else {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}
    match scene.option("implementation", "OpenMPI").lower():
        case "intel":
            found = _intel(scene, slots)
        case "mpich":
            found = _hydra(scene)
        case _:
            found = _open_mpi(scene, slots)
    return own | found


def _open_mpi(scene: Scene, slots: int) -> dict[str, str]:
    """Return the same settings for Open MPI up to 4 and, since it ignores those, for 5."""
    path = scene.path(HOST_FILE)
    return {
        "OMPI_MCA_orte_default_hostfile": path,
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_set_default_slots": str(slots),
        "OMPI_MCA_plm_rsh_args": CONNECTION_ATTEMPTS,
        "PRTE_MCA_prte_default_hostfile": path,
        "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
        "PRTE_MCA_prte_set_default_slots": str(slots),
        "PRTE_MCA_plm_ssh_args": CONNECTION_ATTEMPTS,
    }


def _intel(scene: Scene, slots: int) -> dict[str, str]:
    return {
        "I_MPI_HYDRA_HOST_FILE": scene.path(HOST_FILE),
        "I_MPI_HYDRA_BOOTSTRAP": "rsh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC": ssh.path_of_program(scene),
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": CONNECTION_ATTEMPTS,
        "I_MPI_PERHOST": str(slots),
    }


def _hydra(scene: Scene) -> dict[str, str]:
    return {
        "HYDRA_HOST_FILE": scene.path(HOST_FILE),
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": ssh.path_of_program(scene),
        "HYDRA_LAUNCH_EXTRA_ARGS": CONNECTION_ATTEMPTS,
    }


def _with_launcher(scene: Scene, told: Told) -> Told:
    """Add the program ssh, by which every launcher reaches hosts under the names of tasks."""
    return ssh.program(scene).joined(told).joined(Told(_remote_agents(scene)))


def _remote_agents(scene: Scene) -> dict[str, str]:
    path = ssh.path_of_program(scene)
    return {"OMPI_MCA_plm_rsh_agent": path, "PRTE_MCA_plm_ssh_agent": path}


def _with_remote(scene: Scene, told: Told) -> Told:
    """Add the remote start of v1: horovodrun calls a program of exactly this path."""
    script = f'#!/bin/sh\nexec "{ssh.path_of_program(scene)}" "$@"\n'
    remote = scene.path(REMOTE)
    agents = {"OMPI_MCA_plm_rsh_agent": remote} if scene.task.role == scene.option("launcher", "launcher") else {}
    return told.joined(Told(agents, {REMOTE: File(script.encode(), 0o555)}))
