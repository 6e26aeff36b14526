"""GPUs as reported by NVML: a real program against the fake library, whose hardware changes while it runs."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.gpus import nvml as driver
from agents.gpus.simulated import SimulatedDevices
from agents.gpus.vendor import OK
from tests.fakes.nvml import FakeNvml

# Reads the devices whenever a line arrives; the line is the time on the clock that decides about restarting NVML.
WATCHER = """
import json, sys
from agents.sensors.__main__ import _plain
from agents.gpus.nvml import NvmlDevices
now = 0.0
devices = NvmlDevices(clock=lambda: now)
for line in sys.stdin:
    now = float(line)
    print(json.dumps([_plain(device) for device in devices.read()]), flush=True)
"""

Read = Callable[[float], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> FakeNvml:
    """The fake, built once."""
    return FakeNvml(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def nvml(library: FakeNvml) -> FakeNvml:
    """The fake without hardware."""
    library.describe()
    return library


@pytest.fixture
def read(nvml: FakeNvml) -> Iterator[Read]:
    """Program that watches the GPUs; a call gives it the time and returns its reading."""
    with subprocess.Popen(
        [sys.executable, "-c", WATCHER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=nvml.environment,
        text=True,
    ) as watcher:
        stdin, stdout = watcher.stdin, watcher.stdout
        assert stdin
        assert stdout

        def ask(now: float) -> list[dict[str, Any]]:
            stdin.write(f"{now}\n")
            stdin.flush()
            devices: list[dict[str, Any]] = json.loads(stdout.readline())
            return devices

        try:
            yield ask
        finally:
            watcher.kill()


def test_every_field_comes_from_the_library(nvml: FakeNvml, read: Read) -> None:
    """Model, memory, use, temperature, power, ECC errors, mode, MIG, NUMA node, peers and processes are reported."""
    nvml.describe(
        "devices 2",
        "driver 999.1",
        "gpu 1 memory_mib 2048",
        "gpu 1 gpu_percent 75",
        "gpu 1 memory_percent 20",
        "gpu 1 celsius 66",
        "gpu 1 milliwatts 512500",
        "gpu 1 limit_milliwatts 600000",
        "gpu 1 millijoules 7500",
        f"gpu 1 throttle {0x4 | 0x20}",
        "gpu 1 mode 3",
        "gpu 1 nodes 2",
        "gpu 1 peer 0",
        "gpu 1 process 4343",
        "gpu 1 process 4242:1500:60",
    )
    idle, busy = read(0)
    assert busy == {
        "index": 1,
        "uuid": "GPU-00000002-0000-4000-8000-000000000000",
        "model": "NVIDIA H100 80GB HBM3",
        "driver": "999.1",
        "memory_mib": 81920,
        "memory_used_mib": 2048,
        "utilisation": 0.75,
        "memory_utilisation": 0.2,
        "temperature_c": 66,
        "ecc_errors": 0,
        "numa_node": 1,
        "pids": [4242, 4343],
        "bus_id": "0000FA4E:02:00.0",
        "status": "ok",
        "nvlink_peers": [0],
        "power_w": 512.5,
        "mode": "exclusive_process",
        "mig": False,
        "allocated_jobs": 0,
        "vendor": "nvidia",
        "power_limit_w": 600.0,
        "energy_j": 7.5,
        "throttled": ["power cap", "heat"],
        "processes": [
            {"pid": 4242, "memory_mib": 1500, "sm": 0.6, "has_sm": True, "user": "", "command": ""},
            {"pid": 4343, "memory_mib": 0, "sm": 0.0, "has_sm": False, "user": "", "command": ""},
        ],
        "foreign": [],
        "mig_profile": "",
        "parent_plus_one": 0,
        "gpu_instance": 0,
        "compute_instance": 0,
    }
    assert (idle["index"], idle["mode"], idle["pids"], idle["nvlink_peers"]) == (0, "shared", [], [])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("gpu 0 ecc 1", "1 uncorrected memory error since the driver was loaded: the device must be reset"),
        ("gpu 0 remap_pending 1", "a faulty row of its memory waits to be remapped: the device must be reset"),
        ("gpu 0 remap_failed 1", "a faulty row of its memory could not be remapped: the device must be replaced"),
    ],
)
def test_a_device_with_faulty_memory_is_unfit(nvml: FakeNvml, read: Read, line: str, said: str) -> None:
    """It answers, with all its values, and its status says why it is given to no job; its neighbour is well."""
    nvml.describe("devices 2", line, "gpu 0 memory_mib 20")
    unfit, neighbour = read(0)
    assert (unfit["status"], unfit["memory_used_mib"], neighbour["status"]) == (said, 20, "ok")


def test_mig_devices_stand_in_place_of_their_gpu(nvml: FakeNvml, read: Read) -> None:
    """A GPU in MIG mode is its MIG devices, each with UUID, size, memory and processes; a whole GPU stays beside it."""
    nvml.describe(
        "devices 3",
        "gpu 0 mig 1",
        "mig 0 0 slices 3",
        "mig 0 0 total_mib 40960",
        "mig 0 2 slices 1",
        "mig 0 2 memory_mib 700",
        "mig 0 2 process 4242:650",
        "gpu 1 peer 2",
        "gpu 2 mig 1",
    )
    large, small, whole, empty = read(0)
    assert [(one["index"], one["uuid"][:12], one["mig_profile"]) for one in (large, small, whole, empty)] == [
        (0, "MIG-00000001", "3g.40gb"),
        (1, "MIG-00000001", "1g.10gb"),
        (2, "GPU-00000002", ""),
        (3, "GPU-00000003", ""),
    ]
    assert (large["memory_mib"], small["memory_mib"], small["memory_used_mib"]) == (40960, 10240, 700)
    assert (small["pids"], small["parent_plus_one"], small["gpu_instance"], small["status"]) == ([4242], 1, 3, "ok")
    assert (small["power_w"], small["bus_id"]) == (0, large["bus_id"])
    assert whole["nvlink_peers"] == [3]
    assert (empty["mig"], empty["status"]) == (True, "it is in MIG mode and has no MIG device")


def test_numbers_stay_when_a_gpu_is_partitioned_anew(nvml: FakeNvml, read: Read) -> None:
    """A MIG device that goes keeps its number and says so; one that comes gets a new number."""
    nvml.describe("devices 2", "gpu 0 mig 1", "mig 0 0 slices 3", "mig 0 1 slices 3")
    read(0)
    nvml.describe("devices 2", "gpu 0 mig 1", "mig 0 1 slices 3", "mig 0 4 slices 1")
    gone, kept, whole, new = read(1)
    assert gone["status"] == driver.GONE
    assert (kept["uuid"][14:17], whole["uuid"][:3], new["uuid"][14:17]) == ("002", "GPU", "005")


def test_a_lost_device_harms_no_other(nvml: FakeNvml, read: Read) -> None:
    """A GPU that falls off the bus keeps its name with that status; its neighbour is unaffected."""
    nvml.describe("devices 2", "gpu 0 memory_mib 10", "gpu 1 memory_mib 20")
    healthy = read(0)
    nvml.describe("devices 2", "gpu 0 error 15", "gpu 1 memory_mib 30")
    lost, neighbour = read(1)
    assert lost["status"] == "GPU is lost"
    assert (lost["uuid"], lost["model"], lost["memory_used_mib"]) == (healthy[0]["uuid"], healthy[0]["model"], 0)
    assert (neighbour["status"], neighbour["memory_used_mib"]) == ("ok", 30)


def test_a_device_lost_from_the_start_has_its_place(nvml: FakeNvml, read: Read) -> None:
    """A device that never answered is listed under its index, nameless, with NVML's sentence."""
    nvml.describe("devices 2", "gpu 0 error 15")
    lost, neighbour = read(0)
    assert (lost["index"], lost["uuid"], lost["status"]) == (0, "", "GPU is lost")
    assert neighbour["status"] == "ok"


def test_a_device_that_was_reset_is_found_again(nvml: FakeNvml, read: Read) -> None:
    """NVML is initialised again after a while, so a GPU that was reset comes back without restarting the agent."""
    nvml.describe("devices 1", "gpu 0 error 15")
    assert read(0)[0]["status"] == "GPU is lost"
    nvml.describe("devices 1")
    assert read(driver.RETRY_S + 1)[0]["status"] == "ok"


def test_a_driver_that_goes_and_comes_back(nvml: FakeNvml, read: Read) -> None:
    """Without the driver the known GPUs stay, unusable; once it is back they are read again."""
    nvml.describe("devices 2", "gpu 1 memory_mib 20")
    read(0)
    nvml.describe("devices 2", "error 1", "init 9")
    assert [device["status"] for device in read(1)] == ["Uninitialized", "Uninitialized"]
    assert [device["status"] for device in read(driver.RETRY_S + 1)] == ["Driver Not Loaded"] * 2
    nvml.describe("devices 2", "gpu 1 memory_mib 40")
    assert [device["memory_used_mib"] for device in read(2 * driver.RETRY_S + 2)] == [0, 40]


def test_what_a_model_does_not_tell_is_no_fault(nvml: FakeNvml, read: Read) -> None:
    """A device that knows no power, ECC or MIG is healthy all the same."""
    nvml.describe("devices 1", "gpu 0 milliwatts -3", "gpu 0 ecc -3", "gpu 0 mig -13", "gpu 0 celsius 50")
    (device,) = read(0)
    assert (device["status"], device["power_w"], device["ecc_errors"], device["mig"]) == ("ok", 0.0, 0, False)
    assert device["temperature_c"] == 50


def test_no_library_means_no_devices(read: Read, nvml: FakeNvml) -> None:
    """A machine whose driver was never loaded has no GPUs and no complaint."""
    nvml.describe("init 9")
    assert read(0) == []


def test_simulated_devices_are_plausible() -> None:
    """Invented devices are distinct, healthy, and linked within their half only."""
    invented = SimulatedDevices(4).read()
    assert [device.index for device in invented] == [0, 1, 2, 3]
    assert len({device.uuid for device in invented}) == 4
    assert all(device.status == OK and device.memory_mib for device in invented)
    assert [list(device.nvlink_peers) for device in invented] == [[1], [0], [3], [2]]
    assert [device.numa_node for device in invented] == [0, 0, 1, 1]


@pytest.mark.slow
def test_the_program_prints_what_an_agent_would_report(nvml: FakeNvml, tmp_path: Path) -> None:
    """`python -m agents.sensors` prints facts and load as JSON, with the devices in both."""
    nvml.describe("devices 2", "gpu 1 memory_mib 99")
    done = subprocess.run(
        [sys.executable, "-m", "agents.sensors", "--name", "n1", "--slots", "3"],
        env=nvml.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    report = json.loads(done.stdout)
    assert (report["facts"]["name"], report["facts"]["slots"], report["facts"]["server"]) == ("n1", 3, True)
    assert "gpu" in report["facts"]["resources"]
    assert [device["memory_used_mib"] for device in report["load"]["gpus"]] == [0, 99]
    assert done.stderr == ""
