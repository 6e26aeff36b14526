"""Launchers that start ranks from one place or node by node: horovodrun and deepspeed."""

from collections import Counter

from agents.job_setup.told import ssh
from agents.job_setup.told.scene import Scene
from agents.job_setup.told.table import RoleTable, Task, port_of
from agents.job_setup.told.values import File, Told
from agents.job_setup.told.volcano import names_of
from protos.common_pb2 import LAUNCH_EACH

HOROVOD = "/etc/horovod"
DEEPSPEED = "/job/hostfile"  # fixed in DeepSpeed
DEEPSPEED_PORT = 29500


def tell_horovod(scene: Scene) -> Told:
    """Tell the hosts for -H, -hostfile and --host-discovery-script, and ranks to tasks with a process each.

    Options: worker (name of the role), slots (of each worker), slots-in-discovery (true).
    """
    workers = _workers(scene)
    told = scene.once("horovod", lambda: _horovod(scene, workers))
    if not _is_rank(scene, workers):
        return told
    own = {f"HOROVOD_{name}": value for name, value in _ranks(scene, workers.tasks).items()}
    own |= {"HOROVOD_HOSTNAME": scene.in_job(scene.task), **_rendezvous(scene, workers.tasks[0])}
    return told.joined(Told(own))


def _horovod(scene: Scene, workers: RoleTable) -> Told:
    slots = _slots(scene, workers)
    hosts = _hosts(scene, workers)
    ends = f":{slots}" if scene.has("slots-in-discovery", default=True) else ""
    script = "".join(f"{line}\n" for line in ("#!/bin/sh", *(f"echo {host}{ends}" for host in hosts)))
    files = {
        f"{HOROVOD}/hostfile": File(_host_file(hosts, slots)),
        f"{HOROVOD}/discover_hosts.sh": File(script.encode(), 0o555),
    }
    environment = {
        "LAVA_HOROVOD_HOSTS": ",".join(f"{host}:{slots}" for host in hosts),
        "LAVA_HOROVOD_HOSTFILE": scene.path(f"{HOROVOD}/hostfile"),
        "LAVA_DISCOVER_HOSTS": scene.path(f"{HOROVOD}/discover_hosts.sh"),
    }
    return ssh.program(scene).joined(Told(environment, files, names=names_of(scene)))


def tell_deepspeed(scene: Scene) -> Told:
    """Tell the host file of the launcher, the master's address, and ranks to tasks with a process each.

    Options: worker (name of the role), slots (of each worker), port.
    """
    workers = _workers(scene)
    environment = {"PDSH_RCMD_TYPE": "ssh", "LAVA_DEEPSPEED_HOSTFILE": scene.path(DEEPSPEED)}
    if workers.tasks:
        first = workers.tasks[0]
        environment["MASTER_ADDR"] = scene.reach(first)
        environment["MASTER_PORT"] = str(port_of(first, ("deepspeed", "pytorch"), scene.number("port", DEEPSPEED_PORT)))
    if _is_rank(scene, workers):
        ranks = _ranks(scene, workers.tasks)
        environment |= {("WORLD_SIZE" if name == "SIZE" else name): value for name, value in ranks.items()}
    files = scene.once(
        "deepspeed", lambda: {DEEPSPEED: File(_host_file(_hosts(scene, workers), _slots(scene, workers)))}
    )
    return ssh.program(scene).joined(Told(environment, files, names=names_of(scene)))


def _workers(scene: Scene) -> RoleTable:
    """Return the role of the workers: the one named, else the largest."""
    found = scene.table.role(scene.option("worker", "worker"))
    return found or max(scene.table.roles, key=lambda role: len(role.tasks))


def _hosts(scene: Scene, workers: RoleTable) -> list[str]:
    return [scene.in_job(task) for task in workers.tasks]


def _slots(scene: Scene, workers: RoleTable) -> int:
    return scene.number("slots", workers.gpus or workers.slots)


def _is_rank(scene: Scene, workers: RoleTable) -> bool:
    return scene.task in workers.tasks and workers.spec.launch == LAUNCH_EACH


def _host_file(hosts: list[str], slots: int) -> bytes:
    return "".join(f"{host} slots={slots}\n" for host in hosts).encode()


def _ranks(scene: Scene, tasks: tuple[Task, ...]) -> dict[str, str]:
    """Return rank and size: among all, among those of the host, and among those of the same local rank."""
    task = scene.task
    here = [one for one in tasks if one.host == task.host]
    local = here.index(task)
    by_host = scene.once("tasks by host", lambda: Counter(one.host for one in tasks))
    alike = [host for host, count in by_host.items() if count > local]
    return {
        "RANK": str(tasks.index(task)),
        "SIZE": str(len(tasks)),
        "LOCAL_RANK": str(local),
        "LOCAL_SIZE": str(len(here)),
        "CROSS_RANK": str(alike.index(task.host)),
        "CROSS_SIZE": str(len(alike)),
    }


def _rendezvous(scene: Scene, first: Task) -> dict[str, str]:
    """Return where the first task listens for the others, if it has a port for that."""
    port = port_of(first, ("horovod",), 0)
    if not port:
        return {}
    return {
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": first.address,
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port),
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
    }
