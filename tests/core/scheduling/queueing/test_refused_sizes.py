"""Task sizes that fitted no host are not tried again before a host frees resources."""

from lavad.core.model import JobState
from lavad.core.scheduling.queueing.refused_sizes import RefusedSizes
from tests.builders import Story, a_host, a_job


def test_whoever_asks_for_no_less_is_covered() -> None:
    """In slots, memory and GPUs alike; a request for less of any of them is not covered."""
    refused_sizes = RefusedSizes()
    refused_sizes.add((1, 500, 0))
    refused_sizes.add((2, 100, 1))
    assert (1, 500, 0) in refused_sizes
    assert (3, 900, 2) in refused_sizes
    assert (2, 100, 0) not in refused_sizes
    assert (1, 100, 1) not in refused_sizes
    refused_sizes.clear()
    assert (3, 900, 2) not in refused_sizes


def test_room_that_grows_is_seen_by_whoever_asks_next() -> None:
    """A job was refused for lack of memory; when some is freed, one that requests more starts."""
    story = Story(a_host("n1", 2, 1000))
    first = story.run(a_job(memory_mib=1000))
    refused = story.submit(a_job(memory_mib=600))
    story.plan()
    assert story.state(refused) is JobState.PEND
    story.kill(refused)
    story.finished("n1", first)
    story.plan()
    later = story.submit(a_job(memory_mib=700))
    story.plan()
    assert story.state(later) is JobState.STAGING


def test_who_asks_for_less_is_still_looked_at() -> None:
    """Behind jobs that were refused, in the same pass."""
    story = Story(a_host("n1", 4, 1000))
    story.run(a_job(memory_mib=500))
    jobs = [story.submit(a_job(memory_mib=memory)) for memory in (600, 700, 400, 650, 100)]
    story.plan()
    assert [story.where(job) for job in jobs] == [[], [], ["n1"], [], ["n1"]]
