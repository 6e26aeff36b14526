"""Hosts that are taken away: what runs there leaves within the notice, and who may be placed there at all."""

from math import isclose

import pytest

from lavad.core import commands as c
from lavad.core.apply import charge
from lavad.core.decide import evict
from lavad.core.model import JobState
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.model.task_rules import TaskEvent
from lavad.core.notices import NoticeOrder, RevokeOrder
from lavad.core.orders import TERMINATE, ReleaseOrder, ResizeOrder, SignalOrder
from lavad.core.step import Outcome
from tests.builders import ANN, ROOT, Story, a_host, a_job
from tests.core.decide.jobs.test_scale import adapt, sizes
from tests.task_jobs import TaskStory, a_policy, a_task_role, stops

SPOT = frozenset({"revocable"})


def revoke(story: Story, host: str, seconds: float = 30.0) -> Outcome:
    """badmin hclose -revoke."""
    return story.do(c.RevokeHost(host, ROOT, seconds, "spot"))


def test_the_host_is_told_first_and_takes_no_jobs() -> None:
    """Its agent knows the end of the notice before anything is to end there; a hello tells it again."""
    story = Story(a_host("n1"), a_host("n2"))
    key = story.run(a_job(2, rerunnable=True, hosts=("n1",)))
    orders = revoke(story, "n1").orders
    assert orders[0] == RevokeOrder("n1", 30.0)
    assert any(isinstance(one, SignalOrder) and one.key == key for one in orders[1:])
    story.now += 10
    assert RevokeOrder("n1", 20.0) in story.back("n1", story.runs_there("n1", key))
    waiting = story.submit(a_job(4, hosts=("n1",)))
    story.plan()
    assert story.state(waiting) is JobState.PEND
    orders = story.do(c.OpenHost("n1", ROOT)).orders
    assert orders == [RevokeOrder("n1", -1.0)]
    assert story.cluster.hosts["n1"].leaves_at == 0


def test_a_withdrawal_that_may_be_lost_is_told_at_the_hello() -> None:
    """Shepherds know the end of a notice: they would kill what runs, of a host that stays. Others need no word."""
    story = Story(a_host("n1"), a_host("n2"))
    key = story.run(a_job(1, hosts=("n1",)))
    stays, away = RevokeOrder("n1", -1.0), story.cluster.hosts["n1"].facts
    assert story.join(away, [story.runs_there("n1", key)])[0] == stays
    revoke(story, "n1")
    assert stays not in story.join(away, [story.runs_there("n1", key)])
    assert story.join(story.cluster.hosts["n2"].facts) == []


def test_a_job_that_may_run_again_is_requeued_as_a_whole() -> None:
    """On another host, when its hosts have released it."""
    story = Story(a_host("n1", 2), a_host("n2", 2))
    key = story.run(a_job(4, rerunnable=True))
    revoke(story, "n2")
    story.finished("n1", key, 130 << 8)
    story.released("n2", key)
    assert story.state(key.job) is JobState.PEND
    story.plan()
    assert story.state(key.job) is JobState.PEND  # the host is closed
    story.do(c.OpenHost("n2", ROOT))
    story.plan()
    assert story.where(key.job) == ["n1", "n2"]


def test_a_job_that_may_not_run_again_is_ended_with_the_reason() -> None:
    """It was not to be there, unless the host is an ordinary one."""
    story = Story(a_host("n1"))
    key = story.run(a_job(2))
    orders = revoke(story, "n1").orders
    assert [(one.signal, one.key) for one in orders if isinstance(one, SignalOrder)] == [(TERMINATE, key)]
    story.finished("n1", key, 130 << 8)
    job = story.job(key.job)
    assert job.state is JobState.EXIT
    assert job.end is not None
    assert "taken away" in job.end.reason


def test_an_elastic_job_goes_on_with_its_other_hosts() -> None:
    """Its lists change first; what leaves is told to end within the notice, and not killed at once."""
    story = Story(a_host("n1", 2), a_host("n2", 2))
    key = story.run(a_job(tasks_min=1, tasks_max=4, resizable=True))
    assert story.where(key.job) == ["n1", "n2"]
    orders = revoke(story, "n2").orders
    assert [type(one) for one in orders] == [RevokeOrder, NoticeOrder, ResizeOrder]
    assert story.where(key.job) == ["n1"]
    orders = story.do(c.ReportResized("n1", key, story.cluster.attempts[key].version)).orders
    assert [(type(one), one.host) for one in orders] == [(SignalOrder, "n2")]
    orders = story.do(c.OpenHost("n2", ROOT)).orders
    assert ReleaseOrder in map(type, orders)  # the notice was withdrawn: the rest is as for any host given up
    story.released("n2", key)
    assert story.state(key.job) is JobState.RUN


def test_an_elastic_job_that_needs_the_host_is_requeued() -> None:
    """Its first host can't leave."""
    story = Story(a_host("n1", 2), a_host("n2", 2))
    key = story.run(a_job(tasks_min=1, tasks_max=4, resizable=True))
    revoke(story, "n1")
    story.finished("n1", key, 130 << 8)
    story.released("n2", key)
    assert story.state(key.job) is JobState.PEND


def test_the_time_to_adapt_is_within_the_notice() -> None:
    """A notification command could run for a minute; the processes are told to end before the notice is over."""
    story = Story(a_host("n1", 2), a_host("n2", 2))
    key = story.run(a_job(tasks_min=1, tasks_max=4, resizable=True))
    revoke(story, "n2", 10)
    assert story.cluster.attempts[key].resizing.due == story.now + 10 * evict.LISTS_SHARE
    assert [type(one) for one in story.wait(5.1).orders] == [SignalOrder]


def test_elastic_roles_lose_their_tasks_there() -> None:
    """The table goes to the hosts that stay before a task that leaves is told to end."""
    story = TaskStory(a_host("n1", 2), a_host("n2", 2))
    key = story.begin(a_task_role("worker", 1, 4))
    story.runs(key)
    assert sizes(story, key) == [4]
    assert stops(revoke(story, "n2").orders) == {}
    assert sizes(story, key) == [2]
    assert stops(adapt(story, key)) == {"n2": [(0, 2, 1), (0, 3, 1)]}
    assert story.state(key.job) is JobState.RUN


def test_tasks_without_a_choice_are_evicted_and_the_policy_says_what_follows() -> None:
    """A restart on a host that will be taken away is another attempt of the whole job."""
    story = TaskStory(a_host("n1", 1), a_host("n2", 1), a_host("n3", 1))
    restart = a_policy(TaskEvent.EVICTED)
    key = story.begin(a_task_role("worker", 2), policies=[restart], restarts_max=3)
    story.runs(key)
    gone = story.task(key, 0, 1).host
    orders = revoke(story, gone).orders
    assert stops(orders) == {gone: [(0, 1, 1)]}
    story.ends(key, 0, 1, 143)
    story.stops(key)
    for share in story.cluster.attempts[key].allocation:
        story.released(share.host, key)
    assert story.state(key.job) is JobState.PEND
    story.plan()
    assert gone not in story.where(key.job)


def test_an_elastic_role_at_its_minimum_starts_anew_elsewhere() -> None:
    """It bears revocable hosts, so it is not lost with one."""
    story = TaskStory(a_host("n1", 2))
    key = story.begin(a_task_role("worker", 2, 3))
    story.runs(key)
    revoke(story, "n1")
    story.ends(key, 0, 0, 143)
    story.ends(key, 0, 1, 143)
    story.released("n1", key)
    assert story.state(key.job) is JobState.PEND


def test_a_host_that_vanishes_after_its_notice_holds_up_nobody() -> None:
    """It was to kill all that is left, so it is as if it had released what it had."""
    story = Story(a_host("n1", 2), a_host("n2", 2))
    key = story.run(a_job(4, rerunnable=True))
    revoke(story, "n2", 10)
    story.do(c.NoticeTaken("n2", 10))
    story.finished("n1", key, 130 << 8)
    story.hear("n1", "n2")
    story.now += 9
    story.hear("n1", "n2")
    story.now += 20
    story.hear("n1")
    story.wait(0)
    assert story.cluster.hosts["n2"].is_silent
    assert story.state(key.job) is JobState.PEND


@pytest.mark.parametrize("taken_s", [None, 3.0, -1.0])
def test_a_host_that_has_not_taken_the_notice_is_waited_for(taken_s: float | None) -> None:
    """It was heard a moment before a short notice, and is silent since: it may not know, and still run the job. What
    it says about an older notice does not count."""
    story = Story(a_host("n1", 2), a_host("n2", 2))
    key = story.run(a_job(4, rerunnable=True))
    story.hear("n1", "n2")
    revoke(story, "n2", 5)
    if taken_s is not None:
        story.do(c.NoticeTaken("n2", taken_s))
    story.finished("n1", key, 130 << 8)
    story.now += 40
    story.hear("n1")
    story.wait(0)
    assert story.cluster.hosts["n2"].is_silent
    assert key in story.cluster.attempts
    assert story.state(key.job) is not JobState.PEND


def test_a_longer_notice_is_to_be_taken_anew() -> None:
    """The host that had only the first would have ended what it has; with the second it lets it run."""
    story = Story(a_host("n1", 2), a_host("n2", 2))
    key = story.run(a_job(4, rerunnable=True))
    revoke(story, "n2", 10)
    story.do(c.NoticeTaken("n2", 10))
    revoke(story, "n2", 600)
    story.now += 30
    story.hear("n1")
    story.wait(0)
    assert story.cluster.hosts["n2"].is_silent
    assert key in story.cluster.attempts


def test_a_host_that_was_out_of_contact_before_is_waited_for() -> None:
    """It may not know of the notice, and may still run the job."""
    story = Story(a_host("n1", 2), a_host("n2", 2))
    key = story.run(a_job(4, rerunnable=True))
    story.now += 20
    story.hear("n1")
    story.wait(0)
    revoke(story, "n2", 60)
    story.now += 70
    story.hear("n1")
    story.wait(0)
    assert story.state(key.job) is JobState.UNKWN


def test_a_notice_of_the_host_itself_and_its_withdrawal() -> None:
    """A repeated notice changes nothing; a withdrawn one opens the host, unless an administrator has closed it."""
    story = Story(a_host("n1"))
    story.do(c.HostNoticed("n1", 30, "the owner is back"))
    host = story.cluster.hosts["n1"]
    assert (host.closed_by, host.comment) == (evict.BY_HOST, "the owner is back")
    assert story.do(c.HostNoticed("n1", 30)).events == []
    story.do(c.HostNoticed("n1", -1))
    assert (host.closed_by, host.leaves_at) == ("", 0)
    story.do(c.CloseHost("n1", ROOT))
    story.do(c.HostNoticed("n1", -1))
    assert host.closed_by == "root"


def test_a_hosts_own_notice_leaves_an_administrators_closing_alone() -> None:
    """Before or since: a withdrawn notice undoes what the notice did, and nothing else."""
    story = Story(a_host("n1"))
    host = story.cluster.hosts["n1"]
    story.do(c.CloseHost("n1", ROOT, "broken fan"))
    orders = story.do(c.HostNoticed("n1", 30, "the owner is back")).orders
    assert orders == [RevokeOrder("n1", 30.0)]
    assert (host.closed_by, host.comment) == ("root", "broken fan")
    assert story.do(c.HostNoticed("n1", -1)).orders == [RevokeOrder("n1", -1.0)]
    assert (host.closed_by, host.comment, host.leaves_at) == ("root", "broken fan", 0)
    story.do(c.OpenHost("n1", ROOT))
    story.do(c.HostNoticed("n1", 30))
    story.do(c.CloseHost("n1", ROOT))  # closed while the notice runs
    story.do(c.HostNoticed("n1", -1))
    assert (host.closed_by, host.leaves_at) == ("root", 0)


def test_a_hosts_own_notice_and_an_administrators_count_each_for_itself() -> None:
    """The sooner one holds; a withdrawn one leaves the other in force."""
    story = Story(a_host("n1"))
    host, begin = story.cluster.hosts["n1"], story.now
    revoke(story, "n1", 60)
    assert story.do(c.HostNoticed("n1", 30)).orders[0] == RevokeOrder("n1", 30.0)
    story.now += 1
    assert story.do(c.HostNoticed("n1", -1)).orders == [RevokeOrder("n1", 59.0)]
    assert (host.closed_by, host.leaves_at) == ("root", begin + 60)
    story.do(c.OpenHost("n1", ROOT))
    assert (host.closed_by, host.leaves_at) == ("", 0)


def test_a_good_check_does_not_open_a_host_that_will_be_taken_away() -> None:
    """Its check had closed it before its own notice came."""
    story = Story(a_host("n1"), a_host("n2"))
    host = story.cluster.hosts["n1"]
    story.do(c.HostChecked("n1", is_good=False, is_bad=True, text="no fan"))
    story.do(c.HostNoticed("n1", 30))
    story.do(c.HostChecked("n1", is_good=True, is_bad=False))
    assert host.closed_by
    assert host.leaves_at
    story.do(c.HostNoticed("n1", -1))
    assert not host.closed_by


@pytest.mark.parametrize(
    ("host", "seconds", "caller"), [("n9", 30, ROOT), ("n1", 0, ROOT), ("n1", 1e9, ROOT), ("n1", 30, ANN)]
)
def test_refusals(host: str, seconds: float, caller: c.Caller) -> None:
    """One sentence, and nothing changes."""
    story = Story(a_host("n1"))
    with pytest.raises(Refused):
        story.do(c.RevokeHost(host, caller, seconds))
    assert not story.cluster.hosts["n1"].closed_by


# -- placement ---------------------------------------------------------------------------------------------------------


def test_only_jobs_that_bear_it_are_placed_on_revocable_hosts() -> None:
    """Elastic ones, those that may run again, those with a policy, and those that say so themselves."""
    story = TaskStory(a_host("n1", 8, resources=SPOT))
    plain = story.submit(a_job())
    again = story.submit(a_job(rerunnable=True))
    elastic = story.submit(a_job(tasks_min=1, tasks_max=2, resizable=True))
    asks = story.submit(a_job(select="revocable"))
    refuses = story.submit(a_job(rerunnable=True, select="!revocable"))
    story.plan()
    states = [story.state(one) is JobState.STAGING for one in (plain, again, elastic, asks, refuses)]
    assert states == [False, True, True, True, False]
    with_policy = story.begin(a_task_role(), policies=[a_policy(TaskEvent.ANY)], restarts_max=1)
    assert story.where(with_policy.job) == ["n1"]
    story.join(a_host("n2"))
    story.plan()
    assert story.where(plain) == story.where(refuses) == ["n2"]


def test_a_host_becomes_revocable_while_jobs_wait() -> None:
    """By its agent, or by lsf.cluster; the jobs that run there go on."""
    story = Story(a_host("n1", 1))
    first = story.run(a_job())
    second = story.submit(a_job())
    story.join(a_host("n1", 1, resources=SPOT), (story.runs_there("n1", first),))
    story.finished("n1", first)
    story.plan()
    assert story.state(second) is JobState.PEND
    story.join(a_host("n1", 1))
    story.plan()
    assert story.state(second) is JobState.STAGING


def test_use_is_counted_by_class_of_host() -> None:
    """Slots times seconds, through growth and shrink."""
    story = Story(a_host("n1", 2), policy=Policy())
    key = story.run(a_job(tasks_min=1, tasks_max=4, resizable=True))
    story.now += 10
    story.join(a_host("n2", 2, resources=SPOT))
    story.plan()
    attempt = story.cluster.attempts[key]
    story.do(c.ReportStaged("n2", key, attempt.joined_with("n2")))
    story.do(c.ReportResized("n1", key, attempt.version))
    assert story.where(key.job) == ["n1", "n2"]
    story.now += 10
    revoke(story, "n2")
    story.do(c.ReportResized("n1", key, attempt.version))
    story.released("n2", key)
    story.now += 10
    on_all, on_revocable = charge.slot_seconds(story.cluster, attempt, story.now)
    assert isclose(on_all, 2 * 30 + 2 * 10)
    assert isclose(on_revocable, 2 * 10)
