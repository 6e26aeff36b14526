"""Several reservations on named hosts: one slice finds some of them, the next ones the others."""

import pytest

from lavad.core.model import JobState
from lavad.core.model.policy import Policy
from lavad.core.model.rules.queues import Queue
from lavad.core.passes import slice_pass
from lavad.core.scheduling.backfill import host_reservations
from tests.builders import Story, a_host, a_job

HOUR = 3600
DEPTH = 3


def a_queue_of_waiting() -> Story:
    """Three jobs each wait for all of a host; each host has one free slot beside its running job."""
    policy = Policy(queues=(Queue("normal", backfill_depth=DEPTH),))
    story = Story(*(a_host(f"n{number}", slots=4) for number in range(DEPTH)), policy=policy)
    for number in range(DEPTH):
        story.submit(a_job(slots=3, one_host=True, memory_mib=1000, run_limit_s=HOUR * (number + 1)))
    story.plan()
    for _ in range(DEPTH):
        story.submit(a_job(slots=4, one_host=True, memory_mib=1000, run_limit_s=9 * HOUR))
    return story


def states_of_two(story: Story) -> tuple[int, int]:
    """States of a job that ends before any of them could start, and of one that would run until all could."""
    short = story.submit(a_job(memory_mib=10, run_limit_s=HOUR // 2))
    long = story.submit(a_job(memory_mib=10, run_limit_s=9 * HOUR))
    return short, long


def test_each_slice_finds_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same jobs start in the end if the search takes long."""
    for steps_a_slice in (1, host_reservations.STEPS_A_SLICE):
        monkeypatch.setattr(host_reservations, "STEPS_A_SLICE", steps_a_slice)
        story = a_queue_of_waiting()
        short, long = states_of_two(story)
        slices, plan = 1, slice_pass(story.cluster, story.worklist, 100_000, story.now)
        while not plan.is_complete:
            assert not plan.starts
            slices, plan = slices + 1, slice_pass(story.cluster, story.worklist, 100_000, story.now)
        assert [start.job for start in plan.starts] == [short]
        assert story.state(long) is JobState.PEND
        assert slices == (DEPTH if steps_a_slice == 1 else 1)


def test_who_is_held_back_is_looked_at_when_his_host_has_room() -> None:
    """Reservations on other hosts do not matter then."""
    story = a_queue_of_waiting()
    _, long = states_of_two(story)
    story.plan()
    assert story.state(long) is JobState.PEND
    story.join(a_host("n9", slots=1))
    story.plan()
    assert story.where(long) == ["n9"]
