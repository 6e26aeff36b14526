"""Host records for the commands that show hosts: fetched, in order, with unknown names reported."""

from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

# Compute modes by their numbers, the gpu_mode of lsload -gpuload.
GPU_MODES = {"shared": "0.0", "prohibited": "2.0", "exclusive_process": "3.0"}
DOWN = ("unavail", "unreach")


def fetch_hosts(
    names: list[str], io: "Io", *, clients_too: bool, unknown: str, requirement: str = ""
) -> tuple[list[cluster_pb2.HostRecord], bool]:
    """(records in the master's order, True if every name was known).

    Args:
        clients_too: also hosts that run no jobs.
        unknown: message for a name that does not exist.
        requirement: -R; only hosts that satisfy it, in its order.
    """
    from lavactl.options import printable

    hosts: list[cluster_pb2.HostRecord] = []
    complete = True
    request = cluster_pb2.HostsRequest(names=names, clients_too=clients_too, requirement=requirement)
    for page in io.client().hosts(request):
        hosts += page.hosts
        for name in page.missing:
            complete = False
            io.error(f"{printable(name)}: {unknown}")
    return hosts, complete


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
