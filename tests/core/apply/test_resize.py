"""Resizing of allocations: usage that is charged, and sums of shares."""

from lavad.core import commands as c
from lavad.core.model import HostShare, RoleRequest
from lavad.core.model.allocation import could_give, given_up, grown, part_of, shrunk, tasks_of
from lavad.core.plan import Resize, Shrink
from tests.builders import ANN, Story, a_host, a_job

ROLE = RoleRequest(tasks_min=2, tasks_max=8, memory_mib=100)


def test_slots_times_seconds_are_what_was_held() -> None:
    """Two slots for ten seconds, four for thirty, three for ten: 170, which is no whole time of any of the three."""
    story = Story()
    story.join(a_host("n1", 2))
    job = story.submit(a_job(tasks_min=1, tasks_max=4, resizable=True))
    story.plan()
    key, begin = story.key(job), story.now
    story.do(c.ReportStarted("n1", key, 4711, story.now))
    attempt = story.cluster.attempts[key]
    story.now += 10
    story.join(a_host("n2", 2))
    story.plan()
    story.do(c.ReportStaged("n2", key))
    story.do(c.ReportResized("n1", key, attempt.resizing.version))
    story.now += 30
    story.do(c.ShrinkJob(c.Target(job), "1*n2", ANN))
    story.do(c.ReportResized("n1", key, attempt.resizing.version))
    story.now += 10
    assert attempt.slots == 3
    assert attempt.dispatched_at == begin
    assert abs((story.now - attempt.charged_since) * attempt.slots - (2 * 10 + 4 * 30 + 3 * 10)) < 1e-6


def test_growing_and_shrinking_undo_each_other() -> None:
    """Shrinking takes back what growing added, and the difference of both allocations is what was given up."""
    small = (HostShare("h1", 2, 100, (), (2,)),)
    more = (HostShare("h1", 1, 0, (), (1,)), HostShare("h2", 2, 100, (), (2,)))
    large = grown(small, more)
    assert [(share.host, share.slots, share.memory_mib) for share in large] == [("h1", 3, 100), ("h2", 2, 100)]
    assert shrunk(large, more) == small
    assert given_up(large, small) == more


def test_the_newest_hosts_are_given_up_first_and_the_lead_host_stays() -> None:
    """Down to the job's minimum; tasks with GPUs are released by whole hosts only."""
    shares = tuple(HostShare(f"h{number}", 2, 100, (), (2,)) for number in (1, 2, 3))
    assert [(one.host, one.slots) for one in could_give(shares, ROLE, 3)] == [("h2", 1), ("h3", 2)]
    assert tasks_of(could_give(shares, ROLE, 100)) == 4
    with_gpus = RoleRequest(tasks_min=2, tasks_max=8, gpus=1)
    assert [one.host for one in could_give(shares, with_gpus, 3)] == ["h3"]
    alone = RoleRequest(tasks_min=1, tasks_max=8)
    assert [(one.host, one.slots) for one in could_give(shares[:1], alone, 9)] == [("h1", 1)]


def test_a_plan_that_would_make_a_job_too_small_is_not_carried_out() -> None:
    """The plan may be older than the cluster's state: the remaining size is checked again."""
    story = Story(a_host("n1", 2), a_host("n2", 2))
    key = story.run(a_job(tasks_min=2, tasks_max=4, resizable=True))
    lead, last = story.cluster.attempts[key].allocation
    for gives in ((part_of(lead, 1, ROLE), last), (lead,)):
        plan = Resize(shrinks=(Shrink(key, gives),))
        assert story.do(c.ApplyPlan(plan)).reply == 1
    assert story.cluster.attempts[key].allocation == (lead, last)
    assert story.do(c.ApplyPlan(Resize(shrinks=(Shrink(key, (last,)),)))).reply == 0
    assert story.where(key.job) == [lead.host]
