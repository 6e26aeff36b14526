"""TF_CONFIG: TensorFlow's cluster, and the task's place in it."""

import json
from collections.abc import Sequence

from agents.job_setup.told.scene import Scene
from agents.job_setup.told.table import Task, port_of
from agents.job_setup.told.values import Told
from agents.job_setup.told.volcano import names_of

PORT = 2222
PORT_NAMES = ("tensorflow", "tfjob-port")
KINDS = ("ps", "worker", "chief", "evaluator")


def tell(scene: Scene) -> Told:
    """Tell the cluster as Volcano's plugin does, or as a TFJob does (style=tfjob).

    Options: ps, worker, chief, evaluator (names of roles), port, style, dynamic-worker.
    """
    roles = {kind: scene.option(kind, kind) for kind in KINDS}
    kind = next((kind for kind, role in roles.items() if role == scene.task.role), "")
    if not kind or len(scene.table.tasks) == 1:
        return Told(names=names_of(scene))
    addresses = {kind: _addresses(scene, scene.table.tasks_of(role)) for kind, role in roles.items()}
    cluster: dict[str, object] = {kind: found for kind, found in addresses.items() if found}
    place = {"type": kind, "index": scene.task.index}
    config: dict[str, object] = {"cluster": cluster, "task": place}
    if scene.option("style", "") == "tfjob":
        config = {"cluster": _of_a_tfjob(scene, cluster), "task": place, "environment": "cloud"}
    return Told({"TF_CONFIG": json.dumps(config, separators=(",", ":"))}, names=names_of(scene))


def _addresses(scene: Scene, tasks: Sequence[Task]) -> list[str]:
    default = scene.number("port", PORT)
    return [f"{scene.reach(task)}:{port_of(task, PORT_NAMES, default)}" for task in tasks]


def _of_a_tfjob(scene: Scene, cluster: dict[str, object]) -> dict[str, object]:
    """Sort the roles and leave out the evaluator; with dynamic workers a worker knows itself and the servers only."""
    known = {kind: cluster[kind] for kind in sorted(cluster) if kind != "evaluator"}
    if not scene.has("dynamic-worker"):
        return known
    sparse: dict[str, object] = {}
    if scene.task.role == scene.option("worker", "worker"):
        sparse["worker"] = {str(scene.task.index): _addresses(scene, [scene.task])[0]}
    elif scene.task.role == scene.option("ps", "ps"):
        return sparse | {"worker": {}, "ps": _addresses(scene, [scene.task])}
    return sparse | {"ps": cluster.get("ps", [])}
