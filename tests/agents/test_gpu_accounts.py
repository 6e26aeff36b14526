"""Accounts of GPU use: what is added up from readings of a device, and what counts as idle or as held memory."""

import asyncio
import os
from pathlib import Path

from agents.gpu_use.account import Account, IdlePower, Part, parts, unowned_mib
from agents.gpu_use.watch import GpuWatch, Holder
from agents.gpus.vendor import OK
from protos.cluster_pb2 import Gpu
from protos.common_pb2 import GpuProcess

LIMIT_W, LOWEST_W = 700.0, 70.0


def a_gpu(**values: object) -> Gpu:
    """A device in use."""
    known = {"index": 0, "uuid": "GPU-1", "status": OK, "power_limit_w": LIMIT_W, "power_w": 400.0, "utilisation": 0.5}
    return Gpu(**{**known, **values})  # type: ignore[arg-type]


def added(*readings: tuple[float, Gpu], idle_w: float = 133.0) -> Account:
    """An account of these readings: time and device."""
    account = Account.opened(readings[0][1], readings[0][0])
    for now, gpu in readings:
        account.add(gpu, now, Part(tuple(gpu.processes)), idle_w)
    return account


def test_figures_are_integrals_and_largest_values() -> None:
    """Ten seconds at half use and five at full: use 10 s, energy the power over time, memory of the processes."""
    half, full = a_gpu(processes=[GpuProcess(pid=1, memory_mib=1000)]), a_gpu(power_w=700.0, utilisation=1.0)
    full.processes.add(pid=1, memory_mib=3000)
    usage = added((100.0, half), (110.0, half), (115.0, full)).usage
    assert (usage.seconds, usage.utilisation_s, usage.utilisation_max) == (15.0, 10.0, 1.0)
    assert (usage.energy_j, usage.power_w_max) == (10 * 400 + 5 * 700, 700)
    assert (usage.memory_mib, usage.memory_mib_max, usage.memory_mib_s) == (3000, 3000, 25_000)


def test_the_devices_own_counter_gives_energy_also_over_a_gap() -> None:
    """Over the time between two agents only energy is known; a counter that starts anew is not believed."""
    usage = added((0.0, a_gpu(energy_j=1000.0)), (100.0, a_gpu(energy_j=31_000.0))).usage
    assert (usage.seconds, usage.energy_j) == (0.0, 30_000.0)
    assert added((0.0, a_gpu(energy_j=1000.0)), (10.0, a_gpu(energy_j=5.0))).usage.energy_j == 4000.0


def test_idle_is_a_matter_of_power() -> None:
    """A device at 100 % and 90 W is idle, one at 5 % and 300 W is not; the time begins anew with each use."""
    waits, works = a_gpu(power_w=90.0, utilisation=1.0), a_gpu(power_w=300.0, utilisation=0.05)
    account = added((0.0, waits), (10.0, waits), (20.0, works), (25.0, waits))
    assert (account.usage.idle_s, account.usage.idle_max_s) == (5.0, 10.0)
    assert added((0.0, works), (10.0, works)).usage.idle_s == 0.0


def test_a_gap_counts_as_idle_only_if_the_counter_says_so() -> None:
    """Between two agents the mean power decides; without a counter the time begins anew."""
    before, after = a_gpu(power_w=90.0, energy_j=100.0), a_gpu(power_w=90.0, energy_j=9100.0)
    assert added((0.0, before), (100.0, after)).usage.idle_s == 100.0
    assert added((0.0, before), (100.0, a_gpu(power_w=90.0, energy_j=50_000.0))).usage.idle_s == 0.0
    assert added((0.0, a_gpu(power_w=90.0)), (100.0, a_gpu(power_w=90.0))).usage.idle_s == 0.0


def test_the_threshold_of_idle_power() -> None:
    """Watts, or a fraction of the range; a device never seen idle does not raise it; without power there is none."""
    assert IdlePower(150.0).threshold_w(LOWEST_W, LIMIT_W) == 150.0
    assert IdlePower(0.0, 0.2).threshold_w(LOWEST_W, LIMIT_W) == 70 + 0.2 * 630
    assert IdlePower().threshold_w(650.0, LIMIT_W) == 140 + 0.1 * 560
    assert IdlePower().threshold_w(0.0, 0.0) == 0.0


def test_jobs_that_share_a_device_divide_it() -> None:
    """By what their processes have of the multiprocessors; equally where the driver does not tell."""
    gpu = a_gpu(processes=[GpuProcess(pid=1, sm=0.6, has_sm=True), GpuProcess(pid=2, sm=0.2, has_sm=True)])
    found = parts(gpu, {0: (1,), 1: (2,)})
    assert [round(part.fraction, 2) for part in found.values()] == [0.75, 0.25]
    assert [part.fraction for part in parts(a_gpu(), {0: (), 1: ()}).values()] == [0.5, 0.5]


def test_memory_without_a_process() -> None:
    """Memory that neither a living process nor another job has; unknown where the driver does not report any."""
    gpu = a_gpu(
        memory_used_mib=5000, processes=[GpuProcess(pid=1, memory_mib=3000), GpuProcess(pid=2, memory_mib=1000)]
    )
    assert (unowned_mib(gpu), unowned_mib(gpu, {1})) == (1000, 4000)
    gpu.processes[1].memory_mib = 0
    assert unowned_mib(gpu) == 0


class Scripted:
    """Devices that a test sets."""

    def __init__(self, *gpus: Gpu) -> None:
        self.gpus = list(gpus)

    def read(self) -> list[Gpu]:
        return self.gpus

    def close(self) -> None:
        """Ignore the call."""


def test_accounts_and_marks_outlive_an_agent(tmp_path: Path) -> None:
    """The next watch goes on with figures and marks of the last; a damaged file costs figures, not the agent."""
    key, now = (1, 0, 1), 1000.0
    devices = Scripted(a_gpu(), a_gpu(index=1, uuid="GPU-2", memory_used_mib=9000))

    def watch() -> GpuWatch:
        return GpuWatch(devices, tmp_path / "use", "/run/s", lambda: now)

    first = watch()
    holder = Holder(key, (0,))
    first.observe([holder])
    now += 10
    first.observe([holder])
    assert first.unclear([], (2, 0, 1), (1,)) == {1: 9000}
    asyncio.run(first.mark([1]))
    second = watch()
    assert second.usage(key)[0].energy_j == 4000.0
    now += 5
    told = second.observe([holder])
    assert [gpu.status for gpu in told] == [OK, "it holds 9000 MiB of memory without a process"]
    assert second.usage(key)[0].energy_j == 6000.0
    devices.gpus[1].memory_used_mib = 100
    now += 5
    assert [gpu.status for gpu in second.observe([])] == [OK, OK]
    (tmp_path / "use").write_text("{nonsense")
    assert watch().usage(key) == []


def test_processes_of_no_job_are_told_apart(tmp_path: Path) -> None:
    """This test's own process is of no job, unless it is a member of an attempt's control group."""
    gpu = a_gpu(processes=[GpuProcess(pid=os.getpid(), memory_mib=10), GpuProcess(pid=2**22 + 5, memory_mib=10)])
    watch = GpuWatch(Scripted(gpu), tmp_path / "use", "/run/s")
    (told,) = watch.observe([], is_final=True)
    assert [(one.pid, bool(one.user)) for one in told.foreign] == [(os.getpid(), True)]
    (told,) = watch.observe([Holder((1, 0, 1), (0,), members=(os.getpid(),))], is_final=True)
    assert not told.foreign
    assert [process.pid for process in watch.usage((1, 0, 1))[0].processes] == [os.getpid()]
