"""Ray: address of the head, and the command line that starts this node with no more than its allocation."""

import shlex

from agents.job_setup.told.scene import Scene
from agents.job_setup.told.table import Task, port_of
from agents.job_setup.told.values import Told
from agents.job_setup.told.volcano import names_of


def tell(scene: Scene) -> Told:
    """Tell head and start. Options: head, worker (names of roles), port, dashboardPort, clientPort."""
    heads = scene.table.tasks_of(scene.option("head", "head"))
    if not heads:
        return Told(names=names_of(scene))
    head = heads[0]
    port = port_of(head, ("ray",), scene.number("port", 6379))
    environment = {"RAY_ADDRESS": f"{scene.reach(head)}:{port}"}
    if scene.task == head:
        environment["LAVA_RAY_START"] = shlex.join(_head(scene, head, port))
    elif scene.task.role == scene.option("worker", "worker"):
        words = ["ray", "start", f"--address={scene.reach(head)}:{port}", *_own(scene), "--block"]
        environment["LAVA_RAY_START"] = shlex.join(words)
    return Told(environment, names=names_of(scene))


def _head(scene: Scene, head: Task, port: int) -> list[str]:
    dashboard = port_of(head, ("ray-dashboard",), scene.number("dashboardPort", 8265))
    client = port_of(head, ("ray-client",), scene.number("clientPort", 10001))
    return [
        *("ray", "start", "--head", f"--port={port}"),
        *("--dashboard-host=0.0.0.0", f"--dashboard-port={dashboard}", f"--ray-client-server-port={client}"),
        *_own(scene),
        "--block",
    ]


def _own(scene: Scene) -> list[str]:
    """Return the bounds of this node: Ray takes the whole machine otherwise."""
    return [
        f"--node-ip-address={scene.task.address}",
        f"--num-cpus={scene.role.slots}",
        f"--num-gpus={len(scene.host.gpus)}",
    ]
