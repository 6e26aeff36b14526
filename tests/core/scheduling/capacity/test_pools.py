"""The maximum of a capacity pool at the start of jobs."""

from lavad.core.model import JobState
from lavad.core.model.allocation import slots_of
from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import Queue
from lavad.core.model.rules.resources import Pool
from tests.builders import Story, a_cluster, a_job

LAB = Names(False, frozenset({"ann"}))


def a_site(**largest: float) -> Story:
    """Two hosts of four slots and 8,000 MiB; ann's jobs are of a pool."""
    pool = Pool("lab", LAB, largest=largest)
    return a_cluster(policy=Policy(queues=(Queue("normal"),), pools=(pool,)))


def test_a_range_beyond_the_maximum_starts_with_its_least_size() -> None:
    """`-n 1,8` in a pool of at most four slots has one; the next one has another."""
    story = a_site(slots=4.0)
    jobs = [story.submit(a_job(tasks_min=1, tasks_max=8)) for _ in range(2)]
    story.plan()
    assert [slots_of(story.cluster.attempts[story.key(job)].booked) for job in jobs] == [1, 1]


def test_a_range_within_the_maximum_has_all_of_it() -> None:
    """The same job in a pool of eight."""
    story = a_site(slots=8.0)
    job = story.submit(a_job(tasks_min=1, tasks_max=8))
    story.plan()
    assert slots_of(story.cluster.attempts[story.key(job)].booked) == 8


def test_a_least_size_beyond_the_maximum_waits() -> None:
    """Nothing of the pool's maximum is exceeded."""
    story = a_site(slots=4.0)
    job = story.submit(a_job(tasks_min=5, tasks_max=8))
    story.plan()
    assert story.state(job) is JobState.PEND
