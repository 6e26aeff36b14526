"""Signals to more jobs than are executed at once: jobs are started between two portions of them."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from lavad.api import identity
from lavad.api.jobs.job_service import JobService
from lavad.core import commands as c
from lavad.core.events import Event
from lavad.core.model import JobState
from lavad.engine import PORTION, Engine
from lavad.settings import Settings
from protos import jobs_pb2 as pb
from tests.builders import ANN, Story, a_cluster, a_host, a_job


def signalled(monkeypatch: pytest.MonkeyPatch, story: Story, request: pb.SignalRequest) -> pb.SignalReply:
    """Answer to a signal; whenever others have their turn, killed attempts end and free hosts get jobs."""

    async def caller(context: Any, settings: Settings) -> c.Caller:
        return ANN

    def append(events: list[Event], durable: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(durable)

    async def scheduling() -> None:
        while True:
            for key, attempt in list(story.cluster.attempts.items()):
                if attempt.kill_reason:
                    story.finished(attempt.lead, key, 15)
            story.plan()
            await asyncio.sleep(0)

    async def body() -> pb.SignalReply:
        unused = cast("Any", None)
        engine = Engine(story.cluster, append, lambda orders: None, lambda: story.now)
        service = JobService(engine, unused, unused, unused, unused, unused, unused, unused)
        others = asyncio.create_task(scheduling())
        reply = await service.Signal(request, unused)
        others.cancel()
        return reply

    monkeypatch.setattr(identity, "caller", caller)
    return asyncio.run(body())


def test_no_job_starts_that_is_to_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for the end of an older one, on which it depends, nor for its hosts; answers are in the order of ids."""
    story = a_cluster(a_host("n1", 2))
    runs, parent = story.run(a_job()), story.submit(a_job(hold=True))
    Engine(story.cluster, lambda *_: None, lambda _: None, lambda: story.now).post(
        c.SubmitJob(a_job(hold=True), ANN) for _ in range(2 * PORTION)
    )
    late = [story.submit(a_job(dependency=f"ended({parent})")), story.submit(a_job(2))]
    reply = signalled(monkeypatch, story, pb.SignalRequest(filter=pb.JobFilter(user="all")))
    assert [one.job for one in reply.results] == [*range(runs.job, late[1] + 1)]
    assert not any(one.error for one in reply.results)
    assert [story.job(job).attempts for job in late] == [0, 0]
    assert story.state(runs.job) is JobState.EXIT


def test_jobs_are_resumed_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest ones start."""
    story = a_cluster(a_host("n1", 2))
    held = [story.submit(a_job(hold=True)) for _ in range(PORTION + 2)]
    signalled(monkeypatch, story, pb.SignalRequest(filter=pb.JobFilter(user="all"), action=pb.RESUME))
    story.plan()
    assert [job for job in held if story.state(job) is not JobState.PEND] == held[:2]
