"""Real jobs under real shepherds: identity, resources and end."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from protos.agents_pb2 import Limits, Order
from protos.jobs_pb2 import Rlimit
from tests.agents.hosts import Host, Place, alive, blob, key_message, lines, stage, until

pytestmark = pytest.mark.slow
needs_root = pytest.mark.root


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run one test in an event loop of its own."""
    asyncio.run(coroutine)


def test_a_job_runs_and_its_end_is_one_report(place: Place) -> None:
    """A short job gives a single report: finished, released, with pid, times and usage."""

    async def story() -> None:
        async with Host(place) as host:
            for job in range(7, 27):  # one that the machine delays is first told as started
                host.reports.clear()
                report = await host.finish(blob(place, job, "/bin/echo hello", output=str(place.out(str(job)))))
                if len(host.reports) == 1:
                    break
            assert report.also_released
            end = report.finished
            assert (end.status, end.reason, end.detail) == (0, "", "")
            assert end.pid > 0
            assert 0 < end.started <= end.time
            assert end.exec_cwd == str(place.work)
            assert [one.WhichOneof("what") for one in host.reports] == ["finished"]
        assert lines(place.out(str(job))) == ["hello"]
        assert place.out(str(job)).stat().st_uid == place.user.pw_uid

    run(story())


def test_exit_codes_and_signals_are_raw_wait_statuses(place: Place) -> None:
    """The reported status is waitpid's."""

    async def story() -> None:
        async with Host(place) as host:
            assert (await host.finish(blob(place, 1, "exit 3"))).finished.status == 3 << 8
            assert (await host.finish(blob(place, 2, "kill -9 $$"))).finished.status == 9
            assert (await host.finish(blob(place, 3, "/bin/sleep 0.1"))).finished.status == 0

    run(story())


def test_a_longer_job_says_started_first(place: Place) -> None:
    """A job that outlasts the grace is reported as started, with its pid."""

    async def story() -> None:
        async with Host(place) as host:
            key = await host.run(blob(place, 1, "sleep 60"))
            started = (await host.report(key, "started")).started
            assert alive(started.pid)
            await host.signal(key, signal.SIGKILL, "TERM_OWNER")
            end = (await host.report(key, "finished")).finished
            assert (end.status, end.reason, end.pid) == (9, "TERM_OWNER", started.pid)
            assert not alive(started.pid)

    run(story())


@needs_root
def test_a_job_is_its_user_and_nothing_more(place: Place) -> None:
    """All ids are the user's, groups are complete without root's, no capability is left."""

    async def story() -> None:
        async with Host(place) as host:
            await host.finish(
                blob(place, 1, "grep -E '^(Uid|Gid|Groups|Cap)' /proc/self/status; umask", umask_plus_one=0o027 + 1)
            )
        found = dict(line.split(":", 1) for line in lines(place.out())[:-1])
        uid, gid = str(place.user.pw_uid), str(place.user.pw_gid)
        assert found["Uid"].split() == [uid] * 4
        assert found["Gid"].split() == [gid] * 4
        expected = set(map(str, os.getgrouplist(place.user.pw_name, place.user.pw_gid)))
        assert set(found["Groups"].split()) == expected
        assert len(expected) > 1
        assert all(int(found[name], 16) == 0 for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"))
        assert int(lines(place.out())[-1], 8) == 0o027
        assert stat.S_IMODE(place.out().stat().st_mode) == 0o640

    run(story())


@needs_root
def test_two_users_in_turn_do_not_mix(place: Place) -> None:
    """A shepherd that has served one user serves root, and then that user again, each with their own groups."""

    async def story() -> None:
        async with Host(place, slots=1) as host:
            for number, (name, uid, gid) in enumerate([("user", 0, 0), ("root", 0, 0), ("user", 0, 0)], 1):
                one = blob(place, number, "id -u; id -G", output=str(place.out(f"{number}")))
                if name == "root":
                    one.user, one.uid, one.gid = "root", uid, gid
                assert (await host.finish(one)).finished.status == 0
        assert lines(place.out("1")) == lines(place.out("3"))
        assert lines(place.out("2"))[0] == "0"
        assert lines(place.out("1"))[0] == str(place.user.pw_uid)

    run(story())


def test_a_job_inherits_no_descriptor_and_no_ignored_signal(place: Place) -> None:
    """Only 0, 1 and 2 are open; nothing is ignored or blocked; the job leads a session of its own."""

    async def story() -> None:
        async with Host(place) as host:
            command = "ls /proc/self/fd; grep -E 'Sig(Ign|Blk)' /proc/self/status; ps -o sid= -p $$; echo $$"
            assert (await host.finish(blob(place, 1, command))).finished.status == 0
        out = lines(place.out())
        # The fourth is the directory that ls itself reads.
        assert out[:4] == ["0", "1", "2", "3"]
        # 32 and 33 are the C library's own, which its posix_spawn always ignores.
        masks = [int(line.split()[1], 16) & ~(3 << 31) for line in out if line.startswith("Sig")]
        assert masks == [0, 0]
        assert out[-1].strip() == out[-2].strip()

    run(story())


def test_everything_a_job_leaves_behind_is_gone_with_it(place: Place) -> None:
    """Daemons of every kind are dead when the job is reported as released."""
    pids = place.out("pids")
    survivors = f"""
        note() {{ echo $$ >> {pids}; }}
        (setsid sh -c 'trap "" TERM INT HUP; echo $$ >> {pids}; while :; do sleep 1; done' &) &
        nohup sh -c 'echo $$ >> {pids}; sleep 1000' > /dev/null 2>&1 &
        sh -c '(sh -c "echo \\$\\$ >> {pids}; exec sleep 1000" &) &' &
        python3 -c 'import os,time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("{pids}","a").write(f"{{os.getpid()}}\\n"); time.sleep(1000)
    os._exit(0)' &
        while [ "$(wc -l < {pids} 2>/dev/null || echo 0)" -lt 4 ]; do sleep 0.02; done
        kill -9 $$
    """

    async def story() -> None:
        async with Host(place) as host:
            begun = time.monotonic()
            report = await host.finish(blob(place, 1, survivors))
            assert report.finished.status == 9
            assert report.also_released
            assert time.monotonic() - begun < 50
            left = [int(pid) for pid in pids.read_text().split() if alive(int(pid))]
            assert left == []
            assert (await host.finish(blob(place, 2, "/bin/true"))).finished.status == 0

    run(story())


def test_a_fork_bomb_ends_with_its_job(place: Place) -> None:
    """A job that forks as fast as it can is gone within seconds of its end."""
    command = "for i in 1 2 3; do (while :; do (sleep 0.01 &) ; done) & done; sleep 0.3; kill -9 $$"

    async def story() -> None:
        async with Host(place) as host:
            report = await host.finish(blob(place, 1, command))
            assert report.finished.status == 9
            if not report.also_released:
                await host.report((1, 0, 1), "released")
            assert (await host.finish(blob(place, 2, "/bin/true"))).finished.status == 0

    run(story())


PARTS = "for i in 1 2 3; do (sleep 0.5; echo $i > part.$i) & done"


@pytest.mark.parametrize(
    ("command", "is_script", "code"),
    [
        (PARTS, False, 0),
        (f"{PARTS}\nexit 3", False, 3),
        (f"#!/bin/bash\n{PARTS}\nfalse\n", True, 1),
        (f"{PARTS}\n", True, 0),
        (f"#!/usr/bin/env bash\n{PARTS}\n", True, 0),
    ],
)
def test_a_job_lasts_as_long_as_what_its_command_left_in_the_background(
    place: Place, command: str, is_script: bool, code: int
) -> None:
    """LSF's job file waits behind the command; the exit code is the command's."""

    async def story() -> None:
        async with Host(place) as host:
            job = blob(place, 1, command)
            job.spec.is_script = is_script
            assert (await host.finish(job)).finished.status == code << 8

    run(story())
    assert [(place.work / f"part.{i}").read_text() for i in (1, 2, 3)] == ["1\n", "2\n", "3\n"]


LEAVES = "import subprocess; subprocess.Popen(['sleep', '600'])"


@pytest.mark.parametrize(
    ("command", "is_script"),
    [(f"#!/usr/bin/env python3\n{LEAVES}\n", True), (f'python3 -c "{LEAVES}" >/dev/null 2>&1 && true', False)],
)
def test_other_programs_end_their_job(place: Place, command: str, is_script: bool) -> None:
    """LSF's `wait` is for what a shell has started; a job without that ends with its program."""

    async def story() -> None:
        async with Host(place) as host:
            began = time.monotonic()
            job = blob(place, 1, command)
            job.spec.is_script = is_script
            assert (await host.finish(job)).finished.status == 0
            assert time.monotonic() - began < 50

    run(story())


def test_what_a_program_has_left_behind_ends_with_its_job(place: Place) -> None:
    """LSF's job file waits for what its shell has started; workers that outlive their program would hold the slots."""
    workers = "import signal, subprocess\n" + "".join(
        f"signal.signal(signal.SIGINT, signal.{how})\nprint(subprocess.Popen(['sleep', '600']).pid, flush=True)\n"
        for how in ("SIG_DFL", "SIG_IGN")
    )
    (place.work / "launch.py").write_text(workers)

    async def story() -> None:
        async with Host(place) as host:
            assert (await host.finish(blob(place, 1, f"python3 launch.py > {place.out('pids')}"))).finished.status == 0
            pids = place.out("pids").read_text().split()
            assert [pid for pid in pids if alive(int(pid))] == []
            assert len(pids) == 2

    run(story())


def test_a_daemon_is_nothing_that_its_job_waits_for(place: Place) -> None:
    """A daemon has a session of its own, such as ssh-agent; it ends with its job."""

    async def story() -> None:
        async with Host(place) as host:
            await host.finish(blob(place, 1, f"setsid sh -c 'echo $$ > {place.out('pid')}; exec sleep 1000' &\n"
                                             f"until [ -s {place.out('pid')} ]; do sleep 0.02; done"))  # fmt: skip
            assert not alive(int(place.out("pid").read_text()))

    run(story())


@pytest.mark.parametrize("number", [0, signal.SIGKILL])
def test_bkill_ends_a_job_whose_command_has_ended_before_its_background(place: Place, number: int) -> None:
    """It was no success: the job is killed, as LSF's is while its job file waits."""

    async def story() -> None:
        async with Host(place) as host:
            host.local.preparation.intervals.terminate_s = 0.3
            key = await host.run(blob(place, 1, f"sleep 600 & echo $$ > {place.out('shell')}"))
            await host.until(lambda: place.out("shell").exists() and place.out("shell").read_text().strip() != "")
            await host.until(lambda: not alive(int(place.out("shell").read_text())))
            await host.signal(key, number, "TERM_OWNER")
            end = (await host.report(key, "finished")).finished
            assert (end.status & 0x7F != 0, end.reason) == (True, "TERM_OWNER")

    run(story())


def test_a_job_in_slurms_words_ends_with_its_script(place: Place) -> None:
    """sbatch of Slurm does not wait, and ends what is left."""

    async def story() -> None:
        async with Host(place) as host:
            job = blob(place, 1, f"sleep 600 & echo $! > {place.out('pid')}")
            job.spec.slurm.command = "sbatch"
            assert (await host.finish(job)).finished.status == 0
            assert not alive(int(place.out("pid").read_text()))

    run(story())


def test_a_run_limit_holds_for_what_is_in_the_background(place: Place) -> None:
    """The job runs on until then, and ends as one that reached its limit."""

    async def story() -> None:
        async with Host(place) as host:
            host.local.preparation.intervals.terminate_s = 0.3
            end = await host.finish(blob(place, 1, "sleep 600 &"), stage(run_limit_s=1.0))
            assert end.finished.reason == "TERM_RUNLIMIT"

    run(story())


def test_bkill_is_int_then_term_then_kill(place: Place) -> None:
    """The terminate sequence reaches a process that ignores all it can, in order, with its interval."""
    command = "trap 'echo int' INT; trap 'echo term' TERM; echo ready; while :; do sleep 0.02; done"

    async def story() -> None:
        async with Host(place) as host:
            host.local.preparation.intervals.terminate_s = 1.2  # the job says what it gets before the next comes
            key = await host.run(blob(place, 1, command))
            await host.until(lambda: place.out().exists() and "ready" in place.out().read_text())
            await host.signal(key, 0, "TERM_OWNER")
            end = (await host.report(key, "finished")).finished
            assert (end.status, end.reason) == (9, "TERM_OWNER")
        said = [line for line in lines(place.out()) if line != "Terminated"]  # of the shell, about its sleep
        assert said == ["ready", "int", "term"]
        assert "TERM_OWNER: job killed by owner." in place.out().read_text()

    run(story())


def test_a_signal_with_a_serial_arrives_once(place: Place) -> None:
    """A repeated order with a known serial has no effect."""
    command = "trap 'echo usr' USR1; echo ready; while [ ! -e stop ]; do sleep 0.02; done; sleep 0.1"

    async def story() -> None:
        async with Host(place) as host:
            key = await host.run(blob(place, 1, command))
            await host.until(lambda: place.out().exists() and "ready" in place.out().read_text())
            for _ in range(3):
                await host.signal(key, signal.SIGUSR1, serial=4)
            await host.until(lambda: "usr" in place.out().read_text())
            place.out("stop").touch()
            assert (await host.report(key, "finished")).finished.reason == ""
        assert lines(place.out()).count("usr") == 1

    run(story())


def test_stop_and_continue_reach_every_process(place: Place) -> None:
    """STOP stops children, too, and pauses the run limit."""
    command = "sleep 1000 & echo $!; wait $!"

    async def story() -> None:
        async with Host(place) as host:
            for job in range(1, 10):  # one that the machine delays may reach its limit before it is stopped
                out = place.out(str(job))
                key = await host.run(blob(place, job, command, output=str(out)), stage(run_limit_s=2.0))
                await host.until(lambda out=out: out.exists() and out.read_text().count("\n") > 0)
                pid = int(out.read_text().split()[0])
                await host.signal(key, signal.SIGSTOP)
                await host.until(lambda pid=pid: _state(pid) in ("T", "Z", "gone"))
                if _state(pid) == "T":
                    break
            await asyncio.sleep(2.2)
            assert not host.said(key, "finished")
            await host.signal(key, signal.SIGCONT)
            await host.until(lambda: _state(pid) != "T")
            assert (await host.report(key, "finished")).finished.reason == "TERM_RUNLIMIT"

    run(story())


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


def test_the_run_limit_announces_itself(place: Place) -> None:
    """At the limit the job gets USR2 and may end by itself; it counts as killed by the limit."""
    command = "trap 'echo usr2; exit 12' USR2; echo ready; while :; do sleep 0.02; done"

    async def story() -> None:
        async with Host(place) as host:
            key = await host.run(blob(place, 1, command))
            await host.until(lambda: place.out().exists() and "ready" in place.out().read_text())
            await host.order(Order(key=key_message(key), limits=Limits(version=1, run_limit_s=0.01)))
            end = (await host.report(key, "finished")).finished
            assert (end.status, end.reason) == (12 << 8, "TERM_RUNLIMIT")
            end = (await host.finish(blob(place, 2, "sleep 60"), stage(deadline=time.time() + 1.5))).finished
            assert (end.status, end.reason) == ((128 + signal.SIGUSR2) << 8, "TERM_DEADLINE")
        assert "usr2" in lines(place.out())

    run(story())


@pytest.mark.parametrize(("code", "state"), [(0, "Successfully completed."), (3, "Exited with exit code 3.")])
def test_a_job_that_saves_itself_at_its_limit_keeps_the_reason(place: Place, code: int, state: str) -> None:
    """Its end and its report say which limit it had reached, with a success as with a failure."""
    command = f"trap 'exit {code}' USR2; echo ready; while :; do sleep 0.02; done"

    async def story() -> None:
        async with Host(place) as host:
            key = await host.run(blob(place, 1, command))
            await host.until(lambda: place.out().exists() and "ready" in place.out().read_text())
            await host.order(Order(key=key_message(key), limits=Limits(version=1, run_limit_s=0.01)))
            end = (await host.report(key, "finished")).finished
            assert (end.status, end.reason) == (code << 8, "TERM_RUNLIMIT")

    run(story())
    assert f"TERM_RUNLIMIT: job killed after reaching LSF run time limit.\n{state}" in place.out().read_text()


@needs_root
def test_the_memory_limit_holds_for_the_whole_job(place: Place) -> None:
    """A job over its limit is killed, with the reason reported; the next job of the shepherd has its own limit."""
    command = "python3 -c 'x = bytearray({} << 20); print(len(x))'"

    async def story() -> None:
        async with Host(place, slots=1) as host:
            if not host.base.version:
                pytest.skip("no control groups on this machine")
            end = (await host.finish(blob(place, 1, command.format(200), memory_limit_mib=64))).finished
            assert (end.status, end.reason) in ((9, "TERM_MEMLIMIT"), (137 << 8, "TERM_MEMLIMIT"))
            end = (await host.finish(blob(place, 2, command.format(200), memory_limit_mib=400))).finished
            assert (end.status, end.reason) == (0, "")
            assert end.memory_mib_max >= 200
            end = (await host.finish(blob(place, 3, command.format(300)))).finished
            assert end.status == 0

    run(story())


@needs_root
def test_the_kernel_kills_the_job_and_never_its_shepherd(place: Place) -> None:
    """Of many jobs for which the bound leaves no room, each ends by its limit, and none for want of its shepherd."""
    environment = [b"PATH=/usr/bin:/bin", *(b"V%d=" % number + 100_000 * b"x" for number in range(10))]

    async def story() -> None:
        async with Host(place, slots=8) as host:
            if not host.base.version:
                pytest.skip("no control groups on this machine")

            async def end_of(job: int) -> tuple[int, str, bool]:
                grows = blob(place, job, "x=a; while :; do x=$x$x; done", memory_limit_mib=2, environment=environment)
                end = (await host.finish(grows)).finished
                return end.status, end.reason, end.lost

            for first in range(1, 81, 8):
                ends = await asyncio.gather(*map(end_of, range(first, first + 8)))
                assert set(ends) == {(9, "TERM_MEMLIMIT", False)}

    run(story())


def test_usage_is_sampled_and_summed_up(place: Place) -> None:
    """A running job's CPU, memory, processes and groups are reported; the end has the total."""
    program = "x = bytearray(60 << 20)\nimport os, time\nwhile not os.path.exists('stop'): time.process_time()"
    job = blob(place, 1, f'python3 -c "{program}"; :')

    async def story() -> None:
        async with Host(place) as host:
            host.local.preparation.intervals.usage_s = 0.2
            key = await host.run(job)
            await host.until(lambda: any(one.usage.memory_mib >= 60 and one.usage.cpu_s > 0.1 for one in host.usages))
            usage = host.usages[-1].usage
            assert usage.host == "h1"
            assert len(usage.pids) == 2
            assert len(usage.process_groups) == 1
            place.out("stop").touch()
            end = (await host.report(key, "finished")).finished
            assert end.cpu_s > 0.1
            assert 60 <= end.memory_mib_max < 200
            assert end.memory_mib_mean > 10
            assert end.processes_max == 2

    run(story())


def test_a_short_jobs_report_counts_its_processes(place: Place) -> None:
    """Ranks that are gone before usage is sampled for the first time."""
    job = blob(place, 1, "for rank in 1 2 3 4; do sleep 0.4 & done; wait", output=str(place.out("report")))

    async def story() -> None:
        async with Host(place) as host:
            end = (await host.finish(job)).finished
            assert end.processes_max == 5
            report = place.out("report").read_text()
            assert "Max Processes :                              5\n" in report
            assert "Max Threads :                                5\n" in report

    run(story())


def test_cpu_time_does_not_count_the_shepherd(place: Place) -> None:
    """Idle jobs use next to no CPU, one after the other under the same shepherd."""

    async def story() -> None:
        async with Host(place, slots=1) as host:
            ends = [(await host.finish(blob(place, job, "/bin/true"))).finished.cpu_s for job in range(1, 6)]
            assert max(ends) < 0.05

    run(story())


@needs_root
def test_without_root_jobs_run_as_ourselves() -> None:
    """Features that do not need root work without it; here as the only user of a user namespace."""
    unshare = ["unshare", "--user"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("user namespaces are not open on this machine")
    here = Path(__file__)
    files = (here, here.with_name("test_starting.py"))
    names = ("a_job_runs_and", "everything_a_job_leaves", "the_run_limit", "a_spooled_script", "an_unknown_user")
    pytest_here = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", " or ".join(names)]
    argv = [*unshare, *pytest_here, *map(str, files)]
    done = subprocess.run(argv, cwd=here.parents[2], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout
    assert "left out: nothing" in done.stdout


def test_until_is_bounded() -> None:
    """A condition that never holds fails instead of hanging."""
    with pytest.raises(AssertionError, match="in vain"):
        run(until(lambda: False, 0.05))


def test_limits_of_all_processes_together(place: Place) -> None:
    """-v, -p and -T count the whole job on a host, not each process or all of the user's; a job below them ends well.

    lsf.md, sections 2.5 and 3.8.
    """
    thread = "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    threads = f"import threading, time; [{thread} for _ in range(9)]; time.sleep(60)"
    memory = "import time; x = bytearray(90 << 20); time.sleep(60)"
    stories = [
        ("nproc", 3, "sleep 60 & sleep 60 & sleep 60 & wait", "TERM_PROCESSLIMIT"),
        ("threads", 8, f'exec python3 -c "{threads}"', "TERM_THREADLIMIT"),
        ("swap", 60 << 20, f'exec python3 -c "{memory}"', "TERM_SWAP"),
    ]

    async def one(host: Host, job: int, name: str, most: int, command: str, reason: str) -> None:
        limited = blob(place, job, command, rlimits=[Rlimit(name=name, soft=most)], output=str(place.out(str(job))))
        end = (await host.finish(limited)).finished
        assert (end.status != 0, end.reason) == (True, reason)

    async def story() -> None:
        async with Host(place, slots=4) as host:
            wide = [Rlimit(name="nproc", soft=50), Rlimit(name="threads", soft=50), Rlimit(name="swap", soft=1 << 30)]
            below = host.finish(blob(place, 9, "sleep 1.1", rlimits=wide, output=str(place.out("9"))))
            *_, end = await asyncio.gather(*(one(host, job, *story) for job, story in enumerate(stories, 1)), below)
            assert (end.finished.status, end.finished.reason) == (0, "")

    run(story())
