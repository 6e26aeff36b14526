"""Ray and MindSpore: frameworks whose processes form a cluster around one of them."""

import shlex

from agents.job_setup.told.scene import Scene
from agents.job_setup.told.table import Task, port_of
from agents.job_setup.told.values import Told
from agents.job_setup.told.volcano import names_of

MINDSPORE_PORT = 8118


def tell_ray(scene: Scene) -> Told:
    """Tell head and start. Options: head, worker (names of roles), port, dashboardPort, clientPort."""
    heads = scene.table.tasks_of(scene.option("head", "head"))
    if not heads:
        return Told(names=names_of(scene))
    head = heads[0]
    port = port_of(head, ("ray", "gcs-server", "gcs"), scene.number("port", 6379))
    dashboard = port_of(head, ("ray-dashboard", "dashboard"), scene.number("dashboardPort", 8265))
    environment = {
        "RAY_ADDRESS": f"{scene.reach(head)}:{port}",
        "RAY_API_SERVER_ADDRESS": f"http://{scene.reach(head)}:{dashboard}",
    }
    if scene.task == head:
        environment["LAVA_RAY_START"] = shlex.join(_head(scene, head, port, dashboard))
    else:
        words = ["ray", "start", f"--address={scene.reach(head)}:{port}", *_own(scene), "--block"]
        environment["LAVA_RAY_START"] = shlex.join(words)
    return Told(environment, names=names_of(scene))


def _head(scene: Scene, head: Task, port: int, dashboard: int) -> list[str]:
    client = port_of(head, ("ray-client", "client"), scene.number("clientPort", 10001))
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


def tell_rayjob(scene: Scene) -> Told:
    """Tell a RayJob's head to all, and its dashboard to the submitter. Options: head, port, dashboardPort."""
    told = tell_ray(scene)
    heads = scene.table.tasks_of(scene.option("head", "head"))
    if not heads:
        return told
    head = scene.reach(heads[0])
    environment = {
        "RAY_IP": head,
        "FQ_RAY_IP": head,
        "RAY_PORT": told.environment["RAY_ADDRESS"].rpartition(":")[2],
        "RAY_DASHBOARD_ADDRESS": told.environment["RAY_API_SERVER_ADDRESS"].removeprefix("http://"),
        "RAY_CLUSTER_NAME": scene.table.domain,
        "RAY_CLUSTER_NAMESPACE": "default",
        "RAY_CLOUD_INSTANCE_ID": scene.pod(scene.task),
        "RAY_NODE_TYPE_NAME": "headgroup" if scene.task == heads[0] else scene.task.role,
    }
    return told.joined(Told(environment))


def tell_mindspore(scene: Scene) -> Told:
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
        "MS_SCHED_PORT": str(port_of(where[0], ("mindspore",), scene.number("port", MINDSPORE_PORT))),
        "MS_WORKER_NUM": str(len(workers)),
        "MS_SERVER_NUM": str(len(table.tasks_of(scene.option("server", "server")))),
    }
    if role != "MS_SCHED":
        environment["MS_NODE_ID"] = str(scene.task.index)
    return Told(environment, names=names_of(scene))
