"""Values of one NVIDIA device, or of one MIG device, as NVML reports them.

Memory in use is what processes have allocated: newer drivers count their own reserve apart, and a device whose reserve
counted as use would never look free. A MIG device has memory and processes of its own; use, power and energy are only
known of its whole GPU.
"""

from pathlib import Path
from typing import Any, NamedTuple

import pynvml

from agents.gpus.nvml_probe import MODE_NAMES, THROTTLES, Probe
from agents.gpus.vendor import OK
from protos.cluster_pb2 import Gpu
from protos.common_pb2 import GpuProcess
from protos.gpu_vendors import NVIDIA

MIB = 1 << 20
PCI_DEVICES = Path("/sys/bus/pci/devices")
# Fields of a reading that mean nothing once the device fails.
VOLATILE = ("memory_used_mib", "utilisation", "memory_utilisation", "temperature_c", "power_w", "pids", "processes",
            "throttled", "foreign")  # fmt: skip


class Place(NamedTuple):
    """Position of a device in NVML: the GPU's index, and the MIG device's, or -1 for the whole GPU."""

    gpu: int
    mig: int = -1

    def handle(self) -> Any:
        """Return NVML's handle. Raises NVMLError."""
        whole = pynvml.nvmlDeviceGetHandleByIndex(self.gpu)
        return whole if self.mig < 0 else pynvml.nvmlDeviceGetMigDeviceHandleByIndex(whole, self.mig)


def places() -> list[Place]:
    """Return all devices: of a GPU in MIG mode its MIG devices in place of itself. Raises NVMLError."""
    return [place for index in range(pynvml.nvmlDeviceGetCount()) for place in _places_of(index)]


def _places_of(index: int) -> list[Place]:
    probe = Probe()
    whole = probe.ask(None, pynvml.nvmlDeviceGetHandleByIndex, index)
    if probe.ask([0, 0], pynvml.nvmlDeviceGetMigMode, whole)[0] != 1 or probe.fault:
        return [Place(index)]
    numbers = range(probe.ask(0, pynvml.nvmlDeviceGetMaxMigDeviceCount, whole))
    # A number without a device answers that it was not found: they need not be consecutive.
    there = [one for one in numbers if Probe().ask(None, pynvml.nvmlDeviceGetMigDeviceHandleByIndex, whole, one)]
    return [Place(index, one) for one in there] or [Place(index)]


def failed(gpu: Gpu, status: str) -> Gpu:
    """Return the device with its constant data, and why it cannot be used."""
    broken = Gpu()
    broken.CopyFrom(gpu)
    for volatile in VOLATILE:
        broken.ClearField(volatile)
    broken.status = status
    return broken


def describe(probe: Probe, index: int, place: Place, handle: Any) -> Gpu:
    """Read the data that stays constant while the driver is loaded. ``index`` is the device's number on this host."""
    whole = handle if place.mig < 0 else probe.ask(None, pynvml.nvmlDeviceGetHandleByIndex, place.gpu)
    bus_id = probe.ask("", lambda: str(pynvml.nvmlDeviceGetPciInfo(whole).busId))
    gpu = Gpu(
        index=index,
        vendor=NVIDIA.name,
        uuid=probe.ask("", pynvml.nvmlDeviceGetUUID, handle),
        model=probe.ask("", pynvml.nvmlDeviceGetName, handle),
        driver=probe.ask("", pynvml.nvmlSystemGetDriverVersion),
        memory_mib=probe.ask(0, lambda: int(_memory(handle).total)) // MIB,
        bus_id=bus_id,
        numa_node=_numa_node(probe, whole, bus_id),
        power_limit_w=probe.ask(0, pynvml.nvmlDeviceGetEnforcedPowerLimit, whole) / 1000,
    )
    if place.mig < 0:
        gpu.nvlink_peers.extend(_nvlink_peers(probe, place.gpu, handle))
    else:
        _describe_slice(probe, gpu, place, handle)
    return gpu


def _describe_slice(probe: Probe, gpu: Gpu, place: Place, handle: Any) -> None:
    sizes = probe.ask(None, pynvml.nvmlDeviceGetAttributes, handle)
    gpu.parent_plus_one = place.gpu + 1
    gpu.gpu_instance = probe.ask(0, pynvml.nvmlDeviceGetGpuInstanceId, handle)
    gpu.compute_instance = probe.ask(0, pynvml.nvmlDeviceGetComputeInstanceId, handle)
    gpu.power_limit_w = 0
    if sizes is not None:
        slices, computes = sizes.gpuInstanceSliceCount, sizes.computeInstanceSliceCount
        memory = f"{slices}g.{round(sizes.memorySizeMB / 1024)}gb"
        gpu.mig_profile = memory if computes == slices else f"{computes}c.{memory}"


def measure(probe: Probe, known: Gpu, handle: Any, since_us: int = 0) -> Gpu:
    """Read the device's present state. ``since_us``: time of the last reading on the wall clock, in microseconds."""
    gpu = Gpu()
    gpu.CopyFrom(known)
    gpu.memory_used_mib = probe.ask(0, lambda: int(_memory(handle).used)) // MIB
    rates = probe.ask(None, pynvml.nvmlDeviceGetUtilizationRates, handle)
    if rates is not None:
        gpu.utilisation, gpu.memory_utilisation = rates.gpu / 100, rates.memory / 100
    gpu.temperature_c = probe.ask(0, pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU)
    gpu.power_w = probe.ask(0, pynvml.nvmlDeviceGetPowerUsage, handle) / 1000
    gpu.energy_j = probe.ask(0, pynvml.nvmlDeviceGetTotalEnergyConsumption, handle) / 1000
    slowed = probe.ask(0, pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
    gpu.throttled.extend(name for bit, name in THROTTLES.items() if slowed & bit)
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
    gpu.mig = bool(gpu.mig_profile) or probe.ask([0, 0], pynvml.nvmlDeviceGetMigMode, handle)[0] == 1
    gpu.processes.extend(_processes(probe, handle, since_us))
    gpu.pids.extend(process.pid for process in gpu.processes)
    gpu.status = _fitness(probe, gpu, handle)
    return gpu


def _fitness(probe: Probe, gpu: Gpu, handle: Any) -> str:
    """Return `OK`, or why no job should be given the device although it answers."""
    _, _, is_pending, has_failed = probe.ask([0, 0, 0, 0], pynvml.nvmlDeviceGetRemappedRows, handle)
    if has_failed:
        return "a faulty row of its memory could not be remapped: the device must be replaced"
    if is_pending:
        return "a faulty row of its memory waits to be remapped: the device must be reset"
    if gpu.mig and not gpu.mig_profile:
        return "it is in MIG mode and has no MIG device"
    if gpu.ecc_errors:
        count = f"{gpu.ecc_errors} uncorrected memory error{'s' if gpu.ecc_errors > 1 else ''}"
        return f"{count} since the driver was loaded: the device must be reset"
    return OK


def _memory(handle: Any) -> Any:
    try:
        return pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except pynvml.NVMLError as error:
        if error.value not in (pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, pynvml.NVML_ERROR_NOT_SUPPORTED):
            raise
        return pynvml.nvmlDeviceGetMemoryInfo(handle)


def _processes(probe: Probe, handle: Any, since_us: int) -> list[GpuProcess]:
    """Return the processes that compute on the device, with memory and their part of the multiprocessors if known."""
    found: list[Any] = probe.ask([], pynvml.nvmlDeviceGetComputeRunningProcesses, handle)
    if not found:
        return []
    samples: list[Any] = probe.ask([], pynvml.nvmlDeviceGetProcessUtilization, handle, since_us)
    shares: dict[int, list[int]] = {}
    for sample in samples:
        shares.setdefault(sample.pid, []).append(sample.smUtil)
    # A process may be listed twice, once for each of its contexts.
    memory = {one.pid: sum(other.usedGpuMemory or 0 for other in found if other.pid == one.pid) for one in found}
    return [
        GpuProcess(pid=pid, memory_mib=size // MIB, has_sm=pid in shares, sm=_mean(shares.get(pid, ())) / 100)
        for pid, size in sorted(memory.items())
    ]


def _mean(values: "list[int] | tuple[()]") -> float:
    return sum(values) / len(values) if values else 0.0


def _numa_node(probe: Probe, handle: Any, bus_id: str) -> int:
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


def _nvlink_peers(probe: Probe, index: int, handle: Any) -> list[int]:
    """Return NVML's indices of the GPUs reached by NVLink, directly or through a switch."""
    peers = []
    for other in range(probe.ask(0, pynvml.nvmlDeviceGetCount)):
        if other == index or probe.fault:
            continue
        # A lost peer is a fault of that peer, so it gets queries of its own.
        if Probe().ask(False, _linked, handle, other):
            peers.append(other)
    return peers


def _linked(handle: Any, other: int) -> bool:
    peer = pynvml.nvmlDeviceGetHandleByIndex(other)
    status = pynvml.nvmlDeviceGetP2PStatus(handle, peer, pynvml.NVML_P2P_CAPS_INDEX_NVLINK)
    return bool(status == pynvml.NVML_P2P_STATUS_OK)
