"""Real jobs under real shepherds: as whom, with what, and how they end."""

import asyncio
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from protos.common_pb2 import HostShare
from protos.jobs_pb2 import Rlimit
from tests.agents.hosts import Host, Place, alive, blob, stage, until

pytestmark = pytest.mark.slow
needs_root = pytest.mark.root


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """One test in a loop of its own."""
    asyncio.run(coroutine)


def lines(path: Path) -> list[str]:
    """What a job wrote before its report."""
    return path.read_text().partition("\n" + "-" * 60)[0].splitlines()


def test_a_job_runs_and_its_end_is_one_report(place: Place) -> None:
    """A short job gives a single report: finished, released, with pid, times and usage."""

    async def story() -> None:
        async with Host(place) as host:
            report = await host.finish(blob(place, 7, "/bin/echo hello"))
            assert report.also_released
            end = report.finished
            assert (end.status, end.reason, end.detail) == (0, "", "")
            assert end.pid > 0
            assert 0 < end.started <= end.time
            assert end.exec_cwd == str(place.work)
            assert [one.WhichOneof("what") for one in host.reports] == ["finished"]
        assert lines(place.out()) == ["hello"]
        assert place.out().stat().st_uid == place.user.pw_uid

    run(story())


def test_exit_codes_and_signals_are_raw_wait_statuses(place: Place) -> None:
    """What waitpid gives is what is reported."""

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
    """All ids are the user's, groups are complete and root's are not there, no capability is left."""

    async def story() -> None:
        async with Host(place) as host:
            await host.finish(blob(place, 1, "grep -E '^(Uid|Gid|Groups|Cap)' /proc/self/status; umask", umask_plus_one=0o027 + 1))
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
    """

    async def story() -> None:
        async with Host(place) as host:
            begun = time.monotonic()
            report = await host.finish(blob(place, 1, survivors))
            assert report.finished.status == 0
            assert report.also_released
            assert time.monotonic() - begun < 15
            left = [int(pid) for pid in pids.read_text().split() if alive(int(pid))]
            assert left == []
            assert (await host.finish(blob(place, 2, "/bin/true"))).finished.status == 0

    run(story())


def test_a_fork_bomb_ends_with_its_job(place: Place) -> None:
    """A job that forks as fast as it can is gone within seconds of its end."""
    command = "for i in 1 2 3; do (while :; do (sleep 0.01 &) ; done) & done; sleep 0.3; exit 5"

    async def story() -> None:
        async with Host(place) as host:
            report = await host.finish(blob(place, 1, command))
            assert report.finished.status == 5 << 8
            if not report.also_released:
                await host.report((1, 0, 1), "released")
            assert (await host.finish(blob(place, 2, "/bin/true"))).finished.status == 0

    run(story())


def test_bkill_is_int_then_term_then_kill(place: Place) -> None:
    """The terminate sequence reaches a process that ignores all it can, in order, with its interval."""
    command = "trap 'echo int' INT; trap 'echo term' TERM; echo ready; while :; do sleep 0.02; done"

    async def story() -> None:
        async with Host(place) as host:
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
    """A repeated order with a serial already seen does nothing."""
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
    """STOP stops the children, too, and the run limit stands still meanwhile."""
    command = "sleep 1000 & echo $!; wait"

    async def story() -> None:
        async with Host(place) as host:
            key = await host.run(blob(place, 1, command), stage(run_limit_s=0.6))
            await host.until(lambda: place.out().exists() and bool(place.out().read_text().strip()))
            pid = int(place.out().read_text())
            await host.signal(key, signal.SIGSTOP)
            await host.until(lambda: _state(pid) == "T")
            await asyncio.sleep(0.8)
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
            end = (await host.finish(blob(place, 1, command), stage(run_limit_s=0.3))).finished
            assert (end.status, end.reason) == (12 << 8, "TERM_RUNLIMIT")
            end = (await host.finish(blob(place, 2, "sleep 60"), stage(deadline=time.time() + 0.2))).finished
            assert (end.status, end.reason) == (signal.SIGUSR2, "TERM_DEADLINE")
        assert "usr2" in lines(place.out())

    run(story())


@needs_root
def test_the_memory_limit_holds_for_the_whole_job(place: Place) -> None:
    """A job over its limit is killed, and the reason is told; the next job in the place has its own limit."""
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


def test_usage_is_sampled_and_summed_up(place: Place) -> None:
    """A running job's CPU, memory, processes and groups are told; the end has the total."""
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


def test_cpu_time_does_not_count_the_shepherd(place: Place) -> None:
    """Jobs that do nothing use next to nothing, one after the other in the same place."""

    async def story() -> None:
        async with Host(place, slots=1) as host:
            ends = [(await host.finish(blob(place, job, "/bin/true"))).finished.cpu_s for job in range(1, 6)]
            assert max(ends) < 0.05

    run(story())


@pytest.mark.parametrize(
    ("fields", "code", "reason", "words"),
    [
        ({"cwd": "/no/such/place"}, 2, "TERM_CWD_NOTEXIST", "/no/such/place cannot be entered"),
        ({"output": "no/such/dir/out"}, 1, "", "output file no/such/dir/out cannot be opened: No such file"),
        ({"error": "/dev/null/x"}, 1, "", "error file /dev/null/x cannot be opened: Not a directory"),
        ({"input": "missing"}, 1, "", "input file missing cannot be opened"),
    ],
)
def test_what_cannot_start_ends_with_a_sentence(
    place: Place, fields: dict[str, str], code: int, reason: str, words: str
) -> None:
    """A job that cannot start is finished, not lost, and its shepherd serves the next one."""

    async def story() -> None:
        async with Host(place, slots=1) as host:
            report = await host.finish(blob(place, 1, "/bin/true", **fields))
            end = report.finished
            assert (end.status, end.reason) == (code << 8, reason)
            assert words in end.detail
            assert end.detail.endswith(".")
            assert end.started == 0
            assert report.also_released
            assert (await host.finish(blob(place, 2, "/bin/true"))).finished.status == 0

    run(story())


def test_commands_that_do_not_exist_end_as_in_a_shell(place: Place) -> None:
    """127 for what is not there, 126 for what may not be executed, and the shell's own message in the output."""

    async def story() -> None:
        async with Host(place) as host:
            assert (await host.finish(blob(place, 1, "/no/such/program x"))).finished.status == 127 << 8
            assert (await host.finish(blob(place, 2, "/etc/passwd"))).finished.status == 126 << 8
            assert (await host.finish(blob(place, 3, "x", shell="/no/shell"))).finished.status == 127 << 8
        assert "not found" in place.out().read_text()

    run(story())


def test_a_script_without_a_first_line_runs_by_the_shell(place: Place) -> None:
    """An executable file that the kernel does not know is given to /bin/sh, as a shell would."""
    script = place.out("plain")
    script.write_text("echo by $0\n")
    script.chmod(0o755)

    async def story() -> None:
        async with Host(place) as host:
            assert (await host.finish(blob(place, 1, str(script)))).finished.status == 0
        assert lines(place.out()) == [f"by {script}"]

    run(story())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#!/usr/bin/env python3\nimport sys\nprint('python', len(sys.argv))\n", "python 1"),
        ("#!/bin/sh -e\nfalse\necho unreached\n", ""),
        ("echo plain $#\n", "plain 0"),
    ],
)
def test_a_spooled_script_runs_by_its_first_line(place: Place, text: str, expected: str) -> None:
    """The interpreter named by #!, with its argument, or else /bin/sh; the script goes with the job."""

    async def story() -> None:
        async with Host(place) as host:
            key = await host.run(blob(place, 1, text, is_script=True))
            end = (await host.report(key, "finished")).finished
            assert (end.status == 0) == bool(expected)
            scripts = list((place.state / "scripts").iterdir())
            assert len(scripts) == 1
            assert stat.S_IMODE(scripts[0].stat().st_mode) == 0o500
            assert scripts[0].stat().st_uid == place.user.pw_uid
            await host.forget(key)
        async with Host(place):
            assert not list((place.state / "scripts").iterdir())
        assert lines(place.out()) == ([expected] if expected else [])

    run(story())


def test_a_fifo_that_nobody_reads_does_not_hang_the_host(place: Place) -> None:
    """The job ends with a sentence; with a reader the FIFO works, and gets no report."""
    fifo = place.out("fifo")
    os.mkfifo(fifo)
    place.give(fifo)

    async def story() -> None:
        async with Host(place) as host:
            end = (await host.finish(blob(place, 1, "/bin/echo x", output=str(fifo)))).finished
            assert "FIFO" in end.detail
            reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
            try:
                end = (await host.finish(blob(place, 2, "/bin/echo through", output=str(fifo)))).finished
                assert end.status == 0
                assert os.read(reader, 1000) == b"through\n"
            finally:
                os.close(reader)

    run(story())


def test_paths_of_array_elements_and_overwriting(place: Place) -> None:
    """%J and %I are filled in; output appends unless told otherwise; error can have a file of its own."""

    async def story() -> None:
        async with Host(place) as host:
            one = blob(place, 5, "echo out $LSB_JOBINDEX; echo err >&2", output="o.%J.%I", error="e.%J.%I", name="arr")
            for index in (1, 2):
                assert (await host.finish(one, index=index)).finished.status == 0
            over = blob(place, 6, "echo new", output="o.5.1", output_overwrite=True)
            assert (await host.finish(over)).finished.status == 0
        assert lines(place.out("o.5.1"))[0] == "new"
        assert lines(place.out("o.5.2"))[0] == "out 2"
        assert place.out("e.5.1").read_text() == "err\n"

    run(story())


def test_output_without_a_name_goes_to_the_spool_for_its_user(place: Place) -> None:
    """It can be read while the job runs, through the shepherd's descriptor, and is empty for the next job."""

    async def story() -> None:
        async with Host(place, slots=1) as host:
            key = await host.run(blob(place, 1, "echo peek; while [ ! -e stop ]; do sleep 0.02; done", output=""))
            await host.report(key, "started")
            held = host.local.attempts.find(1, 0)
            assert held is not None
            await host.until(lambda: Path(held.output_path).read_text() == "peek\n")
            assert Path(held.output_path).stat().st_uid == place.user.pw_uid
            assert held.error_path == ""
            place.out("stop").touch()
            await host.report(key, "finished")
            await host.until(lambda: [file.stat().st_size for file in (place.state / "outputs").iterdir()] == [0])
            assert host.local.attempts.find(1, 0) is None

    run(story())


def test_resource_limits_reach_the_job_and_not_its_shepherd(place: Place) -> None:
    """Limits hold in the job, one beyond this host's means as far as they go; the shepherd has its own again."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limits = [
        Rlimit(name="core", soft=0),
        Rlimit(name="nofile", soft=100),
        Rlimit(name="cpu", soft=77),
        Rlimit(name="stack", soft=4 << 20),
        Rlimit(name="data", soft=99 << 20),
    ]

    async def story() -> None:
        async with Host(place, slots=1) as host:
            command = "sleep 0.1; ulimit -c; ulimit -n; ulimit -s; sh -c 'ulimit -t; ulimit -d'"
            assert (await host.finish(blob(place, 1, command, rlimits=limits))).finished.status == 0
            beyond = [Rlimit(name="nofile", soft=1 << 40)]
            out = str(place.out("2"))
            assert (await host.finish(blob(place, 2, "ulimit -n", rlimits=beyond, output=out))).finished.status == 0
            out = str(place.out("3"))
            assert (await host.finish(blob(place, 3, "ulimit -s", output=out))).finished.status == 0
        assert lines(place.out()) == ["0", "100", "4096", "77", str(99 << 10)]
        assert lines(place.out("2")) == [str(hard)]
        assert lines(place.out("3"))[0] != "4096"

    run(story())


def test_pre_execution_decides_whether_the_job_starts(place: Place) -> None:
    """A failing command refuses the job to this host, 99 ends it, success lets it run; afterwards comes the other."""

    async def story() -> None:
        async with Host(place) as host:
            key = await host.run(blob(place, 1, "/bin/true", pre_exec="exit 1"))
            refusal = (await host.report(key, "refused")).refused
            assert refusal.host_fault
            end = (await host.finish(blob(place, 2, "/bin/true", pre_exec="exit 99"))).finished
            assert end.status == 99 << 8
            chain = blob(place, 3, "echo job >> chain", pre_exec="echo pre > chain", post_exec="echo post >> chain")
            key = await host.run(chain)
            assert (await host.report(key, "finished")).finished.status == 0
            # The end is told before the post-execution command runs, and again when the place is free.
            await host.until(lambda: any(report.also_released for report in host.said(key, "finished")))
            assert not host.said(key, "finished")[0].also_released
        assert place.out("chain").read_text().split() == ["pre", "job", "post"]

    run(story())


def test_the_report_at_the_end_of_the_output(place: Place) -> None:
    """It has the lines that tools look for."""

    async def story() -> None:
        async with Host(place) as host:
            where = stage(HostShare(host="h1", slots=4))
            await host.finish(blob(place, 12, "echo x; exit 2", name="test"), where)
        text = place.out().read_text()
        assert text.startswith("x\n")
        assert "Subject: Job 12: <test> in cluster <c1> Exited\n" in text
        assert f"Job <test> was submitted from host <login1> by user <{place.user.pw_name}> in cluster <c1> at " in text
        assert "Job was executed on host(s) <4*h1>, in queue <normal>, as user" in text
        assert "# LSBATCH: User input\necho x; exit 2\n" in text
        assert "\nExited with exit code 2.\n" in text
        assert "    CPU time :                                   0." in text
        assert "\nThe output (if any) is above this job summary.\n" in text

    run(story())


def test_an_unknown_user_ends_the_job_with_a_sentence(place: Place) -> None:
    """Neither the host nor the shepherd suffers; a number that belongs to another name counts as unknown."""

    async def story() -> None:
        async with Host(place) as host:
            one = blob(place, 1, "/bin/true")
            one.user = "nobody-of-this-name"
            end = (await host.finish(one)).finished
            assert end.status == 127 << 8
            assert "does not exist" in end.detail or "without root" in end.detail
            two = blob(place, 2, "/bin/true")
            two.uid += 1
            assert (await host.finish(two)).finished.status == 127 << 8

    run(story())


@needs_root
def test_output_cannot_be_pointed_at_files_of_others(place: Place) -> None:
    """A link to a file of root's is refused by the kernel, because the user opens it."""
    secret = place.root / "secret"
    secret.write_text("root's\n")
    secret.chmod(0o600)
    place.out("link").symlink_to(secret)

    async def story() -> None:
        async with Host(place) as host:
            end = (await host.finish(blob(place, 1, "/bin/echo x", output=str(place.out("link"))))).finished
            assert "Permission denied" in end.detail
        assert secret.read_text() == "root's\n"

    run(story())


@needs_root
def test_without_root_jobs_run_as_ourselves() -> None:
    """What does not need root works without it; here as the only user of a namespace, who may change to nobody else."""
    unshare = ["unshare", "--user"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("user namespaces are not open on this machine")
    here = Path(__file__)
    names = ("a_job_runs_and", "everything_a_job_leaves", "the_run_limit", "a_spooled_script", "an_unknown_user")
    argv = [
        *unshare,
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-k",
        " or ".join(names),
        str(here),
    ]
    done = subprocess.run(argv, cwd=here.parents[2], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout
    assert "left out: nothing" in done.stdout


def test_large_environments_travel(place: Place) -> None:
    """A setup too long for one message arrives all the same."""
    long = [b"PATH=/usr/bin:/bin"] + [b"V%d=" % number + b"x" * 1000 for number in range(300)]

    async def story() -> None:
        async with Host(place) as host:
            end = (await host.finish(blob(place, 1, "env | grep -c ^V", environment=long))).finished
            assert end.status == 0
        assert lines(place.out()) == ["300"]

    run(story())


def test_many_jobs_through_few_places(place: Place) -> None:
    """Far more jobs than places all run, once each, and the pool does not outgrow its places."""

    async def story() -> None:
        async with Host(place, slots=3) as host:
            job = blob(place, 1, "echo $LSB_JOBINDEX >> all", output="/dev/null")
            for index in range(1, 61):
                await host.run(job, index=index)
            await host.until(lambda: len(host.reports) >= 60)
            assert all(report.finished.status == 0 for report in host.reports)
            assert len(host.local.pool.handles()) <= 5
        assert sorted(map(int, place.out("all").read_text().split())) == list(range(1, 61))

    run(story())


def test_until_is_bounded() -> None:
    """Waiting in vain fails instead of hanging."""
    with pytest.raises(AssertionError, match="in vain"):
        run(until(lambda: False, 0.05))
