"""Long lists: whoever asks, and however little is found, the others are served meanwhile."""

import asyncio

from lavad.api import listing
from lavad.core.ranges import Ranges
from protos import jobs_pb2 as pb
from tests.builders import ROOT, Story, a_cluster, a_job

MANY = listing.LOOKED_AT * 2


def turns_while(story: Story, wanted: pb.JobFilter) -> tuple[int, int]:
    """How many items are found, and how often somebody else has a turn meanwhile."""

    async def body() -> tuple[int, int]:
        turns, found = 0, 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        await asyncio.sleep(0)
        turns = 0
        async for _ in listing.Selection(wanted, ROOT, story.cluster).items([]):
            found += 1
        counting.cancel()
        return found, turns

    return asyncio.run(body())


def test_a_search_that_finds_nothing() -> None:
    """All jobs are looked at, a part at a time."""
    story = a_cluster()
    number = story.submit(a_job(hold=True))
    record = story.cluster.jobs[number]
    story.cluster.jobs |= dict.fromkeys(range(number, MANY), record)
    assert turns_while(story, pb.JobFilter(user="nobody")) == (0, 1)
    assert turns_while(story, pb.JobFilter(user="all")) == (MANY - number, 1)


def test_the_elements_of_an_array() -> None:
    """Also of one that is named."""
    story = a_cluster()
    array = story.submit(a_job(array=f"1-{MANY}", hold=True))
    story.kill(array)
    assert turns_while(story, pb.JobFilter(user="all")) == (0, 2)
    named = pb.JobFilter()
    named.refs.add(job=array)
    assert turns_while(story, named) == (MANY, 2)
    assert story.array(array).killed == Ranges.parse(f"1-{MANY}")
