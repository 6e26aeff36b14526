"""GPUs visible to each process of a job: by its role, however it was started."""

import asyncio
import os
from dataclasses import replace

import pytest

from agents.job_setup.host_context import HostContext
from agents.job_setup.task_devices import Task, task_in_slot, variables_of_all, variables_of_role, variables_of_task
from agents.ranks.interfaces import TaskRequest
from protos.agents_pb2 import GpuSetup, GpusOfRole, Stage
from protos.common_pb2 import LAUNCH_EACH, HostShare, ResourceShare, Role
from protos.jobs_pb2 import JobSpec
from tests.agents.conftest import place, somebody
from tests.agents.hosts import NAME, Host, Place, blob, stage

__all__ = ["place", "somebody"]
HOST = HostContext(NAME, "/s", "/b", "", has_gpus=True, oversubscribed=True)
FPGA = ResourceShare(name="fpga", amount=2, devices=[5, 6], device_roles=[1, 0])
SHARE = HostShare(
    host=NAME, slots=4, gpus=[0, 3, 1], gpu_roles=[0, 1, 1], tasks_by_role=[1, 2, 1], resources=[FPGA]
)  # fmt: skip


def told(variables: dict[str, str]) -> tuple[str | None, str | None]:
    """Both kinds of devices."""
    return variables.get("CUDA_VISIBLE_DEVICES"), variables.get("LAVA_DEVICES_FPGA")


def test_each_task_has_the_devices_of_its_role() -> None:
    """A task of a role without devices sees none; a launch agent all."""
    where = stage(SHARE, gpu=GpuSetup())
    tasks = [task_in_slot(SHARE, slot, JobSpec(roles=[Role()])) for slot in range(5)]
    assert tasks == [Task(0, 0, 1), Task(1, 0, 2), Task(1, 1, 2), Task(2, 0, 1), None]
    found = [told(variables_of_task(task, where, HOST)) for task in tasks if task]
    assert found == [("0", "6"), ("3,1", "5"), ("3,1", "5"), ("", "")]
    assert told(variables_of_role(1, where, HOST)) == ("3,1", "5")
    assert told(variables_of_all(where, HOST)) == ("0,3,1", "5,6")


def test_roles_part_their_devices_each_in_its_own_way() -> None:
    """One device for each task of a role, or one for several consecutive tasks."""
    share = HostShare(host=NAME, slots=6, gpus=[0, 1, 2], gpu_roles=[0, 0, 1], tasks_by_role=[2, 4])
    each = stage(share, gpu=GpuSetup(roles=[GpusOfRole(per_task=1), GpusOfRole(block=True)]))
    found = [variables_of_task(Task(role, number, tasks), each, HOST).get("CUDA_VISIBLE_DEVICES")
             for role, number, tasks in ((0, 0, 2), (0, 1, 2), (1, 3, 4))]  # fmt: skip
    assert found == ["0", "1", "2"]
    silent = stage(share, gpu=GpuSetup(no_variable=True))
    assert variables_of_task(Task(0, 0, 2), silent, HOST) == {}


def test_a_master_that_says_no_roles() -> None:
    """One of an earlier version: every task sees all, as it was."""
    share = HostShare(host=NAME, slots=3, gpus=[0, 1], tasks_by_role=[1, 2])
    assert variables_of_task(Task(1, 0, 2), stage(share, gpu=GpuSetup()), HOST) == {}
    assert variables_of_role(0, stage(share, gpu=GpuSetup()), HOST) == {}


def test_tasks_of_several_slots() -> None:
    """Slots are assigned by the roles of the submission, or by its only role."""
    share = HostShare(host=NAME, slots=5, tasks_by_role=[1, 2])
    spec = JobSpec(roles=[Role(slots_per_task=3), Role()])
    assert [task_in_slot(share, slot, spec) for slot in (2, 3)] == [Task(0, 0, 1), Task(1, 0, 2)]
    assert task_in_slot(HostShare(host=NAME, slots=4, tasks_by_role=[2]), 3, JobSpec()) == Task(0, 1, 2)
    assert task_in_slot(HostShare(host=NAME, slots=4), 3, JobSpec()) == Task(0, 3, 4)


SEES = "echo $CUDA_VISIBLE_DEVICES"


async def _seen_by_task(host: Host, task: int, place: int, places: int, is_rank: bool = False) -> str:
    reading, writing = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    request = TaskRequest(
        (b"/bin/sh", b"-c", SEES.encode()), "", (), null, writing, writing, null if is_rank else None, task, place,
        places,
    )  # fmt: skip
    handle = await host.local.attempts.run_task((1, 0, 1), request)
    os.close(writing)
    os.close(null)
    assert await handle.wait() == 0
    os.set_blocking(reading, False)
    seen = os.read(reading, 1000).decode().strip()
    os.close(reading)
    return seen


@pytest.mark.slow
def test_the_command_is_a_task_of_the_first_term(place: Place) -> None:
    """Tasks beside it see the devices of their roles, also from a client of an earlier version; a launch agent all."""

    async def story() -> None:
        async with Host(place, has_gpus=True) as host:
            where = stage(HostShare(host="h0", slots=2, tasks_by_role=[0, 2]), launch_now=False)
            where = Stage(allocation=[SHARE, *where.allocation], launch_now=True, spec_version=1, gpu=GpuSetup())
            await host.run(blob(place, 1, f"{SEES}; sleep 1000"), where)
            await host.report((1, 0, 1), "started")
            assert [await _seen_by_task(host, number, number, 4) for number in range(1, 5)] == ["0", "3,1", "3,1", ""]
            assert await _seen_by_task(host, 2, 0, 0, is_rank=True) == "3,1"
            assert await _seen_by_task(host, 2, 1, 2) == "0,3,1"
            assert await _seen_by_task(host, 0, 0, 0) == "0,3,1"
        assert place.out().read_text().splitlines()[0] == "0"

    asyncio.run(story())


@pytest.mark.slow
def test_tasks_of_named_roles(place: Place) -> None:
    """A command started for each task of several roles."""
    roles = [Role(name=name, tasks_min=1, tasks_max=1, launch=LAUNCH_EACH, command=f"echo {name} $(" + SEES + ")")
             for name in ("server", "worker")]  # fmt: skip
    share = HostShare(host=NAME, slots=2, gpus=[0, 1], gpu_roles=[1, 0], tasks_by_role=[1, 1])

    async def story() -> None:
        async with Host(place, has_gpus=True) as host:
            await host.finish(blob(place, 1, "", roles=roles), stage(share, gpu=GpuSetup()))
        assert sorted(place.out().read_text().splitlines()[:2]) == ["server 1", "worker 0"]

    asyncio.run(story())


def test_devices_have_uuids_on_a_host_with_mig_devices() -> None:
    """CUDA numbers GPUs only: beside a MIG device all devices of the host are named by UUID."""
    both = Stage(allocation=[HostShare(host=NAME, slots=1, gpus=[1, 2])])
    mixed = replace(HOST, gpu_uuids=("MIG-a", "MIG-b", "GPU-c"))
    whole = replace(HOST, gpu_uuids=("GPU-a", "GPU-b", "GPU-c"))
    assert variables_of_all(both, mixed)["CUDA_VISIBLE_DEVICES"] == "MIG-b,GPU-c"
    assert variables_of_all(both, whole)["CUDA_VISIBLE_DEVICES"] == "1,2"
