"""Host records for the commands that show hosts: asked for, sorted, and the names that do not exist reported."""

from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

# gpu_mode of lsload -gpuload: NVML's compute modes.
GPU_MODES = {"shared": "0.0", "prohibited": "2.0", "exclusive_process": "3.0"}
DOWN = ("unavail", "unreach")


def fetch_hosts(
    names: list[str], io: "Io", *, clients_too: bool, unknown: str
) -> tuple[list[cluster_pb2.HostRecord], bool]:
    """(records in the master's order, whether every name was known).

    Args:
        clients_too: also hosts that run no jobs.
        unknown: what is said of a name that does not exist.
    """
    from lavactl.options import printable

    hosts: list[cluster_pb2.HostRecord] = []
    complete = True
    for page in io.client().hosts(cluster_pb2.HostsRequest(names=names, clients_too=clients_too)):
        hosts += page.hosts
        for name in page.missing:
            complete = False
            io.error(f"{printable(name)}: {unknown}")
    return hosts, complete


def gpus_of(host: cluster_pb2.HostRecord) -> list[cluster_pb2.Gpu]:
    """The host's devices: as last reported with the load, else as they were at its start."""
    return list(host.load.gpus or host.facts.gpus)


def is_down(host: cluster_pb2.HostRecord) -> bool:
    """Whether nothing is known of the host's load."""
    return host.status.startswith(DOWN)


def gpu_use(host: cluster_pb2.HostRecord, index: int) -> cluster_pb2.GpuUse:
    """How jobs use one device; all zero where none does."""
    return next((use for use in host.gpu_use if use.index == index), cluster_pb2.GpuUse(index=index))


def model_name(gpu: cluster_pb2.Gpu) -> str:
    """A device's model as one word."""
    from lavactl.render import clean

    return clean(gpu.model).replace(" ", "") or "-"
