"""Health checks of a host: the site's program, its verdict, and what keeps it from one."""

import asyncio
import time
from pathlib import Path

import pytest

from agents.sensors.health import BAD, OK, WARN, HealthProgram
from agents.sensors.host_checks import HostChecks
from protos.agents_pb2 import HealthCheck, HealthVerdict
from tests.agents.hosts import Place, blob, stage
from tests.agents.masters import Agent, Master


def program(path: Path, *lines: str) -> str:
    """A program with these lines of shell."""
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("echo fine",), (OK, "fine")),
        (("echo; echo ' 3 retired pages '; echo more; exit 1",), (WARN, "3 retired pages")),
        (("echo 'no GPU' >&2; exit 2",), (BAD, "no GPU")),
        (("echo strange; exit 3",), (WARN, "the health check gave no verdict: exit status 3 (strange)")),
        (("kill -9 $$",), (WARN, "the health check gave no verdict: killed by signal 9")),
        (("yes | head -c 1000000; exit 2",), (BAD, "y")),
        (("sleep 60 & exit 2",), (BAD, "")),
    ],
)
def test_the_exit_status_is_the_verdict(tmp_path: Path, lines: tuple[str, ...], expected: tuple[int, str]) -> None:
    """With the first line of what it writes, however much that is, and whatever it leaves behind."""
    began = time.monotonic()
    assert HealthProgram().run([program(tmp_path / "check", *lines)], 50.0) == expected
    assert time.monotonic() - began < 40


def test_what_cannot_be_run_is_a_warning(tmp_path: Path) -> None:
    """Missing, or changeable by others. What does not end in time is bad, and is killed: the host hangs with it."""
    health, path = HealthProgram(), tmp_path / "check"
    assert health.run([str(path)], 1.0) == (WARN, f"{path}: No such file or directory")
    program(path, "sleep 60", "exit 0")
    assert health.run([str(path)], 0.3) == (BAD, "the health check did not end within 0.3 s")
    program(path, "exit 2")
    assert health.run([str(path)], 60.0) == (BAD, "")
    path.chmod(0o777)
    verdict, text = health.run([str(path)], 60.0)
    assert (verdict, "it is not run" in text) == (WARN, True)


@pytest.mark.slow
def test_the_agent_answers_each_check_once(place: Place) -> None:
    """Also while it runs jobs; a check that still runs does not keep the agent from ending."""

    async def story() -> None:
        async with Master() as master, Agent(place, master) as agent:
            await master.session()
            check = program(place.root / "check", f"echo run >> {place.root}/runs", "echo 'link down'", "exit 2")
            for _ in range(2):
                master.send(health_check=HealthCheck(number=7, argv=[check], limit_s=60.0))
            await master.until(lambda: any(message.HasField("health") for message in master.messages))
            count = len(master.messages)
            await master.until(lambda: len(master.messages) > count + 2)
            (told,) = [message.health for message in master.messages if message.HasField("health")]
            assert (told.number, told.verdict, told.text) == (7, BAD, "link down")
            assert (place.root / "runs").read_text() == "run\n"
            hangs = program(place.root / "hangs", f"touch {place.root}/begun", "sleep 60")
            master.send(health_check=HealthCheck(number=8, argv=[hangs], limit_s=60.0))
            await master.until((place.root / "begun").exists)
            assert await agent.stop() == 0

    asyncio.run(story())


def test_jobs_that_start_together_share_a_check(tmp_path: Path) -> None:
    """And use a good one of just now; a bad one counts for no other."""
    check = program(tmp_path / "check", f"echo run >> {tmp_path}/runs", f"[ ! -e {tmp_path}/bad ] || exit 2")

    async def story() -> None:
        checks = HostChecks()
        found = await asyncio.gather(*(checks.run([check], 10.0, may_be_fresh=True) for _ in range(5)))
        found.append(await checks.run([check], 10.0, may_be_fresh=True))
        assert {one.verdict for one in found} == {OK}
        assert (tmp_path / "runs").read_text() == "run\n"
        (tmp_path / "bad").touch()
        assert (await checks.run([check], 10.0)).verdict == BAD
        assert (await checks.run([check], 10.0, may_be_fresh=True)).verdict == BAD

    asyncio.run(story())


@pytest.mark.slow
def test_a_job_does_not_start_on_a_host_whose_check_is_bad(place: Place) -> None:
    """The order is refused by fault of the host, and the master hears why; after a job a host is checked, too."""
    check = program(place.root / "check", f"[ ! -e {place.root}/bad ] || {{ echo 'GPU 3 is lost'; exit 2; }}")
    after = program(place.root / "after", "echo 'link 1 is down'; exit 2")

    def verdicts(master: Master) -> list[HealthVerdict]:
        return [message.health for message in master.messages if message.HasField("health")]

    async def story() -> None:
        async with Master() as master, Agent(place, master):
            await master.session()
            where = stage(
                check_before=HealthCheck(argv=[check], limit_s=60), check_after=HealthCheck(argv=[after], limit_s=60)
            )
            key = master.start(blob(place, 1, "echo ran"), where)
            assert (await master.report(key, "finished")).finished.status == 0
            await master.until(lambda: bool(verdicts(master)))
            (told,) = verdicts(master)
            assert (told.number, told.verdict, told.text, list(told.argv)) == (0, BAD, "link 1 is down", [after])
            (place.root / "bad").touch()
            where.check_before.argv.append("once more")  # another program than the one that was good just now
            key = master.start(blob(place, 2, "echo ran", output=str(place.out("2"))), where)
            refused = (await master.report(key, "refused")).refused
            assert (refused.host_fault, refused.reason) == (True, "health check before the job: GPU 3 is lost")
            await master.until(lambda: len(verdicts(master)) > 1)
            assert verdicts(master)[1].text == "GPU 3 is lost"
            assert not place.out("2").exists()

    asyncio.run(story())
