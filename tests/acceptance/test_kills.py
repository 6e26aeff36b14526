"""SIGKILL of the master and of agents while hundreds of jobs run: none lost, none twice, every exit code right."""

import os
import random
from pathlib import Path

import pytest

from tests.acceptance import markers
from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

JOBS = int(os.environ.get("LAVA_KILL_JOBS", "150"))
KILLS = int(os.environ.get("LAVA_KILLS", "6"))  # of the master, and as many of agents
SEED = int(os.environ.get("LAVA_KILL_SEED", "20261121"))


def _unended(cluster: Cluster, job: int) -> int:
    counts = cluster.counts(job)
    return counts["NJOBS"] - counts["DONE"] - counts["EXIT"]


def _check(cluster: Cluster, job: int, path: Path) -> None:
    found = markers.starts(markers.read(path))
    twice = {key: count for key, count in found.items() if count != 1}
    assert not twice, f"started more than once: {twice}"
    states = cluster.states(job)
    expected = {index: ("EXIT" if index % 7 else "DONE", index % 7) for index in range(1, JOBS + 1)}
    assert states == expected
    assert set(found) == {(job, index) for index in expected}


def test_random_kills_lose_and_repeat_nothing(tmp_path: Path) -> None:
    """Master and agents die at random instants under an array of short jobs; all elements run once, codes are exact."""
    rng = random.Random(SEED)
    path = tmp_path / "markers"
    with a_cluster(tmp_path / "cluster", 3, 4) as cluster:
        hosts = cluster.hosts()
        text = markers.script(path, "i * 7 % 4", "i % 7")
        job = cluster.submit("-J", f"kills[1-{JOBS}]", "-o", "/dev/null", text)
        victims = ["lavad"] * KILLS + [f"agent-{rng.choice(hosts)}" for _ in range(KILLS)]
        rng.shuffle(victims)
        for victim in victims:
            pause = rng.uniform(0.1, 1.5)
            wait_for(lambda pause=pause: _sleep(pause), 5, "the next kill")
            cluster.kill(victim)
            cluster.up()
        wait_for(lambda: _unended(cluster, job) == 0, 240, "all elements to end", 0.5)
        _check(cluster, job, path)


def _sleep(seconds: float) -> bool:
    import time

    time.sleep(seconds)
    return True
