"""NVIDIA: devices and compute modes by NVML, device files by their minor numbers.

The compute mode is the sharing of a device between processes, enforced by the driver. Only root may set it.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pynvml

from agents.gpus.mig import access_file
from agents.gpus.nvml import NvmlDevices
from agents.gpus.nvml_probe import MODE_NAMES, MODES
from agents.gpus.nvml_reading import Place, places
from agents.gpus.vendor import ModeError
from protos.gpu_vendors import NVIDIA

DRIVER = Path("/proc/driver/nvidia/version")
MIG = "MIG-"  # beginning of the UUID of a MIG device


class Nvidia:
    """NVIDIA's devices of this host; none without a driver."""

    words = NVIDIA

    def is_present(self) -> bool:
        return DRIVER.exists()

    def devices(self) -> NvmlDevices:
        return NvmlDevices()

    def modes(self) -> "NvmlModes":
        return NvmlModes()

    def device_files(self) -> list[str]:
        try:
            with _nvml():
                return [_device_file(place) for place in places()]
        except ModeError as error:
            raise OSError(str(error)) from None


def _device_file(place: Place) -> str:
    """Return the file that gives access to the device; for a MIG device that of its GPU instance."""
    minor = int(pynvml.nvmlDeviceGetMinorNumber(pynvml.nvmlDeviceGetHandleByIndex(place.gpu)))
    if place.mig < 0:
        return f"/dev/nvidia{minor}"
    return access_file(minor, int(pynvml.nvmlDeviceGetGpuInstanceId(place.handle())))


class NvmlModes:
    """Modes of real devices. NVML is opened for each call: there are a few for each job that uses devices."""

    def uuid(self, index: int) -> str:
        with _nvml():
            return str(pynvml.nvmlDeviceGetUUID(places()[index].handle()))

    def read(self, uuid: str) -> str:
        if uuid.startswith(MIG):
            return "shared"
        with _nvml():
            number = int(pynvml.nvmlDeviceGetComputeMode(_device(uuid)))
            return MODE_NAMES.get(number, str(number))

    def set(self, uuid: str, mode: str) -> None:
        if uuid.startswith(MIG):
            raise ModeError("a MIG device has no compute mode of its own")
        with _nvml():
            pynvml.nvmlDeviceSetComputeMode(_device(uuid), MODES[mode])

    def can_set(self) -> bool:
        """Test by setting the first device to its present mode."""
        try:
            with _nvml():
                first = pynvml.nvmlDeviceGetHandleByIndex(0)
                pynvml.nvmlDeviceSetComputeMode(first, pynvml.nvmlDeviceGetComputeMode(first))
        except ModeError:
            return False
        return True


@contextlib.contextmanager
def _nvml() -> Iterator[None]:
    try:
        pynvml.nvmlInit()
        try:
            yield
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        raise ModeError(str(error)) from None


def _device(uuid: str) -> Any:
    return pynvml.nvmlDeviceGetHandleByUUID(uuid)
