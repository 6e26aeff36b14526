"""bwait in the master: a verdict as soon as a job changes it, also about jobs that memory has forgotten."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lavad.api.jobs import waiting
from lavad.api.jobs.waiting import Waiters
from lavad.api.jobs.watch import Watchers
from lavad.core import commands as c
from lavad.core.events import Event
from lavad.core.model.reasons import Refused
from lavad.engine import Engine
from protos import jobs_pb2 as pb
from tests.builders import ANN, Story, a_cluster, a_host, a_job


class _Room:
    """Waiting calls, and a master whose events are durable at once."""

    def __init__(self, story: Story) -> None:
        def append(events: list[Event], durable: Callable[[], None]) -> None:
            asyncio.get_running_loop().call_soon(durable)

        self.engine = Engine(story.cluster, append, lambda orders: None, lambda: story.now)
        stored: Any = SimpleNamespace(store=SimpleNamespace(flush=self.flush))
        self.waiters = Waiters(self.engine, stored, Watchers(story.cluster))

    async def flush(self) -> None:
        """All is durable."""

    async def begin(self, condition: str) -> "asyncio.Task[pb.WaitReply]":
        """A call that the master has registered."""
        replies = self.waiters.replies(pb.WaitRequest(condition=condition), ANN)
        assert (await anext(replies)).verdict == pb.WAITING
        return cast("asyncio.Task[pb.WaitReply]", asyncio.create_task(cast("Any", anext(replies))))

    async def kill(self, job: int) -> None:
        """A job ends."""
        await self.engine.execute(c.KillJob(c.Target(job), ANN))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PAUSE_S", 0.0)


def test_a_verdict_comes_with_the_change_that_decides_it() -> None:
    """Met, or never to be met; of a job group, too."""
    story = a_cluster(a_host())
    for group in ("", "", "/g", "/g"):
        story.submit(a_job(hold=True, job_group=group))

    async def body() -> None:
        room = _Room(story)
        both, done = await room.begin("ended(1) && ended(2)"), await room.begin("done(1)")
        group = await room.begin('numexit("/g", *)')
        await room.kill(1)
        assert (await asyncio.wait_for(done, 5)).verdict == pb.NEVER_HOLDS
        story.cluster.jobs.pop(1)  # as after CLEAN_PERIOD
        await room.kill(3)
        assert not both.done()
        assert not group.done()
        await room.kill(2)
        assert (await asyncio.wait_for(both, 5)).verdict == pb.HOLDS
        await room.kill(4)
        assert (await asyncio.wait_for(group, 5)).verdict == pb.HOLDS
        assert not room.waiters._by_job
        assert not room.waiters._of_groups

    asyncio.run(body())


def test_what_holds_already_is_answered_at_once_and_what_is_wrong_refused() -> None:
    """As by bsub -w."""
    story = a_cluster(a_host())
    story.kill(story.submit(a_job(hold=True)))

    async def body() -> None:
        room = _Room(story)
        assert (await asyncio.wait_for(await room.begin("exit(1)"), 5)).verdict == pb.HOLDS
        with pytest.raises(Refused, match="Job <9>: No matching job found"):
            await room.begin("done(9)")
        with pytest.raises(Refused, match="syntax error at character 6"):
            await room.begin("done(")
        with pytest.raises(Refused, match="longer than 4094 characters"):
            await room.begin("x" * 5000)

    asyncio.run(body())
