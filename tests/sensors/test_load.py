"""Load indices and facts, read from this machine and from texts."""

import math
from pathlib import Path

import psutil
import pytest

from agents.sensors import Sampler, facts, significant
from agents.sensors.cpu_memory import Counters, idle_minutes
from agents.sensors.facts import model_name, processors
from agents.sensors.load import RunQueue, running_now
from protos.cluster_pb2 import Gpu, Load


class Clock:
    """Clock that moves only on demand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """The time it was moved to."""
        return self.now


def a_load(**changes: float) -> Load:
    """An ordinary load, except for the given values."""
    load = Load(r15s=1.0, r1m=1.0, r15m=1.0, ut=0.5, it=10, tmp_mib=10_000, swp_mib=4_000, mem_mib=16_000)
    for name, value in changes.items():
        setattr(load, name, value)
    return load


def test_facts_describe_this_machine() -> None:
    """Counts are consistent, memory is the machine's, and the boot id is unique."""
    found = facts("n1", None, 0)
    assert found.name == "n1"
    assert 1 <= found.sockets <= found.cores <= found.cpus <= (psutil.cpu_count() or 1)
    assert found.slots == found.cores
    assert found.server
    assert found.memory_mib == psutil.virtual_memory().total >> 20
    assert found.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    assert " " not in found.model


def test_a_host_without_slots_serves_no_jobs() -> None:
    """Slots are taken from the option; none makes a login host."""
    assert (facts("n1", 7, 0).slots, facts("n1", 7, 0).server) == (7, True)
    assert (facts("n1", 0, 0).slots, facts("n1", 0, 0).server) == (0, False)


def test_simulated_devices_appear_in_facts_and_load() -> None:
    """Facts and load show the same simulated GPUs."""
    found, load = facts("n1", None, 2), Sampler(2).sample()
    assert [device.uuid for device in found.gpus] == [device.uuid for device in load.gpus]
    assert list(found.resources) == ["linux", "gpu"]


def test_cores_and_sockets_are_counted_from_the_topology(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four processors on two cores of one socket each, two sockets: 4, 2 and 2 for the usable ones only."""
    for cpu, (package, core) in enumerate([(0, 0), (0, 0), (1, 0), (1, 0), (1, 1)]):
        topology = tmp_path / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "physical_package_id").write_text(f"{package}\n", encoding="ascii")
        (topology / "core_id").write_text(f"{core}\n", encoding="ascii")
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1, 2, 3})
    assert processors(tmp_path) == (4, 2, 2)


@pytest.mark.parametrize(
    ("cpu_info", "expected"),
    [
        ("model name\t: Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz\n", "Intel_Xeon_Gold_6338"),
        ("model name\t: AMD EPYC 7763 64-Core Processor\n", "AMD_EPYC_7763"),
        ("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n", "POWER9_altivec_supported"),
    ],
)
def test_a_model_is_one_word(cpu_info: str, expected: str) -> None:
    """A processor's marketing name becomes a name that a requirement can hold."""
    assert model_name(cpu_info) == expected


def test_the_load_is_within_its_bounds() -> None:
    """Each index has a value that this machine can have."""
    sampler = Sampler()
    sampler.sample()
    load = sampler.sample()
    assert 0 <= load.ut <= 1
    assert 0 < load.mem_mib <= psutil.virtual_memory().total >> 20
    assert load.tmp_mib > 0
    assert min(load.r15s, load.r1m, load.r15m, load.pg, load.io) >= 0


def test_rates_are_differences_over_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half the processor time busy is 0.5, and 80 pages in 2 s are 40 pages a second."""
    clock = Clock()
    counters = {"user": 100.0, "idle": 100.0, "sin": 0}

    real = psutil.cpu_times()

    def times() -> object:
        idle = dict.fromkeys(real._fields, 0.0)
        return type(real)(**{**idle, "user": counters["user"], "idle": counters["idle"]})

    class Swap:
        sout = 0

        @property
        def sin(self) -> float:
            return counters["sin"]

    monkeypatch.setattr(psutil, "cpu_times", times)
    monkeypatch.setattr(psutil, "swap_memory", Swap)
    monkeypatch.setattr(psutil, "disk_io_counters", lambda: None)
    rates = Counters(clock)
    clock.now = 2.0
    counters.update(user=101.0, idle=101.0, sin=80 * 4096)
    seen = rates.rates()
    assert (seen.ut, seen.pg, seen.io) == (0.5, 40.0, 0.0)


def test_the_queue_is_averaged_over_fifteen_seconds() -> None:
    """After 15 s of a longer queue the average has gone 63 % of the way."""
    clock = Clock()
    queue = RunQueue(first=0.0, clock=clock)
    clock.now = 15.0
    assert queue.add(10.0) == pytest.approx(10.0 * (1 - math.exp(-1)))


def test_the_asker_does_not_count_itself() -> None:
    """The kernel counts the process that reads the statistics among the running ones."""
    assert running_now("cpu 1 2 3\nprocs_running 4\nprocs_blocked 0\n") == 3
    assert running_now("procs_running 0\n") == 0


def test_idle_time_ends_when_a_terminal_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The most recently touched terminal counts; a session whose terminal is gone does not."""

    class Session:
        def __init__(self, terminal: str | None) -> None:
            self.terminal = terminal

    (tmp_path / "tty1").touch()
    touched = (tmp_path / "tty1").stat().st_atime
    monkeypatch.setattr(psutil, "boot_time", lambda: touched - 6000)
    monkeypatch.setattr(psutil, "users", lambda: [Session("tty1"), Session("gone")])
    assert idle_minutes(touched + 300, tmp_path) == 5
    monkeypatch.setattr(psutil, "users", list)
    assert idle_minutes(touched, tmp_path) == 100


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"r1m": 1.2}, False),
        ({"r1m": 2.0}, True),
        ({"ut": 0.53}, False),
        ({"ut": 0.9}, True),
        ({"mem_mib": 15_500}, False),
        ({"mem_mib": 12_000}, True),
        ({"ls": 1}, True),
    ],
)
def test_only_changes_beyond_the_thresholds_are_told(changes: dict[str, float], expected: bool) -> None:
    """Noise makes no traffic, a real change does."""
    assert significant(a_load(), a_load(**changes)) is expected


def test_the_first_load_is_always_told() -> None:
    """There is no earlier load to compare with."""
    assert significant(None, a_load())


def test_a_device_in_trouble_is_always_told() -> None:
    """A status, a new process or a vanished GPU is reported at once, a small temperature change is not."""
    old = a_load()
    old.gpus.add(index=0, status="ok", temperature_c=40)
    for device, expected in [
        (Gpu(index=0, status="ok", temperature_c=41), False),
        (Gpu(index=0, status="GPU is lost", temperature_c=40), True),
        (Gpu(index=0, status="ok", temperature_c=40, pids=[7]), True),
    ]:
        new = a_load()
        new.gpus.append(device)
        assert significant(old, new) is expected
    assert significant(old, a_load())
