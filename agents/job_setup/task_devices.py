"""Devices visible to each process of a job: a task sees those of its own role, and each term of a compound -R is one.

Tasks of a host are counted role by role, as in the rank file. Pure. A device without a role in the allocation is for
all tasks.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from protos.agents_pb2 import Stage
from protos.common_pb2 import HostShare
from protos.jobs_pb2 import JobSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agents.job_setup.host_context import HostContext


class Task(NamedTuple):
    """One task of the host: its role, its number among ``tasks`` of that role there."""

    role: int
    number: int
    tasks: int


def share_of(stage: Stage, host: str) -> HostShare:
    """Return the host's part in the allocation; an empty one if it has none."""
    return next((share for share in stage.allocation if share.host == host), HostShare())


def gpus_of(stage: Stage, host: str) -> Sequence[int]:
    """Return the job's GPUs on that host."""
    return share_of(stage, host).gpus


def has_roles(share: HostShare) -> bool:
    """Return True if its devices are for tasks of certain roles."""
    return bool(share.gpu_roles) or any(one.device_roles for one in share.resources)


def visible(gpus: Iterable[int], stage: Stage, host: "HostContext") -> str:
    """Return the value of the variable for devices.

    They are named by UUID for clients of a daemon, which renumbers them, and on hosts with MIG devices, which have no
    number of their own.
    """
    if stage.gpu.mps or any(uuid.startswith("MIG-") for uuid in host.gpu_uuids):
        return ",".join([host.gpu_uuids[gpu] for gpu in gpus if gpu < len(host.gpu_uuids)])
    return ",".join(map(str, gpus))


def task_in_slot(share: HostShare, slot: int, spec: JobSpec) -> Task | None:
    """Return the task that has a slot of this host, counted from 0; None if there is no such slot."""
    if not 0 <= slot < share.slots:
        return None
    for role, tasks in enumerate(share.tasks_by_role):
        width = _slots_per_task(share, role, spec)
        if slot < tasks * width:
            return Task(role, slot // width, tasks)
        slot -= tasks * width
    return None if share.tasks_by_role else Task(0, slot, share.slots)


def _slots_per_task(share: HostShare, role: int, spec: JobSpec) -> int:
    """Return the slots of each task; one for terms of a compound -R, which the submission does not name as roles."""
    if len(share.tasks_by_role) == 1:
        return max(1, share.slots // max(1, share.tasks_by_role[0]))
    is_named = len(share.tasks_by_role) == len(spec.roles)
    return max(1, spec.roles[role].slots_per_task) if is_named else 1


def first_role(share: HostShare) -> int:
    """Return the first role with tasks there: on the lead host the job's command is one of its tasks."""
    return next((role for role, tasks in enumerate(share.tasks_by_role) if tasks), 0)


def variables_of_all(stage: Stage, host: "HostContext") -> dict[str, str]:
    """Return the variables for all the job's devices on this host."""
    share = share_of(stage, host.host)
    found = {_name(one.name): _joined(one.devices) for one in share.resources if one.devices}
    if host.has_gpus and not stage.gpu.no_variable:
        found[host.gpu_vendor.visible] = visible(share.gpus, stage, host)
    return found


def variables_of_role(role: int, stage: Stage, host: "HostContext") -> dict[str, str]:
    """Return the variables for a role's devices on this host, if devices are for certain roles."""
    share = share_of(stage, host.host)
    parted = [one for one in share.resources if one.device_roles]
    found = {_name(one.name): _joined(_for(role, one.devices, one.device_roles)) for one in parted}
    if share.gpu_roles and not stage.gpu.no_variable:
        found[host.gpu_vendor.visible] = visible(_for(role, share.gpus, share.gpu_roles), stage, host)
    return found


def variables_of_task(task: Task, stage: Stage, host: "HostContext") -> dict[str, str]:
    """Return the variables for a task's own devices, if not all tasks have the same ones."""
    found, share = variables_of_role(task.role, stage, host), share_of(stage, host.host)
    mine = gpus_of_task(task, share, stage)
    if len(mine) < len(share.gpus) and not stage.gpu.no_variable:
        found[host.gpu_vendor.visible] = visible(mine, stage, host)
    return found


def gpus_of_task(task: Task, share: HostShare, stage: Stage) -> list[int]:
    """Return a task's own devices."""
    gpus, wanted = _for(task.role, share.gpus, share.gpu_roles), stage.gpu
    own = wanted.roles[task.role] if task.role < len(wanted.roles) else wanted
    if own.per_task:
        return gpus[task.number * own.per_task : (task.number + 1) * own.per_task]
    if own.block and task.tasks > len(gpus) > 0:
        return [gpus[task.number * len(gpus) // task.tasks]]
    return gpus


def _for(role: int, devices: Sequence[int], roles: Sequence[int]) -> list[int]:
    if not roles:
        return list(devices)
    return [device for device, its in zip(devices, roles, strict=True) if its == role]


def _name(resource: str) -> str:
    """Return the variable's name: LAVA_DEVICES_FPGA=0,2 lists devices of the site's indexed resources."""
    return f"LAVA_DEVICES_{resource.upper()}"


def _joined(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))
