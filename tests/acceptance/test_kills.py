"""SIGKILL of the master and of agents while hundreds of jobs run: none lost, none twice, every exit code right."""

import os
import random
import time
from pathlib import Path

import pytest

from tests.acceptance import markers
from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

JOBS = int(os.environ.get("LAVA_KILL_JOBS", "40"))  # at least; more follow while there are kills to come
KILLS = int(os.environ.get("LAVA_KILLS", "3"))  # of the master, and as many of agents
SEED = int(os.environ.get("LAVA_KILL_SEED", "20261121"))
HOSTS, SLOTS = 3, 2
MORE = 20


class Work:
    """Arrays of short jobs with exit code f(index), large enough that some always run."""

    def __init__(self, cluster: Cluster, path: Path) -> None:
        self._cluster = cluster
        self._path = path
        self._sizes: dict[int, int] = {}

    def submit(self, size: int) -> None:
        """One more array."""
        text = markers.script(self._path, "i * 7 % 4", "i % 7")
        self._sizes[self._cluster.submit("-J", f"kills[1-{size}]", "-o", "/dev/null", text)] = size

    def unended(self) -> int:
        """Elements that have not ended as far as the master knows."""
        counts = [self._cluster.counts(job) for job in self._sizes]
        return sum(count["NJOBS"] - count["DONE"] - count["EXIT"] for count in counts)

    def check(self) -> int:
        """Check that every element started once and has its own exit code; their number."""
        found = markers.starts(markers.read(self._path))
        twice = {key: count for key, count in found.items() if count != 1}
        assert not twice, f"started more than once: {twice}"
        for job, size in self._sizes.items():
            expected = {index: ("EXIT" if index % 7 else "DONE", index % 7) for index in range(1, size + 1)}
            assert self._cluster.states(job) == expected
        assert set(found) == {(job, index) for job, size in self._sizes.items() for index in range(1, size + 1)}
        return len(found)


def test_random_kills_lose_and_repeat_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Master and agents die at random instants under arrays of short jobs; all elements run once, codes are exact."""
    rng = random.Random(SEED)
    with a_cluster(tmp_path / "cluster", HOSTS, SLOTS) as cluster:
        hosts = cluster.hosts()
        work = Work(cluster, tmp_path / "markers")
        work.submit(JOBS)
        victims = ["lavad"] * KILLS + [f"agent-{rng.choice(hosts)}" for _ in range(KILLS)]
        rng.shuffle(victims)
        for victim in victims:
            time.sleep(rng.uniform(0.1, 1.5))  # a moment without any event
            cluster.kill(victim)
            cluster.up()
            if work.unended() < 2 * HOSTS * SLOTS:
                work.submit(MORE)
        wait_for(lambda: work.unended() == 0, 240 + JOBS, "all elements to end", 0.5)
        elements = work.check()
    with capsys.disabled():
        print(f"\n{len(victims)} kills, {elements} jobs: 0 lost, 0 twice, all exit codes right")
