"""OpenPAI's variables: those of its present protocol, on request those of 0.x, and FrameworkController's.

Names of roles and ports are inserted as they are.
"""

import os
import uuid

from agents.job_setup.environment import submitted
from agents.job_setup.told import ssh
from agents.job_setup.told.scene import Scene
from agents.job_setup.told.table import RoleTable, Task
from agents.job_setup.told.values import Told
from agents.job_setup.told.volcano import names_of

SHARED_MEMORY_MB = (64, 512)  # where a job does not say, by generation
NAMESPACE = uuid.UUID("6f1c1d51-0d3c-4f0e-9d53-6c2f8a4f1c7b")


def tell(scene: Scene) -> Told:
    """Tell everything.

    Options: generation (0 or 1), user, job, virtual-cluster, cpu.ROLE, gpu.ROLE, memory-mb.ROLE, shm-mb.ROLE,
    min-failed.ROLE, min-succeeded.ROLE, data-dir, output-dir, code-dir, jobssh; or ROLE.cpu, ROLE.mem, ...
    """
    environment = (
        _about_job(scene)
        | scene.once("pai", lambda: _about_tasks(scene))
        | _about_this(scene)
        | _of_the_controller(scene)
    )
    if _generation(scene) == 0:
        environment |= _of_0(scene)
    told = Told(environment, names=names_of(scene))
    return ssh.program(scene).joined(told) if scene.has("jobssh") else told


def _generation(scene: Scene) -> int:
    return min(scene.number("generation", 1), 1)


def framework(scene: Scene) -> str:
    """Return the name of the job with its owner's before it."""
    job = scene.option("job", scene.table.job)
    return job if "~" in job else f"{_user(scene)}~{job}"


def _user(scene: Scene) -> str:
    return scene.option("user", scene.blob.user)


def _file_system(scene: Scene) -> str:
    """Return where shared files lie: the job's own variable, since a site has no such setting."""
    found = submitted([*scene.blob.spec.environment, *scene.role.spec.environment])
    return os.fsdecode(found.get(b"PAI_DEFAULT_FS_URI", b""))


def _about_job(scene: Scene) -> dict[str, str]:
    roles, user = scene.table.roles, _user(scene)
    tasks, names = str(scene.table.size), ",".join(role.name for role in roles)
    return {
        "PAI_JOB_NAME": framework(scene),
        "PAI_FRAMEWORK_NAME": framework(scene),
        "PAI_USER_NAME": user,
        "PAI_USERNAME": user,
        "PAI_VIRTUAL_CLUSTER": scene.option("virtual-cluster", scene.blob.queue),
        "PAI_DEFAULT_FS_URI": _file_system(scene),
        "PAI_TASK_ROLE_COUNT": str(len(roles)),
        "PAI_TASK_ROLE_LIST": names,
        "PAI_TASK_ROLE_INSTANCES": ",".join(f"{task.role}:{task.index}" for task in scene.table.tasks),
        "PAI_TASKS_NUM": tasks,
        "PAI_JOB_TASK_COUNT": tasks,
        "PAI_TASK_ROLES_NUM": str(len(roles)),
        "PAI_JOB_TASK_ROLE_COUNT": str(len(roles)),
        "PAI_JOB_TASK_ROLE_LIST": names,
    }


def _about_tasks(scene: Scene) -> dict[str, str]:
    found: dict[str, str] = {}
    for role in scene.table.roles:
        name = role.name
        found[f"PAI_TASK_ROLE_TASK_COUNT_{name}"] = str(role.size)
        found[f"PAI_RESOURCE_{name}"] = ",".join(map(str, _resources(scene, role)))
        found[f"PAI_MIN_FAILED_TASK_COUNT_{name}"] = _minimum(scene, role, "min-failed", role.spec.failed_enough)
        found[f"PAI_MIN_SUCCEEDED_TASK_COUNT_{name}"] = _minimum(
            scene, role, "min-succeeded", role.spec.succeeded_enough
        )
        found[f"PAI_TASK_ROLE_{name}_HOST_LIST"] = ",".join(_host_and_port(task) for task in role.tasks)
        for task in role.tasks:
            found[f"PAI_HOST_IP_{name}_{task.index}"] = task.address
            for label, ports in task.ports.items():
                found[f"PAI_PORT_LIST_{name}_{task.index}_{label}"] = _listed(ports)
                found[f"PAI_{name}_{task.index}_{label}_PORT"] = _listed(ports)
    return found


def _about_this(scene: Scene) -> dict[str, str]:
    task = scene.task
    found = {
        "PAI_CURRENT_TASK_ROLE_NAME": task.role,
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": str(task.index),
        "PAI_TASK_INDEX": str(task.index),
        "PAI_WORK_DIR": scene.host.cwd,
        "PAI_CONTAINER_HOST_IP": task.address,
        "PAI_CURRENT_CONTAINER_IP": task.address,
        "PAI_CONTAINER_HOST_PORT_LIST": _port_list(scene),
    }
    for label, ports in task.ports.items():
        found[f"PAI_CONTAINER_HOST_{label}_PORT_LIST"] = _listed(ports)
    if http := task.ports.get("http"):
        found |= {"PAI_CONTAINER_HOST_PORT": str(http[0]), "PAI_CURRENT_CONTAINER_PORT": str(http[0])}
    if sshd := task.ports.get("ssh"):
        found["PAI_CONTAINER_SSH_PORT"] = str(sshd[0])
    return found


def _of_0(scene: Scene) -> dict[str, str]:
    role, task = scene.role, scene.task
    gpu, cpu, memory, shared = map(str, _resources(scene, role))
    current = {
        "TASK_COUNT": str(role.size),
        "CPU_COUNT": cpu,
        "MEM_MB": memory,
        "SHM_MB": shared,
        "GPU_COUNT": gpu,
        "MIN_FAILED_TASK_COUNT": _minimum(scene, role, "min-failed", role.spec.failed_enough),
        "MIN_SUCCEEDED_TASK_COUNT": _minimum(scene, role, "min-succeeded", role.spec.succeeded_enough),
    }
    return {f"PAI_CURRENT_TASK_ROLE_{name}": value for name, value in current.items()} | {
        "PAI_DATA_DIR": scene.option("data-dir", ""),
        "PAI_OUTPUT_DIR": scene.option("output-dir", ""),
        "PAI_CODE_DIR": scene.option("code-dir", ""),
        "PAI_CONTAINER_ID": f"{'.'.join(map(str, scene.host.key))}-{task.role}-{task.index}",
        "PAI_TASK_ROLE_NAME": task.role,
        "PAI_TASK_ROLE_NUM": str(role.size),
        "PAI_TASK_ROLE_INDEX": str(task.index),
        "PAI_TASK_CPU_NUM": cpu,
        "PAI_TASK_MEM_MB": memory,
        "PAI_TASK_GPU_NUM": gpu,
    }


def _of_the_controller(scene: Scene) -> dict[str, str]:
    """Return FrameworkController's variables; an attempt's number is that of the retries before it."""
    name, task, attempt = framework(scene), scene.task, scene.host.key[2]
    parts = ["", f"{attempt}", task.role, f"{task.role}/{task.index}", f"{task.role}/{task.index}/{scene.run}"]
    uids = [str(uuid.uuid5(NAMESPACE, f"{scene.host.key[:2]}/{part}")) for part in parts]
    return {
        "FC_FRAMEWORK_NAMESPACE": "default",
        "FC_FRAMEWORK_NAME": name,
        "FC_TASKROLE_NAME": task.role,
        "FC_TASK_INDEX": str(task.index),
        "FC_CONFIGMAP_NAME": f"{name}-attempt",
        "FC_POD_NAME": f"{name}-{task.role}-{task.index}",
        "FC_FRAMEWORK_ATTEMPT_ID": str(max(0, attempt - 1)),
        "FC_TASK_ATTEMPT_ID": str(max(0, scene.run - 1)),
        "FC_FRAMEWORK_UID": uids[0],
        "FC_CONFIGMAP_UID": uids[1],
        "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID": f"{max(0, attempt - 1)}_{uids[1]}",
        "FC_TASKROLE_UID": uids[2],
        "FC_TASK_UID": uids[3],
        "FC_POD_UID": uids[4],
        "FC_TASK_ATTEMPT_INSTANCE_UID": f"{max(0, scene.run - 1)}_{uids[4]}",
    }


def _resources(scene: Scene, role: RoleTable) -> tuple[int, int, int, int]:
    """Return GPUs, processors, memory and shared memory of each task."""
    return (
        _number(scene, role, "gpu", role.gpus),
        _number(scene, role, "cpu", role.slots),
        _number(scene, role, "memory-mb", role.spec.memory_limit_mib),
        _number(scene, role, "shm-mb", SHARED_MEMORY_MB[_generation(scene)]),
    )


def _minimum(scene: Scene, role: RoleTable, option: str, count: int) -> str:
    """Return a count that ends the job: for never, -1, and nothing in 0.x."""
    never = "-1" if _generation(scene) else ""
    return _asked(scene, role, option) or (str(count) if count else never)


def _number(scene: Scene, role: RoleTable, option: str, default: int) -> int:
    text = _asked(scene, role, option)
    return int(text) if text.isascii() and text.isdigit() else default


def _asked(scene: Scene, role: RoleTable, option: str) -> str:
    """Return an option about one role, in either order."""
    short = {"memory-mb": "mem", "shm-mb": "shm"}.get(option, option)
    return scene.options.get(f"{option}.{role.name}") or scene.options.get(f"{role.name}.{short}", "")


def _host_and_port(task: Task) -> str:
    """Return IP:PORT with the port of every task, http; with its first one where it has no such port."""
    ports = task.ports.get("http") or next(iter(task.ports.values()), ())
    return f"{task.address}:{ports[0]}" if ports else task.address


def _port_list(scene: Scene) -> str:
    words = [f"{label}:{_listed(ports)}" for label, ports in scene.task.ports.items()]
    return "".join(f"{word};" for word in words) if _generation(scene) else ";".join(words)


def _listed(ports: tuple[int, ...]) -> str:
    return ",".join(map(str, ports))
