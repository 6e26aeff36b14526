"""Compute mode of GPUs: sharing of a device between processes, enforced by the driver. Only root may set it."""

import contextlib
from collections.abc import Iterator
from typing import Any, Protocol

import pynvml

MODES = {
    "shared": pynvml.NVML_COMPUTEMODE_DEFAULT,
    "exclusive_thread": pynvml.NVML_COMPUTEMODE_EXCLUSIVE_THREAD,
    "prohibited": pynvml.NVML_COMPUTEMODE_PROHIBITED,
    "exclusive_process": pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS,
}
NAMES = {number: name for name, number in MODES.items()}


class ModeError(Exception):
    """Refusal by the driver; the text is its sentence."""


class Modes(Protocol):
    """Reader and setter of compute modes. Devices are numbered as NVML numbers them."""

    def uuid(self, index: int) -> str:
        """Return the device's UUID, which stays when its number changes. Raises ModeError."""

    def read(self, uuid: str) -> str:
        """Return the mode, one of `MODES`. Raises ModeError."""

    def set(self, uuid: str, mode: str) -> None:
        """Set the mode. Raises ModeError."""

    def can_set(self) -> bool:
        """Return True if this process may set the mode of this host's devices."""


def modes(simulate: int) -> Modes:
    """Return the modes of the real devices, or of `simulate` simulated ones if that is not 0."""
    return SimulatedModes() if simulate else NvmlModes()


class NvmlModes:
    """Modes of real devices. NVML is opened for each call: there are a few for each job that uses devices."""

    def uuid(self, index: int) -> str:
        with _nvml():
            return str(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(index)))

    def read(self, uuid: str) -> str:
        with _nvml():
            number = int(pynvml.nvmlDeviceGetComputeMode(_device(uuid)))
            return NAMES.get(number, str(number))

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


class SimulatedModes:
    """Modes of simulated devices, which take every mode, and lose it with the agent."""

    def __init__(self) -> None:
        self._modes: dict[str, str] = {}

    def uuid(self, index: int) -> str:
        return str(index)

    def read(self, uuid: str) -> str:
        return self._modes.get(uuid, "shared")

    def set(self, uuid: str, mode: str) -> None:
        self._modes[uuid] = mode

    def can_set(self) -> bool:
        return True
