"""Jobs of tasks under real shepherds: tasks start, fail, start again and end one by one."""

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from agents import assembly
from agents.ranks.interfaces import TaskRefused, TaskRequest
from agents.shepherd.confinement import hierarchy
from agents.shepherd.confinement.hierarchy import Base, groups_below
from protos.common_pb2 import LAUNCH_NONE, TASK_DONE, TASK_EXITED, HostShare, PortRequest
from protos.jobs_pb2 import Convention, TaskRules
from tests.agents.hosts import NAME, Host, Place, alive, blob, stage, until
from tests.agents.task_jobs import KEY, a_job, job, role, staging

pytestmark = pytest.mark.slow

WAITS = "echo run $LAVA_TASK_RUN of $LAVA_ROLE/$LAVA_ROLE_INDEX; while [ ! -e stop ]; do sleep 0.02; done"


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run one test in an event loop of its own."""
    asyncio.run(coroutine)


@pytest.fixture(params=["groups", "process tree"])
def confined(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With control groups where there are some, and without."""
    if request.param != "groups":
        monkeypatch.setattr(assembly, "find_groups", lambda *_: Base())


def test_a_task_that_fails_is_started_again_beside_the_others(place: Place) -> None:
    """Three tasks start, one fails, its second run ends well, and each run has output of its own."""

    async def story() -> None:
        async with Host(place) as host:
            fails = "echo run $LAVA_TASK_RUN; [ $LAVA_ROLE_INDEX != 1 ] || exit $((7 - 7 * (LAVA_TASK_RUN - 1)))"
            tasks = await a_job(host, role("w", f"{fails}; sleep 1000", 3))
            await tasks.start((0, 0, 1), (0, 1, 1), (0, 2, 1))
            end = await tasks.ended((0, 1, 1))
            assert (end.phase, end.status) == (TASK_EXITED, 7 << 8)
            assert 0 < end.started <= end.ended <= time.time()
            await tasks.start((0, 1, 2))
            assert (await tasks.ended((0, 1, 2))).phase == TASK_DONE
            others = [await tasks.running((0, index, 1)) for index in (0, 2)]
            assert all(alive(other.pid) for other in others)
            assert [tasks.output((0, 1, number)) for number in (1, 2)] == ["run 1\n", "run 2\n"]
            await host.release(KEY)
            released = await host.report(KEY, "released")
            assert released.released.usage.cpu_s > 0
            assert not any(alive(other.pid) for other in others)

    run(story())


def test_a_repeated_order_starts_a_run_once(place: Place) -> None:
    """Orders may come twice, also after the run has ended: then the end is told again."""

    async def story() -> None:
        async with Host(place) as host:
            tasks = await a_job(host, role("w", "echo $$ >> starts", 1))
            for _ in range(2):
                await tasks.start((0, 0, 1))
            await tasks.ended((0, 0, 1))
            count = len(tasks.states((0, 0, 1)))
            await tasks.start((0, 0, 1))
            assert len(tasks.states((0, 0, 1))) == count + 1
            await tasks.start((0, 0, 2))
            await tasks.ended((0, 0, 2))
            assert len(place.out("starts").read_text().split()) == 2

    run(story())


@pytest.mark.usefixtures("confined")
def test_a_stopped_task_takes_along_what_it_has_forked(place: Place) -> None:
    """TERM first, then KILL; a child in a session of its own dies, too, and the end is told after that."""

    async def story() -> None:
        async with Host(place) as host:
            forks = "setsid sh -c 'trap : TERM; echo $$ > child; while :; do sleep 0.05; done' & trap 'exit 3' TERM"
            tasks = await a_job(host, role("w", f"{forks}; while :; do sleep 0.05; done", 1), role("x", "sleep 1000"))
            await tasks.start((0, 0, 1), (1, 0, 1))
            other = await tasks.running((1, 0, 1))
            await until(lambda: place.out("child").exists() and place.out("child").read_text().endswith("\n"))
            child = int(place.out("child").read_text())
            await tasks.stop((0, 0, 1), reason="TERM_OWNER")
            end = await tasks.ended((0, 0, 1))
            assert (end.phase, end.reason) == (TASK_EXITED, "TERM_OWNER")
            assert not alive(child)
            assert alive(other.pid)

    run(story())


@pytest.mark.usefixtures("confined")
def test_a_task_that_ends_leaves_nothing_behind(place: Place) -> None:
    """Its port is free when its next run starts."""

    async def story() -> None:
        async with Host(place) as host:
            tasks = await a_job(host, role("w", "setsid sleep 1000 & echo $! > child; exit 1"))
            await tasks.start((0, 0, 1))
            await tasks.ended((0, 0, 1))
            assert not alive(int(place.out("child").read_text()))

    run(story())


async def started(place: Place) -> int:
    """Process id of the daemon, once it runs."""
    await until(lambda: place.out("child").exists() and place.out("child").read_text().endswith("\n"))
    return int(place.out("child").read_text())


DAEMON = "(env -i setsid sh -c 'echo $$ > child; exec sleep 1000' &)"


def test_a_daemon_without_any_trace_of_its_task_ends_with_it(place: Place) -> None:
    """It has left parent, session and environment: the task's control group still has it, for a stop and for an end."""

    async def story() -> None:
        async with Host(place) as host:
            if not host.base.version:
                pytest.skip("no control groups here")
            again = f"{DAEMON}; while [ ! -s child ]; do sleep 0.02; done; [ $LAVA_TASK_RUN = 2 ] || sleep 1000"
            tasks = await a_job(host, role("w", again), role("x", "sleep 1000"))
            await tasks.start((0, 0, 1), (1, 0, 1))
            other = await tasks.running((1, 0, 1))
            daemon = await started(place)
            await tasks.stop((0, 0, 1), reason="TERM_OWNER")
            await tasks.ended((0, 0, 1))
            assert not alive(daemon)
            place.out("child").unlink()
            await tasks.start((0, 0, 2))
            await tasks.ended((0, 0, 2))
            assert not alive(int(place.out("child").read_text()))
            assert alive(other.pid)
            slot = next(one.slot for one in host.local.pool.handles() if one.key is not None)
            below = groups_below(host.base.slot_main(slot))
            assert len(below) == 1  # that of the other task
            assert other.pid in hierarchy.members(host.base, slot)

    run(story())


def test_a_daemon_of_a_task_does_not_outlive_its_shepherd(place: Place) -> None:
    """The next shepherd of the slot finds the groups of tasks empty."""

    async def story() -> None:
        async with Host(place) as host:
            if not host.base.version:
                pytest.skip("no control groups here")
            tasks = await a_job(host, role("w", f"{DAEMON}; sleep 1000"))
            await tasks.start((0, 0, 1))
            await tasks.running((0, 0, 1))
            daemon = await started(place)
            shepherd = next(one.pid for one in host.local.pool.handles() if one.key is not None)
            os.kill(shepherd, signal.SIGKILL)
            await until(lambda: not alive(daemon))
            assert not alive(daemon)

    run(story())


def test_the_next_agent_finds_all_tasks(place: Place) -> None:
    """Runs go on without an agent; ends without one are in the next hello; a run is not started a second time."""

    async def story() -> None:
        async with Host(place) as host:
            tasks = await a_job(host, role("w", f"echo $$ >> starts; {WAITS}; exit $LAVA_ROLE_INDEX", 2))
            await tasks.start((0, 0, 1), (0, 1, 1))
            before = [await tasks.running((0, index, 1)) for index in (0, 1)]
            await host.leave()
            place.out("stop").touch()
            await until(lambda: not any(alive(one.pid) for one in before))
            await host.start()
            assert {one: state.phase for one, state in tasks.held().items()} == {
                (0, 0, 1): TASK_DONE,
                (0, 1, 1): TASK_EXITED,
            }
            await tasks.start((0, 0, 1), (0, 1, 2))
            await tasks.ended((0, 1, 2))
            await host.replace()
            assert set(tasks.held()) == {(0, 0, 1), (0, 1, 2)}
            assert len(place.out("starts").read_text().split()) == 3
            assert tasks.output((0, 1, 2)) == "run 2 of w/1\n"
            await host.release(KEY)
            await host.report(KEY, "released")

    run(story())


def test_a_stop_before_the_start_prevents_it(place: Place) -> None:
    """The late start order is answered with the end, also by the next agent."""

    async def story() -> None:
        async with Host(place) as host:
            tasks = await a_job(host, role("w", "touch ran"))
            await tasks.stop((0, 0, 1), reason="TERM_OWNER")
            await host.replace()
            await tasks.start((0, 0, 1))
            end = await tasks.ended((0, 0, 1))
            assert (end.phase, end.reason) == (TASK_EXITED, "TERM_OWNER")
            assert not place.out("ran").exists()

    run(story())


def test_a_start_that_comes_too_late_is_asked_for_again(place: Place) -> None:
    """It was on its way for too long; the same run starts by a fresh order."""

    async def story() -> None:
        async with Host(place) as host:
            tasks = await a_job(host, role("w", "true"))
            await tasks.start((0, 0, 1), age_s=1000)
            assert [state.order_again for state in tasks.states((0, 0, 1))] == [True]
            await tasks.start((0, 0, 1))
            await tasks.ended((0, 0, 1))

    run(story())


def test_a_newer_run_waits_for_the_end_of_the_older(place: Place) -> None:
    """Two runs of a task are never alive at the same time."""

    async def story() -> None:
        async with Host(place) as host:
            tasks = await a_job(host, role("w", WAITS))
            await tasks.start((0, 0, 1))
            first = await tasks.running((0, 0, 1))
            await tasks.start((0, 0, 2))
            second = await tasks.running((0, 0, 2))
            assert not alive(first.pid)
            assert (await tasks.ended((0, 0, 1))).ended <= second.started

    run(story())


def test_tasks_know_each_other_until_the_end(place: Place) -> None:
    """Each has the table in a file; the next agent goes on with it, and it goes with the attempt."""

    async def story() -> None:
        async with Host(place) as host:
            roles = (
                role("ps", "true"),
                role("w", "cp $LAVA_TASKS_FILE table; echo $LAVA_TASK_INDEX $LAVA_TASK_COUNT", 2),
            )
            tasks = await a_job(host, *roles)
            await tasks.start((1, 1, 1))
            await tasks.ended((1, 1, 1))
            assert tasks.output((1, 1, 1)) == "2 3\n"
            told = json.loads(place.out("table").read_text())
            assert [f"{one['role']}/{one['index']}" for one in told["tasks"]] == ["ps/0", "w/0", "w/1"]
            await host.replace()
            assert [path.name for path in (place.state / "taskfiles").iterdir()] == ["1-0-1"]
            await host.release(KEY)
            await host.report(KEY, "released")
            assert not list((place.state / "taskfiles").iterdir())

    run(story())


def test_a_convention_that_is_unknown_here_fails_its_tasks(place: Place) -> None:
    """The end says so in a sentence."""

    async def story() -> None:
        async with Host(place) as host:
            tasks = await a_job(host, role("w", "true"), tasks=TaskRules(format=1, conventions=[Convention(name="x")]))
            await tasks.start((0, 0, 1))
            assert (await tasks.ended((0, 0, 1))).detail == "The convention x is not known on h1."

    run(story())


async def beside(host: Host, *environment: bytes) -> list[str]:
    """Output of a process that blaunch starts beside the job's tasks."""
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    script = f"echo $LAVA_ROLE/$LAVA_ROLE_INDEX $MINE $LSB_HOSTS > {host.place.out('beside')}"
    argv = (b"/bin/sh", b"-c", script.encode())
    try:
        task = await host.local.attempts.run_task(KEY, TaskRequest(argv, "", environment, nowhere, nowhere, nowhere))
    finally:
        os.close(nowhere)
    assert await task.wait() == 0
    return host.place.out("beside").read_text().split()


def test_other_processes_run_beside_tasks_or_in_their_place(place: Place) -> None:
    """As in every job; one that is started in the place of a task has its variables, and not its caller's."""

    async def story() -> None:
        async with Host(place) as host:
            tasks = await a_job(host, role("w", "sleep 1000", 2, environment=[b"MINE=of-w"]))
            hosts = ["h1", "h1"]
            assert await beside(host, b"LAVA_ROLE=a", b"LAVA_ROLE_INDEX=b") == ["a/b", *hosts]
            await tasks.start((0, 1, 1))
            await tasks.running((0, 1, 1))
            caller = (b"LAVA_ROLE=a", b"LAVA_ROLE_INDEX=0", b"MINE=no")
            assert await beside(host, *caller, b"LAVA_SSH_TASK=w/1") == ["w/1", "of-w", *hosts]
            assert await beside(host, *caller, b"LAVA_SSH_TASK=w/9") == ["a/0", "no", *hosts]

    run(story())


def test_a_roles_own_variable_wins_over_a_secret_of_the_job(place: Place) -> None:
    """Other roles have the secret."""

    async def story() -> None:
        async with Host(place) as host:
            roles = role("own", "echo $KEY", environment=[b"KEY=mine"]), role("other", "echo $KEY")
            tasks = await a_job(host, *roles, tasks=TaskRules(format=1, secrets=[b"KEY=hunter2"]))
            await tasks.start((0, 0, 1), (1, 0, 1))
            for at, said in enumerate(("mine\n", "hunter2\n")):
                await tasks.ended((at, 0, 1))
                assert tasks.output((at, 0, 1)) == said

    run(story())


def test_ports_belong_to_one_attempt(place: Place) -> None:
    """Ports are told when the attempt is staged, and kept from other attempts, also by the next agent."""

    async def story() -> None:
        async with Host(place) as host:
            host.local.keeper.task_orders.address = "10.1.2.3"
            ported = role(
                "w", "echo $LAVA_TASK_PORTS", 2, ports=[PortRequest(name="a"), PortRequest(name="b", count=2)]
            )
            one = await a_job(host, ported)
            ports = list(one.table[0].roles[0].ports)
            assert (len(set(ports)), one.address) == (6, "10.1.2.3")
            await host.replace()
            last = host.last(KEY)
            assert last is not None
            assert list(last.staged.tasks[0].ports) == ports
            other = await a_job(host, ported, number=2)
            assert not set(ports) & set(other.table[0].roles[0].ports)
            await one.start((0, 1, 1))
            await one.ended((0, 1, 1))
            assert one.output((0, 1, 1)).split() == [str(port) for port in ports[3:]]
            await host.release(KEY)
            await host.report(KEY, "released")
            assert not set(ports) & host.local.ledger.ports()

    run(story())


def test_a_wanted_port_that_is_taken_refuses_the_attempt(place: Place) -> None:
    """Another host may have it free; this one is not at fault."""

    async def story() -> None:
        async with Host(place) as host:
            with socket.socket() as mine:
                mine.bind(("127.0.0.1", 0))
                port = mine.getsockname()[1]
                wants = job(place, role("w", "true", ports=[PortRequest(name="a", number=port)]))
                await host.run(wants, staging(list(wants.spec.roles)))
                said = (await host.report(KEY, "refused")).refused
                assert said.reason == f"port {port}, which task w/0 wants, is taken"
                assert not said.host_fault

    run(story())


def test_limits_of_a_task_end_it_alone(place: Place) -> None:
    """Run limit and memory limit of a role, each with its reason."""

    async def story() -> None:
        async with Host(place) as host:
            eats = "python3 -c 'x = b\"x\" * (200 << 20); import time; time.sleep(1000)'"
            tasks = await a_job(
                host,
                role("slow", "sleep 1000", run_limit_s=0.3),
                role("big", eats, memory_limit_mib=100, environment=[b"PATH=" + os.environb[b"PATH"]]),
                role("quiet", "sleep 1000"),
            )
            await tasks.start((0, 0, 1), (1, 0, 1), (2, 0, 1))
            assert (await tasks.ended((0, 0, 1))).reason == "TERM_RUNLIMIT"
            assert (await tasks.ended((1, 0, 1))).reason == "TERM_MEMLIMIT"
            assert alive((await tasks.running((2, 0, 1))).pid)

    run(story())


def test_a_signal_to_the_job_ends_its_part_here(place: Place) -> None:
    """All tasks end, then the attempt, with its usage; so it does without any task alive."""

    async def story() -> None:
        async with Host(place) as host:
            tasks = await a_job(host, role("w", "sleep 1000", 2))
            await tasks.start((0, 0, 1), (0, 1, 1))
            await tasks.running((0, 1, 1))
            await host.signal(KEY, 0, "TERM_OWNER")
            end = await host.report(KEY, "finished")
            assert (end.finished.reason, end.also_released) == ("TERM_OWNER", True)
            assert {(await tasks.ended((0, index, 1))).reason for index in (0, 1)} == {"TERM_OWNER"}
            idle = await a_job(host, role("w", "true"), number=2)
            await idle.start((0, 0, 1))
            await idle.ended((0, 0, 1))
            await host.signal(idle.key, 0, "TERM_OWNER")
            assert (await host.report(idle.key, "finished")).finished.reason == "TERM_OWNER"

    run(story())


def test_a_suspended_job_suspends_all_tasks(place: Place) -> None:
    """Stopped tasks stand still, and what is ordered to start waits for the resumption."""

    async def story() -> None:
        async with Host(place) as host:
            tasks = await a_job(host, role("w", argv=["sleep", "1000"]), role("x", "true"))
            await tasks.start((0, 0, 1))
            pid = (await tasks.running((0, 0, 1))).pid
            await host.signal(KEY, signal.SIGSTOP)
            await until(lambda: "State:\tT" in Path(f"/proc/{pid}/status").read_text())
            await tasks.start((1, 0, 1))
            await asyncio.sleep(0.2)
            assert not tasks.states((1, 0, 1))
            await host.signal(KEY, signal.SIGCONT)
            await tasks.ended((1, 0, 1))

    run(story())


def test_tasks_write_where_the_job_says(place: Place) -> None:
    """One file a task and run by its patterns; without them all append to the same one."""

    async def story() -> None:
        async with Host(place) as host:
            says = role("w", "echo $LAVA_ROLE_INDEX.$LAVA_TASK_RUN", 2)
            apart = await a_job(host, says, output=str(place.out("%J.%R.%T.%N")))
            await apart.start((0, 0, 1), (0, 1, 1))
            await apart.ended((0, 0, 1))
            await apart.ended((0, 1, 1))
            await apart.start((0, 1, 2))
            await apart.ended((0, 1, 2))
            assert {path.name: path.read_text() for path in place.work.glob("1.*")} == {
                "1.w.0.1": "0.1\n",
                "1.w.1.1": "1.1\n",
                "1.w.1.2": "1.2\n",
            }
            place.out("all").write_text("old\n")
            place.give(place.out("all"))
            together = await a_job(host, says, number=2, output="all", output_overwrite=True)
            await together.start((0, 0, 1), (0, 1, 1))
            await together.ended((0, 0, 1))
            await together.ended((0, 1, 1))
            assert sorted(place.out("all").read_text().split()) == ["0.1", "1.1"]

    run(story())


def test_a_program_that_is_not_there_fails_its_task(place: Place) -> None:
    """The end says why; other tasks run."""

    async def story() -> None:
        async with Host(place) as host:
            tasks = await a_job(host, role("w", argv=["no-such-program", "x"]), role("x", argv=["sleep", "1000"]))
            await tasks.start((0, 0, 1), (1, 0, 1))
            end = await tasks.ended((0, 0, 1))
            assert (end.status, end.detail) == (
                127 << 8,
                "no-such-program cannot be executed: No such file or directory.",
            )
            await tasks.running((1, 0, 1))

    run(story())


def test_a_gang_of_64_is_whole_again_at_once(place: Place) -> None:
    """From the exit of one task to its next run's start no timer is waited for."""

    async def story() -> None:
        async with Host(place) as host:
            tasks = await a_job(host, role("w", argv=["sleep", "1000"], tasks=64))
            await tasks.start(*((0, index, 1) for index in range(64)))
            states = [await tasks.running((0, index, 1)) for index in range(64)]
            delays = [60.0]
            for index in range(7, 64, 4):  # until one is not delayed by other work of the machine
                if min(delays) < 0.5:
                    break
                began = time.monotonic()
                os.kill(states[index].pid, signal.SIGKILL)
                await tasks.ended((0, index, 1))
                await tasks.start((0, index, 2))
                await tasks.running((0, index, 2))
                delays.append(time.monotonic() - began)
            assert min(delays) < 0.5

    run(story())


# -- what is started in the place of a task ----------------------------------------------------------------------------

HEEDS = "echo $$ > {0}; trap 'echo heard > {0}.heard; exit 0' TERM; touch {0}.ready; while :; do sleep 0.02; done"
IGNORES = (
    "echo $$ > {0}; trap '' INT; trap 'echo heard > {0}.heard' TERM; touch {0}.ready; while :; do sleep 0.02; done"
)
# Beyond its parents and its session, and without a variable of its own.
HIDES = "setsid env -i /bin/sh -c 'touch {0}.ready; exec sleep 1000' & echo $! > {0}; wait"


async def in_place(host: Host, script: str, name: str, task: str = "") -> int:
    """Start a command as ssh (with a task) or blaunch do; its process id once it is ready."""
    path = host.place.out(name)
    environment = [f"LAVA_SSH_TASK={task}".encode()] if task else []
    attempts, nowhere = host.local.attempts, os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        runs = await attempts.place(KEY, environment)
        argv = (b"/bin/sh", b"-c", script.format(path).encode())
        await attempts.run_task(KEY, TaskRequest(argv, "", tuple(environment), *3 * (nowhere,), runs=runs))
    finally:
        os.close(nowhere)
    await until(Path(f"{path}.ready").exists)
    return int(path.read_text())


HELD = role("w", tasks=2, launch=LAUNCH_NONE)


@pytest.mark.usefixtures("confined")
def test_what_is_started_in_the_place_of_a_task_ends_with_it(place: Place) -> None:
    """TERM first and KILL after the interval; the task has ended when its last process is gone, others go on."""

    async def story() -> None:
        async with Host(place) as host:
            tasks = await a_job(host, role("lead", "sleep 1000"), HELD)
            await tasks.start((0, 0, 1))
            await tasks.hold((1, 0, 1), (1, 1, 1))
            assert (await tasks.running((1, 1, 1))).pid == 0
            heeds = await in_place(host, HEEDS, "heeds", "w/1")
            ignores = await in_place(host, IGNORES, "ignores", "w/1")
            other = await in_place(host, IGNORES, "other", "w/0")
            await tasks.stop((1, 1, 1), reason="scaled down")
            end = await tasks.ended((1, 1, 1))
            assert end.reason == "scaled down"
            assert [alive(pid) for pid in (heeds, ignores, other)] == [False, False, True]
            assert [path.name for path in sorted(place.work.glob("*.heard"))] == ["heeds.heard", "ignores.heard"]
            with pytest.raises(TaskRefused, match="does not run here"):
                await in_place(host, HEEDS, "late", "w/1")
            await host.release(KEY)
            await host.report(KEY, "released")
            assert not alive(other)

    run(story())


def test_what_hides_ends_with_the_task_in_whose_place_it_was_started(place: Place) -> None:
    """A process that has left its parents, its session and its environment is in the control group of its start."""

    async def story() -> None:
        async with Host(place) as host:
            if not host.base.version:
                pytest.skip("no control groups on this machine")
            tasks = await a_job(host, HELD)
            await tasks.hold((0, 0, 1), (0, 1, 1))
            await tasks.running((0, 1, 1))
            hidden = await in_place(host, HIDES, "hides", "w/1")
            await tasks.stop((0, 1, 1))
            await tasks.ended((0, 1, 1))
            assert not alive(hidden)

    run(story())


@pytest.mark.usefixtures("confined")
def test_a_task_with_a_command_ends_with_what_was_started_in_its_place(place: Place) -> None:
    """Also if its command ends by itself: the next run begins when nothing of the one before is left."""

    async def story() -> None:
        async with Host(place) as host:
            tasks = await a_job(host, role("w", "while [ ! -e stop ]; do sleep 0.02; done", 1))
            await tasks.start((0, 0, 1))
            first = (await tasks.running((0, 0, 1))).pid
            pid = await in_place(host, IGNORES, "ignores", "w/0")
            place.out("stop").touch()
            await host.until(lambda: not alive(first))
            await tasks.start((0, 0, 2))
            assert (await tasks.ended((0, 0, 1))).phase == TASK_DONE
            assert not alive(pid)
            assert place.out("ignores.heard").exists()
            await tasks.ended((0, 0, 2))

    run(story())


def test_a_host_name_means_the_task_there_with_the_fewest(place: Place) -> None:
    """Tasks that hold their slots for others come before those with a command."""

    async def story() -> None:
        async with Host(place) as host:
            tasks = await a_job(host, role("lead", "sleep 1000"), HELD)
            await tasks.start((0, 0, 1))
            await tasks.hold((1, 0, 1), (1, 1, 1))
            await tasks.running((1, 1, 1))
            first, second, third = [await in_place(host, HEEDS, name) for name in ("one", "two", "three")]
            await tasks.stop((1, 1, 1))
            await tasks.ended((1, 1, 1))
            assert [alive(pid) for pid in (first, second, third)] == [True, False, True]
            await tasks.stop((1, 0, 1))
            await tasks.ended((1, 0, 1))
            assert not alive(first)
            assert not alive(third)
            fourth = await in_place(host, HEEDS, "four")
            assert alive(fourth)  # in the place of the one with a command
            await tasks.stop((0, 0, 1))
            await tasks.ended((0, 0, 1))
            assert not alive(fourth)

    run(story())


@pytest.mark.usefixtures("confined")
def test_another_agent_knows_what_was_started_in_the_place_of_a_task(place: Place) -> None:
    """The shepherd keeps it: the end that the next agent orders reaches all of it."""

    async def story() -> None:
        async with Host(place) as host:
            tasks = await a_job(host, HELD)
            await tasks.hold((0, 0, 1), (0, 1, 1))
            await tasks.running((0, 1, 1))
            pid = await in_place(host, IGNORES, "ignores", "w/1")
            await host.replace()
            assert {run[1] for run in tasks.held()} == {0, 1}
            await tasks.stop((0, 1, 1))
            await tasks.ended((0, 1, 1))
            assert not alive(pid)

    run(story())


@pytest.mark.usefixtures("confined")
def test_the_end_of_the_job_reaches_what_was_started_in_the_place_of_tasks(place: Place) -> None:
    """It hears TERM first, and the part of this host is over when it is gone."""

    async def story() -> None:
        async with Host(place) as host:
            tasks = await a_job(host, HELD)
            await tasks.hold((0, 0, 1), (0, 1, 1))
            await tasks.running((0, 1, 1))
            pids = [await in_place(host, IGNORES, f"w{at}", f"w/{at}") for at in (0, 1)]
            await host.signal(KEY, 0, "TERM_OWNER")
            await host.report(KEY, "finished")
            assert not any(map(alive, pids))
            assert all(place.out(f"w{at}.heard").exists() for at in (0, 1))

    run(story())


@pytest.mark.usefixtures("confined")
def test_a_host_that_a_job_leaves_lets_its_tasks_know(place: Place) -> None:
    """Processes that blaunch has started there get TERM, after the interval KILL; then the host is released."""

    async def story() -> None:
        async with Host(place) as host:
            shares = (HostShare(host="h0", slots=1), HostShare(host=NAME, slots=1))
            await host.run(blob(place, 1, "sleep 1000"), stage(*shares))
            await host.report(KEY, "staged")
            pids = [await in_place(host, script, name) for script, name in ((HEEDS, "heeds"), (IGNORES, "ignores"))]
            await host.release(KEY)
            await host.report(KEY, "released")
            assert not any(map(alive, pids))
            assert all(place.out(f"{name}.heard").exists() for name in ("heeds", "ignores"))

    run(story())
