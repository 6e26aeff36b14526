"""Hosts as columns: allocations stay, whatever facts the host reports."""

from lavad.core import invariants
from lavad.core.model import HostShare
from lavad.core.state.hosts.table import HostTable
from tests.builders import a_cluster, a_host, a_job


def test_a_gpu_that_went_away_while_it_was_held_is_not_free_afterwards() -> None:
    """A host of two GPUs comes back with one while both are held; later it has both again."""
    table = HostTable()
    two, one = a_host("n1", gpus=2), a_host("n1", gpus=1)
    row = table.add(two)
    share = HostShare("n1", 1, 0, (0, 1))
    table.take(row, share, whole=False)
    table.resize(row, two, one)
    assert table.gpu_free[row] == 0
    table.give_back(row, share, whole=False)
    assert table.gpu_free[row] == 0b1
    table.take(row, HostShare("n1", 1, 0, (0,)), whole=False)
    table.resize(row, one, two)
    assert table.gpu_free[row] == 0b10


def test_a_host_that_shrinks_under_its_jobs_takes_nothing_more() -> None:
    """None starts until enough has ended."""
    story = a_cluster(a_host("n1", slots=4))
    keys = [story.run(a_job()) for _ in range(3)]
    story.join(a_host("n1", slots=2), tuple(story.runs_there("n1", key) for key in keys))
    waiting = story.submit(a_job())
    story.plan()
    assert story.where(waiting) == []
    for key in keys[:2]:
        story.finished("n1", key)
    story.plan()
    assert story.where(waiting) == ["n1"]


def test_rows_beyond_the_first_growth() -> None:
    """The columns grow with the hosts."""
    story = a_cluster(*(a_host(f"n{number}", slots=1) for number in range(1, 150)))
    job = story.submit(a_job(149))
    story.plan()
    assert len(story.where(job)) == 149
    invariants.check(story.cluster)
