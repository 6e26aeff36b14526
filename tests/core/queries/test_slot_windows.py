"""Free slots and their windows beside reservations: bslots."""

from collections.abc import Sequence
from typing import Any

import pytest

from lavad.core.model.policy import Policy
from lavad.core.model.rules.queues import Queue
from lavad.core.queries.slot_windows import slot_windows
from tests.builders import Story, a_cluster, a_host, a_job

MINUTE = 60
HOUR = 3600
NEVER = float("inf")


def a_story(*hosts: Any, depth: int = 9) -> Story:
    """A cluster whose queue keeps so many reservations."""
    return a_cluster(*hosts, policy=Policy(queues=(Queue("normal", 30, backfill_depth=depth),)))


def found(story: Story, hosts: Sequence[str] = ("n1", "n2")) -> list[tuple[float, dict[str, int]]]:
    """Seconds and slots by host of each window."""
    windows = slot_windows(story.cluster, story.worklist.reservation_table, hosts, story.now)
    return [(one.until - story.now, dict(one.hosts)) for one in windows]


def test_free_slots_of_an_idle_cluster_are_free_for_ever() -> None:
    """Closed hosts and hosts that are not asked about do not count."""
    story = a_story(a_host("n1", 4), a_host("n2", 2))
    assert found(story) == [(NEVER, {"n1": 4, "n2": 2})]
    assert found(story, ["n2", "gone"]) == [(NEVER, {"n2": 2})]
    story.run(a_job(4, hosts=("n1",)))
    assert found(story) == [(NEVER, {"n2": 2})]
    story.run(a_job(2))
    assert found(story) == []


@pytest.mark.parametrize("asks", [{}, {"memory_mib": 10}], ids=["slots", "memory"])
def test_a_reservation_ends_the_window_of_the_slots_it_wants(asks: dict[str, Any]) -> None:
    """Three of six slots are busy for ten minutes, and the job that waits needs five then: one is free for ever."""
    story = a_story(a_host("n1", 4), a_host("n2", 2))
    story.run(a_job(3, hosts=("n1",), run_limit_s=10 * MINUTE))
    story.submit(a_job(5, run_limit_s=HOUR, **asks))
    story.submit(a_job(3, run_limit_s=HOUR))
    story.plan()
    assert [(length, sum(slots.values())) for length, slots in found(story)] == [(NEVER, 1), (10 * MINUTE, 3)]


def test_an_advance_reservation_ends_a_window_too() -> None:
    """Slots that it will have are free until then."""
    story = a_story(a_host("n1", 4), a_host("n2", 2))
    story.reserve(3, begin=HOUR, end=2 * HOUR, hosts=("n1",))
    assert found(story) == [(NEVER, {"n1": 1, "n2": 2}), (HOUR, {"n1": 4, "n2": 2})]
