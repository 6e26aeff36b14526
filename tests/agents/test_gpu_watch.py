"""The watch over GPUs when driver or machine fail: the agent goes on, releases in time, and ends."""

import asyncio
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agents.attempts.ledger_entry import State
from agents.gpu_use.driver import DriverThread
from agents.gpu_use.job_gpus import JobGpus
from agents.gpu_use.watch import GpuWatch, Holder
from agents.gpus.vendor import OK
from protos.agents_pb2 import Finished, Report, Stage
from protos.cluster_pb2 import Gpu
from protos.common_pb2 import AttemptKey, GpuProcess, HostShare
from tests.agents.hosts import Host, Place, blob, stage, until

KEY = (7, 0, 1)
LIMIT_S = 0.6


class Driver:
    """Devices whose driver hangs while a test wants it."""

    def __init__(self, *gpus: Gpu) -> None:
        self.gpus = list(gpus) or [Gpu(index=0, uuid="GPU-1", status=OK, power_limit_w=700, power_w=90)]
        self.answers = threading.Event()
        self.answers.set()
        self.readings = 0

    def read(self) -> list[Gpu]:
        self.readings += 1
        self.answers.wait()
        return self.gpus

    def close(self) -> None:
        self.answers.wait()


@pytest.fixture
def driver() -> Iterator[Driver]:
    """A driver, which answers at last: its threads end."""
    made = Driver()
    yield made
    made.answers.set()


def no_members(_keys: Iterable[Any]) -> Mapping[Any, list[int]]:
    """No control groups."""
    return {}


def entry_of(state: State) -> Any:
    """An attempt with the one device."""
    last = Report(key=AttemptKey(job=7, attempt=1), finished=Finished(), also_released=True)
    where = Stage(allocation=[HostShare(host="h1", slots=1, gpus=[0])])
    return SimpleNamespace(key=KEY, state=state, stage=where, launched=True, last=last, held_back=None)


def gpus_of(driver: Driver, tmp_path: Path, entry: Any, members: Any = no_members) -> JobGpus:
    """The GPUs of one attempt."""
    watch = GpuWatch(driver, tmp_path / "use", "/run/s")
    watch.driver = DriverThread(LIMIT_S)
    made = JobGpus(cast("Any", SimpleNamespace(entries={KEY: entry})), "h1", watch, members)
    made.read_every_s, made.clear_s = 0.05, 0.5
    return made


def test_a_hanging_driver_keeps_one_thread_and_is_told_once(
    driver: Driver, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Readings are refused, the devices are out of use, other threads are free, and all goes on when it answers."""

    async def story() -> None:
        gpus = gpus_of(driver, tmp_path, entry_of(State.HELD))
        assert [gpu.status for gpu in await asyncio.to_thread(gpus.watch.read)] == [OK]
        running = asyncio.create_task(gpus.run())
        await until(lambda: driver.readings > 1)
        driver.answers.clear()
        await asyncio.sleep(2 * LIMIT_S)
        before = threading.active_count()
        asked = [asyncio.create_task(gpus.usage_now(KEY)) for _ in range(50)]
        (told,) = await asyncio.to_thread(gpus.watch.read)
        assert told.status == f"the driver has not answered for {LIMIT_S:g} seconds"
        await asyncio.gather(*asked)
        assert await asyncio.to_thread(lambda: "free") == "free"
        assert threading.active_count() <= before + 2
        driver.answers.set()
        at = driver.readings
        await until(lambda: driver.readings > at + 1)
        assert [gpu.status for gpu in await asyncio.to_thread(gpus.watch.read)] == [OK]
        running.cancel()
        await gpus.close()

    with caplog.at_level(logging.INFO, "lava.gpu"):
        asyncio.run(story())
    assert [one.getMessage().split()[0] for one in caplog.records] == [
        "event=gpu_driver_hangs", "event=gpu_driver_answers_again",
    ]  # fmt: skip


def test_an_end_is_told_in_time_although_the_driver_hangs(driver: Driver, tmp_path: Path) -> None:
    """The device is out of use until its memory is known to be free; the agent ends all the same."""

    async def story() -> None:
        entry = entry_of(State.OVER)
        gpus = gpus_of(driver, tmp_path, entry)
        said: list[Report] = []
        gpus.say = said.append
        await asyncio.to_thread(gpus.watch.read)
        driver.answers.clear()
        assert [one.also_released for one in gpus.ended(KEY, [entry.last])] == [False]
        await until(lambda: said)
        assert [one.also_released for one in said] == [True]
        assert gpus.watch._marked == {"GPU-1"}
        began = time.monotonic()
        await gpus.close()
        assert time.monotonic() - began < 20

    asyncio.run(story())


def test_a_process_ends_although_its_driver_never_answers() -> None:
    """No thread is waited for."""
    text = """
import asyncio, threading
from agents.gpu_use.driver import DriverHangs, DriverThread
async def main():
    try:
        await DriverThread(0.1).call(threading.Event().wait)
    except DriverHangs as error:
        print(error)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "the driver has not answered for 0.1 seconds\n"), done


@pytest.mark.parametrize("state", [State.HELD, State.OVER])
def test_a_shortage_passes(state: State, driver: Driver, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A host without descriptors, for a while, ends neither the readings nor the wait for free memory."""
    failures = iter(range(3))

    def members(_keys: Iterable[Any]) -> Mapping[Any, list[int]]:
        for _ in failures:
            raise OSError(24, "Too many open files")
        return {}

    async def story() -> None:
        entry = entry_of(state)
        gpus = gpus_of(driver, tmp_path, entry, members)
        said: list[Report] = []
        gpus.say = said.append
        if state is State.OVER:
            gpus.ended(KEY, [entry.last])
            await until(lambda: said)
        else:
            running = asyncio.create_task(gpus.run())
            await until(lambda: driver.readings > 1)
            running.cancel()
        await gpus.close()

    with caplog.at_level(logging.WARNING, "lava.gpu"):
        asyncio.run(story())
    assert [one.getMessage().split()[0] for one in caplog.records] == ["event=gpus_not_read"]


def test_a_process_of_another_attempts_group_is_not_of_the_ended_one(tmp_path: Path) -> None:
    """Whatever its environment says: its memory keeps no device from the ended attempt's release."""
    environment = {"LAVA_JOB_KEY": "7.0.1", "LAVA_SOCKET": "/run/s"}
    with subprocess.Popen(["sleep", "60"], env={**os.environ, **environment}) as process:
        while not Path(f"/proc/{process.pid}/environ").read_bytes():
            time.sleep(0.01)  # exec closes Python's pipe before the kernel shows the new environment
        gpu = Gpu(index=0, uuid="GPU-1", status=OK, memory_used_mib=9000)
        gpu.processes.append(GpuProcess(pid=process.pid, memory_mib=9000))
        watch = GpuWatch(Driver(gpu), tmp_path / "use", "/run/s")
        assert watch.unclear([], KEY, [0]) == {0: 9000}
        assert watch.unclear([Holder((8, 0, 1), (0,), members=(process.pid,))], KEY, [0]) == {}
        process.kill()


@pytest.mark.parametrize("output", ["", "out"])
def test_only_a_report_waits_for_figures_of_gpus(output: str, place: Place) -> None:
    """Without an output file there is none."""

    async def story() -> None:
        async with Host(place, has_gpus=True) as host:
            where = stage(HostShare(host="h1", slots=1, gpus=[0]))
            key = await host.run(blob(place, 7, "sleep 100", output=output), where)
            await host.report(key, "started")
            setup = host.local.attempts.prepared(key)
            assert setup is not None
            assert setup.has_gpus is bool(output)

    asyncio.run(story())
