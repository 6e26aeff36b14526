"""Changes of the cluster between two slices: taken at once, and never altered afterwards."""

from lavad.core import commands as c
from lavad.core.model import JobState
from tests.builders import ROOT, Story, a_host, a_job


def test_what_was_taken_stays_as_it_was() -> None:
    """Later changes go into the next ones; each is taken once."""
    story = Story(a_host("n1", 2))
    story.submit(a_job())
    changes = story.cluster.take_changes()
    taken = [set(one) for one in changes]
    assert len(changes.changed_buckets) == 1
    assert changes.freed_hosts == {story.cluster.hosts["n1"].row}
    story.submit(a_job(slots=2))
    story.do(c.CloseHost("n1", ROOT))
    assert [set(one) for one in changes] == taken
    later = story.cluster.take_changes()
    assert len(later.changed_buckets) == 1
    assert later.changed_buckets.isdisjoint(changes.changed_buckets)
    assert later.closed_hosts == {story.cluster.hosts["n1"].row}
    assert not any(story.cluster.take_changes())


def test_a_look_at_the_changes_takes_none() -> None:
    """The worklist asks for them at each event; only a slice takes them."""
    story = Story(a_host("n1", 1))
    key = story.run(a_job())
    waiting = story.submit(a_job())
    story.plan()
    assert not story.worklist.has_work(story.cluster, story.now)
    story.finished("n1", key)
    for _ in range(2):
        assert story.worklist.has_work(story.cluster, story.now)
        assert story.cluster.changes.freed_hosts
    story.plan()
    assert story.state(waiting) is JobState.STAGING
    assert not story.cluster.changes.freed_hosts


def test_only_values_that_jobs_wait_for_are_noted() -> None:
    """A slice leaves behind the names of the values that blocked jobs need."""
    story = Story(a_host("n1", 2))
    table, row = story.cluster.table, story.cluster.hosts["n1"].row
    load = list(table.load[row])
    table.set_load(row, [one + 1 for one in load])
    assert not story.cluster.changes.changed_values
    job = story.submit(a_job(select="r1m<0.1"))
    story.plan()
    assert "r1m" in table.awaited_values
    table.set_load(row, [0.0 for _ in load])
    assert story.cluster.changes.changed_values == table.awaited_values
    story.plan()
    assert story.state(job) is JobState.STAGING
    assert not table.awaited_values
