"""Whoever waits for a job hears of it when it is durable; whoever stops waiting leaves nothing behind."""

import asyncio

from lavad.api.watch import Watchers
from lavad.core.model import JobState
from tests.builders import Story, a_cluster, a_job


def watching(story: Story) -> Watchers:
    """Watchers of the story's cluster."""
    return Watchers(story.cluster)


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
    """To its watchers, and to nobody else."""

    async def body() -> None:
        story = a_cluster()
        array, other = story.submit(a_job(array="1-3")), story.submit(a_job(array="1-3"))
        watchers = watching(story)
        hears, hears_not = watchers.add([array]), watchers.add([other])
        watchers.notify(story.kill(array).events)
        changes = [hears.get_nowait() for _ in range(hears.qsize())]
        assert [(change.index, change.state) for change in changes] == [(i, int(JobState.EXIT)) for i in (1, 2, 3)]
        assert hears_not.empty()

    asyncio.run(body())
