"""Recovery after the death of any process: the fate of jobs, and the state known to the next agent."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from agents import assembly
from agents.attempts.journal import order_record, spec_record
from agents.attempts.ledger import SUPERVISOR_LOST
from agents.main import main
from agents.shepherd.confinement import hierarchy
from agents.shepherd.confinement.hierarchy import Base
from agents.shepherd_pool import pool
from agents.state_directory import StateInUse, find_groups, put_away
from protos.agents_pb2 import Limits, Order
from protos.common_pb2 import HostShare
from tests.agents.hosts import NAME, Host, Place, alive, blob, key_message, shepherd_pids, stage, until

pytestmark = pytest.mark.slow

KEY = (1, 0, 1)
WAITS = "echo $$ >> starts; while [ ! -e stop ]; do sleep 0.02; done; exit 7"


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run one test in an event loop of its own."""
    asyncio.run(coroutine)


def starts(place: Place) -> int:
    """Number of starts of the job."""
    return len(place.out("starts").read_text().split()) if place.out("starts").exists() else 0


@pytest.fixture
def without_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which no control groups can be made."""
    monkeypatch.setattr(assembly, "find_groups", lambda *_: Base())


def test_the_next_agent_takes_a_running_job_over(place: Place) -> None:
    """The job runs on without an agent; the next one can signal it, start tasks beside it and reports its end."""

    async def story() -> None:
        async with Host(place) as host:
            await host.run(blob(place, 1, WAITS))
            started = (await host.report(KEY, "started")).started
            await host.replace()
            assert alive(started.pid)
            last = host.last(KEY)
            assert last is not None
            assert last.started == started
            held = host.local.attempts.find(1, 0)
            assert held is not None
            assert held.environment[b"LSB_JOBID"] == b"1"
            assert held.output_path
            place.out("stop").touch()
            end = (await host.report(KEY, "finished")).finished
            assert (end.status, end.pid, end.started) == (7 << 8, started.pid, started.time)
            assert starts(place) == 1

    run(story())


def test_an_end_while_nobody_listens_is_on_record(place: Place) -> None:
    """The job ends without an agent: its shepherd exits, and every later agent knows the exact end."""

    async def story() -> None:
        async with Host(place) as host:
            await host.run(blob(place, 1, WAITS))
            await host.report(KEY, "started")
            shepherd = host.shepherd_of(KEY)
            await host.leave()
            place.out("stop").touch()
            await until(lambda: not alive(shepherd))
            await host.start()
            for _ in range(2):
                last = host.last(KEY)
                assert last is not None
                assert (last.finished.status, last.also_released) == (7 << 8, True)
                await host.replace()
            await host.forget(KEY)
            await host.replace()
            assert host.last(KEY) is None

    run(story())


def test_the_run_limit_holds_without_an_agent(place: Place) -> None:
    """The shepherd alone ends a job at its limit and records why."""

    async def story() -> None:
        async with Host(place) as host:
            await host.run(blob(place, 1, "trap '' USR2 INT; sleep 60"), stage(run_limit_s=0.5))
            await host.report(KEY, "started")
            shepherd = host.shepherd_of(KEY)
            await host.leave()
            await until(lambda: not alive(shepherd))
            await host.start()
            last = host.last(KEY)
            assert last is not None
            assert last.finished.reason == "TERM_RUNLIMIT"

    run(story())


def test_other_limits_reach_the_shepherd_also_by_the_next_agent(place: Place) -> None:
    """Extended, the job outlives its old limit and the agent that extended it; shortened, it ends with the reason."""

    async def story() -> None:
        async with Host(place) as host:
            await host.run(blob(place, 1, "trap '' USR2 INT; sleep 60"), stage(run_limit_s=4.0))
            began = (await host.report(KEY, "started")).started.time
            longer = Order(key=key_message(KEY), limits=Limits(version=1, run_limit_s=600.0))
            await host.order(longer)
            await host.replace()
            await until(lambda: time.time() > began + 4.5)
            assert host.last(KEY) is not None
            assert alive(host.shepherd_of(KEY))
            await host.order(Order(key=key_message(KEY), limits=Limits(version=2, run_limit_s=0.1)))
            await host.order(longer)
            assert (await host.report(KEY, "finished")).finished.reason == "TERM_RUNLIMIT"

    run(story())


@pytest.mark.parametrize("known_by", ["control groups", "marks alone"])
def test_a_killed_shepherd_takes_its_job_along(place: Place, request: pytest.FixtureRequest, known_by: str) -> None:
    """The job and its daemons die, it counts as lost and never as done, and the slot is reusable.

    Also where only marks in the environment identify the processes.
    """
    if known_by == "marks alone":
        request.getfixturevalue("without_groups")

    async def story() -> None:
        async with Host(place, slots=1) as host:
            await host.run(blob(place, 1, f"setsid sh -c 'trap \"\" TERM HUP; {WAITS}' & {WAITS}"))
            await host.until(lambda: starts(place) == 2)
            pids = list(map(int, place.out("starts").read_text().split()))
            os.kill(host.shepherd_of(KEY), signal.SIGKILL)
            report = await host.report(KEY, "finished")
            assert (report.finished.status, report.finished.reason) == (9, SUPERVISOR_LOST)
            assert report.also_released
            assert not [pid for pid in pids if alive(pid)]
            assert (await host.finish(blob(place, 2, "/bin/true"))).finished.status == 0

    run(story())


@pytest.mark.usefixtures("without_groups")
def test_leftovers_are_gone_without_groups(place: Place) -> None:
    """Without control groups the process tree of a subreaper catches a job's remaining processes."""
    command = f"(setsid sh -c 'trap \"\" TERM HUP; {WAITS}' &) ; while [ ! -s starts ]; do sleep 0.02; done"

    async def story() -> None:
        async with Host(place) as host:
            report = await host.finish(blob(place, 1, command))
            assert report.also_released
            assert not alive(int(place.out("starts").read_text()))
            usage = (await host.finish(blob(place, 2, "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"))).finished
            assert usage.cpu_s > 0.02
            assert usage.memory_mib_max > 0

    run(story())


def test_a_shepherd_killed_while_there_is_no_agent(place: Place) -> None:
    """The next agent kills remaining processes and reports the job as lost."""

    async def story() -> None:
        async with Host(place) as host:
            if not host.base.version:
                pytest.skip("no control groups on this machine")
            await host.run(blob(place, 1, WAITS))
            pid = (await host.report(KEY, "started")).started.pid
            shepherd = host.shepherd_of(KEY)
            await host.leave()
            os.kill(shepherd, signal.SIGKILL)
            await until(lambda: not alive(shepherd))
            await host.start()
            assert not alive(pid)
            last = host.last(KEY)
            assert last is not None
            assert (last.finished.status, last.finished.reason) == (9, SUPERVISOR_LOST)

    run(story())


def test_a_killed_launcher_is_replaced(place: Place) -> None:
    """Jobs go on, and new ones start under a new launcher."""

    async def story() -> None:
        async with Host(place) as host:
            await host.run(blob(place, 1, WAITS))
            await host.report(KEY, "started")
            os.kill(host.launcher_pid, signal.SIGKILL)
            for job in range(2, 6):
                assert (await host.finish(blob(place, job, "/bin/true"))).finished.status == 0
            await host.until(lambda: host.local.pool._launcher.pid != host.launcher_pid)
            host.launcher_pid = host.local.pool._launcher.pid
            place.out("stop").touch()
            assert (await host.report(KEY, "finished")).finished.status == 7 << 8

    run(story())


def test_idle_shepherds_go_with_their_agent(place: Place) -> None:
    """A host without jobs keeps no processes and no control groups."""

    async def story() -> None:
        async with Host(place) as host:
            assert (await host.finish(blob(place, 1, "/bin/true"))).finished.status == 0
            await host.leave()
            await until(lambda: not shepherd_pids(place.state))
            assert not [path for _, path in host.base.paths if os.path.exists(path)]
            await host.start()

    run(story())


def test_an_order_journaled_and_never_handed_over_is_given_back(place: Place) -> None:
    """The next agent reports that it never ran, and the same attempt cannot start late."""

    async def story() -> None:
        async with Host(place) as host:
            job = blob(place, 1, WAITS)
            order = Order(key=key_message(KEY), stage=stage())
            host.local._journal.append([spec_record(job), order_record(order)])
            await host.replace()
            last = host.last(KEY)
            assert last is not None
            assert "restarted" in last.refused.reason
            await host.order(order, specs=(job,))
            assert not host.said(KEY, "started")
            assert host.said(KEY, "refused")
        assert starts(place) == 0

    run(story())


def test_an_order_in_the_shepherds_hands_is_carried_out_once(place: Place) -> None:
    """The agent dies after handing over to a shepherd that has not read it yet: the job starts all the same, once."""

    async def story() -> None:
        async with Host(place, slots=1) as host:
            assert (await host.finish(blob(place, 9, "/bin/true"))).finished.status == 0
            idle = [handle.pid for handle in host.local.pool.handles()]
            for pid in idle:
                os.kill(pid, signal.SIGSTOP)
            await host.run(blob(place, 1, WAITS))
            await host.leave()
            again = asyncio.create_task(host.start())
            await asyncio.sleep(0.1)
            for pid in idle:
                os.kill(pid, signal.SIGCONT)
            await again
            await host.until(lambda: starts(place) == 1)
            await host.order(Order(key=key_message(KEY), stage=stage()), specs=(blob(place, 1, WAITS),))
            place.out("stop").touch()
            assert (await host.report(KEY, "finished")).finished.status == 7 << 8
            assert starts(place) == 1

    run(story())


def test_a_staged_attempt_outlives_the_agent(place: Place) -> None:
    """Staged on several hosts, the agent dies, the launch order reaches its successor."""
    where = stage(HostShare(host=NAME, slots=1), HostShare(host="h2", slots=1))

    async def story() -> None:
        async with Host(place) as host:
            await host.run(blob(place, 1, WAITS), where)
            await host.report(KEY, "staged")
            await host.replace()
            last = host.last(KEY)
            assert last is not None
            assert last.HasField("staged")
            await host.launch(KEY)
            await host.report(KEY, "started")
            place.out("stop").touch()
            assert (await host.report(KEY, "finished")).finished.status == 7 << 8

    run(story())


def test_logs_are_rotated_and_lose_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long log is rotated only when the older one is needed no more; unacknowledged ends survive every restart."""
    monkeypatch.setattr(pool, "ROTATE_AFTER", 3)

    async def story() -> None:
        async with Host(place, slots=1) as host:
            job = blob(place, 1, "exit $LSB_JOBINDEX", output="/dev/null")
            for index in range(1, 31):
                key = await host.run(job, index=index)
                await host.report(key, "finished")
                if index % 2:
                    await host.forget(key)
            await host.replace()
            for index in range(1, 31):
                last = host.last((1, index, 1))
                assert (last is None) == bool(index % 2)
                assert last is None or last.finished.status == index << 8

    run(story())


def test_a_second_agent_in_the_same_place_is_refused(place: Place) -> None:
    """Two agents never share a state directory."""

    async def story() -> None:
        async with Host(place):
            with pytest.raises(StateInUse):
                await Host(place).start()

    run(story())


def test_shutdown_ends_all_jobs_and_records_it(place: Place) -> None:
    """After `lava-agent --shutdown` no process runs, and the next agent reports the jobs' ends."""
    host = Host(place)
    pids: list[int] = []

    async def before() -> None:
        await host.start()
        await host.run(blob(place, 1, WAITS))
        pids.append((await host.report(KEY, "started")).started.pid)
        await host.leave()

    async def after() -> None:
        async with host:
            last = host.last(KEY)
            assert last is not None
            end = last.finished
            assert (end.status, end.reason, end.detail) == (9, "TERM_ADMIN", "Its host was taken down.")
            assert end.lost  # it runs again if it may

    run(before())
    begun = time.monotonic()
    assert main(["--shutdown", "--state", str(place.state)]) == 0
    assert time.monotonic() - begun < 60
    assert not alive(pids[0])
    run(until(lambda: not shepherd_pids(place.state)))
    run(after())


def test_the_shutdown_of_an_idle_host_needs_none_of_an_agents_parts(place: Place) -> None:
    """It is what `lavactl down` runs for each host: it only removes the control groups, and starts no launcher."""
    (place.state / "shepherds").mkdir(parents=True)
    base = find_groups(NAME, place.state)
    program = f"""
import sys
from agents.main import main
assert main(["--shutdown", "--state", {str(place.state)!r}]) == 0
print(sorted({{"asyncio", "google.protobuf", "grpc", "agents.launcher_process"}} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert not any(os.path.exists(path) for _, path in base.paths)


def test_a_host_with_a_process_left_in_a_slot_is_not_taken_for_idle(place: Place) -> None:
    """Its shepherd may have died with the agent, and the slot is not empty yet."""
    (place.state / "shepherds").mkdir(parents=True)
    base = find_groups(NAME, place.state)
    if not base.version:
        pytest.skip("no control groups")
    with subprocess.Popen(["/bin/sleep", "60"]) as left:
        for group in base.slot(3).values():
            os.makedirs(group)
            if "cpuset" in group.split("/"):
                hierarchy.inherit_cpuset(group)
            hierarchy.write(f"{group}/cgroup.procs", str(left.pid))
        assert not put_away(place.state)
        left.kill()
    assert put_away(place.state)
    assert not any(os.path.exists(path) for _, path in base.paths)


def test_a_host_with_an_agent_is_not_shut_down(place: Place) -> None:
    """The state directory is the agent's."""

    async def story() -> None:
        async with Host(place):
            assert main(["--shutdown", "--state", str(place.state)]) == 1

    run(story())


def test_the_launcher_has_one_thread_and_no_grpc(place: Place) -> None:
    """The process that forks must never have threads, nor load a library that makes some."""

    async def story() -> None:
        async with Host(place) as host:
            await host.until(lambda: bool(host.local.pool.handles()))
            for pid in (host.launcher_pid, host.local.pool.handles()[0].pid):
                assert len(os.listdir(f"/proc/{pid}/task")) == 1
                assert "grpc" not in Path(f"/proc/{pid}/maps").read_text()

    run(story())
