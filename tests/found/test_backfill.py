"""Backfilling in queues that also reserve slots, as LSF's own examples configure them."""

from dataclasses import replace

import pytest

from lavad.core.model import JobState
from lavad.core.model.policy import Policy
from lavad.core.queries.start_estimate import forecast
from lavad.core.scheduling.queueing.ordering import Ranking
from tests.builders import Story, a_host, a_job, in_one_go

MINUTE = 60


def a_story(*hosts: str, memory: bool = False, depth: int = 1) -> Story:
    """Hosts of four slots; the queue backfills, and reserves slots (and memory) for twenty minutes."""
    (normal,) = (queue for queue in Policy().queues if queue.name == "normal")
    rules = replace(normal, backfill_depth=depth, slot_reserve_s=20.0 * MINUTE, reserves_memory=memory)
    return Story(*(a_host(name) for name in hosts), policy=Policy(queues=(rules,)))


@pytest.mark.parametrize("memory", [False, True], ids=["SLOT_RESERVE", "RESOURCE_RESERVE"])
@pytest.mark.parametrize("where", ["", "n1"], ids=["anywhere", "on a certain host"])
def test_a_short_job_goes_before_a_blocked_one_although_its_slots_are_reserved(memory: bool, where: str) -> None:
    """A job that ends before the reserved slots are needed backfills them; a longer one is pending."""
    story = a_story("n1", memory=memory)
    hosts = (where,) if where else ()
    story.run(a_job(3, run_limit_s=5 * MINUTE))
    wide = story.submit(a_job(4, run_limit_s=5 * MINUTE, hosts=hosts))
    story.plan()
    long = story.submit(a_job(1, run_limit_s=10 * MINUTE))
    unlimited = story.submit(a_job(1))
    short = story.submit(a_job(1, run_limit_s=MINUTE))
    story.plan()
    assert story.state(short) is JobState.STAGING
    assert [story.state(job) for job in (wide, long, unlimited)] == [JobState.PEND] * 3


def test_the_start_of_a_job_with_reserved_slots_is_foreseen() -> None:
    """The estimated start is the run limit of the running jobs."""
    story = a_story("n1")
    story.run(a_job(3, run_limit_s=5 * MINUTE))
    wide = story.submit(a_job(4, run_limit_s=5 * MINUTE))
    story.plan()
    ranking = Ranking(story.cluster, story.now)
    found = in_one_go(forecast(story.cluster, ranking, story.cluster.jobs[wide]))
    assert found.start_at == story.now + 5 * MINUTE


@pytest.mark.parametrize("where", ["", "n1 n2"], ids=["anywhere", "on certain hosts"])
def test_slots_are_kept_where_nobody_can_say_when_the_job_starts(where: str) -> None:
    """Running jobs have no run limit: without reserved slots a stream of one-slot jobs would starve the wide one."""
    story = a_story("n1", "n2")
    keys = [story.run(a_job(1)) for _ in range(8)]
    wide = story.submit(a_job(6, hosts=tuple(where.split())))
    story.plan()
    behind = [story.submit(a_job(1, run_limit_s=MINUTE)) for _ in range(8)]
    for key in keys[:6]:
        lead = story.cluster.attempts[key].lead
        story.finished(lead, key)
        story.plan()
    assert story.state(wide) is JobState.STAGING
    assert {story.state(job) for job in behind} == {JobState.PEND}


def test_the_estimate_of_a_job_counts_what_it_has_reserved() -> None:
    """In a queue without backfill a job's reserved slots count for its own estimate, too."""
    story = a_story("n1", depth=0)
    for _ in range(3):
        story.run(a_job(1, run_limit_s=5 * MINUTE))
    wide = story.submit(a_job(4, run_limit_s=5 * MINUTE))
    story.plan()
    assert story.cluster.claims
    ranking = Ranking(story.cluster, story.now)
    found = in_one_go(forecast(story.cluster, ranking, story.cluster.jobs[wide]))
    assert found.start_at == story.now + 5 * MINUTE
