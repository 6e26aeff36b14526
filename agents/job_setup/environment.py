"""Environment of a job: the submitted variables, then LSF's, then those by which MPI libraries find the allocation.

Pure but for the host files, which are kept by content, so that thousands of short jobs on the same hosts share one. The
shepherd adds the variables that differ between elements of an array (index, job label, expanded paths).
"""

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from agents.job_setup import slurm_job
from agents.job_setup.host_context import HostContext
from agents.job_setup.task_devices import first_role, variables_of_all, variables_of_role
from protos import gpu_vendors, names
from protos.agents_pb2 import JobSpecBlob, Stage
from protos.common_pb2 import HostShare, Role
from protos.jobs_pb2 import JobSpec

# Variables of the submitting environment, possibly another job's, that a job must not inherit.
PREFIXES_DROPPED = (
    *(b"LSB_", b"LS_JOBPID=", b"LAVA_JOB_KEY=", b"LAVA_JOB_SOCKET=", b"LAVA_NOTICE_FILE=", b"LAVA_TASK", b"PMI_"),
    *(f"{name}=".encode() for name in gpu_vendors.VISIBLE),
)
USERS_OWN = b"LSB_DEFAULT"  # the queue, project and group that the user has chosen as defaults
# LSF leaves this out if it would be too long; programs then read the host file.
LSB_HOSTS_MAX = 4096
HOST_FILES_KEPT = 256
ROOT_MPI = (
    "OMPI_ALLOW_RUN_AS_ROOT",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
    "PRTE_ALLOW_RUN_AS_ROOT",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM",
)


class HostFiles:
    """Files that list an allocation, named by their content.

    World-readable in a directory that all users may enter. ``used()``: paths that must stay when old files are removed.
    """

    def __init__(self, directory: Path, used: Callable[[], Collection[str]] = tuple) -> None:
        self._directory = directory
        self._used = used
        self._present: dict[str, None] = {}

    def put(self, lines: Iterable[str], kind: str = "") -> str:
        """Return the path of a file with these lines."""
        text = "".join(f"{line}\n" for line in lines).encode()
        path = str(self._directory / hashlib.sha256(text).hexdigest()[:24])
        if path not in self._present:
            write_whole(path, text)
            if len(self._present) > HOST_FILES_KEPT:
                self._forget_some()
        self._present[path] = self._present.pop(path, None)
        return path

    def _forget_some(self) -> None:
        surplus, used = len(self._present) - HOST_FILES_KEPT, self._used()
        for path in [path for path in self._present if path not in used][:surplus]:
            os.unlink(path)
            del self._present[path]


class OwnFiles:
    """Allocation lists of one resizable attempt: each has a name of its own and is replaced as a whole."""

    def __init__(self, directory: Path, name: str) -> None:
        self._stem = str(directory / name)

    def put(self, lines: Iterable[str], kind: str = "") -> str:
        """Replace the list of that kind; return its path."""
        path = f"{self._stem}.{kind}"
        write_whole(path, "".join(f"{line}\n" for line in lines).encode(), 0o755 if kind == DISCOVER else 0o644)
        return path


DISCOVER = "discover.sh"


def write_whole(path: str, text: bytes, mode: int = 0o644) -> None:
    """Replace a file atomically: readers see the old content or the new."""
    temporary = f"{path}.new"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        os.write(descriptor, text)
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
    os.replace(temporary, path)


def discovery(allocation: Sequence[HostShare]) -> list[str]:
    """Return a script that prints each host with its slots, which elastic Horovod polls."""
    return ["#!/bin/sh", "cat <<'.'", *(f"{share.host}:{share.slots}" for share in allocation), "."]


def is_resizable(spec: JobSpec) -> bool:
    """Return True if the allocation may change while the job runs: it has lists of its own, which are replaced then."""
    if spec.HasField("tasks"):
        return any(role.tasks_min < role.tasks_max or role.may_be_absent for role in spec.roles)
    return spec.resizable


def put_lists(allocation: Sequence[HostShare], files: HostFiles | OwnFiles) -> dict[str, str]:
    """Write every list of an allocation; return their paths by variable. The script that signals changes comes last."""
    listing = files.put((f"{share.host} slots={share.slots}" for share in allocation), "mpi")
    found = {
        "LSB_DJOB_HOSTFILE": files.put(slot_hosts(allocation), "hosts"),
        "LSB_DJOB_RANKFILE": files.put(task_hosts(allocation), "ranks"),
        "PRTE_MCA_prte_default_hostfile": listing,
        "OMPI_MCA_orte_default_hostfile": listing,
    }
    if isinstance(files, OwnFiles):
        found["LAVA_DISCOVER_HOSTS"] = files.put(discovery(allocation), DISCOVER)
    return found


def place_variables(allocation: Sequence[HostShare]) -> dict[str, str]:
    """Return LSF's variables about an allocation."""
    slots = slot_hosts(allocation)
    found = {
        "LSB_MCPU_HOSTS": " ".join(f"{share.host} {share.slots}" for share in allocation),
        "LSB_DJOB_NUMPROC": str(len(slots)),
    }
    joined = " ".join(slots)
    if len(joined) < LSB_HOSTS_MAX:
        found["LSB_HOSTS"] = joined
    return found


def slot_hosts(allocation: Sequence[HostShare]) -> list[str]:
    """Return a host name for each slot, in order of the allocation."""
    return [share.host for share in allocation for _ in range(share.slots)]


def task_hosts(allocation: Sequence[HostShare]) -> list[str]:
    """Return a host name for each task, in order of task numbers, or for each slot if the master placed no tasks."""
    # As many roles as the master placed: each term of a compound requirement is one, though the submission names one.
    roles = max((len(share.tasks_by_role) for share in allocation), default=0)
    hosts = [
        share.host
        for role in range(roles)
        for share in allocation
        for _ in range(share.tasks_by_role[role] if role < len(share.tasks_by_role) else 0)
    ]
    return hosts or slot_hosts(allocation)


# Open MPI's daemons drop each other 180 s after the first unanswered probe. The master alone decides whether a silent
# host ends a job.
KEEPALIVES = (b"OMPI_MCA_oob_tcp_keepalive_time", b"PRTE_MCA_oob_tcp_keepalive_time")


def set_by_lava(
    blob: JobSpecBlob,
    stage: Stage,
    home: str,
    script: str,
    host: HostContext,
    files: HostFiles,
    own: OwnFiles | None = None,
) -> dict[bytes, bytes]:
    """Return the variables whose values are lava's, whatever was submitted.

    The shepherd adds those of one element of an array.

    Args:
        script: path of the spooled job script, or empty.
        own: allocation lists of a resizable attempt.
    """
    text: dict[str, str] = {}
    text.update(_about_job(blob, stage, home, script))
    text.update(place_variables(stage.allocation))
    text.update(put_lists(stage.allocation, own or files))
    text.update(_about_host(host))
    text.update(_about_devices(stage, host))
    text.update(_about_binding(stage.allocation, host, files))
    text.update(_for_mpi(blob, host))
    text.update(slurm_job.variables(blob, stage, host))
    text.update(stage.environment)
    return {os.fsencode(name): os.fsencode(value) for name, value in text.items()}


def with_submitted(blob: JobSpecBlob, by_lava: dict[bytes, bytes], is_resizable: bool) -> dict[bytes, bytes]:
    """Return the user's own variables, and lava's, which override them."""
    environment = submitted(blob.spec.environment)
    for name in KEEPALIVES:
        environment.setdefault(name, b"0")
    if is_resizable:  # else torchrun hangs when a job grows, on a store that none fills
        environment.setdefault(b"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", b"1")
    return environment | by_lava


def submitted(lines: Iterable[bytes]) -> dict[bytes, bytes]:
    """Return the user's own variables."""
    kept = (
        line.partition(b"=") for line in lines if not line.startswith(PREFIXES_DROPPED) or line.startswith(USERS_OWN)
    )
    return {name: value for name, separator, value in kept if name and separator}


def _requirement(roles: Sequence[Role]) -> str:
    """The -R of the job; several roles are the terms of a compound one."""
    if len(roles) > 1:
        return " + ".join(f"{role.tasks_min or 1}*{{{role.requirement}}}" for role in roles)
    return "".join(role.requirement for role in roles)


def _about_job(blob: JobSpecBlob, stage: Stage, home: str, script: str) -> dict[str, str]:
    spec = blob.spec
    last = max((part.last for part in spec.array), default=0)
    step = (spec.array[0].step or 1) if spec.array else 0
    slots = sum(role.tasks_max * (role.slots_per_task or 1) for role in spec.roles)
    found = {
        "LSB_JOBID": str(blob.job),
        "LSB_JOBINDEX_STEP": str(step),
        "LSB_JOBINDEX_END": str(last),
        "LSB_JOBNAME": spec.name or names.of_command(spec.command),
        "LSB_QUEUE": stage.queue or blob.queue,
        "LSB_SUB_HOST": spec.submit_host,
        "LSB_PROJECT_NAME": spec.project,
        "LSB_MAX_NUM_PROCESSORS": str(max(slots, 1)),
        "LSB_JOBFILENAME": script or str(blob.job),
        "LSB_EXIT_PRE_ABORT": "99",
        "LSB_JOB_EXECUSER": blob.user,
        "LSB_EFFECTIVE_RSRCREQ": _requirement(spec.roles),
        "LS_SUBCWD": spec.submit_cwd or spec.cwd,
        "LS_EXECCWD": spec.cwd,
        "LS_EXEC_T": "START",
        "LSFUSER": blob.user,
        "USER": blob.user,
        "LOGNAME": blob.user,
        "HOME": home,
    }
    if spec.output_dir:
        found["LSB_OUTDIR"] = spec.output_dir
    if spec.job_group:
        found["LSB_JOBGROUP"] = spec.job_group
    if spec.interactive:
        found["LSB_INTERACTIVE"] = "Y"
    if is_resizable(spec):
        found["LSB_RESIZABLE"] = "Y"
    return found


def _about_host(host: HostContext) -> dict[str, str]:
    found = {"LSF_BINDIR": host.bin_dir, "LAVA_SOCKET": host.socket, "HOSTNAME": host.host}
    if host.job_socket:
        found["LAVA_JOB_SOCKET"] = host.job_socket
    if host.env_dir:
        found |= {"LSF_ENVDIR": host.env_dir, "LAVA_ENVDIR": host.env_dir}
    return found | {"LSF_SERVERDIR": host.bin_dir, "LSF_LIBDIR": host.bin_dir}


def _about_devices(stage: Stage, host: HostContext) -> dict[str, str]:
    """Return the device variables of the job's command: of its task where it is one, elsewhere of the whole job."""
    found = variables_of_all(stage, host)
    if host.gpu_vendor.visible in found:
        found.update(host.gpu_vendor.set_beside)
    lead = stage.allocation[0]
    if lead.host == host.host:
        found.update(variables_of_role(first_role(lead), stage, host))
    return found


def _about_binding(allocation: Sequence[HostShare], host: HostContext, files: HostFiles) -> dict[str, str]:
    """Return the variables of CPU binding, with a file for Open MPI: one line for each task."""
    if not any(share.cpus for share in allocation):
        return {}
    policies = {"": "0", "localprefer": "1", "localonly": "2"}
    lines = []
    for share in allocation:
        for task in share.cpus:
            words = [share.host, _joined(task.cpus)]
            if task.memory:
                words += [_joined(task.nodes), policies[task.memory]]
            lines.append(" ".join(words))
    found = {"LSB_AFFINITY_HOSTFILE": files.put(lines)}
    mine = [task for share in allocation if share.host == host.host for task in share.cpus]
    for number, task in enumerate(mine, 1):
        found[f"RM_CPUTASK{number}"] = _joined(task.cpus)
    found["LSB_BIND_CPU_LIST"] = _joined(sorted({cpu for task in mine for cpu in task.cpus}))
    if any(task.memory for task in mine):
        found["LSB_BIND_MEM_LIST"] = _joined(sorted({node for task in mine for node in task.nodes}))
        found["LSB_BIND_MEM_POLICY"] = mine[0].memory
    return found


def _joined(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _for_mpi(blob: JobSpecBlob, host: HostContext) -> dict[str, str]:
    """Return the variables that make a plain mpirun use exactly the allocation.

    MPICH's hydra needs LSB_MCPU_HOSTS and LSF_BINDIR only.
    """
    blaunch = f"{host.bin_dir}/blaunch"
    found = {"PRTE_MCA_plm_ssh_agent": blaunch, "OMPI_MCA_plm_rsh_agent": blaunch}
    if host.oversubscribed:
        found["OMPI_MCA_mpi_yield_when_idle"] = "1"
    if blob.uid == 0:
        found |= dict.fromkeys(ROOT_MPI, "1")
    return found
