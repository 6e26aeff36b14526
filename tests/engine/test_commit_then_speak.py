"""The engine sends no order, reply or notification before the events behind it are durable."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.events import Event
from lavad.core.model import JobState, Key
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.notices import RevokeOrder
from lavad.core.orders import ForgetOrder, ReleaseOrder, StageOrder
from lavad.core.passes import slice_pass
from lavad.core.scheduling.worklist import Worklist
from lavad.engine import PORTION, Engine
from tests.builders import ANN, a_host, a_job


class Disk:
    """A store that writes when the test decides, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.waiting: list[Callable[[], None]] = []
        self.sent: list[Any] = []
        self.heard: list[Event] = []
        self.engine = Engine(Cluster(Policy()), self.append, self.sent.extend, lambda: 1000.0)
        self.engine.listeners.append(self.heard.extend)

    def append(self, events: list[Event], durable: Callable[[], None]) -> None:
        """Takes a batch."""
        self.events.extend(events)
        self.waiting.append(durable)

    def write(self) -> None:
        """Write all pending batches."""
        waiting, self.waiting = self.waiting, []
        for durable in waiting:
            durable()


def in_a_loop(body: Callable[[Disk], Any]) -> None:
    """Futures want a running loop."""

    async def run() -> None:
        await body(Disk())

    asyncio.run(run())


def test_a_reply_waits_for_its_events() -> None:
    """A submit is acknowledged when its job can't be lost any more."""

    async def body(disk: Disk) -> None:
        future = disk.engine.execute(c.SubmitJob(a_job(), ANN))
        assert disk.events
        await asyncio.sleep(0)
        assert not future.done()
        assert not disk.heard
        disk.write()
        assert (await future).job == 1
        assert disk.heard == disk.events

    in_a_loop(body)


def test_an_order_waits_for_its_events() -> None:
    """An agent forgets a job's end only after the master can't forget it."""

    async def body(disk: Disk) -> None:
        disk.engine.post([c.AgentHello(a_host("n1"), 1, (c.HeldAttempt(Key(7, 0, 1)),))])
        assert not disk.sent
        disk.write()
        assert [(type(order), order.host) for order in disk.sent] == [(RevokeOrder, "n1"), (ReleaseOrder, "n1")]

    in_a_loop(body)


def test_what_changes_nothing_still_waits_its_turn() -> None:
    """A retry of a submit that is not durable yet is no sooner acknowledged than the first."""

    async def body(disk: Disk) -> None:
        first = disk.engine.execute(c.SubmitJob(a_job(request_id=b"one"), ANN))
        second = disk.engine.execute(c.SubmitJob(a_job(request_id=b"one"), ANN))
        await asyncio.sleep(0)
        assert not second.done()
        disk.write()
        assert (await first).job == (await second).job

    in_a_loop(body)


def test_a_refusal_comes_at_once() -> None:
    """It depends on no event, and no row is written."""

    async def body(disk: Disk) -> None:
        with pytest.raises(Refused):
            disk.engine.execute(c.KillJob(c.Target(7), ANN))
        assert not disk.waiting

    in_a_loop(body)


def test_an_attempt_that_has_ended_meanwhile_is_not_staged() -> None:
    """After an adoption its host reports the end at once, forgets it, and would start it a second time."""

    async def body(disk: Disk) -> None:
        cluster = disk.engine.cluster
        disk.engine.post([c.AgentHello(a_host(), 1)])
        disk.engine.post([c.SubmitJob(a_job(), ANN)])
        disk.engine.post([c.ApplyPlan(slice_pass(cluster, Worklist(), 100, 1000.0))])
        disk.engine.post([c.ReportFinished("n1", Key(1, 0, 1), 0, 1000.0, also_released=True)])
        disk.write()
        assert cluster.jobs[1].state is JobState.DONE
        assert [order for order in disk.sent if isinstance(order, StageOrder)] == []
        assert any(isinstance(order, ForgetOrder) for order in disk.sent)

    in_a_loop(body)


def test_many_commands_let_others_in_between_and_are_answered_together() -> None:
    """Each portion is appended while the next is to come; the answers, refusals too, wait for the last one."""

    async def body(disk: Disk) -> None:
        submissions = [c.SubmitJob(a_job(hold=True), ANN) for _ in range(PORTION + 1)]
        disk.engine.post(submissions)
        targets = [*range(1, PORTION + 2), 10 * PORTION]
        killing = asyncio.create_task(disk.engine.execute_all([c.KillJob(c.Target(job), ANN) for job in targets]))
        await asyncio.sleep(0)
        assert [len(disk.waiting), disk.engine.cluster.jobs[PORTION + 1].state] == [2, JobState.PSUSP]
        disk.write()
        await asyncio.sleep(0)
        assert disk.engine.cluster.jobs[PORTION + 1].state is JobState.EXIT
        await asyncio.sleep(0)
        assert not killing.done()
        disk.write()
        answers = await killing
        assert answers[:-1] == [""] * (PORTION + 1)
        assert isinstance(answers[-1], Refused)

    in_a_loop(body)
