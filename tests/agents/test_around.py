"""Pre- and post-execution commands of a job and of its queue, with real processes."""

import asyncio
import os
import pwd
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from protos.agents_pb2 import POST_AWAITED, POST_DONE, POST_ERR, POST_NONE, AroundJob, Limits, Order, Stage
from protos.common_pb2 import HostShare
from tests.agents.hosts import NAME, Host, Place, blob, key_message, lines, stage, until

pytestmark = pytest.mark.slow


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run one test in an event loop of its own."""
    asyncio.run(coroutine)


@pytest.fixture
def said(place: Place) -> Path:
    """A file to which every command of a test may append."""
    path = place.out("said")
    path.touch()
    place.give(path)
    path.chmod(0o666)
    return path


PROFILE = ("profile_host_pre_exec", "profile_host_post_exec")


def around(said: Path, shares: tuple[HostShare, ...] = (), **fields: object) -> Stage:
    """A stage order with commands that say in the file when they run; a word behind it replaces one of them."""
    given: dict[str, Any] = {
        "host_pre_exec": f"echo host pre >> {said}",
        "pre_exec": f"echo queue pre >> {said}",
        "post_exec": f"echo queue post >> {said}",
        "host_post_exec": f"echo host post >> {said}",
    }
    return stage(*shares, around=AroundJob(**{**given, **fields}))


def own(said: Path) -> dict[str, object]:
    """The job's own commands."""
    return {"pre_exec": f"echo pre >> {said}", "post_exec": f"echo post >> {said}"}


async def released(host: Host, key: tuple[int, int, int]) -> None:
    """Wait until nothing of an attempt is left."""
    await host.until(lambda: (last := host.last(key)) is not None and (last.also_released or last.HasField("released")))


def test_the_order_of_the_commands(place: Place, said: Path) -> None:
    """The queue's first and last, those for each host around all; the end is told before them, their end after it."""

    async def story() -> None:
        async with Host(place) as host:
            profile = {name: f"echo profile {name[13:-5]} >> {said}" for name in PROFILE}
            key = await host.run(blob(place, 1, f"echo job >> {said}", **own(said)), around(said, **profile))
            first = (await host.report(key, "finished")).finished
            assert (first.status, first.post) == (0, POST_AWAITED)
            await released(host, key)
            last = host.last(key)
            assert last is not None
            assert (last.finished.post, last.finished.posted_at >= first.time) == (POST_DONE, True)
        told = said.read_text().splitlines()
        before, after = ["host pre", "profile pre", "queue pre", "pre"], ["post", "queue post", "profile post"]
        assert told == [*before, "job", *after, "host post"]

    run(story())


def test_the_surroundings_of_the_commands(place: Place, said: Path) -> None:
    """The queue's are in /tmp with a short PATH; the job's are as the job, and what -E says is in its output."""
    tell = f"echo $0 $PWD $PATH $MINE $LSB_JOBID >> {said}"

    async def story() -> None:
        async with Host(place) as host:
            job = blob(
                place, 7, "echo job", pre_exec=f"echo hello; {tell}", post_exec="echo unheard",
                environment=[b"PATH=/usr/local/bin:/usr/bin:/bin", b"MINE=1"],
            )  # fmt: skip
            key = await host.run(job, stage(around=AroundJob(pre_exec=tell)))
            await released(host, key)
        short = "/bin:/usr/bin:/sbin:/usr/sbin"
        assert said.read_text().splitlines() == [
            f"/bin/sh /tmp {short} 1 7",
            f"/bin/sh {place.work} /usr/local/bin:/usr/bin:/bin 1 7",
        ]
        assert lines(place.out()) == ["hello", "job"]

    run(story())


def test_commands_of_a_profile(place: Place) -> None:
    """They are in place of the job's own, and run as these do."""
    profile = AroundJob(job_pre_exec="echo fetch >> chain", job_post_exec="echo tidy >> chain")

    async def story() -> None:
        async with Host(place) as host:
            for number, own_pre in ((1, ""), (2, "echo mine >> chain")):
                job = blob(place, number, "echo job >> chain", pre_exec=own_pre)
                await released(host, await host.run(job, stage(around=profile)))
        assert place.out("chain").read_text().split() == ["fetch", "job", "tidy", "mine", "job", "tidy"]

    run(story())


@pytest.mark.root
def test_another_user_of_the_queues_commands(place: Place, said: Path) -> None:
    """They are root's and get no variable of the job's user; the job's own remain that user's."""
    tell = f"echo $(id -un) $HOME $LD_PRELOAD$MINE $LSB_JOBID >> {said}"

    async def story() -> None:
        async with Host(place) as host:
            job = blob(
                place, 7, "true", pre_exec=tell, post_exec=tell,
                environment=[b"PATH=/usr/bin:/bin", b"MINE=x", b"HOME=/mine"],
            )  # fmt: skip
            key = await host.run(job, stage(around=AroundJob(pre_exec=tell, post_exec=tell, user="root")))
            await released(host, key)
            unknown = AroundJob(pre_exec="true", user="no-such-user")
            refused = await host.report(await host.run(blob(place, 8, "true"), stage(around=unknown)), "refused")
            assert refused.refused.pre_exec == "queue"
            assert "User no-such-user of the queue's pre- and post-execution commands does not" in (
                refused.refused.reason
            )
        name, home = place.user.pw_name, place.user.pw_dir
        root = f"root {pwd.getpwuid(0).pw_dir} 7"
        assert said.read_text().splitlines() == [root, f"{name} {home} x 7", f"{name} {home} x 7", root]

    run(story())


@pytest.mark.root
def test_a_user_cannot_lead_the_queues_commands_elsewhere(place: Place, said: Path) -> None:
    """They read lava's variables as lava sets them: none that the user has submitted, whatever its name."""
    names = ("LSF_ENVDIR", "LAVA_ENVDIR", "LSF_TOP", "LSB_DEFAULTQUEUE", "LAVA_X", "LSF_BINDIR", "LS_SUBCWD")
    tell = f"env >> {said}"

    async def story() -> None:
        async with Host(place) as host:
            submitted = [f"{name}=/home/eve".encode() for name in names]
            job = blob(place, 7, "true", environment=[b"PATH=/usr/bin:/bin", *submitted])
            rule = AroundJob(host_pre_exec=tell, pre_exec=tell, post_exec=tell, host_post_exec=tell, user="root")
            key = await host.run(job, stage(around=rule))
            await released(host, key)
        told = said.read_text()
        assert told.count("LSB_JOBID=7\n") == told.count("\nLSF_BINDIR=/") == told.count("LSB_BATCH_JID=7\n") == 4
        assert told.count("LSB_JOBEXIT_STAT=0\n") == 2
        assert "/home/eve" not in told

    run(story())


@pytest.mark.parametrize(
    ("whose", "told"),
    [
        ("job", ["host pre", "queue pre", "queue post Y 0", "host post"]),
        ("queue", ["host pre", "queue post Y 0", "host post"]),
        ("host", ["host post"]),
    ],
)
def test_a_failure_before_the_job(place: Place, said: Path, whose: str, told: list[str]) -> None:
    """The order is refused when the commands after the job have tidied up; the job is not run."""
    fail = "exit 3"
    fields: dict[str, object] = {"post_exec": f"echo queue post $LSB_JOBPEND $LSB_JOBEXIT_STAT >> {said}"}
    fields |= {"queue": {"pre_exec": fail}, "host": {"host_pre_exec": fail}}.get(whose, {})

    async def story() -> None:
        async with Host(place) as host:
            commands = own(said) | ({"pre_exec": fail} if whose == "job" else {})
            key = await host.run(blob(place, 1, f"echo job >> {said}", **commands), around(said, **fields))
            refused = (await host.report(key, "refused")).refused
            assert refused.pre_exec == whose
            assert refused.reason.endswith("exited with code 3")
            assert said.read_text().splitlines() == told

    run(story())


def test_what_the_commands_after_the_job_are_told(place: Place) -> None:
    """The end of the job: by itself, by a signal of a user's, by a limit, or to be run again."""
    tell = 'echo "$LSB_JOBID $LSB_JOBEXIT_STAT $LSB_JOBPEND/$LSB_JOBEXIT_INFO" >> told'

    async def story() -> None:
        async with Host(place) as host:
            for number, command in ((1, "exit 3"), (2, "exit 30"), (3, "kill -9 $$")):
                where = stage(around=AroundJob(requeued_codes=[30]))
                await released(host, await host.run(blob(place, number, command, post_exec=tell), where))
            killed = await host.run(blob(place, 4, "exec sleep 60", post_exec=tell))
            await host.report(killed, "started")
            await host.signal(killed, 0, "TERM_OWNER: job killed by owner.", 1)
            await released(host, killed)
            again = await host.run(blob(place, 5, "exec sleep 60", post_exec=tell))
            await host.report(again, "started")
            await host.signal(again, 0, "TERM_REQUEUE_OWNER: job killed and requeued by owner.", 1)
            await released(host, again)
            await released(host, await host.run(blob(place, 6, "sleep 60", post_exec=tell), stage(run_limit_s=0.2)))
        told = place.out("told").read_text().splitlines()
        assert told[:3] == ["1 768 /", "2 7680 Y/", "3 9 /SIGNAL 9 SIGKILL"]
        assert told[3:5] == ["4 2 /SIGNAL 2 SIGINT TERM_OWNER", "5 2 Y/SIGNAL 2 SIGINT TERM_REQUEUE_OWNER"]
        assert told[5].endswith("TERM_RUNLIMIT")

    run(story())


@pytest.mark.parametrize(("code", "state"), [(0, POST_DONE), (4, POST_ERR)])
def test_a_job_that_includes_its_post_execution(place: Place, code: int, state: int) -> None:
    """One report tells both ends, and the run lasts until the last command has ended."""

    async def story() -> None:
        async with Host(place) as host:
            where = stage(around=AroundJob(includes_post=True))
            end = (await host.finish(blob(place, 1, "true", post_exec=f"sleep 0.3; exit {code}"), where)).finished
            assert (end.status, end.post) == (0, state)
            assert end.time - end.started >= 0.3

    run(story())


def test_limits_of_the_commands(place: Place, said: Path) -> None:
    """One that takes too long is killed with what it has started, and has failed."""

    async def story() -> None:
        async with Host(place) as host:
            slow = stage(around=AroundJob(pre_limit_s=0.2, post_limit_s=0.2))
            key = await host.run(blob(place, 1, "true", pre_exec="sleep 60"), slow)
            refused = (await host.report(key, "refused")).refused
            assert refused.reason == "the job's pre-execution command took longer than its limit of 0.2 seconds"
            key = await host.run(blob(place, 2, "true", post_exec=f"sleep 60 & echo $! > {said}; wait"), slow)
            await released(host, key)
            last = host.last(key)
            assert last is not None
            assert last.finished.post == POST_ERR
            pid = said.read_text().strip()  # none, if it was killed even before that
            await until(lambda: not pid or not Path(f"/proc/{pid}").exists())

    run(story())


@pytest.mark.parametrize("number", [0, int(signal.SIGKILL)])
@pytest.mark.parametrize("includes", [False, True])
def test_the_jobs_own_command_after_it_can_be_ended(place: Place, said: Path, includes: bool, number: int) -> None:
    """By what ends the job, before its end is told and after that; the queue's commands are not ended so."""

    async def story() -> None:
        async with Host(place) as host:
            slow = f"echo queue post >> {said}; while [ ! -e {place.out('go')} ]; do sleep 0.05; done"
            order = around(said, post_exec=slow, includes_post=includes)
            key = await host.run(blob(place, 1, "true", post_exec=f"echo up >> {said}; exec sleep 60"), order)
            await until(lambda: "up" in said.read_text())
            if not includes:
                await host.report(key, "finished")
                await host.release(key)  # the master's answer to the end
            await host.signal(key, number, "TERM_OWNER: job killed by owner.", 1)
            await until(lambda: "queue post" in said.read_text())
            await host.signal(key, number, "TERM_OWNER: job killed by owner.", 2)
            await asyncio.sleep(0.2)
            assert "host post" not in said.read_text()
            place.out("go").touch()
            await released(host, key)
            last = host.last(key)
            assert last is not None
            assert (last.finished.status, last.finished.reason, last.finished.post) == (0, "", POST_ERR)
            assert said.read_text().endswith("host post\n")

    run(story())


def test_the_run_limit_of_a_job_that_includes_its_post_execution(place: Place) -> None:
    """It counts for the job's own command after it, too, which is killed then; the job's end stands."""

    async def story() -> None:
        async with Host(place) as host:
            where = stage(around=AroundJob(includes_post=True), run_limit_s=2.0)
            end = (await host.finish(blob(place, 1, "true", post_exec="sleep 60"), where)).finished
            assert (end.status, end.post) == (0, POST_ERR)
            assert end.time - end.started >= 2.0

    run(story())


def test_a_run_limit_that_comes_during_the_post_execution(place: Place, said: Path) -> None:
    """bmod -W ends the job's own command after it, which belongs to the job; an older limit changes nothing."""

    async def story() -> None:
        async with Host(place) as host:
            job = blob(place, 1, "true", post_exec=f"echo up >> {said}; exec sleep 600")
            key = await host.run(job, stage(around=AroundJob(includes_post=True)))
            await until(lambda: "up" in said.read_text())
            for version, limit_s in ((2, 1000.0), (1, 0.01), (3, 0.01)):
                limits = Limits(version=version, run_limit_s=limit_s)
                await host.order(Order(key=key_message(key), limits=limits))
            end = (await host.report(key, "finished")).finished
            assert (end.status, end.post) == (0, POST_ERR)

    run(story())


def test_a_limit_of_the_jobs_own_command_after_it_by_default(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command keeps the job's slots, so it is killed after a while even where the site sets no limit."""
    monkeypatch.setattr("agents.job_setup.preparation.OWN_POST_S", 0.2)

    async def story() -> None:
        async with Host(place) as host:
            key = await host.run(blob(place, 1, "true", post_exec="sleep 60"), stage())
            await released(host, key)
            last = host.last(key)
            assert last is not None
            assert last.finished.post == POST_ERR

    run(story())


def test_the_other_hosts_of_a_job(place: Place, said: Path) -> None:
    """There only the commands for each host run: before it is staged, and after the last process is gone."""
    shares = (HostShare(host="h0", slots=1), HostShare(host=NAME, slots=1))

    async def story() -> None:
        async with Host(place) as host:
            key = await host.run(blob(place, 1, "true", **own(said)), around(said, shares))
            await host.report(key, "staged")
            assert said.read_text() == "host pre\n"
            await host.release(key)
            await host.report(key, "released")
            assert said.read_text() == "host pre\nhost post\n"

    run(story())


def test_a_job_that_is_killed_before_it_starts(place: Place, said: Path) -> None:
    """The running command is ended, and the job never runs; what the queue had begun is undone."""

    async def story() -> None:
        async with Host(place) as host:
            key = await host.run(
                blob(place, 1, "echo job >> said", pre_exec=f"echo up >> {said}; exec sleep 60"), around(said)
            )
            await until(lambda: "up" in said.read_text())
            await host.signal(key, 0, "TERM_OWNER: job killed by owner.", 1)
            finished = (await host.report(key, "finished")).finished
            assert (finished.reason, finished.started) == ("TERM_OWNER: job killed by owner.", 0.0)
            await released(host, key)
        assert said.read_text().splitlines() == ["host pre", "queue pre", "up", "queue post", "host post"]

    run(story())


@pytest.mark.parametrize("when", ["pre", "post"])
def test_an_agent_is_replaced_meanwhile(place: Place, said: Path, when: str) -> None:
    """Nothing is lost and nothing runs twice; the next agent tells how it went on."""
    wait = f"echo up >> {said}; while [ ! -e {place.out('go')} ]; do sleep 0.05; done"
    commands = {f"{when}_exec": wait, "post_exec" if when == "pre" else "pre_exec": f"echo other >> {said}"}

    async def story() -> None:
        async with Host(place) as host:
            key = await host.run(blob(place, 1, f"echo job >> {said}", **commands))
            await until(lambda: "up" in said.read_text())
            await host.leave()
            if when == "post":  # it ends while there is no agent
                place.out("go").touch()
                await asyncio.sleep(0.3)
            await host.start()
            place.out("go").touch()
            await released(host, key)
            last = host.last(key)
            assert last is not None
            assert (last.finished.status, last.finished.post) == (0, POST_DONE)
        expected = ["up", "job", "other"] if when == "pre" else ["other", "job", "up"]
        assert said.read_text().splitlines() == expected

    run(story())


def test_a_shepherd_that_is_killed_after_the_job(place: Place, said: Path) -> None:
    """Its commands die with it, and count as failed; the job's end stands."""

    async def story() -> None:
        async with Host(place) as host:
            key = await host.run(blob(place, 1, "exit 2", post_exec=f"echo up >> {said}; exec sleep 60"))
            await until(lambda: "up" in said.read_text())
            os.kill(host.shepherd_of(key), signal.SIGKILL)
            await released(host, key)
            last = host.last(key)
            assert last is not None
            assert (last.finished.status, last.finished.post) == (2 << 8, POST_ERR)

    run(story())


def test_a_job_without_such_commands(place: Place) -> None:
    """Nothing is awaited, and one report tells its end."""

    async def story() -> None:
        async with Host(place) as host:
            report = await host.finish(blob(place, 1, "true"))
            assert (report.also_released, report.finished.post) == (True, POST_NONE)

    run(story())
