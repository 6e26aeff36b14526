"""NVIDIA devices of this host as NVML reports them.

A failing device does not affect the others: it keeps its place, index and name and carries NVML's sentence as `status`.
If the driver goes away as a whole, the devices known so far stay with that status. Either way NVML is restarted at
intervals until all is well. Indices are NVML's, which is the order of the PCI bus: a job must be given
CUDA_DEVICE_ORDER=PCI_BUS_ID beside CUDA_VISIBLE_DEVICES, or CUDA may number the devices differently.
"""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pynvml

from agents.gpus.vendor import OK
from protos.cluster_pb2 import Gpu
from protos.gpu_vendors import NVIDIA

MIB = 1 << 20
PCI_DEVICES = Path("/sys/bus/pci/devices")
# A missing driver, or a lost device, returns in minutes, not in seconds.
RETRY_S = 30.0

MODES = {
    "shared": pynvml.NVML_COMPUTEMODE_DEFAULT,
    "exclusive_thread": pynvml.NVML_COMPUTEMODE_EXCLUSIVE_THREAD,
    "prohibited": pynvml.NVML_COMPUTEMODE_PROHIBITED,
    "exclusive_process": pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS,
}
MODE_NAMES = {number: name for name, number in MODES.items()}
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

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class _Probe:
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


class NvmlDevices:
    """NVIDIA devices of this host; none without a driver."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._running = False
        self._retry_at = clock()
        self._complaint = ""
        # The constant data of each device since NVML was started, and the last reading.
        self._described: dict[int, Gpu] = {}
        self._last: dict[int, Gpu] = {}

    def read(self) -> list[Gpu]:
        """Return the devices now. Blocks as long as NVML does, commonly a few milliseconds."""
        troubled = not self._running or any(gpu.status != OK for gpu in self._last.values())
        if troubled and self._clock() >= self._retry_at:
            self._restart()
        if self._running:
            try:
                self._last = {index: self._read_device(index) for index in range(pynvml.nvmlDeviceGetCount())}
            except pynvml.NVMLError as error:
                self._complaint = str(error)
                _log.warning("event=nvml_lost error=%r", self._complaint)
                self.close()
        if not self._running:
            self._last = {index: _failed(gpu, self._complaint) for index, gpu in self._last.items()}
        return list(self._last.values())

    def close(self) -> None:
        """Leave NVML; the next due reading starts it again."""
        if not self._running:
            return
        self._running = False
        self._described.clear()
        try:
            pynvml.nvmlShutdown()
        except pynvml.NVMLError as error:
            _log.debug("event=nvml_shutdown error=%r", str(error))

    def _restart(self) -> None:
        """Start NVML, again if it runs: only so it finds devices that were reset."""
        self.close()
        self._retry_at = self._clock() + RETRY_S
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            self._complaint = str(error)
        else:
            self._running = True

    def _read_device(self, index: int) -> Gpu:
        probe = _Probe()
        handle = probe.ask(None, pynvml.nvmlDeviceGetHandleByIndex, index)
        described = self._described.get(index)
        if described is None:
            described = _describe(probe, index, handle)
            if not probe.fault:
                self._described[index] = described
        gpu = _measure(probe, described, handle)
        if probe.fault:
            return _failed(self._described.get(index) or self._last.get(index) or described, probe.fault)
        return gpu


def _failed(gpu: Gpu, status: str) -> Gpu:
    """Return the device with its constant data, and why it cannot be used."""
    failed = Gpu()
    failed.CopyFrom(gpu)
    for volatile in ("memory_used_mib", "utilisation", "memory_utilisation", "temperature_c", "power_w", "pids"):
        failed.ClearField(volatile)
    failed.status = status
    return failed


def _describe(probe: _Probe, index: int, handle: Any) -> Gpu:
    """Read the data that stays constant while the driver is loaded."""
    bus_id = probe.ask("", lambda: str(pynvml.nvmlDeviceGetPciInfo(handle).busId))
    return Gpu(
        index=index,
        vendor=NVIDIA.name,
        uuid=probe.ask("", pynvml.nvmlDeviceGetUUID, handle),
        model=probe.ask("", pynvml.nvmlDeviceGetName, handle),
        driver=probe.ask("", pynvml.nvmlSystemGetDriverVersion),
        memory_mib=probe.ask(0, lambda: int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)) // MIB,
        bus_id=bus_id,
        numa_node=_numa_node(probe, handle, bus_id),
        nvlink_peers=_nvlink_peers(probe, index, handle),
    )


def _measure(probe: _Probe, known: Gpu, handle: Any) -> Gpu:
    """Read the device's present state."""
    gpu = Gpu()
    gpu.CopyFrom(known)
    gpu.memory_used_mib = probe.ask(0, lambda: int(pynvml.nvmlDeviceGetMemoryInfo(handle).used)) // MIB
    rates = probe.ask(None, pynvml.nvmlDeviceGetUtilizationRates, handle)
    if rates is not None:
        gpu.utilisation, gpu.memory_utilisation = rates.gpu / 100, rates.memory / 100
    gpu.temperature_c = probe.ask(0, pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU)
    gpu.power_w = probe.ask(0, pynvml.nvmlDeviceGetPowerUsage, handle) / 1000
    # Uncorrected errors since the driver was loaded: corrected ones are normal.
    gpu.ecc_errors = probe.ask(
        0,
        pynvml.nvmlDeviceGetTotalEccErrors,
        handle,
        pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
        pynvml.NVML_VOLATILE_ECC,
    )
    mode = probe.ask(pynvml.NVML_COMPUTEMODE_DEFAULT, pynvml.nvmlDeviceGetComputeMode, handle)
    gpu.mode = MODE_NAMES.get(mode, str(mode))
    gpu.mig = probe.ask([0, 0], pynvml.nvmlDeviceGetMigMode, handle)[0] == 1
    processes: list[Any] = probe.ask([], pynvml.nvmlDeviceGetComputeRunningProcesses, handle)
    gpu.pids.extend(sorted(process.pid for process in processes))
    gpu.status = OK
    return gpu


def _numa_node(probe: _Probe, handle: Any, bus_id: str) -> int:
    """Return the NUMA node nearest to the device; 0 if unknown, as on machines with one node."""
    # NVML writes the PCI domain with eight digits, the kernel with four.
    domain, _, rest = bus_id.lower().partition(":")
    try:
        node = int((PCI_DEVICES / f"{domain[-4:]}:{rest}" / "numa_node").read_text(encoding="ascii"))
    except (OSError, ValueError):
        node = -1
    if node >= 0:
        return node
    mask = probe.ask([0], pynvml.nvmlDeviceGetMemoryAffinity, handle, 1, pynvml.NVML_AFFINITY_SCOPE_NODE)[0]
    return max(0, (mask & -mask).bit_length() - 1)


def _nvlink_peers(probe: _Probe, index: int, handle: Any) -> list[int]:
    """Return the indices of the devices reached by NVLink, directly or through a switch."""
    peers = []
    for other in range(probe.ask(0, pynvml.nvmlDeviceGetCount)):
        if other == index or probe.fault:
            continue
        # A lost peer is a fault of that peer, so it gets queries of its own.
        if _Probe().ask(False, _linked, handle, other):
            peers.append(other)
    return peers


def _linked(handle: Any, other: int) -> bool:
    peer = pynvml.nvmlDeviceGetHandleByIndex(other)
    status = pynvml.nvmlDeviceGetP2PStatus(handle, peer, pynvml.NVML_P2P_CAPS_INDEX_NVLINK)
    return bool(status == pynvml.NVML_P2P_STATUS_OK)
