"""A call that waits for a job is notified when its change is durable; an ended call leaves no state behind."""

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from lavad.api.jobs import watch
from lavad.api.jobs.job_service import JobService
from lavad.api.jobs.watch import Watch, Watchers
from lavad.api.privacy import Sight
from lavad.core.model import JobState
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from protos import common_pb2, jobs_pb2
from tests.builders import ANN, BOB, Story, a_cluster, a_job


def watching(story: Story) -> Watchers:
    """Watchers of the story's cluster."""
    return Watchers(story.cluster)


def unread(call: Watch) -> list[tuple[int, int]]:
    """Index and state of each change that the call has not read."""
    found = []
    while (change := call.take()) is not None:
        found.append((change.index, change.state))
    return found


def test_whoever_stops_waiting_is_forgotten() -> None:
    """A job may be held for years while people come and go."""

    async def body() -> None:
        story = a_cluster()
        job = story.submit(a_job(hold=True))
        watchers = watching(story)
        stays = asyncio.create_task(watchers.until_over([job]))
        for _ in range(3):
            goes = asyncio.create_task(watchers.until_over([job]))
            await asyncio.sleep(0)
            goes.cancel()
            await asyncio.gather(goes, return_exceptions=True)
        assert len(watchers._ends[job]) == 1
        watchers.notify(story.kill(job).events)
        await asyncio.wait_for(stays, 1)
        assert not watchers._ends

    asyncio.run(body())


def test_every_change_of_an_array_is_told() -> None:
    """Only its watchers are notified; afterwards no state of them is left."""
    story = a_cluster()
    array, other = story.submit(a_job(array="1-3")), story.submit(a_job(array="1-3"))
    watchers = watching(story)
    with watchers.watching([array]) as hears, watchers.watching([other]) as hears_not:
        watchers.notify(story.kill(array).events)
        assert unread(hears) == [(i, int(JobState.EXIT)) for i in (1, 2, 3)]
        assert not unread(hears_not)
        watchers.close_ended(hears, hears.jobs)
        assert not hears.open
    assert not watchers._watches


def test_a_call_that_does_not_read_keeps_few_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows that it missed some."""
    monkeypatch.setattr(watch, "UNREAD_MAX", 2)
    story = a_cluster()
    array = story.submit(a_job(array="1-3"))
    watchers = watching(story)
    with watchers.watching([array]) as slow:
        watchers.notify(story.kill(array).events)
        assert len(unread(slow)) == 2
        assert slow.has_missed


def test_the_calls_of_a_user_and_their_jobs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is per user; ended calls do not count."""
    monkeypatch.setattr(watch, "CALLS_PER_USER", 2)
    monkeypatch.setattr(watch, "JOBS_PER_USER", 10)
    watchers = watching(a_cluster())
    with watchers.counted("ann", range(8)):
        with (
            pytest.raises(Refused, match="would wait for 11 jobs at once; the limit is 10"),
            watchers.counted("ann", range(3)),
        ):
            pass
        with watchers.counted("ann", [1]):
            with pytest.raises(Refused, match="waits for jobs in 2 calls"), watchers.counted("ann", [1]):
                pass
            with watchers.counted("bob", range(10)):
                pass
    assert not watchers._of_user


def test_numbers_that_are_not_given_yet_are_not_watched() -> None:
    """They may become jobs of other users, hidden from the caller (SECURE_JOB_INFO_LEVEL)."""
    story = a_cluster(policy=Policy(job_info_level=4))
    own, other = story.submit(a_job()), story.submit(a_job(caller=BOB))
    service = cast("JobService", SimpleNamespace(engine=SimpleNamespace(cluster=story.cluster)))
    request = jobs_pb2.WatchRequest(refs=[common_pb2.JobRef(job=job) for job in (own, other, other + 1)])
    assert JobService._watchable(service, request, Sight(ANN, story.cluster.policy)) == [own]
