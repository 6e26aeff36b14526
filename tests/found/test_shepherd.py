"""Attacks of users on shepherds: root's processes that keep their jobs."""

import asyncio
import contextlib
import os
import pwd
import resource
import signal
import subprocess
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.job_setup.preparation import Bounds
from agents.ranks.interfaces import TaskRequest
from agents.shepherd import messages, spool
from agents.shepherd.confinement import hierarchy
from agents.shepherd.process import processes
from agents.shepherd_pool import pool as shepherds
from agents.shepherd_pool import watchdog
from protos.agents_pb2 import Finished
from tests.agents.conftest import place, somebody
from tests.agents.hosts import Host, Key, Place, alive, blob, stage

__all__ = ["place", "somebody"]

pytestmark = pytest.mark.slow
SLOTS = 4
BLOCK = 4096
TASKS = 250
LINKS = 39  # the most that Linux follows

# Sends SIGSTOP to everything its user may signal, repeatedly, until it is killed itself.
STOPPER = """
#include <signal.h>
#include <unistd.h>
int main(void) { for (;;) { kill(-1, SIGSTOP); usleep(20); } }
"""


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run one test in an event loop of its own."""
    asyncio.run(coroutine)


@pytest.fixture
def stopper(place: Place) -> Path:
    """The attacker's program."""
    source = place.root / "stopper.c"
    source.write_text(STOPPER)
    program = place.root / "stopper"
    subprocess.run(["gcc", "-O2", "-o", program, source], check=True)
    program.chmod(0o755)
    return program


@pytest.fixture
def far_away(place: Place) -> Path:
    """A program that takes the kernel long to find."""
    target = Path("/bin/true")
    for number in range(LINKS):
        deep = place.work / "/".join(["d"] * 100)
        deep.mkdir(parents=True, exist_ok=True)
        link = deep / str(number)
        link.symlink_to(target)
        target = link
    return target


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.root
def test_a_user_stops_no_shepherd(place: Place, stopper: Path, far_away: Path) -> None:
    """While jobs start, their user stops all that he may: shepherds go on, and run limits hold."""

    async def story() -> None:
        async with Host(place, slots=SLOTS) as host:
            keys = []
            with _running_as(place.user, stopper):
                for number in range(1, 40):
                    job = blob(place, number, str(far_away))
                    keys.append(await host.run(job, stage(run_limit_s=0.5)))
                    await asyncio.sleep(0.02)
            shepherds = [handle.pid for handle in host.local.pool.handles()]
            assert [pid for pid in shepherds if _state(pid) == "T"] == []
            for key in keys:
                await host.report(key, "finished")

    run(story())


def test_a_stopped_shepherd_keeps_no_job_for_ever(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is killed with its job, with a reason; the slot serves the next job."""
    monkeypatch.setattr(watchdog, "LOOK_S", 3600.0)

    async def story() -> None:
        async with Host(place, slots=1) as host:
            key = await host.run(blob(place, 1, "exec sleep 1000"))
            job = (await host.report(key, "started")).started.pid
            os.kill(host.shepherd_of(key), signal.SIGSTOP)
            end = await _end_seen_by_the_watchdog(host, key)
            assert (end.status, end.reason, end.lost) == (signal.SIGKILL, watchdog.SILENT, True)
            assert not alive(job)
            assert (await host.finish(blob(place, 2, "/bin/true"))).finished.status == 0

    run(story())


def test_a_job_with_a_stopped_shepherd_is_killed_by_its_owner(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """bkill ends it, and is the reason; without an answer of the shepherd that takes half a minute (here: less)."""
    monkeypatch.setattr(watchdog, "LOOK_S", 3600.0)

    async def story() -> None:
        async with Host(place, slots=1) as host:
            key = await host.run(blob(place, 1, "exec sleep 1000"))
            await host.report(key, "started")
            os.kill(host.shepherd_of(key), signal.SIGSTOP)
            await host.signal(key, 0, "TERM_OWNER", serial=1)
            end = await _end_seen_by_the_watchdog(host, key)
            assert (end.status, end.reason, end.lost) == (signal.SIGKILL, "TERM_OWNER", False)

    run(story())


def test_a_shepherd_stopped_while_there_is_no_agent(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next agent waits a while for its answer, then kills it with its job."""
    monkeypatch.setattr(shepherds, "STATUS_PATIENCE_S", 0.3)

    async def story() -> None:
        async with Host(place, slots=1) as host:
            key = await host.run(blob(place, 1, "exec sleep 1000"))
            job = (await host.report(key, "started")).started.pid
            shepherd = host.shepherd_of(key)
            await host.leave()
            os.kill(shepherd, signal.SIGSTOP)
            host.reports.clear()
            await host.start()
            end = host.last(key)
            assert end is not None
            assert end.finished.reason.startswith("supervisor lost")
            assert not alive(job)
            await host.until(lambda: not alive(shepherd))

    run(story())


def test_a_shepherd_that_answers_is_left_alone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is asked: each time its answer comes before it would be killed, and the count begins anew."""
    monkeypatch.setattr(watchdog, "LOOK_S", 3600.0)

    async def story() -> None:
        async with Host(place, slots=1) as host:
            go = place.out("go")
            key = await host.run(blob(place, 1, f"until [ -e {go} ]; do sleep 0.02; done"))
            await host.report(key, "started")
            handle = host.local.pool.holder(key)
            assert handle is not None
            for _ in range(20):
                for _ in range(watchdog.KILL_AT - 1):
                    host.local.watchdog.look()
                await host.until(lambda: handle.silent_looks == 0)
            go.touch()
            assert (await host.report(key, "finished")).finished.status == 0

    run(story())


async def _end_seen_by_the_watchdog(host: Host, key: Key) -> Finished:
    """The end of an attempt whose shepherd is stopped, by as many looks as that takes."""
    for _ in range(watchdog.KILL_AT):
        host.local.watchdog.look()
    return (await host.report(key, "finished")).finished


@pytest.fixture
def small_disk(place: Place) -> Iterator[Path]:
    """The agent's state directory, on a small file system of its own."""
    place.state.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place.state], check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield place.state
    subprocess.run(["umount", "-l", place.state], check=True)


def _fill_first_block(log: Path, key: tuple[int, int, int]) -> None:
    """Make a log whose first block is full once the start of this attempt is recorded, but not yet its end."""
    left = BLOCK - len(spool.frame(messages.pack(messages.STARTING, *key))) - 20
    text = spool.frame(messages.pack(messages.STARTING, 999, 0, 1, ""))
    text = spool.frame(messages.pack(messages.STARTING, 999, 0, 1, "x" * (left - len(text))))
    log.write_bytes(text)


@pytest.mark.root
def test_a_full_spool_takes_no_exit_code_along(place: Place, small_disk: Path) -> None:
    """Attempts that end while the disk is full keep their exit codes; new ones are started elsewhere."""
    key = (1, 0, 1)
    (small_disk / "shepherds").mkdir()
    for slot in range(4):
        _fill_first_block(small_disk / "shepherds" / f"{slot}{spool.LOG_SUFFIX}", key)

    async def story() -> None:
        async with Host(place, slots=1) as host:
            go = place.out("go")
            await host.run(blob(place, 1, f"until [ -e {go} ]; do sleep 0.02; done; exit 5"))
            await host.report(key, "started")
            with contextlib.suppress(OSError):
                (small_disk / "filler").write_bytes(bytes(4 << 20))
            go.touch()
            end = (await host.report(key, "finished")).finished
            assert (end.status, end.reason) == (5 << 8, "")

    run(story())


@pytest.mark.root
def test_an_end_waits_for_room_where_none_can_be_set_aside(tmp_path: Path) -> None:
    """A partial record is removed, and the whole one can be written again."""
    log = spool.ExitLog(str(tmp_path / "log"))
    log.starting((1, 0, 1))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "log").stat().st_size + 10, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            log.append(messages.pack(messages.REFUSED, 1, 0, 1, "x"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    log.append(messages.pack(messages.REFUSED, 1, 0, 1, "x"))
    traces = spool.Traces()
    traces.read(str(tmp_path / "log"))
    assert (traces.started, traces.refused) == ({(1, 0, 1)}, {(1, 0, 1): messages.NotStarted("x")})


def _in_group(host: Host) -> bool:
    return host.base.version > 0


def test_a_small_memory_limit_kills_the_job_alone(place: Place) -> None:
    """-M 1: the job ends with TERM_MEMLIMIT, and its output file has a report."""

    async def story() -> None:
        async with Host(place, slots=1) as host:
            if not _in_group(host):
                pytest.skip("no control groups on this machine")
            hog = "exec python3 -c 'import time; x = bytearray(8 << 20); time.sleep(60)'"
            end = (await host.finish(blob(place, 1, hog, memory_limit_mib=1))).finished
            assert (end.reason, end.status) == ("TERM_MEMLIMIT", signal.SIGKILL)
            assert "TERM_MEMLIMIT: job killed" in place.out().read_text()
            fast = "exec python3 -c 'x = bytearray(200 << 20)'"
            end = (await host.finish(blob(place, 2, fast, memory_limit_mib=1))).finished
            assert (end.reason, end.status) == ("TERM_MEMLIMIT", signal.SIGKILL)
            assert (await host.finish(blob(place, 3, "echo hi", memory_limit_mib=1))).finished.status == 0

    run(story())


def test_a_fork_bomb_takes_its_own_jobs_processes_only(place: Place) -> None:
    """Beyond the job's share no process is started; the host can still start others."""

    async def story() -> None:
        async with Host(place, slots=2) as host:
            if not _in_group(host):
                pytest.skip("no control groups on this machine")
            assert 100 < host.local.preparation.bounds.processes_max < 1 << 22
            host.local.preparation.bounds = Bounds(processes_max=50)
            bomb = "sleep 60 & (i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); done); wait"
            key = await host.run(blob(place, 1, bomb, output=str(place.out("bomb"))))
            await host.until(lambda: "fork" in place.out("bomb").read_text() if place.out("bomb").exists() else False)
            handle = host.local.pool.holder(key)
            assert handle is not None
            assert len(hierarchy.members(host.base, handle.slot)) <= 51
            assert (await host.finish(blob(place, 2, "/bin/true"))).finished.status == 0
            await host.signal(key, 9, "TERM_OWNER", serial=1)
            await host.report(key, "finished")

    run(story())


def test_many_tasks_whose_caller_went_away_end_soon(place: Place) -> None:
    """Ending many tasks costs the shepherd one scan of the job's processes, not one for each."""

    async def story() -> None:
        async with Host(place, slots=1) as host:
            key = await host.run(blob(place, 1, "exec sleep 1000"))
            await host.report(key, "started")
            null = os.open("/dev/null", os.O_RDWR)
            request = TaskRequest(("sleep", "1000"), "", (), null, null, null)
            tasks = [await host.local.attempts.run_task(key, request) for _ in range(TASKS)]
            os.close(null)
            before = _own_cpu_s(host.shepherd_of(key))
            for number in (*[signal.SIGCONT] * 4, signal.SIGTERM):
                for task in tasks:
                    task.signal(number)
            assert await asyncio.gather(*(task.wait() for task in tasks)) == [signal.SIGTERM] * TASKS
            assert _own_cpu_s(host.shepherd_of(key)) - before < 1.5

    run(story())


def _own_cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / processes.TICKS


@contextlib.contextmanager
def _running_as(user: pwd.struct_passwd, program: Path) -> Iterator[None]:
    process = subprocess.Popen([program], user=user.pw_uid, group=user.pw_gid, extra_groups=[])
    try:
        yield
    finally:
        process.kill()
        process.wait()
