"""Parts of the agent that a GPU vendor provides: reading devices, setting their modes, naming their files."""

from collections.abc import Sequence
from typing import Protocol

from protos.cluster_pb2 import Gpu
from protos.gpu_vendors import GpuVendor

OK = "ok"  # status of a device without fault


class ModeError(Exception):
    """Refusal by the driver; the text is its sentence."""


class Devices(Protocol):
    """Source of the present state of the host's GPUs."""

    def read(self) -> list[Gpu]:
        """Return one record a device, by index. A fault is the device's status, never an exception."""

    def close(self) -> None:
        """Release the driver."""


class Modes(Protocol):
    """Reader and setter of compute modes. Devices are numbered as `Devices` numbers them."""

    def uuid(self, index: int) -> str:
        """Return the device's UUID, which stays when its number changes. Raises ModeError."""

    def read(self, uuid: str) -> str:
        """Return the mode: shared, exclusive_process, prohibited... Raises ModeError."""

    def set(self, uuid: str, mode: str) -> None:
        """Set the mode. Raises ModeError."""

    def can_set(self) -> bool:
        """Return True if this process may set the mode of this host's devices."""


class Vendor(Protocol):
    """GPU vendor of a host. Methods of what they return may block."""

    words: GpuVendor

    def is_present(self) -> bool:
        """Return True if the vendor's driver is loaded. Takes no time."""

    def devices(self) -> Devices:
        """Return a reader of the devices."""

    def modes(self) -> Modes:
        """Return the reader and setter of their compute modes."""

    def device_files(self) -> Sequence[str]:
        """Return the file of each device, by index; none if no job is to be kept from any. Raises OSError."""
