"""News of a host itself, over sessions that are lost and agents that are replaced."""

import asyncio
import threading
from pathlib import Path

import grpc.aio
import pytest

from agents.job_setup import task_work
from agents.master import session
from agents.sensors.health import BAD
from protos.agents_pb2 import HealthCheck, HealthVerdict, HostNotice, Reports
from protos.wire import REVOCATION_INTERVAL, REVOCATION_NOTICE, WRITE_FAILED
from tests.agents.hosts import Place, blob, stage, until
from tests.agents.masters import Agent, Master


def program(path: Path, script: str) -> str:
    """A program of the site."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


async def next_session(master: Master) -> None:
    """Cut the session; return when the next one is there."""
    number = len(master.sessions)
    master.sessions[-1].outbox.put_nowait(None)
    await master.session(number + 1)


def since_hello(master: Master) -> list[Reports]:
    """Messages since the last session began."""
    newest = max((at for at, message in enumerate(master.messages) if message.HasField("hello")), default=0)
    return master.messages[newest:]


def notices(master: Master) -> list[HostNotice]:
    """Notices of the host itself since the last session began."""
    return [message.host_notice for message in since_hello(master) if message.HasField("host_notice")]


@pytest.mark.slow
def test_a_hosts_withdrawal_reaches_the_next_master_and_comes_from_the_next_agent(place: Place) -> None:
    """A master that has not heard of it keeps the host closed, and kills what runs there."""
    going = place.root / "going"
    asks = program(place.root / "asks", f"[ ! -e {going} ] || {{ echo 60 spot; exit 2; }}")

    async def story() -> None:
        async with Master() as master, Agent(place, master) as agent:
            master.welcome.settings.update({REVOCATION_NOTICE: asks, REVOCATION_INTERVAL: "0.1"})
            going.touch()
            await master.until(lambda: any(one.seconds > 50 for one in notices(master)))
            await next_session(master)
            await master.until(lambda: any(one.seconds > 50 for one in notices(master)))
            await asyncio.to_thread(agent.kill)
            going.unlink()
            agent.start()
            await master.until(lambda: any(one.withdrawn for one in notices(master)))
            await next_session(master)
            await master.until(lambda: any(one.withdrawn for one in notices(master)))

    asyncio.run(story())


@pytest.mark.slow
def test_a_master_whose_term_is_over_takes_no_host_away(place: Place) -> None:
    """Its notice is refused like its orders: what runs on the host is not killed."""

    async def story() -> None:
        async with Master() as master, Agent(place, master) as agent:
            master.term = 5
            await master.session()
            key = master.start(blob(place, 1, "sleep 100"))
            await master.report(key, "started")
            master.send(term=4, host_notice=HostNotice(seconds=0.01))
            await master.session(2)
            assert "came after those of term 5" in agent.log()
            assert "On the master: lavactl adopt" in agent.log()
            assert "host_taken_away" not in agent.log()
            assert not master.said(key, "finished")

    asyncio.run(story())


def verdicts(master: Master) -> list[HealthVerdict]:
    """Results of checks since the last session began."""
    return [message.health for message in since_hello(master) if message.HasField("health")]


@pytest.mark.slow
def test_a_bad_result_that_may_be_lost_is_told_again(place: Place) -> None:
    """In the next session, unless there is a newer result."""
    bad = place.root / "bad"
    check = program(place.root / "check", f"[ ! -e {bad} ] || {{ echo 'GPU 3 is lost'; exit 2; }}")

    async def story() -> None:
        async with Master() as master, Agent(place, master):
            await master.session()
            bad.touch()
            key = master.start(blob(place, 1, "true"), stage(check_after=HealthCheck(argv=[check], limit_s=60)))
            await master.report(key, "finished")
            for _ in range(2):
                await master.until(lambda: [one.verdict for one in verdicts(master)] == [BAD])
                await next_session(master)
            await master.until(lambda: [one.verdict for one in verdicts(master)] == [BAD])
            bad.unlink()
            master.send(health_check=HealthCheck(number=7, argv=[check], limit_s=60.0))
            await master.until(lambda: [one.number for one in verdicts(master)] == [0, 7])
            await next_session(master)
            await master.until(lambda: len(since_hello(master)) > 2)
            assert verdicts(master) == []

    asyncio.run(story())


def test_work_directories_are_removed_by_one_thread(tmp_path: Path) -> None:
    """However many an agent finds after its start."""
    before = threading.active_count()
    for job in range(200):
        (task_work.path_of(tmp_path, (job, 0, 1), "worker", 0) / "code").mkdir(parents=True)
    task_work.keep_only(tmp_path, [(7, 0, 1)])
    assert threading.active_count() <= before + 1

    async def story() -> None:
        await until(lambda: [path.name for path in (tmp_path / task_work.FOLDER).iterdir()] == ["7-0-1"])

    asyncio.run(story())


@pytest.mark.parametrize(
    ("details", "reason"),
    [(WRITE_FAILED, "the master ended the connection"), ("a defect", "INTERNAL: a defect")],
)
def test_a_session_that_ends_while_the_agent_writes_has_a_reason(details: str, reason: str) -> None:
    """gRPC's own words for it, "Internal error from Core", told an administrator nothing, as after badmin hremove."""
    error = grpc.aio.AioRpcError(grpc.StatusCode.INTERNAL, grpc.aio.Metadata(), grpc.aio.Metadata(), details)
    assert session.reason_of(error) == reason
