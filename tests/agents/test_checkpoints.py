"""Checkpoints on a host: by the job's period, over restarts of the agent; what a request is told."""

import asyncio
import os
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from agents.job_setup.commands.checkpoints import CheckpointSettings, setup_of
from agents.shepherd.checkpoints import restart_command
from protos.agents_pb2 import CheckpointMade, CheckpointRequest, JobControl, Limits, Order, Stage
from protos.jobs_pb2 import Checkpoint
from tests.agents.hosts import Host, Place, blob, key_message, stage, state_of, until

pytestmark = pytest.mark.slow
MAKE = """\
#!/bin/sh
echo made "$@" >> made
[ ! -e refuse ]
"""


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run one test in an event loop of its own."""
    asyncio.run(coroutine)


def made_in(directory: Path) -> int:
    return len((directory / "made").read_text().splitlines()) if (directory / "made").exists() else 0


def a_checkpoint(place: Place, **fields: float) -> Checkpoint:
    """Terms of a job whose program notes each call in the job's directory."""
    program = place.root / "echkpnt.note"
    program.write_text(MAKE)
    program.chmod(0o755)
    return Checkpoint(directory=str(place.work / "saved"), method="note", programs=str(place.root), **fields)


def news(host: Host, seen: list[CheckpointMade]) -> list[CheckpointMade]:
    """Results until now."""
    seen += host.local.checkpoints.take_news()
    return seen


def test_the_period_and_the_newest_results_outlive_the_agent(place: Place) -> None:
    """Each request is carried out once, however often it is said; another agent is told its end again."""

    async def story() -> None:
        seen: list[CheckpointMade] = []
        async with Host(place) as host:
            terms = a_checkpoint(place, first_s=0.2, period_s=0.4)
            key = await host.run(blob(place, 1, "sleep 1000", checkpoint=terms))
            await until(lambda: any(not one.number for one in news(host, seen)), 60)
            asked = CheckpointRequest(key=key_message(key), number=1, force=True)
            for _ in range(2):
                host.local.checkpoints.make(asked)
            await until(lambda: any(one.number == 1 for one in news(host, seen)), 60)
            assert {one.error for one in seen} == {""}
            await host.replace()
            before = made_in(place.work)
            await until(lambda: made_in(place.work) > before, 60)
            again: list[CheckpointMade] = []
            host.local.checkpoints.repeat()
            await until(lambda: any(one.number == 1 for one in news(host, again)), 60)
            host.local.checkpoints.make(CheckpointRequest(key=key_message((7, 0, 1)), number=1))
            assert news(host, [])[-1].error == "the job does not run here"
            await host.signal(key, 9, "TERM_OWNER", serial=1)
            await until(lambda: any(one.HasField("finished") for one in host.reports), 60)
        forced = [line for line in (place.work / "made").read_text().splitlines() if line.startswith("made -f -d")]
        assert len(forced) == 1

    run(story())


def test_the_period_of_a_running_job_is_changed(place: Place) -> None:
    """bchkpnt -p. An initial period alone makes one checkpoint; 0 is none, and those that are asked for are made."""

    async def story() -> None:
        seen: list[CheckpointMade] = []

        async def asked(number: int) -> float:
            host.local.checkpoints.make(CheckpointRequest(key=key_message(key), number=number))
            await until(lambda: any(one.number == number for one in news(host, seen)), 60)
            return next(one.began for one in seen if one.number == number)

        def by_itself(since: float) -> int:
            return sum(not one.number and one.began > since for one in news(host, seen))

        async with Host(place) as host:
            key = await host.run(blob(place, 1, "sleep 1000", checkpoint=a_checkpoint(place, first_s=0.2)))
            await until(lambda: by_itself(0) == 1, 60)
            first = await asked(1)
            await asyncio.sleep(0.5)
            await asked(2)
            assert by_itself(first) == 0
            for version, period_s in ((1, 0.2), (2, 0.0)):
                limits = Limits(version=version, checkpoint_period_s=period_s)
                await host.order(Order(key=key_message(key), limits=limits))
                last = await asked(2 + version)
                if period_s:
                    await until(lambda since=last: by_itself(since) > 1, 60)  # type: ignore[misc]
            await asyncio.sleep(0.5)
            await asked(5)
            assert by_itself(last) == 0
            await host.signal(key, 9, "TERM_OWNER", serial=1)
            await until(lambda: any(one.HasField("finished") for one in host.reports), 60)

    run(story())


def test_a_checkpoint_that_fails_ends_nothing(place: Place) -> None:
    """-k: the job is killed when it is made only."""

    async def story() -> None:
        seen: list[CheckpointMade] = []
        async with Host(place) as host:
            key = await host.run(blob(place, 1, "sleep 1000", checkpoint=a_checkpoint(place)))
            await until(lambda: any(one.HasField("started") for one in host.reports), 60)
            (place.work / "refuse").touch()
            host.local.checkpoints.make(CheckpointRequest(key=key_message(key), number=1, ends=True))
            await until(lambda: bool(news(host, seen)), 60)
            assert f"{place.root}/echkpnt.note exited with code 1" in seen[0].error
            (place.work / "refuse").unlink()
            host.local.checkpoints.make(CheckpointRequest(key=key_message(key), number=2, ends=True))
            await until(lambda: any(one.HasField("finished") for one in host.reports), 60)
            end = next(one.finished for one in host.reports if one.HasField("finished"))
            assert (end.status, end.reason) == (9, "TERM_CHKPNT")

    run(story())


def actions(*kinds: str) -> Stage:
    """A stage order of a queue whose JOB_CONTROLS are checkpoints."""
    return stage(controls=[JobControl(kind=kind, signal=signal.SIGTERM, checkpoint=True) for kind in kinds])


@pytest.mark.parametrize("fails", [False, True])
def test_a_suspended_job_is_stopped_when_its_checkpoint_is_made(place: Place, fails: bool) -> None:
    """SUSPEND[CHKPNT]: it is made while the job runs; then the job is stopped, also if it failed. Said again, or when
    the job has no checkpoints, it is the plain signal."""

    async def story() -> None:
        seen: list[CheckpointMade] = []
        async with Host(place) as host:
            hold = place.work / "hold"
            hold.touch()
            if fails:
                (place.work / "refuse").touch()
            terms = a_checkpoint(place)
            key = await host.run(blob(place, 1, "exec sleep 1000", checkpoint=terms), actions("SUSPEND"))
            pid = (await host.report(key, "started")).started.pid
            (place.root / "echkpnt.note").write_text(f"{MAKE.strip()} && while [ -e {hold} ]; do sleep 0.02; done\n")
            for serial in (1, 2):
                await host.signal(key, signal.SIGSTOP, serial=serial)
            if not fails:
                await until(lambda: made_in(place.work) == 1, 60)
                assert state_of(pid) != "T"
            hold.unlink()
            await until(lambda: state_of(pid) == "T", 60)
            await until(lambda: bool(news(host, seen)), 60)
            assert [(one.number, one.action, bool(one.error)) for one in seen] == [(0, "SUSPEND", fails)]
            await host.signal(key, signal.SIGSTOP, serial=3)
            await host.signal(key, signal.SIGCONT, serial=4)
            await until(lambda: state_of(pid) == "S", 60)
            await host.signal(key, signal.SIGSTOP, serial=5)
            await until(lambda: made_in(place.work) == 2 and state_of(pid) == "T", 60)
            plain = await host.run(blob(place, 2, "exec sleep 1000"), actions("SUSPEND"))
            other = (await host.report(plain, "started")).started.pid
            await host.signal(plain, signal.SIGSTOP, serial=1)
            await until(lambda: state_of(other) == "T", 60)
            for one in (key, plain):
                await host.signal(one, 9, "TERM_OWNER", serial=9)
                await host.report(one, "finished")

    run(story())


def test_a_resumed_job_is_not_stopped_by_an_earlier_checkpoint(place: Place) -> None:
    """SUSPEND[CHKPNT] takes its time: the job may be resumed meanwhile."""

    async def story() -> None:
        seen: list[CheckpointMade] = []
        async with Host(place) as host:
            terms = a_checkpoint(place)
            (place.work / "hold").touch()
            (place.root / "echkpnt.note").write_text(f"{MAKE}while [ -e hold ]; do sleep 0.02; done\n")
            key = await host.run(blob(place, 1, "exec sleep 1000", checkpoint=terms), actions("SUSPEND"))
            pid = (await host.report(key, "started")).started.pid
            await host.signal(key, signal.SIGSTOP, serial=1)
            await until(lambda: made_in(place.work) == 1, 60)
            await host.signal(key, signal.SIGCONT, serial=2)
            (place.work / "hold").unlink()
            await until(lambda: bool(news(host, seen)), 60)
            assert state_of(pid) != "T"
            await host.signal(key, 9, "TERM_OWNER", serial=3)
            await host.report(key, "finished")

    run(story())


@pytest.mark.parametrize("way", ["saved", "by itself", "fails", "no checkpoints", "over a restart"])
def test_a_job_is_saved_before_it_is_ended(place: Place, way: str) -> None:
    """TERMINATE[CHKPNT]: the program is told that the job ends, which is killed then; if it fails, the job is ended as
    usual. What ends the job is its reason. All that goes on while the agent is replaced."""
    trap = "trap 'exit 7' TERM; trap '' INT; echo up; while :; do sleep 0.05; done"

    async def story() -> None:
        seen: list[CheckpointMade] = []
        async with Host(place) as host:
            terms = a_checkpoint(place)
            if way == "by itself":
                script = f"{MAKE}kill -ALRM -$4; sleep 0.3; echo late >> made\n"
                (place.root / "echkpnt.note").write_text(script)
            if way == "fails":
                (place.work / "refuse").touch()
            if way == "over a restart":
                (place.work / "hold").touch()
                (place.root / "echkpnt.note").write_text(f"{MAKE}while [ -e hold ]; do sleep 0.02; done\n")
            job = blob(place, 1, trap, **({} if way == "no checkpoints" else {"checkpoint": terms}))
            key = await host.run(job, actions("TERMINATE"))
            await host.until(lambda: place.out().exists() and "up" in place.out().read_text())
            await host.signal(key, 0, "TERM_OWNER", serial=1)
            if way == "over a restart":
                await until(lambda: made_in(place.work) == 1, 60)
                await host.replace()
                await host.signal(key, 0, "TERM_OWNER", serial=1)  # as the master says again in each session
                (place.work / "hold").unlink()
            end = (await host.report(key, "finished")).finished
            status = {"saved": 9, "over a restart": 9, "by itself": int(signal.SIGALRM)}.get(way, 7 << 8)
            assert (end.status, end.reason) == (status, "TERM_OWNER")
            expected = [] if way == "no checkpoints" else [("TERMINATE", way == "fails", False)]
            assert [(one.action, bool(one.error), one.ends) for one in news(host, seen)] == expected
        if way != "no checkpoints":
            assert (place.work / "made").read_text().startswith("made -k -d ")
        if way == "by itself":
            assert (place.work / "made").read_text().endswith("late\n"), "the end waits for the program"

    run(story())


@pytest.mark.parametrize("whose", ["the job's", "the queue's", "no checkpoints"])
def test_a_checkpoint_warns_of_a_limit(place: Place, whose: str) -> None:
    """-wa CHKPNT, JOB_WARNING_ACTION = CHKPNT: it is made that long before the limit; the job goes on meanwhile."""

    async def story() -> None:
        seen: list[CheckpointMade] = []
        async with Host(place) as host:
            own = {"warning_action": "CHKPNT"} if whose == "the job's" else {}
            terms = {} if whose == "no checkpoints" else {"checkpoint": a_checkpoint(place)}
            of_queue = {"warning_action": "CHKPNT"} if whose != "the job's" else {}
            where = stage(run_limit_s=60.0, warning_time_s=59.7, **of_queue)
            key = await host.run(blob(place, 1, "exec sleep 1000", **own, **terms), where)
            if terms:
                await until(lambda: bool(news(host, seen)), 60)
                assert [(one.action, one.error) for one in seen] == [("WARNING", "")]
            else:
                await until(lambda: bool(list((place.root / "agent.jobs").glob("*.notice"))), 60)
            await host.signal(key, 9, "TERM_OWNER", serial=1)
            assert (await host.report(key, "finished")).finished.reason == "TERM_OWNER"

    run(story())


@pytest.mark.parametrize("owner", ["user", "root"])
def test_the_directory_of_another_is_not_written_to(place: Place, owner: str) -> None:
    """Nor one behind a symbolic link: it could lead to the user's other files."""
    precious, saved = place.out("precious"), place.work / "saved"
    precious.write_text("mine\n")
    place.give(precious)
    saved.mkdir()
    place.give(saved)
    other = place.root / "other" if owner == "user" else saved / "1"
    other.mkdir()
    (other / "echkpnt.out").symlink_to(precious)
    if owner == "user":
        place.give(other)
        (saved / "1").symlink_to(other)
    elif os.geteuid():
        pytest.skip("another user's files are made by root")
    other.chmod(0o777)

    async def story() -> None:
        seen: list[CheckpointMade] = []
        async with Host(place) as host:
            key = await host.run(blob(place, 1, "sleep 1000", checkpoint=a_checkpoint(place)))
            await until(lambda: any(one.HasField("started") for one in host.reports), 60)
            host.local.checkpoints.make(CheckpointRequest(key=key_message(key), number=1))
            await until(lambda: bool(news(host, seen)), 60)
            assert seen[0].error == f"the directory {saved}/1 is another user's, or a symbolic link"
            await host.signal(key, 9, "TERM_OWNER", serial=1)
            await until(lambda: any(one.HasField("finished") for one in host.reports), 60)

    run(story())
    assert precious.read_text() == "mine\n"


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("", ""),
        ("LSB_RESTART_CMD=a.out -r 5\n", "a.out -r 5"),
        ("# mine\nLSB_RESTART_CMD=\"a.out -r '5 6'\"\n", "a.out -r '5 6'"),
        ("LSB_RESTART_CMD=first\nLSB_RESTART_CMD=second", "second"),
    ],
)
def test_the_command_of_a_restart(text: str, command: str) -> None:
    """As scripts write it, in quotes or without."""
    assert restart_command(text) == command


def test_where_the_programs_are() -> None:
    """The job's own words, then the site's; without any they are beside lava's commands, of LSF's default method."""
    site = CheckpointSettings.of({"LSB_ECHKPNT_METHOD": "site", "LSF_SERVERDIR": "/etc/lsf"})
    for terms, settings, expected in (
        (Checkpoint(directory="/d"), CheckpointSettings(), ("/bin/lava", "default")),
        (Checkpoint(directory="/d"), site, ("/etc/lsf", "site")),
        (Checkpoint(directory="/d", method="own", programs="/home/p"), site, ("/home/p", "own")),
    ):
        found = setup_of(terms, settings, "/bin/lava")
        assert (found.programs, found.method) == expected
