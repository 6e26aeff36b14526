"""GPU use of jobs on this machine's own NVIDIA cards: `make test-gpus`. The fake of NVML shows the same elsewhere."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.gpus.nvidia import DRIVER
from agents.gpus.nvml import NvmlDevices
from agents.gpus.vendor import OK
from tests.acceptance.conftest import open_directory
from tests.acceptance.personal import Cluster, a_cluster, wait_for

__all__ = ["open_directory"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.skipif(not os.environ.get("LAVA_REAL_GPUS"), reason="only by make test-gpus"),
    pytest.mark.skipif(not DRIVER.exists(), reason="no NVIDIA driver is loaded: nothing here can be shown"),
]

# Takes a GiB of the first visible device and keeps it, by the driver's library alone.
HOLD = """
import ctypes, time
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    assert status == 0, (name, status)
device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_ulonglong()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(1 << 30))
call("cuMemsetD8_v2", memory, ctypes.c_ubyte(1), ctypes.c_size_t(1 << 30))
print("held", flush=True)
time.sleep(300)
"""


@pytest.fixture(scope="module")
def cluster(open_directory: Path) -> Iterator[Cluster]:
    """One host with this machine's cards."""
    (open_directory / "hold.py").write_text(HOLD)
    with a_cluster(open_directory / "G", 1, 4, LAVA_USAGE_INTERVAL="1", LAVA_TERMINATE_INTERVAL="1") as made:
        yield made


def test_a_reading_of_the_cards() -> None:
    """Each card has a UUID, a model and memory; a whole one that is well also has power and its limit."""
    devices = NvmlDevices()
    found = devices.read()
    devices.close()
    assert found
    for gpu in found:
        assert gpu.uuid, gpu
        assert gpu.model, gpu
        if gpu.status == OK and not gpu.mig_profile:
            assert (gpu.memory_mib > 0, gpu.power_w > 0) == (True, True), gpu


def test_use_memory_and_energy_of_a_job(cluster: Cluster, open_directory: Path) -> None:
    """The job's process and its GiB are seen, energy grows, and the card is handed on after its end."""
    hold = f"{sys.executable} {open_directory}/hold.py"
    job = cluster.submit("-gpu", "num=1", "-o", f"{open_directory}/%J", hold)
    output = open_directory / str(job)
    wait_for(lambda: output.exists() and "held" in output.read_text(), 60, "the job to hold memory")
    wait_for(lambda: "PID " in cluster.says("bjobs", "-l", "-gpu", str(job)), 30, "the process to be seen")
    row = json.loads(cluster.says("bjobs", "-json", "-o", "gpu_mem_max gpu_energy", str(job)))["RECORDS"][0]
    assert int(row["GPU_MEM_MAX"].removesuffix("M")) >= 1024
    assert int(row["GPU_ENERGY"].removesuffix("J")) > 0
    cluster.run("bkill", str(job))
    cluster.becomes(job, "EXIT")
    wait_for(lambda: cluster.says("bhosts", "-noheader", "-o", "njobs") == "0", 60, "the card to be free")
    assert "without a process" not in cluster.says("bhosts", "-l", "-gpu")
    assert "GPU usage:" in output.read_text()
