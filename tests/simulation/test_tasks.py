"""Jobs of tasks under every kind of fault: no partial gang, no run started twice, and every job ends."""

import pytest

from lavad.simulator.cluster.scenario import run
from tests.simulation.test_seeds import failures

SEEDS = 40


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, 20))
def test_no_seed_finds_a_bad_history_of_tasks(first: int) -> None:
    """Masters, agents and hosts crash, connections break, users end tasks and jobs."""
    found = failures(range(first, first + 20), check_every=5, task_jobs=6)
    assert found == []


def test_gangs_restart_without_faults() -> None:
    """Failures of tasks alone: each job runs in one attempt until it succeeds or has no restart left."""
    assert run(1, jobs=0, faults=False, task_jobs=8).processes > 20
