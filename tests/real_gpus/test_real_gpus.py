"""GPU use of jobs on this machine's own NVIDIA cards: `make test-gpus`. The fake of NVML shows the same elsewhere."""

import json
import os
import subprocess
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

QUEUES = """
Begin Queue
QUEUE_NAME = normal
End Queue

Begin Queue
QUEUE_NAME    = watched
GPU_IDLE_TIME = 2
# By its default a card is idle at a tenth of the way to its limit; memory that is held raises a card's power somewhat.
GPU_IDLE_POWER = 50%
GPU_IDLE_LIMIT = 5
End Queue
"""

# Trains a small network on the job's card by torchrun's variables and tells the loss before and after.
TRAIN = """
import os, torch, torch.distributed as dist
dist.init_process_group("nccl")
rank, device = dist.get_rank(), torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.manual_seed(7)
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 1)).to(device)
model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[device.index])
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
x = torch.randn(4096, 512, device=device)
y = x[:, :1] * 2 - x[:, 1:2]
for step in range(3000):
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    if step == 0:
        first = loss.item()
print(f"cards={torch.cuda.device_count()} rank={rank} world={dist.get_world_size()} fell={loss.item() < first / 10}")
dist.destroy_process_group()
"""

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
    settings = {"LAVA_USAGE_INTERVAL": "1", "LAVA_TERMINATE_INTERVAL": "1"}
    with a_cluster(open_directory / "G", 1, 4, lsf_files={"lsb.queues": QUEUES}, **settings) as made:
        yield made


def figure(cluster: Cluster, job: int, field: str, unit: str) -> int:
    """A figure of bjobs -o about a job's cards, without its unit."""
    (row,) = json.loads(cluster.says("bjobs", "-a", "-json", "-o", field, str(job)))["RECORDS"]
    return int(row[field.upper()].removesuffix(unit))


def card_is_free(cluster: Cluster) -> bool:
    """True if no job is on the host."""
    return cluster.says("bhosts", "-noheader", "-o", "njobs") == "0"


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
    wait_for(lambda: figure(cluster, job, "gpu_energy", "J") > 0, 30, "energy to be counted")
    assert figure(cluster, job, "gpu_mem_max", "M") >= 1024
    cluster.run("bkill", str(job))
    cluster.becomes(job, "EXIT")
    wait_for(lambda: card_is_free(cluster), 60, "the card to be free")
    assert "without a process" not in cluster.says("bhosts", "-l", "-gpu")
    assert "GPU usage:" in output.read_text()


def test_cards_are_given_once_and_hidden_from_others(cluster: Cluster, open_directory: Path) -> None:
    """A job for all cards keeps the next one waiting, which then sees them; a job without -gpu sees none of them."""
    cards = len(NvmlDevices().read())
    first = cluster.submit("-gpu", f"num={cards}", f"{sys.executable} {open_directory}/hold.py")
    cluster.becomes(first, "RUN")
    see = "nvidia-smi -L >/dev/null && echo cards=$CUDA_VISIBLE_DEVICES"
    second = cluster.submit("-gpu", f"num={cards}", "-o", f"{open_directory}/%J", see)
    without = cluster.submit("-o", f"{open_directory}/%J", see)
    cluster.becomes(without, "DONE")
    assert "cards=\n" in (open_directory / str(without)).read_text()
    assert cluster.says("bjobs", "-noheader", "-o", "stat", str(second)) == "PEND"
    assert "GPU" in cluster.says("bjobs", "-p", str(second))
    cluster.run("bkill", str(first))
    cluster.becomes(second, "DONE", 60)
    told = (open_directory / str(second)).read_text()
    assert f"cards={','.join(map(str, range(cards)))}\n" in told


def test_a_card_that_is_held_without_work_counts_as_idle(cluster: Cluster, open_directory: Path) -> None:
    """The card of a job that only holds memory is idle by its power: its user is warned, then the job ended."""
    job = cluster.submit("-q", "watched", "-gpu", "num=1", f"{sys.executable} {open_directory}/hold.py")
    cluster.becomes(job, "EXIT", 90)
    history = " ".join(cluster.says("bhist", "-l", str(job)).split())
    assert "TERM_GPU_IDLE: job killed because all its GPUs were idle for too long" in history
    wait_for(lambda: card_is_free(cluster), 60, "the card to be free")


def test_training_with_pytorch(cluster: Cluster, open_directory: Path) -> None:
    """torchrun trains on the job's card, which is at work meanwhile; LAVA_TORCH_PYTHON names a Python with PyTorch."""
    python = os.environ.get("LAVA_TORCH_PYTHON", "python3")
    if subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode:
        pytest.skip(f"{python} has no PyTorch; LAVA_TORCH_PYTHON names one that has")
    (open_directory / "train.py").write_text(TRAIN)
    run = f"{python} -m torch.distributed.run --standalone --nproc-per-node=1 {open_directory}/train.py"
    job = cluster.submit("-gpu", "num=1", "-o", f"{open_directory}/%J", run)
    cluster.becomes(job, "DONE", 180)
    assert "cards=1 rank=0 world=1 fell=True" in (open_directory / str(job)).read_text()
    assert figure(cluster, job, "gpu_util_max", "%") > 0
    assert figure(cluster, job, "gpu_mem_max", "M") > 0
