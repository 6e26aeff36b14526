"""The agent as a process, with a master that is slow, restarted, outdated or gone."""

import asyncio
import os
import signal
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from agents.attempts.ledger import SUPERVISOR_LOST, TOO_OLD
from protos.agents_pb2 import HostNotice, Order, Reports
from protos.common_pb2 import HostShare
from protos.failpoints import AGENT_POINTS
from tests.agents.hosts import NAME, Place, alive, blob, key_message, stage, until
from tests.agents.masters import Agent, Master

pytestmark = pytest.mark.slow

KEY = (1, 0, 1)
WAITS = "echo $$ >> starts; while [ ! -e stop ]; do sleep 0.02; done; exit 7"


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run one test in an event loop of its own."""
    asyncio.run(coroutine)


def starts(place: Place) -> int:
    """Number of starts of the job."""
    return len(place.out("starts").read_text().split()) if place.out("starts").exists() else 0


def test_a_session_from_hello_to_forget(place: Place) -> None:
    """Hello with facts, a job's start and end, load and heartbeats, numbered and stamped; SIGTERM is a clean end."""

    async def story() -> None:
        async with Master() as master, Agent(place, master) as agent:
            session = await master.session()
            facts = session.hello.facts
            assert (facts.name, facts.slots, facts.server) == (NAME, 4, True)
            assert facts.peer_address.startswith("127.0.0.1:")
            assert session.hello.incarnation
            assert (place.root / "pid").read_text() == f"{agent.process.pid}\n"
            key = master.start(blob(place, 1, "/bin/echo hello"))
            assert (await master.report(key, "finished")).finished.status == 0
            await master.until(lambda: any(message.HasField("load") for message in master.messages))
            count = len(master.messages)
            await master.until(lambda: len(master.messages) > count + 3)
            stamps = [message.sent_monotonic for message in master.messages]
            assert stamps == sorted(stamps)
            assert await agent.stop() == 0
            assert not (place.root / "pid").exists()
            assert "Traceback" not in agent.log()

    run(story())


def test_orders_too_old_on_the_agents_own_clock_start_nothing(place: Place) -> None:
    """A master whose echo stands still cannot start jobs after the validity, but still end them."""

    async def story() -> None:
        async with Master() as master, Agent(place, master):
            await master.session()
            running = master.start(blob(place, 1, "sleep 600"))
            await master.report(running, "started")
            master.frozen = True
            master.echo -= 2 * master.welcome.order_validity_s  # as after a standstill of that length
            late = master.start(blob(place, 2, WAITS))
            assert (await master.report(late, "refused")).refused.reason == TOO_OLD
            master.signal(running, signal.SIGKILL, "TERM_OWNER")
            await master.report(running, "finished")
            assert starts(place) == 0

    run(story())


def test_a_stopped_agent_starts_nothing_stale_when_it_goes_on(place: Place) -> None:
    """SIGSTOP, an order, a wait longer than its validity, SIGCONT: refused."""

    async def story() -> None:
        async with Master() as master:
            master.welcome.order_validity_s = 0.4
            async with Agent(place, master) as agent:
                await master.session()
                await master.until(lambda: len(master.messages) > 2)
                agent.process.send_signal(signal.SIGSTOP)
                key = master.start(blob(place, 1, WAITS))
                await asyncio.sleep(0.8)
                agent.process.send_signal(signal.SIGCONT)
                assert (await master.report(key, "refused")).refused.reason == TOO_OLD
                assert starts(place) == 0

    run(story())


def test_orders_of_a_lower_term_are_refused_also_by_the_next_agent(place: Place) -> None:
    """The session with an old master ends, no order is carried out, and the term survives a restart."""

    async def story() -> None:
        async with Master() as master:
            master.term = 5
            async with Agent(place, master) as agent:
                await master.session()
                await master.until(lambda: len(master.messages) > 1)
                master.send(Order(key=key_message(KEY), stage=stage()), specs=(blob(place, 1, WAITS),), term=4)
                second = await master.session(2)
                assert second.hello.highest_term == 5
                agent.kill()
                agent.start()
                third = await master.session(3)
                assert third.hello.highest_term == 5
                assert starts(place) == 0
                assert "term 4" in agent.log()

    run(story())


def test_a_report_is_repeated_until_it_is_acknowledged(place: Place) -> None:
    """Also over a new session, where it comes with the hello; then the attempt is forgotten."""

    async def story() -> None:
        async with Master(acknowledge=False) as master, Agent(place, master):
            await master.session()
            key = master.start(blob(place, 1, "exit 4"))
            await master.report(key, "finished", count=2)
            master.sessions[-1].outbox.put_nowait(None)
            second = await master.session(2)
            assert [held.last.finished.status for held in second.hello.held] == [4 << 8]
            master.send(forget=[key_message(key)])
            master.sessions[-1].outbox.put_nowait(None)
            third = await master.session(3)
            assert not third.hello.held

    run(story())


def test_jobs_do_not_mind_the_loss_of_the_master(place: Place) -> None:
    """The master returns on the same port: the job has kept running and is reported."""

    async def story() -> None:
        async with Master() as master, Agent(place, master):
            await master.session()
            key = master.start(blob(place, 1, WAITS))
            started = (await master.report(key, "started")).started
            master.sessions[-1].outbox.put_nowait(None)
            second = await master.session(2)
            assert [held.launched for held in second.hello.held] == [True]
            assert alive(started.pid)
            place.out("stop").touch()
            assert (await master.report(key, "finished")).finished.status == 7 << 8
            assert starts(place) == 1

    run(story())


def test_a_refused_session_is_tried_again(place: Place) -> None:
    """The master's reason is logged, and the agent reconnects."""

    async def story() -> None:
        async with Master() as master:
            master.welcome.error = "host h1 is not in the cluster"
            async with Agent(place, master) as agent:
                await master.session(2)
                assert "not in the cluster" in agent.log()
                master.welcome.error = ""
                await master.session(len(master.sessions) + 1)
                key = master.start(blob(place, 1, "/bin/true"))
                await master.report(key, "finished")

    run(story())


def test_two_hosts_stage_and_launch(place: Place) -> None:
    """The lead host reports staged, starts only on the launch order, and frees its slots when released."""
    where = stage(HostShare(host=NAME, slots=2), HostShare(host="h2", slots=2))

    async def story() -> None:
        async with Master() as master, Agent(place, master):
            await master.session()
            key = master.start(blob(place, 1, "echo $LSB_MCPU_HOSTS; cat $LSB_DJOB_HOSTFILE"), where)
            await master.report(key, "staged")
            assert not place.out().exists()
            master.launch(key)
            assert (await master.report(key, "finished")).finished.status == 0
            key = master.start(blob(place, 2, WAITS), where)
            await master.report(key, "staged")
            master.release(key)
            await master.report(key, "released")
        assert place.out().read_text().splitlines()[:5] == ["h1 2 h2 2", "h1", "h1", "h2", "h2"]

    run(story())


def test_killed_agents_lose_no_job(place: Place) -> None:
    """Many jobs, the agent killed repeatedly: each job starts exactly once and every exit code is right."""
    jobs = 30

    async def story() -> None:
        async with Master(acknowledge=False) as master, Agent(place, master) as agent:
            await master.session()
            command = "echo $LSB_JOBINDEX >> starts; sleep 0.05; exit $LSB_JOBINDEX"
            job = blob(place, 1, command, output="/dev/null")
            where = stage()
            ordered = 0
            for kills in range(1, 4):
                for _ in range(jobs // 3):
                    ordered += 1
                    master.start(job, where, index=ordered)
                await master.until(lambda ordered=ordered: starts(place) > ordered - jobs // 3)  # type: ignore[misc]
                agent.kill()
                agent.start()
                session = await master.session(kills + 1)
                held = {entry.key.index for entry in session.hello.held}
                for index in range(1, ordered + 1):
                    if index not in held:  # it never arrived
                        master.start(job, where, index=index)
            await master.until(lambda: len(ends(master)) == jobs)
            given_back = {report.key.index for report in master.reports if report.HasField("refused")}
            for index, status in ends(master).items():
                assert status == (None if index in given_back else index << 8)
            begun = [int(line) for line in place.out("starts").read_text().split()]
            assert sorted(begun) == sorted(set(range(1, jobs + 1)) - given_back)

    run(story())


def ends(master: Master) -> dict[int, int | None]:
    """By index: the wait status of ended jobs, None for refused ones."""
    found: dict[int, int | None] = {}
    for report in master.reports:
        if report.HasField("finished"):
            found[report.key.index] = report.finished.status
        elif report.HasField("refused"):
            found[report.key.index] = None
    return found


@pytest.mark.parametrize("point", AGENT_POINTS)
def test_every_crash_point_is_survived(place: Place, point: str) -> None:
    """A process that dies at any fail point loses no job's end and starts no job twice."""

    # Every launcher dies, so each must get one shepherd further than the last.
    passing = 2 if point.startswith("launcher") else 1

    async def story() -> None:
        async with Master() as master, Agent(place, master, fail=f"{point}:{passing}") as agent:
            await master.session()
            key = master.start(blob(place, 1, "echo $$ >> starts; sleep 0.1; exit 3"))
            if point.startswith("agent"):
                assert await agent.died() == 137
                agent.start(fail="")
                session = await master.session(2)
                if not session.hello.held:
                    # Not even in the journal, or reported and acknowledged before the end.
                    assert point == "agent.before_forget"
            await master.until(lambda: bool(master.said(key, "finished") or master.said(key, "refused")))
            begun = starts(place)
            if master.said(key, "refused"):
                assert begun == 0
            else:
                end = master.said(key, "finished")[0].finished
                assert begun <= 1
                assert (end.status, begun) == (3 << 8, 1) or (end.status, end.reason) == (9, SUPERVISOR_LOST)
                if point in ("shepherd.after_record", "agent.before_report", "agent.before_forget"):
                    assert end.status == 3 << 8

    run(story())


def test_a_killed_shepherd_is_reported_and_leaves_nothing(place: Place) -> None:
    """Its job is killed and reported as lost; the host stays usable."""

    async def story() -> None:
        async with Master() as master, Agent(place, master):
            await master.session()
            key = master.start(blob(place, 1, WAITS))
            pid = (await master.report(key, "started")).started.pid
            os.kill(parent(pid), signal.SIGKILL)
            end = (await master.report(key, "finished")).finished
            assert (end.status, end.reason) == (9, SUPERVISOR_LOST)
            assert not alive(pid)
            key = master.start(blob(place, 2, "/bin/true"))
            assert (await master.report(key, "finished")).finished.status == 0

    run(story())


def parent(pid: int) -> int:
    """The parent of a process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_reports_are_gathered_when_the_host_is_busy(place: Place) -> None:
    """Many ends within moments share messages; the agent stands still meanwhile, as on a host without time for it."""

    async def story() -> None:
        async with Master() as master, Agent(place, master, "--slots", "24") as agent:
            await master.session()
            job = blob(place, 1, "while [ ! -e go ]; do sleep 0.02; done; exec 9>>ended; echo >&9", output="/dev/null")
            for index in range(1, 21):
                await master.report(master.start(job, index=index), "started")
            agent.process.send_signal(signal.SIGSTOP)
            (place.work / "go").touch()
            ended = place.work / "ended"
            await until(lambda: ended.exists() and len(ended.read_text()) == 20)
            agent.process.send_signal(signal.SIGCONT)
            await master.until(lambda: len(ends(master)) == 20)
            assert max(len(message.reports) for message in master.messages) > 1

    run(story())


def test_the_agent_says_something_at_least_every_heartbeat(place: Place) -> None:
    """An idle host sends heartbeats."""

    async def story() -> None:
        async with Master() as master, Agent(place, master):
            await master.session()
            began, count = time.monotonic(), len(master.messages)
            await master.until(lambda: len(master.messages) >= count + 10)
            assert time.monotonic() - began < 30
            plain = [message for message in master.messages if message == Reports(
                sequence=message.sequence, sent_monotonic=message.sent_monotonic)]  # fmt: skip
            assert plain

    run(story())


def test_a_notice_from_the_master_is_confirmed(place: Place) -> None:
    """Only then does the master know that the host ends by itself what is left, in contact or not."""

    async def story() -> None:
        async with Master() as master, Agent(place, master):
            await master.session()
            master.send(host_notice=HostNotice(seconds=3600.0))
            await until(lambda: any(one.HasField("taken_notice") for one in master.messages))
            (taken,) = [one.taken_notice for one in master.messages if one.HasField("taken_notice")]
            assert taken == HostNotice(seconds=3600.0)

    run(story())
