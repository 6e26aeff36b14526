"""``bjobs -l -gpu``: which devices a job has on its hosts, and which of its tasks use them."""

from lavactl import messages
from lavactl.hosts import gpus_of, model_name
from lavactl.render import MISSING
from lavactl.units import size
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from lavactl.io import Io

ROW = " {:<16} {:<4} {:<6} {:<17} {:<17} {:<14} {:<7} {:<6} {:<7} {:<6} {}"
TITLES = ("HOST", "TASK", "GPU_ID", "GI_PLACEMENT/SIZE", "CI_PLACEMENT/SIZE", "MODEL", "MTOTAL", "FACTOR", "MRSV",
          "SOCKET", "NVLINK/XGMI")  # fmt: skip


class DevicesOfHosts:
    """The devices of hosts by their numbers; each host is asked for once."""

    def __init__(self, io: "Io") -> None:
        self._io = io
        self._known: dict[str, dict[int, cluster_pb2.Gpu]] = {}

    def of(self, jobs: "Iterable[messages.JobRecord]") -> "Mapping[str, Mapping[int, cluster_pb2.Gpu]]":
        """The devices of the hosts of these jobs; of a host that has gone none."""
        wanted = {share.host for job in jobs for share in job.hosts if share.gpus}
        if new := sorted(wanted - self._known.keys()):
            self._known |= {name: {} for name in new}
            for page in self._io.client().hosts(cluster_pb2.HostsRequest(names=new)):
                for host in page.hosts:
                    self._known[host.facts.name] = {gpu.index: gpu for gpu in gpus_of(host)}
        return self._known


def allocation_text(job: "messages.JobRecord", devices: "Mapping[str, Mapping[int, cluster_pb2.Gpu]]") -> str:
    """A line for each device, with the blank line and the title before them; empty for a job without devices."""
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
    """The tasks of a host that see the job's device number ``place`` there: of the term that it is for, one, where
    devices are for each task; some, where tasks in a row share one; else all."""
    devices = len(share.gpus)
    if share.gpu_roles:
        role = share.gpu_roles[place]
        tasks = tasks[sum(share.tasks_by_role[:role]) : sum(share.tasks_by_role[: role + 1])]
        place, devices = list(share.gpu_roles[:place]).count(role), list(share.gpu_roles).count(role)
    request = job.spec.roles[0].gpu if job.spec.roles else messages.GpuRequest()
    if request.per_task and request.num:
        return tasks[place // request.num : place // request.num + 1]
    if "block=yes" in request.text and len(tasks) > devices:
        return (task for number, task in enumerate(tasks) if number * devices // len(tasks) == place)
    return tasks


def _about(gpu: cluster_pb2.Gpu | None, reserved: str) -> tuple[str, str, str, str, str]:
    """Model, memory, factor, memory reserved and socket of a device, which its host may not report any more."""
    if gpu is None:
        return MISSING, MISSING, MISSING, reserved, MISSING
    return model_name(gpu), size(gpu.memory_mib), MISSING, reserved, str(gpu.numa_node)


def _links(share: messages.HostShare, number: int, known: "Mapping[int, cluster_pb2.Gpu]") -> str:
    """Whether there is a link of its own to each of the job's devices on the host: Y or N, and - for itself."""
    peers = known[number].nvlink_peers if number in known else ()
    return "/".join("-" if other == number else "Y" if other in peers else "N" for other in share.gpus)
