"""Host records for the commands that show hosts: fetched, in order, with unknown names reported."""

from lavactl.errors import CommandError
from lavactl.options import printable
from lavactl.text.units import size
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from lavactl.io import Io
    from lavactl.wire import messages

FACTOR_MAX = 1e9

# Compute modes by their numbers, the gpu_mode of lsload -gpuload.
GPU_MODES = {"shared": "0.0", "prohibited": "2.0", "exclusive_process": "3.0"}
DOWN = ("unavail", "unreach")


def fetch_hosts(
    names: list[str], io: "Io", *, unknown: str, **wanted: "Any"
) -> tuple[list[cluster_pb2.HostRecord], bool]:
    """(records in the master's order, True if every name was known).

    Args:
        unknown: message for a name that does not exist.
        wanted: further fields of the request.
    """
    hosts: list[cluster_pb2.HostRecord] = []
    complete = True
    request = cluster_pb2.HostsRequest(names=names, **wanted)
    for page in io.client().hosts(request):
        hosts += page.hosts
        for name in page.missing:
            complete = False
            io.error(f"{printable(name)}: {unknown}")
    return hosts, complete


class CpuFactors:
    """CPU factors of hosts in relation to that of one host, host model, or a number.

    Raises:
        CommandError: no host or host model has the name, and it is no factor.
    """

    def __init__(self, to: str, io: "Io") -> None:
        pages = io.client().hosts(cluster_pb2.HostsRequest(clients_too=True))
        factors = {host.facts.name: host.facts.cpu_factor or 1.0 for page in pages for host in page.hosts}
        models = {model.name: model.cpu_factor for model in io.client().resources(definitions=True).models}
        base = factors.get(to) or models.get(to) or _factor(to)
        if not base:
            raise CommandError(f"{printable(to)}: Bad host name, host model or CPU factor")
        self._factors = {host: factor / base for host, factor in factors.items()}

    def normalize(self, jobs: "Iterable[messages.JobRecord]") -> None:
        """Change CPU times to those that the other host would have taken, by the factor of each job's first host."""
        for job in jobs:
            factor = self._factors.get(job.hosts[0].host, 1.0) if job.hosts else 1.0
            if job.HasField("usage"):
                used = job.usage
                used.cpu_s, used.user_s, used.system_s = (
                    factor * seconds for seconds in (used.cpu_s, used.user_s, used.system_s)
                )


def _factor(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        return 0.0
    return found if 0 < found < FACTOR_MAX else 0.0


def gpus_of(host: cluster_pb2.HostRecord) -> list[cluster_pb2.Gpu]:
    """GPUs of the host: as last reported with the load, otherwise as detected at the start of its agent."""
    return list(host.load.gpus or host.facts.gpus)


def is_down(host: cluster_pb2.HostRecord) -> bool:
    """True if the host's load is unknown."""
    return host.status.startswith(DOWN)


def gpu_use(host: cluster_pb2.HostRecord, index: int) -> cluster_pb2.GpuUse:
    """Usage of one GPU by jobs; all zero for an idle one."""
    return next((use for use in host.gpu_use if use.index == index), cluster_pb2.GpuUse(index=index))


def model_name(gpu: cluster_pb2.Gpu) -> str:
    """GPU model as one word."""
    from lavactl.text.render import clean

    return clean(gpu.model).replace(" ", "") or "-"


def topology_text(host: cluster_pb2.HostRecord) -> str:
    """Memory, NUMA nodes, sockets and cores of a host, with the numbers of the processors of each core.

    Those that jobs are bound to have a star, if the record tells them.
    """
    lines = [f"Host[{size(host.facts.memory_mib)}] {host.facts.name}\n"]
    bound = set(host.bound_cpus)
    # "cpu core socket node" of each processor
    found = [tuple(map(int, one.split())) for one in host.facts.topology.split(",") if one]
    for node in sorted({place[3] for place in found}):
        lines.append(f"    NUMA[{node}]\n")
        for socket in sorted({place[2] for place in found if place[3] == node}):
            lines.append("        Socket\n")
            cores: dict[int, list[str]] = {}
            for cpu, core, *where in found:
                if where == [socket, node]:
                    cores.setdefault(core, []).append(f"*{cpu}" if cpu in bound else str(cpu))
            lines += [f"            core({' '.join(cpus)})\n" for cpus in cores.values()]
    if not found:
        lines.append("    The host has not reported its processors.\n")
    return "".join(lines)
