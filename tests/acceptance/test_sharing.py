"""Fairshare with real processes."""

import re
from collections.abc import Iterator

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

USERS = """
    Begin UserGroup
    GROUP_NAME   GROUP_MEMBER
    art          (all)
    bio          (all)
    End UserGroup
"""
QUEUES = """
    Begin Queue
    QUEUE_NAME = normal
    PRIORITY   = 30
    End Queue

    Begin Queue
    QUEUE_NAME = fair
    PRIORITY   = 30
    FAIRSHARE  = USER_SHARES[[art,1] [bio,1]]
    End Queue

    Begin Queue
    QUEUE_NAME = single
    PRIORITY   = 30
    UJOB_LIMIT = 1
    End Queue
"""
PARAMS = """
    Begin Parameters
    DEFAULT_QUEUE     = normal
    MAX_USER_PRIORITY = 100
    End Parameters
"""
FILES = {
    "lsb.users": USERS,
    "lsb.queues": QUEUES,
    "lsb.params": PARAMS,
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two hosts of two slots."""
    with a_cluster(tmp_path_factory.mktemp("sharing") / "D", 2, 2, lsf_files=FILES) as made:
        yield made


@pytest.fixture(autouse=True)
def _no_jobs_left(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.clear()


def _running(cluster: Cluster, job: int) -> int:
    return sum(state == "RUN" for state, _ in cluster.states(job).values())


def _ended(cluster: Cluster, *arrays: int) -> list[int]:
    """Number of DONE elements of each array, at one moment."""
    header, *rows = cluster.run("bjobs", "-A", *map(str, arrays)).stdout.splitlines()
    place = header.split().index("DONE") - len(header.split())  # from the end: names may hold blanks
    ended = {int(re.match(r"\d+", row)[0]): int(row.split()[place]) for row in rows}  # type: ignore[index]
    return [ended[array] for array in arrays]


def test_two_groups_get_the_same_whoever_floods(cluster: Cluster) -> None:
    """One group submits ten times as much, and first: while both have pending jobs each gets half, within 5 %."""
    flood = cluster.submit("-q", "fair", "-G", "art", "-J", "flood[1-1000]", "sleep 0.1")
    wait_for(lambda: _ended(cluster, flood)[0] >= 4, 60, "the flood to run")
    other = cluster.submit("-q", "fair", "-G", "bio", "-J", "other[1-200]", "sleep 0.1")
    looks: list[list[int]] = []

    def has_reached(count: int) -> bool:
        looks.append(_ended(cluster, other, flood))
        return looks[-1][0] >= count

    wait_for(lambda: has_reached(40), 300, "the other group to catch up")
    before = looks[-1]
    wait_for(lambda: has_reached(160), 300, "most of the other group's jobs to end")
    mine, theirs = (now - then for now, then in zip(looks[-1], before, strict=True))
    assert abs(mine - theirs) <= 0.05 * (mine + theirs) + 4  # this many may be in progress at a sample
    tree = cluster.run("bqueues", "-r", "fair").stdout
    assert "SHARE_INFO_FOR: fair/" in tree
    assert [line.split()[:2] for line in tree.splitlines() if line.split()[:1] in (["art"], ["bio"])] == [
        ["art", "1"], ["bio", "1"]
    ]  # fmt: skip


def test_a_job_moves_to_the_top(cluster: Cluster) -> None:
    """btop, and the user-assigned priority: the order of pending jobs."""
    running = cluster.submit("-q", "single", "sleep 300")
    wait_for(lambda: _running(cluster, running), 60, "the first job to run")
    first, second = (cluster.submit("-q", "single", "sleep 300") for _ in range(2))
    urgent = cluster.submit("-q", "single", "-sp", "90", "sleep 300")
    said = cluster.run("btop", str(second))
    assert "has been moved to position 1 from top" in said.stdout
    for ended, next_one in ((running, urgent), (urgent, second), (second, first)):
        cluster.run("bkill", str(ended))
        wait_for(lambda wanted=next_one: _running(cluster, wanted), 60, f"job {next_one} to run")  # type: ignore[misc]
