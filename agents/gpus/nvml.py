"""NVIDIA devices of this host as NVML reports them.

A failing device does not affect the others: it keeps its place, index and name and carries NVML's sentence as `status`.
If the driver goes away as a whole, the devices known so far stay with that status. Either way NVML is restarted at
intervals until all is well. Devices are numbered in NVML's order, which is that of the PCI bus, each GPU in MIG mode
replaced by its MIG devices: a job must be given CUDA_DEVICE_ORDER=PCI_BUS_ID beside CUDA_VISIBLE_DEVICES, or CUDA may
number the devices differently. A device keeps its number as long as the reader lives, whatever becomes of others.
"""

import logging
import time
from collections.abc import Callable

import pynvml

from agents.gpus.nvml_probe import Probe
from agents.gpus.nvml_reading import Place, describe, failed, measure, places
from protos.cluster_pb2 import Gpu

# A missing driver, or a lost device, returns in minutes, not in seconds.
RETRY_S = 30.0
GONE = "the device is not there any more: its GPU was partitioned anew"

_log = logging.getLogger(__name__)


class NvmlDevices:
    """NVIDIA devices of this host; none without a driver."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._running = False
        self._retry_at = clock()
        self._complaint = ""
        self._numbers: dict[Place, int] = {}
        # The constant data of each device since NVML was started, and the last reading.
        self._described: dict[int, Gpu] = {}
        self._last: dict[int, Gpu] = {}
        self._faulty: set[int] = set()
        self._read_us = 0

    def read(self) -> list[Gpu]:
        """Return the devices now. Blocks as long as NVML does, commonly a few milliseconds."""
        if (not self._running or self._faulty) and self._clock() >= self._retry_at:
            self._restart()
        if self._running:
            try:
                self._read_all()
            except pynvml.NVMLError as error:
                self._complaint = str(error)
                _log.warning("event=nvml_lost error=%r", self._complaint)
                self.close()
        if not self._running:
            self._last = {index: failed(gpu, self._complaint) for index, gpu in self._last.items()}
        return [self._last[index] for index in sorted(self._last)]

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

    def _read_all(self) -> None:
        self._faulty.clear()
        there = places()
        for place in there:
            self._numbers.setdefault(place, len(self._numbers))
        now_us = int(time.time() * 1e6)
        found = {self._numbers[place]: self._read_device(place) for place in there}
        gone = {number: failed(self._last[number], GONE) for number in self._numbers.values() if number not in found}
        self._last, self._read_us = {**found, **gone}, now_us

    def _read_device(self, place: Place) -> Gpu:
        index, probe = self._numbers[place], Probe()
        handle = probe.ask(None, place.handle)
        described = self._described.get(index)
        if described is None:
            described = self._renumbered(describe(probe, index, place, handle))
            if not probe.fault:
                self._described[index] = described
        gpu = measure(probe, described, handle, self._read_us)
        if probe.fault:
            self._faulty.add(index)
            return failed(self._described.get(index) or self._last.get(index) or described, probe.fault)
        return gpu

    def _renumbered(self, gpu: Gpu) -> Gpu:
        """Return the device with its peers by their numbers here, which differ from NVML's beside MIG devices."""
        peers = [self._numbers[place] for peer in gpu.nvlink_peers if (place := Place(peer)) in self._numbers]
        gpu.nvlink_peers[:] = peers
        return gpu
