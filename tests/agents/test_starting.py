"""Start of jobs: files, scripts, limits and pre- and post-execution commands, and failures of each."""

import asyncio
import os
import resource
import stat
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from agents.shepherd.process import start
from protos.common_pb2 import HostShare
from protos.jobs_pb2 import Rlimit
from tests.agents.hosts import NAME, Host, Place, blob, lines, stage

pytestmark = pytest.mark.slow
needs_root = pytest.mark.root


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run one test in an event loop of its own."""
    asyncio.run(coroutine)


@pytest.mark.parametrize(
    ("fields", "code", "reason", "words"),
    [
        ({"output": "/proc/1/none"}, 1, "", "output file /proc/1/none cannot be opened: No such file"),
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


@pytest.mark.parametrize(
    ("fields", "lacking", "status", "term"),
    [
        ({"cwd": "/no/such/place"}, "working directory /no/such/place", 2 << 8, "TERM_CWD_NOTEXIST"),
        ({"cwd": "/no/such/place", "submit_cwd": "/no/such/place"}, "working directory /no/such/place", 0, ""),
        ({"output": "/no/such/dir/out"}, "directory /no/such/dir", 1 << 8, ""),
        ({"output_dir": "/proc/none"}, "output directory /proc/none", 1 << 8, ""),
    ],
)
def test_what_only_this_host_may_lack_refuses_the_job(
    place: Place, fields: dict[str, str], lacking: str, status: int, term: str
) -> None:
    """Another host may have the directory; one in which the job was submitted was there, so that it never ends."""

    async def story() -> None:
        async with Host(place, slots=1) as host:
            refused = (await host.report(await host.run(blob(place, 1, "/bin/true", **fields)), "refused")).refused
            assert (refused.lacking, refused.lacking_status, refused.lacking_term) == (lacking, status, term)
            assert refused.host_fault
            assert refused.reason.endswith(": No such file or directory.")
            assert (await host.finish(blob(place, 2, "/bin/true"))).finished.status == 0

    run(story())


def test_a_job_starter_that_this_host_lacks_refuses_the_job(place: Place) -> None:
    """A program that the site names is no fault of the job."""

    async def story() -> None:
        async with Host(place, slots=1) as host:
            key = await host.run(blob(place, 1, "/bin/true"), stage(job_starter="/opt/none/start %USRCMD"))
            refused = (await host.report(key, "refused")).refused
            assert (refused.lacking, refused.lacking_status) == ("job starter /opt/none/start", 0)

    run(story())


def test_a_host_of_several_is_refused_before_anything_starts(place: Place) -> None:
    """A parallel job whose other host lacks its directory goes elsewhere whole."""

    async def story() -> None:
        async with Host(place, slots=1) as host:
            shares = (HostShare(host="elsewhere", slots=1), HostShare(host=NAME, slots=1))
            key = await host.run(blob(place, 1, "/bin/true", cwd="/no/such/place"), stage(*shares))
            assert (await host.report(key, "refused")).refused.lacking == "working directory /no/such/place"

    run(story())


def test_what_breaks_while_a_job_is_prepared_refuses_it_and_no_other(place: Place) -> None:
    """A defect of the agent, here in the first job's preparation, is reported; the job does not hang."""

    async def story() -> None:
        async with Host(place, slots=1) as host:
            preparation = host.local.preparation
            whole, preparation.prepare = preparation.prepare, _broken  # type: ignore[method-assign]
            refused = (await host.report(await host.run(blob(place, 1, "/bin/true")), "refused")).refused
            assert (refused.reason, refused.host_fault) == (OWN_ERROR, True)
            preparation.prepare = whole  # type: ignore[method-assign]
            assert (await host.finish(blob(place, 2, "/bin/true"))).finished.status == 0

    run(story())


OWN_ERROR = "this host's agent met an error of its own; its log has the details"


def _broken(*_: object) -> Any:
    raise ZeroDivisionError


def test_commands_that_do_not_exist_end_as_in_a_shell(place: Place) -> None:
    """127 for a missing command, 126 for one that is not executable, and the shell's own message in the output."""

    async def story() -> None:
        async with Host(place) as host:
            assert (await host.finish(blob(place, 1, "/no/such/program x"))).finished.status == 127 << 8
            assert (await host.finish(blob(place, 2, "/etc/passwd"))).finished.status == 126 << 8
            assert (await host.finish(blob(place, 3, "x", shell="/no/shell"))).finished.status == 127 << 8
        assert "not found" in place.out().read_text()

    run(story())


def test_a_login_shell_begins_with_the_users_profile(place: Place) -> None:
    """bsub -L: bash reads ~/.bash_profile only where it is started as a login shell."""

    async def story() -> None:
        async with Host(place) as host:
            command = "shopt -q login_shell && echo of a login"
            assert (await host.finish(blob(place, 1, command, shell="/bin/bash"))).finished.status == 0
        assert "of a login\n" in place.out().read_text()

    run(story())


@needs_root
def test_a_job_that_is_over_at_once_has_started(capfd: pytest.CaptureFixture[str]) -> None:
    """An ended process is root's in /proc and has no better priority for its user: no reason to start it elsewhere."""
    pid = os.posix_spawn("/bin/true", ["true"], {}, setsid=True)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    os.seteuid(65534)
    try:
        start._prefer_for_oom(pid)
        start._be_nice(pid, -5)
    finally:
        os.seteuid(0)
        os.waitpid(pid, 0)
    start._prefer_for_oom(pid)
    start._be_nice(pid, 5)
    said = capfd.readouterr().err
    assert f"event=oom_preference_not_set pid={pid}" in said
    assert f"event=priority_not_set pid={pid} nice=-5" in said


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
    """%J and %I are filled in; output appends by default; error can have a file of its own."""

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
    """It can be read while the job runs, through the shepherd's descriptor, and is kept apart from the next job's."""

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
            await host.until(lambda: [file.name for file in (place.state / "outputs").iterdir()] == ["1.0.1"])
            assert host.local.attempts.find(1, 0) is None

    run(story())


def test_resource_limits_reach_the_job_and_not_its_shepherd(place: Place) -> None:
    """Limits apply in the job, one above the host's hard limit is cut to it; the shepherd has its own again."""
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
    """A failing command refuses the job to this host, 99 ends it, success lets it run; the post-execution command
    follows.
    """

    async def story() -> None:
        async with Host(place) as host:
            key = await host.run(blob(place, 1, "/bin/true", pre_exec="exit 1"))
            refusal = (await host.report(key, "refused")).refused
            assert refusal.host_fault
            assert (refusal.pre_exec, refusal.reason) == ("job", "the job's pre-execution command exited with code 1")
            end = (await host.finish(blob(place, 2, "/bin/true", pre_exec="exit 99"))).finished
            assert end.status == 99 << 8
            chain = blob(place, 3, "echo job >> chain", pre_exec="echo pre > chain", post_exec="echo post >> chain")
            key = await host.run(chain)
            assert (await host.report(key, "finished")).finished.status == 0
            # The end is reported before the post-execution command runs, and again when the slot is free.
            await host.until(lambda: any(report.also_released for report in host.said(key, "finished")))
            assert not host.said(key, "finished")[0].also_released
        assert place.out("chain").read_text().split() == ["pre", "job", "post"]

    run(story())


def test_the_report_at_the_end_of_the_output(place: Place) -> None:
    """It has the lines that tools parse."""

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


def test_a_job_of_an_unknown_user_is_refused_with_a_sentence(place: Place) -> None:
    """It is for other hosts to run; a number that belongs to another name counts as unknown."""

    async def story() -> None:
        async with Host(place) as host:
            one = blob(place, 1, "/bin/true")
            one.user = "nobody-of-this-name"
            word = (await host.report(await host.run(one), "refused")).refused
            assert word.user_unknown
            assert "does not exist" in word.reason or "without root" in word.reason
            two = blob(place, 2, "/bin/true")
            two.uid += 1
            assert (await host.report(await host.run(two), "refused")).refused.user_unknown

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
