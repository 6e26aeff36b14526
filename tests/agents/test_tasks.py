"""Tasks beside a job: as its user, in its group, with the descriptors of their caller, and ended with the job."""

import asyncio
import os
import signal
import socket
from collections.abc import Coroutine
from typing import Any

import pytest

from agents.ranks.interfaces import TaskRefused, TaskRequest
from agents.shepherd.confinement import hierarchy
from protos.common_pb2 import LAUNCH_EACH, HostShare, Role
from tests.agents.hosts import NAME, Host, Place, alive, blob, stage, until

pytestmark = pytest.mark.slow

KEY = (1, 0, 1)
HERE_AND_THERE = stage(HostShare(host="h0", slots=1), HostShare(host=NAME, slots=2))


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run one test in an event loop of its own."""
    asyncio.run(coroutine)


class Task:
    """A task with pipes for its streams."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def start(
        self, *argv: str, cwd: str = "", environment: tuple[bytes, ...] = (), pmi: int | None = None
    ) -> "Task":
        """Start it in the attempt of `KEY`."""
        stdin, self.stdin = os.pipe()
        self.stdout, stdout = os.pipe()
        request = TaskRequest(tuple(map(os.fsencode, argv)), cwd, environment, stdin, stdout, stdout, pmi)
        try:
            self.handle = await self._host.local.attempts.run_task(KEY, request)
        except BaseException:
            self.close()
            raise
        finally:
            os.close(stdin)
            os.close(stdout)
        return self

    def say(self, data: bytes) -> None:
        """Write to its input and close that."""
        os.write(self.stdin, data)
        os.close(self.stdin)
        self.stdin = -1

    async def output(self) -> str:
        """All output, up to its end."""
        return await asyncio.to_thread(self._read_all)

    def _read_all(self) -> str:
        with open(self.stdout, closefd=False) as file:
            return file.read()

    def close(self) -> None:
        """Close the pipes."""
        for descriptor in (self.stdin, self.stdout):
            if descriptor >= 0:
                os.close(descriptor)


async def held(host: Host, command: str = "sleep 1000") -> None:
    """A running job, or with `HERE_AND_THERE` a place held for one."""
    await host.run(blob(host.place, 1, command))
    await host.report(KEY, "started")


def test_a_task_runs_as_the_job_with_its_callers_streams(place: Place) -> None:
    """User, directory and environment are the job's, laid over; input, output and exit code are the caller's."""

    async def story() -> None:
        async with Host(place) as host:
            await held(host)
            script = "id -u; pwd; echo $LSB_JOBID $EXTRA $LAVA_JOB_KEY; ls /proc/self/fd | wc -l; cat; exit 5"
            task = await Task(host).start(
                "/bin/sh", "-c", script,
                environment=(b"EXTRA=more",),
            )  # fmt: skip
            task.say(b"fed\n")
            assert await task.handle.wait() == 5 << 8
            assert await task.output() == f"{place.user.pw_uid}\n{place.work}\n1 more 1.0.1\n4\nfed\n"
            task.close()
            await host.signal(KEY, signal.SIGKILL)
            await host.report(KEY, "finished")

    run(story())


def test_a_task_is_born_in_the_jobs_group(place: Place) -> None:
    """It counts with the job and is under its limits."""

    async def story() -> None:
        async with Host(place) as host:
            if not host.base.version:
                pytest.skip("no control groups on this machine")
            await held(host)
            task = await Task(host).start("sleep", "1000")
            handle = host.local.pool.holder(KEY)
            assert handle is not None
            assert task.handle.pid in hierarchy.members(host.base, handle.slot)
            task.close()

    run(story())


def test_tasks_die_with_their_job(place: Place) -> None:
    """Tasks and their children are killed at the end of the job's command, and their callers are notified."""

    async def story() -> None:
        async with Host(place) as host:
            await held(host, "while [ ! -e stop ]; do sleep 0.02; done")
            task = await Task(host).start("/bin/sh", "-c", "setsid sleep 1000 & echo $!; wait")
            pid = int(os.read(task.stdout, 100))
            waiting = asyncio.create_task(task.handle.wait())
            place.out("stop").touch()
            assert (await host.report(KEY, "finished")).also_released
            assert await waiting == signal.SIGKILL
            assert not alive(pid)
            task.close()
            with pytest.raises(TaskRefused):
                await Task(host).start("/bin/true")

    run(story())


def test_killing_a_task_kills_its_whole_tree_and_nothing_else(place: Place) -> None:
    """Also children in sessions of their own; the job and other tasks live on."""

    async def story() -> None:
        async with Host(place) as host:
            await held(host)
            other = await Task(host).start("sleep", "1000")
            task = await Task(host).start(
                "/bin/sh", "-c", "(setsid sleep 1000 & echo $!); (sleep 1000 & echo $!); wait; sleep 99"
            )
            text = b""
            while text.count(b"\n") < 2:
                text += os.read(task.stdout, 100)
            task.handle.signal(signal.SIGKILL)
            assert await task.handle.wait() == signal.SIGKILL
            for pid in map(int, text.split()):
                await until(lambda pid=pid: not alive(pid))  # type: ignore[misc]
            assert alive(other.handle.pid)
            assert not host.said(KEY, "finished")
            task.close()
            other.close()

    run(story())


def test_tasks_on_a_host_where_the_command_does_not_run(place: Place) -> None:
    """On a staged host tasks run without a launch; its release ends them and is confirmed."""

    async def story() -> None:
        async with Host(place) as host:
            await host.run(blob(place, 1, "echo never"), HERE_AND_THERE)
            await host.report(KEY, "staged")
            await host.launch(KEY)
            task = await Task(host).start("sleep", "1000")
            await host.release(KEY)
            report = await host.report(KEY, "released")
            assert report.key.job == 1
            assert await task.handle.wait() == signal.SIGTERM
            assert not place.out().exists()
            task.close()
            assert not host.said(KEY, "finished")

    run(story())


def test_a_task_may_have_a_further_descriptor(place: Place) -> None:
    """The PMI socket arrives as descriptor 3."""

    async def story() -> None:
        async with Host(place) as host:
            await held(host)
            ours, theirs = socket.socketpair()
            with ours, theirs:
                task = await Task(host).start("/bin/sh", "-c", "echo hello >&3; ls /proc/self/fd", pmi=theirs.fileno())
                theirs.close()
                assert await task.handle.wait() == 0
                assert ours.recv(100) == b"hello\n"
                assert (await task.output()).split() == ["0", "1", "2", "3", "4"]
                task.close()

    run(story())


@pytest.mark.parametrize("argv", [("/no/such/program",), ("nosuchprogram",)])
def test_a_task_that_cannot_start_is_refused(place: Place, argv: tuple[str, ...]) -> None:
    """One sentence for its caller; the job does not notice."""

    async def story() -> None:
        async with Host(place) as host:
            await held(host)
            with pytest.raises(TaskRefused, match="cannot be executed"):
                await Task(host).start(*argv)
            with pytest.raises(TaskRefused, match="cannot be entered"):
                await Task(host).start("/bin/true", cwd="/no/such/place")
            task = await Task(host).start("true")
            assert await task.handle.wait() == 0
            task.close()

    run(story())


def test_many_tasks_at_once(place: Place) -> None:
    """Each reports its own exit code."""

    async def story() -> None:
        async with Host(place) as host:
            await held(host)
            tasks = [await Task(host).start("/bin/sh", "-c", f"sleep 0.1; exit {number}") for number in range(20)]
            statuses = await asyncio.gather(*(task.handle.wait() for task in tasks))
            assert statuses == [number << 8 for number in range(20)]
            for task in tasks:
                task.close()

    run(story())


def each(*commands: str) -> list[Role]:
    """Roles whose command runs once for each task."""
    return [
        Role(name=f"r{number}", tasks_min=2, tasks_max=2, launch=LAUNCH_EACH, command=command)
        for number, command in enumerate(commands)
    ]


def test_a_role_launched_for_each_task(place: Place) -> None:
    """Every task of this host starts with its numbers; the host is finished when all have ended."""
    elsewhere, here = HostShare(host="h0", slots=1, tasks_by_role=[1]), HostShare(host=NAME, slots=2, tasks_by_role=[2])
    where = stage(elsewhere, here)
    command = "echo $LAVA_TASK_INDEX/$LAVA_TASK_COUNT $LAVA_ROLE $LAVA_ROLE_INDEX/$LAVA_ROLE_COUNT"

    async def story() -> None:
        async with Host(place) as host:
            await host.run(blob(place, 1, "", roles=each(command)), where)
            await host.report(KEY, "staged")
            assert not place.out().exists()
            await host.launch(KEY)
            report = await host.report(KEY, "finished")
            assert (report.finished.status, report.also_released) == (0, True)
        assert sorted(place.out().read_text().splitlines()) == ["1/3 r0 1/3", "2/3 r0 2/3"]

    run(story())


def test_a_failing_task_of_a_role_ends_the_host(place: Place) -> None:
    """The first failure determines the exit code, and the other tasks are killed."""
    where = stage(HostShare(host=NAME, slots=2, tasks_by_role=[2]))
    command = "test $LAVA_ROLE_INDEX = 1 && exit 6; echo $$; sleep 1000"

    async def story() -> None:
        async with Host(place) as host:
            report = await host.finish(blob(place, 1, "", roles=each(command)), where)
            assert (report.finished.status, report.also_released) == (6 << 8, True)
        begun = [int(line) for line in place.out().read_text().splitlines() if line.isdigit()]
        assert not [pid for pid in begun if alive(pid)]

    run(story())
