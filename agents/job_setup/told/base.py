"""Variables that every task has: its role, its place in it, its run, its ports, and the file with the table."""

import json
import re

from agents.job_setup.told.scene import Scene
from agents.job_setup.told.table import Table, Task
from agents.job_setup.told.values import File, Told

TABLE_FILE = "tasks.json"


def tell(scene: Scene) -> Told:
    """Tell what every task is told."""
    task, host = scene.task, scene.host
    environment = {
        "LAVA_ROLE": task.role,
        "LAVA_ROLE_INDEX": str(task.index),
        "LAVA_ROLE_COUNT": str(scene.role.size),
        "LAVA_TASK_INDEX": str(task.number),
        "LAVA_TASK_COUNT": str(scene.table.size),
        "LAVA_TASK_RUN": str(scene.run),
        "LAVA_TASK_ADDRESS": task.address,
        "LAVA_TASKS_FILE": f"{host.directory}/{TABLE_FILE}",
    }
    for name, ports in task.ports.items():
        environment[f"LAVA_PORT_{variable(name)}"] = ",".join(map(str, ports))
    return Told(environment, own={TABLE_FILE: scene.once(TABLE_FILE, lambda: File(text_of(scene.table).encode()))})


def variable(name: str) -> str:
    """Return a name as part of a variable's name: capitals, digits and underscores."""
    return re.sub(r"[^A-Z0-9_]", "_", name.upper())


def text_of(table: Table) -> str:
    """Return the table as JSON, one task a line."""
    lines = ",\n".join(json.dumps(_entry(task), separators=(",", ":")) for task in table.tasks)
    return f'{{"job":{json.dumps(table.job)},"tasks":[\n{lines}\n]}}\n'


def _entry(task: Task) -> dict[str, object]:
    return {
        "role": task.role,
        "index": task.index,
        "task": task.number,
        "host": task.host,
        "address": task.address,
        "ports": {name: list(ports) for name, ports in task.ports.items()},
    }
