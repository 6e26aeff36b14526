"""Files at fixed paths, names and ssh, as real tasks of a job see them under real shepherds."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from agents.job_setup.preparation import Preparation
from agents.job_setup.task_files import can_be_private
from protos.common_pb2 import TASK_DONE
from protos.jobs_pb2 import Convention, TaskRules
from tests.agents.hosts import Host, Place
from tests.agents.task_jobs import KEY, TaskJob, a_job, role

pytestmark = pytest.mark.slow
ADDRESS = "10.1.2.3"
needs_namespaces = pytest.mark.skipif(not can_be_private(), reason="the kernel lets this user make no namespace")


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run one test in an event loop of its own."""
    asyncio.run(coroutine)


def rules(*names: str) -> TaskRules:
    """Conventions of these names."""
    return TaskRules(format=1, conventions=[Convention(name=name) for name in names], owner_name="net")


async def a_told_job(host: Host, command: str, number: int = 1, tasks: int = 2) -> TaskJob:
    """A staged job whose tasks have host files and names."""
    host.local.keeper.task_orders.address = ADDRESS
    return await a_job(host, role("worker", command, tasks), number=number, tasks=rules("env", "svc"))


@needs_namespaces
def test_tasks_read_host_files_where_volcano_has_them(place: Place) -> None:
    """And the names in them resolve; the host has neither afterwards."""

    async def story() -> None:
        async with Host(place) as host:
            address = "getent hosts net-worker-1.net | cut -d' ' -f1"
            command = f"cat /etc/volcano/worker.host; echo; {address}; echo $VC_TASK_INDEX"
            tasks = await a_told_job(host, command)
            await tasks.start((0, 0, 1), (0, 1, 1))
            assert (await tasks.ended((0, 0, 1))).phase == (await tasks.ended((0, 1, 1))).phase == TASK_DONE
            for index in (0, 1):
                assert tasks.output((0, index, 1)).splitlines() == [
                    "net-worker-0.net",
                    "net-worker-1.net",
                    ADDRESS,
                    str(index),
                ]
            assert not Path("/etc/volcano").exists()
            await host.release(KEY)
            await host.report(KEY, "released")
            assert not (place.state / "taskfiles" / "1-0-1").exists()

    run(story())


@needs_namespaces
def test_two_jobs_on_a_host_see_each_its_own(place: Place) -> None:
    """At the same time, through two shepherds or one after the other."""

    async def story() -> None:
        async with Host(place) as host:
            first = await a_told_job(
                host, "cat /etc/volcano/worker.host; echo; sleep 0.2; cat /etc/volcano/worker.host", 1, 1
            )
            second = await a_told_job(host, "cat /etc/volcano/worker.host", 2, 2)
            await first.start((0, 0, 1))
            await second.start((0, 0, 1), (0, 1, 1))
            for tasks, count in ((first, 1), (second, 2)):
                assert (await tasks.ended((0, 0, 1))).phase == TASK_DONE
                lines = tasks.output((0, 0, 1)).splitlines()
                assert lines[:count] == [f"net-worker-{index}.net" for index in range(count)]
                assert len(set(lines)) == count

    run(story())


@needs_namespaces
def test_a_running_task_sees_the_table_of_a_later_order(place: Place) -> None:
    """The list is shorter before the task that left it has ended."""

    async def story() -> None:
        async with Host(place) as host:
            waits = (
                "while [ $(grep -c . /etc/volcano/worker.host) = 2 ]; do sleep 0.02; done; cat /etc/volcano/worker.host"
            )
            tasks = await a_told_job(host, waits)
            await tasks.start((0, 0, 1), (0, 1, 1))
            await tasks.running((0, 0, 1))
            part = tasks.table[0].roles[0]
            del part.indices[1:]
            await tasks.stop((0, 1, 1))
            assert (await tasks.ended((0, 0, 1))).phase == TASK_DONE
            assert tasks.output((0, 0, 1)) == "net-worker-0.net"

    run(story())


def test_without_namespaces_the_files_are_in_the_directory(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """LAVA_TASK_FILES names it, and the lists name hosts."""
    monkeypatch.setattr(Preparation, "shows_files", lambda *_: False)

    async def story() -> None:
        async with Host(place) as host:
            tasks = await a_told_job(
                host, "cat $LAVA_TASK_FILES/etc/volcano/worker.host; echo; ls -d /etc/volcano", tasks=1
            )
            await tasks.start((0, 0, 1))
            await tasks.ended((0, 0, 1))
            name, missing = tasks.output((0, 0, 1)).splitlines()
            assert name == tasks.table[0].host
            assert "No such file or directory" in missing

    run(story())
