"""Queries to one NVML device, and names of NVML's numbers.

A value that this model or driver does not provide is no fault; a fault of the driver as a whole is raised.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import pynvml

_T = TypeVar("_T")

MODES = {
    "shared": pynvml.NVML_COMPUTEMODE_DEFAULT,
    "exclusive_thread": pynvml.NVML_COMPUTEMODE_EXCLUSIVE_THREAD,
    "prohibited": pynvml.NVML_COMPUTEMODE_PROHIBITED,
    "exclusive_process": pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS,
}
MODE_NAMES = {number: name for name, number in MODES.items()}
# Reasons for which a device is slower than it could be, and that its user or the site should know of.
THROTTLES = {
    pynvml.nvmlClocksThrottleReasonSwPowerCap: "power cap",
    pynvml.nvmlClocksThrottleReasonHwSlowdown: "hardware slowdown",
    pynvml.nvmlClocksThrottleReasonSwThermalSlowdown: "heat",
    pynvml.nvmlClocksThrottleReasonHwThermalSlowdown: "heat, by hardware",
    pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown: "power brake",
}
# Not a fault: this model or driver does not provide the value, or not to this process.
_UNTOLD = (
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_NO_PERMISSION,
    pynvml.NVML_ERROR_NOT_FOUND,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_NO_DATA,
    pynvml.NVML_ERROR_DEPRECATED,
)
# A fault of the driver, not of one device: NVML must be restarted.
_DRIVER = (
    pynvml.NVML_ERROR_UNINITIALIZED,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
)


class Probe:
    """Queries to one device, stopped at the first fault: a lost device answers slowly."""

    def __init__(self) -> None:
        self.fault = ""

    def ask(self, default: _T, question: Callable[..., _T], *arguments: Any) -> _T:
        """Return the answer, or `default` if there is none; raise only if the driver itself is gone."""
        if self.fault:
            return default
        try:
            return question(*arguments)
        except pynvml.NVMLError as error:
            if error.value in _DRIVER:
                raise
            if error.value not in _UNTOLD:
                self.fault = str(error)
            return default
