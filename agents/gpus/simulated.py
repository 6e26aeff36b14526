"""Simulated GPUs: the agent's --simulate-gpus, named and shown to jobs as NVIDIA's."""

import os
import uuid

from agents.gpus.vendor import OK
from protos.cluster_pb2 import Gpu
from protos.gpu_vendors import NVIDIA


class Simulated:
    """Vendor of ``count`` simulated devices."""

    words = NVIDIA

    def __init__(self, count: int) -> None:
        self._count = count

    def is_present(self) -> bool:
        return True

    def devices(self) -> "SimulatedDevices":
        return SimulatedDevices(self._count)

    def modes(self) -> "SimulatedModes":
        return SimulatedModes()

    def device_files(self) -> tuple[str, ...]:
        return ()


class SimulatedDevices:
    """Simulated devices, alike and idle, in two halves: each half shares a NUMA node and is joined by NVLink."""

    MODEL = "Simulated GPU 80GB"
    MEMORY_MIB = 80 * 1024

    def __init__(self, count: int) -> None:
        self._gpus = [self._invent(index, count) for index in range(count)]

    def read(self) -> list[Gpu]:
        """Return the same devices every time."""
        return list(self._gpus)

    def close(self) -> None:
        """Ignore the call: nothing was opened."""

    def _invent(self, index: int, count: int) -> Gpu:
        half = max(1, (count + 1) // 2)
        node = index // half
        return Gpu(
            index=index,
            vendor=NVIDIA.name,
            uuid=f"GPU-{uuid.uuid5(uuid.NAMESPACE_OID, f'{os.uname().nodename}/{index}')}",
            model=self.MODEL,
            driver="0.0",
            memory_mib=self.MEMORY_MIB,
            temperature_c=35,
            power_w=60.0,
            numa_node=node,
            bus_id=f"00000000:{index + 1:02X}:00.0",
            status=OK,
            nvlink_peers=[other for other in range(count) if other // half == node and other != index],
            mode="shared",
        )


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
