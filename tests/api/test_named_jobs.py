"""Jobs that a command names by their ids, and options beside them: only jobs that the options admit are meant."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from lavad.api import identity
from lavad.api.jobs.job_service import JobService
from lavad.core import commands as c
from lavad.core.events import Event
from lavad.core.model import JobState
from lavad.core.model.rules.applications import Application
from lavad.engine import Engine
from lavad.settings import Settings
from protos import jobs_pb2 as pb
from tests.builders import ROOT, Story, a_cluster, a_host, a_job


def _three_jobs() -> Story:
    """Job 1 of a group and a profile, job 2 of neither, and an array of which one element runs on each host."""
    story = a_cluster(a_host("h1", 3), a_host("h2", 1))
    policy = replace(story.cluster.policy, applications={"md": Application("md")})
    story.do(c.Reconfigure(policy))
    story.submit(a_job(name="one", job_group="/g", application="md", hosts=("h1",)))
    story.submit(a_job(name="two", project="x", hosts=("h1",)))
    story.submit(a_job(name="many", array="1-4"))
    story.plan()
    return story


def _killed(monkeypatch: pytest.MonkeyPatch, story: Story, wanted: pb.JobFilter) -> list[str]:
    """Kills all three at once by their ids with other options: ``job: error`` of each."""

    async def caller(context: Any, settings: Settings) -> c.Caller:
        return ROOT

    def append(events: list[Event], durable: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(durable)

    async def body() -> pb.SignalReply:
        unused = cast("Any", None)
        engine = Engine(story.cluster, append, lambda orders: None, lambda: story.now)
        service = JobService(engine, unused, unused, unused, unused, unused, unused, unused)
        return await service.Signal(request, unused)

    monkeypatch.setattr(identity, "caller", caller)
    request = pb.SignalRequest(filter=wanted, action=pb.REMOVE)
    for job in (1, 2, 3):
        request.filter.refs.add(job=job)
    return [f"{one.job}: {one.error}" for one in asyncio.run(body()).results]


NONE = "No matching job found"


@pytest.mark.parametrize(
    ("wanted", "admitted"),
    [
        (pb.JobFilter(user="all"), {1, 2, 3}),
        (pb.JobFilter(user="all", job_group="/g"), {1}),
        (pb.JobFilter(user="all", application="md"), {1}),
        (pb.JobFilter(user="all", queue="normal"), {1, 2, 3}),
        (pb.JobFilter(user="all", queue="night"), set()),
        (pb.JobFilter(user="bob"), set()),
        (pb.JobFilter(user="all", name="t*"), {2}),
        (pb.JobFilter(user="all", host="h1"), {1, 2, 3}),
        (pb.JobFilter(user="all", host="h2"), {3}),
    ],
)
def test_options_beside_ids_leave_out_jobs(
    monkeypatch: pytest.MonkeyPatch, wanted: pb.JobFilter, admitted: set[int]
) -> None:
    """Each id is answered; what the options exclude is left alone."""
    story = _three_jobs()
    assert _killed(monkeypatch, story, wanted) == [f"{job}: {'' if job in admitted else NONE}" for job in (1, 2, 3)]


def test_elements_on_a_host_are_meant_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the array only what runs on that host is killed; -J with an index names that element."""
    story = _three_jobs()
    _killed(monkeypatch, story, pb.JobFilter(user="all", host="h2"))
    states = [story.array(3).state_of(index) for index in range(1, 5)]
    assert sorted(filter(None, states)) == [JobState.PEND, JobState.PEND, JobState.STAGING, JobState.EXIT]
    _killed(monkeypatch, story, pb.JobFilter(user="all", name="many[4]"))
    assert [story.array(3).state_of(index) for index in (3, 4)] == [JobState.PEND, JobState.EXIT]
