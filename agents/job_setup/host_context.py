"""Facts of the host that every job's environment needs."""

from dataclasses import dataclass, field

from agents.job_socket.place import directory_of, socket_of
from protos.gpu_vendors import VENDORS, GpuVendor


@dataclass(frozen=True, slots=True)
class HostContext:
    """Values shared by every job of this host."""

    host: str
    socket: str  # the local socket of the gateway
    bin_dir: str  # directory of the commands, including blaunch
    env_dir: str  # the cluster's configuration directory; empty if unknown here
    has_gpus: bool
    gpu_uuids: tuple[str, ...] = field(default=(), kw_only=True)
    gpu_devices: tuple[str, ...] = field(default=(), kw_only=True)  # MAJOR:MINOR of each; empty if unknown
    gpu_vendor: GpuVendor = field(default=VENDORS[0], kw_only=True)
    gpu_daemon: str = field(default="", kw_only=True)  # the program of the vendor's daemon; empty if there is none
    oversubscribed: bool  # more slots than CPUs: MPI ranks must not spin

    job_socket: str = field(init=False)  # path; empty if there is none
    notices: str = field(init=False)  # directory of the jobs' notice files

    def __post_init__(self) -> None:
        object.__setattr__(self, "job_socket", socket_of(self.socket))
        object.__setattr__(self, "notices", directory_of(self.socket))
