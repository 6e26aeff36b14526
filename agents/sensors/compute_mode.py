"""The compute mode of GPUs: who may use a device at the same time, as the driver enforces it. Only root may set it."""

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
    """The driver did not do it; the text is its sentence."""


class Modes(Protocol):
    """Reads and sets compute modes. Devices are numbered as NVML numbers them."""

    def uuid(self, index: int) -> str:
        """By which the device is known whatever its number will be. Raises ModeError."""

    def read(self, uuid: str) -> str:
        """The mode, one of `MODES`. Raises ModeError."""

    def set(self, uuid: str, mode: str) -> None:
        """Change the mode. Raises ModeError."""

    def can_set(self) -> bool:
        """May this process change the mode of this host's devices?"""


def modes(simulate: int) -> Modes:
    """Of the real devices, or of as many invented ones when that is not 0."""
    return SimulatedModes() if simulate else NvmlModes()


class NvmlModes:
    """Real devices. NVML is opened for each question: there are a few for each job that uses devices."""

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
        """Found out by setting the first device to the mode that it has."""
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
    """Invented devices take every mode, and forget it with the agent."""

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
