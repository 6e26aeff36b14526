"""Volcano's conventions: plugin env (VC_TASK_INDEX), plugin svc (host names, host files), and names alone."""

from typing import cast

from agents.job_setup.told.base import variable
from agents.job_setup.told.scene import Scene
from agents.job_setup.told.values import File, Names, Told

HOST_FILES = "/etc/volcano"


def tell_env(scene: Scene) -> Told:
    """Tell the index within the role, under the present and the older name."""
    index = str(scene.task.index)
    return Told({"VC_TASK_INDEX": index, "VK_TASK_INDEX": index})


def tell_svc(scene: Scene) -> Told:
    """Tell the host names of all tasks: in files that follow a resize, and in variables that do not."""
    return scene.once("svc", lambda: _svc(scene))


def _svc(scene: Scene) -> Told:
    environment, files = {}, {}
    for role in scene.table.roles:
        hosts = [scene.in_job(task) for task in role.tasks]
        files[f"{HOST_FILES}/{role.name.replace('-', '_')}.host"] = File(
            "\n".join(hosts).encode()  # no line end behind the last: commands of users make lists by tr "\n" ","
        )
        if scene.has("inject-hosts-env", default=True):
            environment[f"VC_{variable(role.name)}_HOSTS"] = ",".join(hosts)
            environment[f"VC_{variable(role.name)}_NUM"] = str(len(hosts))
    return Told(environment, files, names=names_of(scene))


def tell_dns(scene: Scene) -> Told:
    """Give the tasks names, and nothing else."""
    return Told(names=names_of(scene))


def names_of(scene: Scene) -> Names:
    """Return the names of all tasks: JOB-ROLE-INDEX, the same below the job, and ROLE-INDEX."""
    made = scene.table.made  # the same for all conventions, whatever their options
    if "names" not in made:
        made["names"] = tuple((task.address, scene.names(task)) for task in scene.table.tasks)
    return cast("Names", made["names"])
