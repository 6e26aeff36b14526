"""GPU vendors: the words by which a job, a command line and a table know each vendor's devices.

Plain classes: every command imports this, and none of them `typing`.
"""

Pairs = tuple[tuple[str, str], ...]


class SharingDaemon:
    """Daemon that lets processes of one job compute on a device at the same time.

    ``program`` starts it in the background and exits when it is ready; ``control`` is the agent's variable that names
    another program. ``folder`` of the agent's state directory has one of each job, in which ``directories`` are: the
    variable and name of each.
    """

    __slots__ = ("arguments", "control", "directories", "folder", "label", "program")

    def __init__(
        self, label: str, program: str, arguments: tuple[str, ...], control: str, folder: str, directories: Pairs
    ) -> None:
        self.label, self.program, self.arguments = label, program, arguments
        self.control, self.folder, self.directories = control, folder, directories


class GpuVendor:
    """Names of one vendor: as in gvendor=, its label in tables, the variable that lists the devices of a process.

    ``set_beside``: variables with their values, where that one is set. ``in_containers``: container runtimes that let a
    program use the devices by an option only, and that option.
    """

    __slots__ = ("daemon", "in_containers", "label", "name", "set_beside", "visible")

    def __init__(
        self,
        name: str,
        label: str,
        visible: str,
        set_beside: Pairs = (),
        daemon: SharingDaemon | None = None,
        in_containers: Pairs = (),
    ) -> None:
        self.name, self.label, self.visible = name, label, visible
        self.set_beside, self.daemon, self.in_containers = set_beside, daemon, in_containers

    def variables(self) -> tuple[str, ...]:
        """Return the variables with values of one job on one host."""
        return (self.visible, *(name for name, _ in (self.daemon.directories if self.daemon else ())))


NVIDIA = GpuVendor(
    name="nvidia",
    label="Nvidia",
    visible="CUDA_VISIBLE_DEVICES",
    # NVML counts devices in the order of the PCI bus; CUDA's default puts the fastest first.
    set_beside=(("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),),
    daemon=SharingDaemon(
        label="MPS control daemon",
        program="nvidia-cuda-mps-control",
        arguments=("-d",),
        control="LAVA_MPS_CONTROL",
        folder="mps",
        directories=(("CUDA_MPS_PIPE_DIRECTORY", "pipe"), ("CUDA_MPS_LOG_DIRECTORY", "log")),
    ),
    in_containers=(("apptainer", "--nv"),),
)
VENDORS = (NVIDIA,)
VISIBLE = tuple(vendor.visible for vendor in VENDORS)
VARIABLES = tuple(name for vendor in VENDORS for name in vendor.variables())
# The agent's variables that name another program for a daemon.
CONTROLS = tuple(vendor.daemon.control for vendor in VENDORS if vendor.daemon)


def label(name: str) -> str:
    """Return the vendor's name for a table; agents of earlier versions name none, and have NVIDIA's devices only."""
    return next((vendor.label for vendor in VENDORS if vendor.name == name), name or NVIDIA.label)
