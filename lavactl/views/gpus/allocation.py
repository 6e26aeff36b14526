"""``bjobs -l -gpu``: the GPUs allocated to a job on its hosts, and the tasks that use each."""

from lavactl.text.render import MISSING
from lavactl.text.roles import gpu_request
from lavactl.text.units import size
from lavactl.views.hosts import gpus_of, model_name
from lavactl.wire import messages
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from lavactl.io import Io

ROW = " {:<16} {:<4} {:<6} {:<17} {:<17} {:<14} {:<7} {:<6} {:<7} {:<6} {}"
TITLES = ("HOST", "TASK", "GPU_ID", "GI_PLACEMENT/SIZE", "CI_PLACEMENT/SIZE", "MODEL", "MTOTAL", "FACTOR", "MRSV",
          "SOCKET", "NVLINK/XGMI")  # fmt: skip


class DevicesOfHosts:
    """GPUs of hosts by GPU number; each host is queried once."""

    def __init__(self, io: "Io") -> None:
        self._io = io
        self._known: dict[str, dict[int, cluster_pb2.Gpu]] = {}

    def of(self, jobs: "Iterable[messages.JobRecord]") -> "Mapping[str, Mapping[int, cluster_pb2.Gpu]]":
        """GPUs of the hosts of these jobs; empty for a host that left the cluster."""
        wanted = {share.host for job in jobs for share in job.hosts if share.gpus}
        if new := sorted(wanted - self._known.keys()):
            self._known |= {name: {} for name in new}
            for page in self._io.client().hosts(cluster_pb2.HostsRequest(names=new)):
                for host in page.hosts:
                    self._known[host.facts.name] = {gpu.index: gpu for gpu in gpus_of(host)}
        return self._known


def allocation_text(job: "messages.JobRecord", devices: "Mapping[str, Mapping[int, cluster_pb2.Gpu]]") -> str:
    """A line for each GPU, after a blank line and the titles; empty for a job without GPUs."""
    lines = list(_lines(job, devices))
    return "\n".join(["", " GPU_ALLOCATION:", ROW.format(*TITLES).rstrip(), *lines, ""]) if lines else ""


def _lines(job: "messages.JobRecord", devices: "Mapping[str, Mapping[int, cluster_pb2.Gpu]]") -> "Iterator[str]":
    first_task = 0
    for share in job.hosts:
        tasks = range(first_task, first_task + (sum(share.tasks_by_role) or share.slots))
        first_task = tasks.stop
        known = devices.get(share.host, {})
        name = share.host
        for place, number in enumerate(share.gpus):
            reserved = share.gpu_memory_mib[place] if place < len(share.gpu_memory_mib) else 0
            users = ",".join(map(str, _users(job, share, tasks, place)))
            about = _about(known.get(number), size(reserved))
            yield ROW.format(name, users, number, MISSING, MISSING, *about, _links(share, number, known))
            name = ""


def _users(job: "messages.JobRecord", share: "messages.HostShare", tasks: range, place: int) -> "Iterable[int]":
    """Tasks of a host that use the job's GPU number ``place`` there, out of the role that the GPU belongs to: one task
    where GPUs are allocated for each task, consecutive tasks where these share a GPU (block=yes), otherwise all.
    """
    devices = len(share.gpus)
    if share.gpu_roles:
        role = share.gpu_roles[place]
        tasks = tasks[sum(share.tasks_by_role[:role]) : sum(share.tasks_by_role[: role + 1])]
        place, devices = list(share.gpu_roles[:place]).count(role), list(share.gpu_roles).count(role)
    request = gpu_request(job.spec, share.gpu_roles[place] if share.gpu_roles else -1)
    if request.per_task and request.num:
        return tasks[place // request.num : place // request.num + 1]
    if "block=yes" in request.text and len(tasks) > devices:
        return (task for number, task in enumerate(tasks) if number * devices // len(tasks) == place)
    return tasks


def _about(gpu: cluster_pb2.Gpu | None, reserved: str) -> tuple[str, str, str, str, str]:
    """Model, memory, factor, reserved memory and socket of a GPU; ``-`` where its host does not report it any more."""
    if gpu is None:
        return MISSING, MISSING, MISSING, reserved, MISSING
    return model_name(gpu), size(gpu.memory_mib), MISSING, reserved, str(gpu.numa_node)


def _links(share: messages.HostShare, number: int, known: "Mapping[int, cluster_pb2.Gpu]") -> str:
    """NVLink from this GPU to each of the job's GPUs on the host: Y or N, and - for itself."""
    peers = known[number].nvlink_peers if number in known else ()
    return "/".join("-" if other == number else "Y" if other in peers else "N" for other in share.gpus)
