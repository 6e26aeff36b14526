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

    @property
    def job_socket(self) -> str:
        """Path of the job socket; empty if there is none."""
        return socket_of(self.socket)

    @property
    def notices(self) -> str:
        """Directory of the jobs' notice files."""
        return directory_of(self.socket)
