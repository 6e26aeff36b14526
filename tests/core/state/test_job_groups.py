"""Job groups in memory: what is deleted leaves nothing behind."""

from dataclasses import replace

from lavad.core import commands as c
from lavad.core.events import NewJob
from lavad.core.model.policy import Policy
from tests.builders import ANN, Story, a_cluster, a_host, a_job


def _a_site() -> Story:
    """A host, and ended jobs that are forgotten at once."""
    return a_cluster(a_host(slots=4), policy=Policy(clean_period_s=1.0))


def _in(group: str) -> NewJob:
    job = a_job()
    return job._replace(shared=replace(job.shared, job_group=group))


def test_a_deleted_group_leaves_no_counter() -> None:
    """Neither one by name, nor with the jobs that ran in it: 40 times bgadd and bgdel once left 10,040 counters."""
    story = _a_site()
    for number in range(3):
        story.do(c.SetJobGroup(f"/a{number}/b", number or None, ANN, False))
        key = story.run(_in(f"/a{number}/b/c")) if number != 1 else None
        if key is not None:
            story.finished("n1", key)
        story.wait(2)
        removed = story.do(c.RemoveJobGroups(c.Removed.BELOW, f"/a{number}", ANN))
        assert f"/a{number}" in removed.reply
    story.plan()
    assert not story.cluster.job_groups
    assert not list(story.cluster.limits.counters)
    assert not story.cluster.limits._consumers


def test_a_group_that_is_made_again_counts_anew() -> None:
    """Its limit holds for the jobs that come then, and lets the next one start when one has ended."""
    story = _a_site()
    for _ in range(2):
        story.do(c.SetJobGroup("/a", 1, ANN, False))
        one, two = story.submit(_in("/a")), story.submit(_in("/a"))
        story.plan()
        assert [story.where(number) for number in (one, two)] == [["n1"], []]
        for number in (one, two):
            story.started("n1", story.key(number))
            story.finished("n1", story.key(number))
            story.plan()
        story.wait(2)
        story.do(c.RemoveJobGroups(c.Removed.ONE, "/a", ANN))
