"""NVIDIA: devices and compute modes by NVML, device files by their minor numbers.

The compute mode is the sharing of a device between processes, enforced by the driver. Only root may set it.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pynvml

from agents.gpus.nvml import MODE_NAMES, MODES, NvmlDevices
from agents.gpus.vendor import ModeError
from protos.gpu_vendors import NVIDIA

DRIVER = Path("/proc/driver/nvidia/version")


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
                handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
                return [f"/dev/nvidia{pynvml.nvmlDeviceGetMinorNumber(handle)}" for handle in handles]
        except ModeError as error:
            raise OSError(str(error)) from None


class NvmlModes:
    """Modes of real devices. NVML is opened for each call: there are a few for each job that uses devices."""

    def uuid(self, index: int) -> str:
        with _nvml():
            return str(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(index)))

    def read(self, uuid: str) -> str:
        with _nvml():
            number = int(pynvml.nvmlDeviceGetComputeMode(_device(uuid)))
            return MODE_NAMES.get(number, str(number))

    def set(self, uuid: str, mode: str) -> None:
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
