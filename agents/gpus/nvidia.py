"""NVIDIA: devices and compute modes by NVML, device files by their minor numbers.

The compute mode is the sharing of a device between processes, enforced by the driver. Only root may set it. Python's
module for NVML is imported when the driver's library is found: a tenth of an agent's imports is for hosts with devices.
"""

import contextlib
import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.gpus.mig import access_file
from agents.gpus.vendor import Devices, ModeError
from protos.cluster_pb2 import Gpu
from protos.gpu_vendors import NVIDIA

if TYPE_CHECKING:
    from agents.gpus.nvml_reading import Place

DRIVER = Path("/proc/driver/nvidia/version")
MIG = "MIG-"  # beginning of the UUID of a MIG device


class Nvidia:
    """NVIDIA's devices of this host; none without a driver."""

    words = NVIDIA

    def is_present(self) -> bool:
        return DRIVER.exists()

    def devices(self) -> "AwaitedDevices":
        return AwaitedDevices()

    def modes(self) -> "NvmlModes":
        return NvmlModes()

    def device_files(self) -> list[str]:
        try:
            with _nvml() as nvml:
                from agents.gpus.nvml_reading import places

                return [_device_file(nvml, place) for place in places()]
        except ModeError as error:
            raise OSError(str(error)) from None


def _device_file(nvml: Any, place: "Place") -> str:
    """Return the file that gives access to the device; for a MIG device that of its GPU instance."""
    minor = int(nvml.nvmlDeviceGetMinorNumber(nvml.nvmlDeviceGetHandleByIndex(place.gpu)))
    if place.mig < 0:
        return f"/dev/nvidia{minor}"
    return access_file(minor, int(nvml.nvmlDeviceGetGpuInstanceId(place.handle())))


class AwaitedDevices:
    """Devices of a driver that may be installed later; none until then."""

    def __init__(self) -> None:
        self._devices: Devices | None = None

    def read(self) -> list[Gpu]:
        if self._devices is None and _has_library():
            from agents.gpus.nvml import NvmlDevices

            self._devices = NvmlDevices()
        return [] if self._devices is None else self._devices.read()

    def close(self) -> None:
        if self._devices is not None:
            self._devices.close()


def _has_library() -> bool:
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return True


class NvmlModes:
    """Modes of real devices. NVML is opened for each call: there are a few for each job that uses devices."""

    def uuid(self, index: int) -> str:
        from agents.gpus.nvml_reading import places

        with _nvml() as nvml:
            return str(nvml.nvmlDeviceGetUUID(places()[index].handle()))

    def read(self, uuid: str) -> str:
        if uuid.startswith(MIG):
            return "shared"
        from agents.gpus.nvml_probe import MODE_NAMES

        with _nvml() as nvml:
            number = int(nvml.nvmlDeviceGetComputeMode(nvml.nvmlDeviceGetHandleByUUID(uuid)))
            return MODE_NAMES.get(number, str(number))

    def set(self, uuid: str, mode: str) -> None:
        if uuid.startswith(MIG):
            raise ModeError("a MIG device has no compute mode of its own")
        from agents.gpus.nvml_probe import MODES

        with _nvml() as nvml:
            nvml.nvmlDeviceSetComputeMode(nvml.nvmlDeviceGetHandleByUUID(uuid), MODES[mode])

    def can_set(self) -> bool:
        """Test by setting the first device to its present mode."""
        try:
            with _nvml() as nvml:
                first = nvml.nvmlDeviceGetHandleByIndex(0)
                nvml.nvmlDeviceSetComputeMode(first, nvml.nvmlDeviceGetComputeMode(first))
        except ModeError:
            return False
        return True


@contextlib.contextmanager
def _nvml() -> Iterator[Any]:
    """Open NVML, and give its module."""
    import pynvml

    try:
        pynvml.nvmlInit()
        try:
            yield pynvml
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        raise ModeError(str(error)) from None
