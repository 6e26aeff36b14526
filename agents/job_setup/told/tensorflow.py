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
    """Tell the cluster as Volcano's plugin does. Options: ps, worker, chief, evaluator (roles), port, style."""
    if scene.option("style", "") == "tfjob":
        return tell_tfjob(scene)
    return _tell(scene, {kind: scene.option(kind, kind) for kind in KINDS}, is_tfjob=False)


def tell_tfjob(scene: Scene) -> Told:
    """Tell the cluster as a TFJob does, whose chief may be called master. Options: dynamic-worker, port."""
    return _tell(scene, {kind: kind for kind in (*KINDS, "master")}, is_tfjob=True)


def _tell(scene: Scene, roles: dict[str, str], is_tfjob: bool) -> Told:
    kind = next((kind for kind, role in roles.items() if role == scene.task.role), "")
    if not kind or len(scene.table.tasks) == 1:
        return Told(names=names_of(scene))
    addresses = scene.once(
        "tensorflow", lambda: {kind: _addresses(scene, scene.table.tasks_of(role)) for kind, role in roles.items()}
    )
    cluster: dict[str, object] = {kind: found for kind, found in addresses.items() if found}
    place = {"type": kind, "index": scene.task.index}
    config: dict[str, object] = {"cluster": cluster, "task": place}
    if is_tfjob:
        config = {"cluster": _of_a_tfjob(scene, cluster), "task": place, "environment": "cloud"}
    return Told({"TF_CONFIG": json.dumps(config, separators=(",", ":"))}, names=names_of(scene))


def _addresses(scene: Scene, tasks: Sequence[Task]) -> list[str]:
    default = scene.number("port", PORT)
    return [f"{scene.reach(task)}:{port_of(task, PORT_NAMES, default)}" for task in tasks]


def _of_a_tfjob(scene: Scene, cluster: dict[str, object]) -> dict[str, object]:
    """Sort the roles and leave out the evaluator; with dynamic workers a worker knows itself and the servers only."""
    known = {kind: cluster[kind] for kind in sorted(cluster) if kind != "evaluator"}
    if not scene.has("dynamic-worker") or scene.task.role not in ("worker", "ps"):
        return known
    own = _addresses(scene, [scene.task])
    if scene.task.role == "ps":
        return {"worker": {}, "ps": own}
    return {"worker": {str(scene.task.index): own[0]}, "ps": cluster.get("ps", [])}
