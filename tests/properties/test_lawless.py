"""Under any combination of events and any reports of agents the master runs on, and its accounts are right."""

import pytest

from tests.fakes.lawless import Lawless

STEPS = 150


@pytest.mark.parametrize("seed", range(6))
def test_everything_at_once(seed: int) -> None:
    """Windows, loads, silences, new rules and restarts of the master meet in any order."""
    world = Lawless(seed)
    world.begin()
    world.live(STEPS)
    assert world.events


@pytest.mark.parametrize("seed", range(6))
def test_agents_that_lie(seed: int) -> None:
    """About their own attempts and about those of other hosts; some hold the same attempt twice."""
    world = Lawless(seed)
    world.lies = True
    world.begin()
    world.live(STEPS)
    assert world.events
