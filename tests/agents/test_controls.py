"""Queue settings applied on hosts: nice value, job starter, and JOB_CONTROLS for suspend, resume and terminate."""

import asyncio
import os
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from agents.shepherd import controls
from protos.agents_pb2 import JobControl, Limits, Order, Stage
from protos.common_pb2 import HostShare
from tests.agents.hosts import NAME, Host, Place, alive, blob, key_message, lines, stage, state_of, until

pytestmark = pytest.mark.slow


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run one test in an event loop of its own."""
    asyncio.run(coroutine)


def controlled(*actions: tuple[str, str], shares: tuple[HostShare, ...] = ()) -> Stage:
    """A stage order with these controls: SIGTSTP and the like are signals."""
    found = []
    for kind, action in actions:
        number = signal.Signals.__members__.get(action, 0)
        found.append(JobControl(kind=kind, signal=number, command="" if number else action))
    return stage(*shares, controls=found)


def text_of(path: Path) -> str:
    """Content of a file; empty if it does not exist."""
    return path.read_text() if path.exists() else ""


@pytest.mark.root
@pytest.mark.parametrize(("nice", "wait"), [(7, ""), (-3, "until [ $(nice) = -3 ]; do sleep 0.05; done;")])
def test_every_process_of_the_job_is_nice(place: Place, nice: int, wait: str) -> None:
    """Also children of the first; a value below the others' is applied a moment later. The next job is not nice."""

    async def story() -> None:
        async with Host(place) as host:
            await host.finish(blob(place, 1, f"{wait} sh -c 'cut -d\" \" -f19 /proc/self/stat'"), stage(nice=nice))
            await host.finish(blob(place, 2, "nice"))
        assert [line for line in place.out().read_text().splitlines() if line in (str(nice), "0")] == [str(nice), "0"]

    run(story())


@pytest.mark.parametrize(
    ("starter", "command", "fields", "expected"),
    [
        ("echo started by", "/bin/echo it", {}, ["started by /bin/echo it"]),
        ("A=1; export A;", "echo $A", {}, ["1"]),
        ("for i in 1 2; do %USRCMD; done", "echo $i", {}, ["1", "2"]),
        ("/bin/sh -c '%USRCMD; exit 4'", "/bin/echo one", {}, ["one"]),
        ("echo in; %USRCMD", "#!/bin/sh -e\necho script\n", {"is_script": True}, ["in", "script"]),
        ("%USRCMD; :", "echo $0", {"shell": "/bin/bash"}, ["-bash"]),
    ],
)
def test_the_starter_starts_the_command(
    place: Place, starter: str, command: str, fields: dict[str, Any], expected: list[str]
) -> None:
    """Before the command or around it, as a shell reads it; a script is replaced by its interpreter's command line."""

    async def story() -> None:
        async with Host(place) as host:
            end = (await host.finish(blob(place, 1, command, **fields), stage(job_starter=starter))).finished
        assert (end.status >> 8) == (4 if "exit 4" in starter else 0)
        assert lines(place.out()) == expected

    run(story())


def test_other_signals_stop_continue_and_end(place: Place) -> None:
    """Signal names instead of STOP, CONT and the terminate sequence; other signals are passed unchanged."""
    trap = 'for n in USR1 USR2 WINCH HUP; do trap "echo $n" $n; done; echo up; while :; do sleep 0.05; done'
    how = controlled(("SUSPEND", "SIGUSR1"), ("RESUME", "SIGUSR2"), ("TERMINATE", "SIGWINCH"))

    async def story() -> None:
        async with Host(place) as host:
            key = await host.run(blob(place, 1, trap), how)
            await host.until(lambda: "up" in text_of(place.out()))
            for number, word in (
                (signal.SIGSTOP, "USR1"),
                (signal.SIGCONT, "USR2"),
                (0, "WINCH"),
                (signal.SIGHUP, "HUP"),
            ):
                await host.signal(key, number)
                await host.until(lambda word=word: word in text_of(place.out()))
            await asyncio.sleep(4 * host.local.preparation.intervals.terminate_s)
            assert not host.said(key, "finished"), "the queue's own way to end is followed by no INT, TERM and KILL"
            await host.signal(key, signal.SIGKILL, "TERM_FORCE_OWNER")
            end = (await host.report(key, "finished")).finished
            assert (end.status, end.reason) == (9, "TERM_FORCE_OWNER")

    run(story())


def test_a_command_knows_the_job_and_its_causes(place: Place) -> None:
    """As the job's user, with the job's environment and pids; the job itself is not signalled."""
    told = place.out("told")
    words = "$(id -u) $LSB_JOBID $LS_EXEC_T $LSB_SUSP_REASONS $LSB_JOBPGIDS $LSB_JOBPIDS"
    tell = f'echo "{words}" > {told}.new; mv {told}.new {told}'

    async def story() -> None:
        async with Host(place) as host:
            key = await host.run(blob(place, 9, "exec sleep 60"), controlled(("SUSPEND", tell)))
            pid = (await host.report(key, "started")).started.pid
            await host.signal(key, signal.SIGSTOP, causes=0x80)
            await host.until(told.exists)
            assert told.read_text().split() == [str(place.user.pw_uid), "9", "JOB_CONTROLS", "128", str(pid), str(pid)]
            assert state_of(pid) == "S"

    run(story())


def test_a_command_ends_the_job_and_outlives_it(place: Place) -> None:
    """It has time to clean up after the job; then the end is reported, with the reason of the kill."""
    clean = f"kill -USR1 $LSB_JOBPIDS; sleep 0.5; echo clean > {place.out('after')}"
    job = "trap 'exit 5' USR1; echo up; while :; do sleep 0.05; done"

    async def story() -> None:
        async with Host(place) as host:
            host.local.preparation.intervals.terminate_s = 10.0
            key = await host.run(blob(place, 1, job), controlled(("TERMINATE", clean)))
            await host.until(lambda: "up" in text_of(place.out()))
            await host.signal(key, 0, "TERM_OWNER")
            report = await host.report(key, "finished")
            assert (report.finished.status, report.finished.reason) == (5 << 8, "TERM_OWNER")
            assert place.out("after").read_text() == "clean\n"

    run(story())


def test_a_run_limit_ends_the_job_in_the_queues_way(place: Place) -> None:
    """Without SIGUSR2 before."""
    job = "trap 'echo warned' USR2; trap 'echo ended; exit 3' USR1; echo up; while :; do sleep 0.05; done"
    how = controlled(("TERMINATE", "SIGUSR1"))

    async def story() -> None:
        async with Host(place) as host:
            key = await host.run(blob(place, 1, job), how)
            await host.until(lambda: "up" in text_of(place.out()))
            await host.order(Order(key=key_message(key), limits=Limits(version=1, run_limit_s=0.01)))
            end = (await host.report(key, "finished")).finished
            assert (end.status >> 8, end.reason) == (3, "TERM_RUNLIMIT")
        assert "ended" in lines(place.out())
        assert "warned" not in lines(place.out())

    run(story())


@pytest.mark.parametrize("kill", ["", "kill -9 $LSB_JOBPIDS;"])
def test_a_release_waits_for_no_command(place: Place, kill: str) -> None:
    """On a release order the job and its terminate command are killed."""

    async def story() -> None:
        async with Host(place) as host:
            pids = place.out("pids")
            command = f"{kill} echo $$ > {pids}.new; mv {pids}.new {pids}; sleep 60"
            key = await host.run(blob(place, 1, "exec sleep 60"), controlled(("TERMINATE", command)))
            await host.report(key, "started")
            await host.signal(key, 0, "TERM_OWNER")
            await host.until(pids.exists)
            if kill:
                await until(lambda: not alive(host.said(key, "started")[0].started.pid))
            await host.release(key)
            await host.until(lambda: any(one.also_released or one.HasField("released") for one in host.reports))
            await until(lambda: not alive(int(pids.read_text())))

    run(story())


def test_what_does_not_end_is_killed_in_the_end(place: Place) -> None:
    """After the time that a queue's own way may take; a command that hangs is killed, too."""

    async def story() -> None:
        async with Host(place) as host:
            host.local.preparation.intervals.terminate_s = 0.5 / controls.PATIENCE_INTERVALS
            key = await host.run(blob(place, 1, "exec sleep 60"), controlled(("TERMINATE", "sleep 60")))
            await host.report(key, "started")
            await host.signal(key, 0, "TERM_OWNER")
            end = (await host.report(key, "finished")).finished
            assert (end.status, end.reason) == (9, "TERM_OWNER")

    run(story())


def test_only_the_lead_host_runs_a_command(place: Place) -> None:
    """Other hosts do nothing: the command must reach their processes."""
    told = place.out("told")
    shares = (HostShare(host="h0", slots=1), HostShare(host=NAME, slots=1, tasks_by_role=[1]))

    async def story() -> None:
        async with Host(place) as host:
            job = blob(place, 1, "exec sleep 60")
            job.spec.roles[0].launch = 1
            key = await host.run(job, controlled(("SUSPEND", f"touch {told}"), ("RESUME", "SIGUSR1"), shares=shares))
            await host.launch(key)
            pid = (await host.report(key, "started")).started.pid
            await host.signal(key, signal.SIGSTOP)
            await host.signal(key, signal.SIGCONT)
            end = (await host.report(key, "finished")).finished
            assert (end.status, end.pid) == (signal.SIGUSR1, pid)
        assert not told.exists()

    run(story())


def test_variables_of_processes_that_are_gone() -> None:
    """Ended processes have no group; no error."""
    found = controls.variables([os.getpid(), 2**22 + 1], 2)
    assert found[b"LSB_JOBPGIDS"] == b"%d" % os.getpgid(0)
    assert found[b"LSB_SUSP_REASONS"] == b"2"
