"""One dispatch of a job: staged on all hosts before the launch, ended as a whole, never beside a later attempt."""

from collections.abc import Callable

import pytest

from lavad.core import commands as c
from lavad.core.apply.charge import observe
from lavad.core.model import JobState, Key
from lavad.core.model.usage import HostUsage
from lavad.core.orders import ForgetOrder, LaunchOrder, Order, ReleaseOrder, SignalOrder, StageOrder
from tests.builders import ROOT, Story, a_cluster, a_host, a_job, each

S = JobState


def kinds(orders: list[Order]) -> list[tuple[str, str]]:
    """(kind, host) of each order, for comparison."""
    return [(type(order).__name__.removesuffix("Order").lower(), order.host) for order in orders]


@pytest.fixture
def story() -> Story:
    """Two hosts of four slots."""
    return a_cluster()


def running(story: Story, **job: object) -> Key:
    """A job on both hosts whose command runs on each, started on the lead."""
    return story.run(each(**job))  # type: ignore[arg-type]


def test_one_host_gets_one_order(story: Story) -> None:
    """Stage and launch are one order if there is no other host to wait for."""
    story.submit(a_job())
    (order,) = story.plan()
    assert isinstance(order, StageOrder)
    assert order.launch_now


def test_launch_waits_for_every_host(story: Story) -> None:
    """All or nothing: the last host's report sends the launch to all."""
    job = story.submit(each())
    assert kinds(story.plan()) == [("stage", "n1"), ("stage", "n2")]
    key = story.key(job)
    assert story.staged("n2", key).orders == []
    assert story.staged("n2", key).orders == []
    assert kinds(story.staged("n1", key).orders) == [("launch", "n1"), ("launch", "n2")]
    assert story.staged("n1", key).orders == []


def test_a_command_of_the_lead_host_is_launched_there_only(story: Story) -> None:
    """The other hosts are staged for tasks that the command starts."""
    job = story.submit(a_job(8))
    story.plan()
    story.staged("n2", story.key(job))
    assert kinds(story.staged("n1", story.key(job)).orders) == [("launch", "n1")]


def test_a_host_that_does_not_answer_is_avoided(story: Story) -> None:
    """Staging is given up after its timeout: all hosts release, the job is pending again, and avoids the host."""
    story.join(a_host("n3"))
    job = story.submit(each())
    story.plan()
    story.staged("n1", story.key(job))
    story.now += 13
    story.hear("n1", "n2", "n3")
    orders = story.do(c.Tick()).orders
    assert ("release", "n1") in kinds(orders)
    assert story.state(job) is S.PEND
    story.released("n1", Key(job, 0, 1))
    story.plan()
    assert story.where(job) == ["n1", "n3"]


def test_staging_that_fails_twice_is_given_up_once(story: Story) -> None:
    """Both hosts fall silent in the tick of the staging deadline."""
    job = story.submit(each())
    story.plan()
    story.wait(100)
    assert story.state(job) is S.PEND
    assert story.key(job).attempt == 1


def test_a_killed_job_never_begins(story: Story) -> None:
    """Killed while it is staged: over at once, and a late answer is told to release."""
    job = story.submit(each())
    story.plan()
    key = story.key(job)
    story.staged("n1", key)
    assert kinds(story.kill(job).orders) == [("release", "n1"), ("release", "n2")]
    assert story.state(job) is S.EXIT
    assert kinds(story.staged("n2", key).orders) == [("release", "n2")]


@pytest.mark.parametrize("number", [2, 9, 15])
def test_a_signal_that_ends_jobs_ends_one_that_is_staged(story: Story, number: int) -> None:
    """There is no process to signal, and none may start afterwards."""
    job = story.submit(each())
    story.plan()
    story.do(c.SignalJob(story.target(job), number, ROOT))
    assert story.state(job) is S.EXIT


def test_a_kill_survives_a_refused_order(story: Story) -> None:
    """The order came too late; the job is not requeued, because it was killed meanwhile."""
    job = story.submit(a_job())
    story.plan()
    story.kill(job)
    story.refused("n1", story.key(job))
    assert story.state(job) is S.EXIT
    assert not story.cluster.attempts


def test_a_refused_job_waits_again(story: Story) -> None:
    """A host that is at fault is avoided for a while."""
    job = story.submit(a_job())
    story.plan()
    story.refused("n1", story.key(job), host_fault=True)
    assert story.state(job) is S.PEND
    story.plan()
    assert story.where(job) == ["n2"]


@pytest.mark.parametrize("state", [S.RUN, S.USUSP])
def test_a_late_refusal_does_not_end_what_runs(story: Story, state: JobState) -> None:
    """A repeated order was refused as outdated; the first one was carried out long ago."""
    key = story.run(a_job())
    if state is S.USUSP:
        story.do(c.StopJob(story.target(key.job), ROOT))
    story.refused("n1", key)
    assert story.state(key.job) is state


def test_an_old_word_changes_nothing(story: Story) -> None:
    """A report about an attempt that was given up does not affect the next one."""
    job = story.submit(a_job())
    story.plan()
    old = story.key(job)
    story.refused("n1", old)
    story.plan()
    for outcome in (story.started("n1", old), story.finished("n1", old), story.released("n1", old)):
        assert outcome.events == []
    assert story.state(job) is S.STAGING


def test_repeated_ends_count_once(story: Story) -> None:
    """The second report is only answered, so that the agent may forget."""
    key = story.run(a_job())
    story.finished("n1", key, 3 << 8)
    again = story.finished("n1", key, 3 << 8)
    assert again.events == []
    assert again.orders == [ForgetOrder("n1", key)]


def test_shares_are_free_when_the_host_says_so(story: Story) -> None:
    """They are not free when the job ends."""
    key = story.run(a_job(4))
    story.finished("n1", key, released=False)
    assert story.state(key.job) is S.DONE
    row = story.cluster.hosts["n1"].row
    assert story.cluster.table.slots_free[row] == 0
    assert story.released("n1", key).orders == [ForgetOrder("n1", key)]
    assert story.cluster.table.slots_free[row] == 4


def test_a_repeated_job_waits_for_what_is_left_of_it(story: Story) -> None:
    """A part fails, then the job's end is reported; the next attempt starts only when the other host has released."""
    key = running(story, rerunnable=True)
    assert ("signal", "n1") in kinds(story.finished("n2", key, 9, released=False).orders)
    story.finished("n1", key, 9)
    assert story.state(key.job) is S.RUN
    orders = story.back("n2", story.runs_there("n2", key))
    assert ("release", "n2") in kinds(orders)
    story.released("n2", key)
    assert story.state(key.job) is S.PEND


@pytest.mark.parametrize("number", [0, 9, 15])
def test_a_job_that_waits_for_its_last_host_can_be_killed(story: Story, number: int) -> None:
    """The job ends at once; the host is told when it is back."""
    key = running(story, rerunnable=True)
    story.finished("n2", key, 9, released=False)
    story.finished("n1", key, 9)
    if number:
        story.do(c.SignalJob(story.target(key.job), number, ROOT))
    else:
        story.kill(key.job)
    assert story.state(key.job) is S.EXIT
    held = story.runs_there("n2", key)
    assert kinds(story.back("n2", held)) == [("release", "n2")]


def test_a_job_that_may_not_be_repeated_is_over_with_its_lead_host(story: Story) -> None:
    """The lead host has lost it: EXIT, and the other host is told to release."""
    key = running(story)
    orders = story.back("n1")
    assert story.state(key.job) is S.EXIT
    assert ("release", "n2") in kinds(orders)


def test_a_lost_part_ends_the_whole(story: Story) -> None:
    """A host that has lost its part of the job: the lead is told to end the rest."""
    key = running(story)
    orders = story.finished("n2", key, 9).orders
    assert ("signal", "n1") in kinds(orders)
    story.finished("n1", key, 2)
    assert story.state(key.job) is S.EXIT


def test_a_part_that_ends_well_is_just_over(story: Story) -> None:
    """A task host has nothing more to do; the job goes on."""
    key = running(story)
    assert story.finished("n2", key, 0).orders == [ForgetOrder("n2", key)]
    assert story.state(key.job) is S.RUN


def test_a_part_lost_before_the_launch_takes_nothing_with_it(story: Story) -> None:
    """The host has staged and lost it; the job never ran, so it is requeued although it is not rerunnable."""
    job = story.submit(each())
    story.plan()
    story.staged("n1", story.key(job))
    orders = story.back("n1")
    assert story.state(job) is S.PEND
    assert ("release", "n2") in kinds(orders)


def test_half_a_launch_is_undone_first(story: Story) -> None:
    """The lead host refuses the launch, the other may run its part: the job is requeued when that has ended."""
    job = story.submit(each())
    story.plan()
    key = story.key(job)
    story.staged("n1", key)
    story.staged("n2", key)
    assert ("release", "n2") in kinds(story.refused("n1", key).orders)
    assert story.state(job) is S.STAGING
    story.released("n2", key)
    assert story.state(job) is S.PEND


def test_a_doomed_job_is_not_launched_after_all(story: Story) -> None:
    """The lead missed the launch, the other part has failed meanwhile: the lead is told to release, not to launch."""
    job = story.submit(each())
    story.plan()
    key = story.key(job)
    story.staged("n1", key)
    story.staged("n2", key)
    story.finished("n2", key, 9)
    orders = story.back("n1", c.HeldAttempt(key, c.ReportStaged("n1", key), False))
    assert not [order for order in orders if isinstance(order, LaunchOrder)]
    assert ("release", "n1") in kinds(orders)


def test_a_missed_launch_is_repeated(story: Story) -> None:
    """The session broke after the order was sent."""
    job = story.submit(each())
    story.plan()
    key = story.key(job)
    story.staged("n1", key)
    story.staged("n2", key)
    assert kinds(story.back("n2", c.HeldAttempt(key, c.ReportStaged("n2", key), False))) == [("launch", "n2")]


def test_a_silent_lead_host_makes_the_job_unknown(story: Story) -> None:
    """Nothing is assumed; when the host is heard again all is as before."""
    key = story.run(a_job())
    story.now += 20
    story.hear("n2")
    story.do(c.Tick())
    assert story.state(key.job) is S.UNKWN
    story.plan()
    assert story.where(key.job) == ["n1"]
    story.hear("n1")
    assert story.state(key.job) is S.RUN


def test_a_job_that_fails_while_a_host_of_it_is_silent_says_so(story: Story) -> None:
    """Its exit code alone would look like its own: the host's agent was restarted, or the network was away."""
    key = story.run(a_job(6))
    assert len(story.where(key.job)) == 2
    story.now += 20
    story.hear("n1")
    story.do(c.Tick())
    story.finished("n1", key, 255 << 8)
    end = story.job(key.job).end
    assert end is not None
    assert (end.status, end.reason) == (255 << 8, "it failed on n1 while n2 is silent")


def test_killed_while_unknown_ends_when_the_host_returns(story: Story) -> None:
    """The job is in ZOMBI until then, whatever happens on other hosts."""
    key = story.run(a_job(rerunnable=True))
    story.wait(20)
    story.kill(key.job)
    assert story.state(key.job) is S.ZOMBI
    story.back("n1")
    assert story.state(key.job) is S.EXIT


def test_a_kill_is_sent_again_whatever_was_sent_after_it(story: Story) -> None:
    """The kill was lost with the session, and a stop came later; at the next hello the kill is sent."""
    key = story.run(a_job())
    story.kill(key.job)
    story.do(c.StopJob(story.target(key.job), ROOT))
    held = story.runs_there("n1", key)
    (order,) = story.back("n1", held)
    assert isinstance(order, SignalOrder)
    assert order.signal == 0


def test_a_continue_is_sent_again_whatever_was_sent_after_it(story: Story) -> None:
    """A lost continue would leave the job stopped for ever."""
    key = story.run(a_job())
    story.do(c.StopJob(story.target(key.job), ROOT))
    story.do(c.ResumeJob(story.target(key.job), ROOT))
    story.do(c.SignalJob(story.target(key.job), 10, ROOT))
    held = story.runs_there("n1", key)
    (order,) = story.back("n1", held)
    assert isinstance(order, SignalOrder)
    assert order.signal == 18


def test_two_signals_of_one_instant_are_two(story: Story) -> None:
    """Agents know a repeated signal by its serial."""
    key = story.run(a_job())
    stop = story.do(c.StopJob(story.target(key.job), ROOT)).orders
    kill = story.kill(key.job).orders
    assert isinstance(stop[0], SignalOrder)
    assert isinstance(kill[0], SignalOrder)
    assert stop[0].serial != kill[0].serial


def test_a_forced_kill_does_not_wait_for_hosts(story: Story) -> None:
    """bkill -r: the record ends, the host keeps its share until it has released."""
    key = story.run(a_job(4))
    assert story.kill(key.job, remove=True).orders == [ReleaseOrder("n1", key, story.job(key.job).end.reason)]  # type: ignore[union-attr]
    assert story.state(key.job) is S.EXIT
    assert story.cluster.table.slots_free[story.cluster.hosts["n1"].row] == 0


@pytest.mark.parametrize(
    ("rerunnable", "state"), [(True, S.PEND), (False, S.EXIT)], ids=["rerunnable", "not rerunnable"]
)
def test_an_end_that_nobody_saw_is_no_end_of_a_rerunnable_job(story: Story, rerunnable: bool, state: S) -> None:
    """The host went down, or the shepherd was killed: the job is requeued, unless it was being killed anyway."""
    key, killed = story.run(a_job(rerunnable=rerunnable)), story.run(a_job(rerunnable=rerunnable))
    story.kill(killed.job)
    for lost in (key, killed):
        story.do(c.ReportFinished("n1", lost, 9, story.now, "supervisor lost", also_released=True, lost=True))
    assert story.state(key.job) is state
    assert story.state(killed.job) is S.EXIT


@pytest.mark.parametrize("off_s", [-7200.0, -1.0, 0.0, 1.0, 7200.0])
@pytest.mark.parametrize("is_told_first", [True, False], ids=["started before", "told at its end"])
def test_a_run_time_is_the_hosts_own(story: Story, off_s: float, is_told_first: bool) -> None:
    """However far its clock is from the master's: never a difference of the two clocks."""
    job = story.submit(a_job())
    story.plan()
    key = story.key(job)
    began = story.now + off_s
    if is_told_first:
        story.do(c.ReportStarted("n1", key, 4711, began))
    story.now += 10
    story.do(c.ReportFinished("n1", key, 0, began + 10, pid=4711, started_at=began, also_released=True))
    end = story.job(key.job).end
    assert end is not None
    assert end.at - end.started_at == pytest.approx(10.0, abs=1e-6)
    assert end.at <= story.now


def test_an_end_while_the_master_was_away_has_the_hosts_time(story: Story) -> None:
    """It is told later, and was when it was."""
    key = story.run(a_job())
    began = story.now
    story.now += 90
    story.do(c.ReportFinished("n1", key, 0, began + 15, started_at=began, also_released=True))
    end = story.job(key.job).end
    assert end is not None
    assert (end.started_at, end.at) == (began, began + 15)


def test_a_wrong_clock_makes_no_negative_time(story: Story) -> None:
    """A host whose clock is an hour behind: the end is not before the start."""
    key = story.run(a_job())
    story.now += 5
    story.do(c.ReportFinished("n1", key, 0, story.now - 3600, also_released=True))
    end = story.job(key.job).end
    assert end is not None
    assert end.at >= end.started_at


def test_the_end_names_who_brought_it(story: Story) -> None:
    """An administrator's SIGKILL is not the owner's."""
    key = story.run(a_job())
    story.do(c.SignalJob(story.target(key.job), 9, ROOT))
    story.finished("n1", key, 9)
    end = story.job(key.job).end
    assert end is not None
    assert end.reason.startswith("TERM_FORCE_ADMIN")


@pytest.mark.parametrize("how", ["hello", "heard"])
def test_a_doomed_job_is_ended_when_its_lead_host_comes_back(story: Story, how: str) -> None:
    """The lead host was silent when the other part was lost; it is told to end what it still runs."""
    key = running(story)
    story.now += 20
    story.hear("n2")
    story.do(c.Tick())
    story.finished("n2", key, 2)
    if how == "hello":
        orders = story.back("n1", story.runs_there("n1", key))
    else:
        story.cluster.heard("n1", story.now)
        orders = story.do(c.AgentHeard("n1")).orders
    assert [order.signal for order in orders if isinstance(order, SignalOrder)] == [0]


@pytest.mark.parametrize(
    "word",
    [
        lambda key: c.ReportFinished("n1", key, 0, 0.0),
        lambda key: c.ReportFinished("n1", key, 9, 0.0, also_released=True),
        lambda key: c.ReportReleased("n1", key),
        lambda key: c.ReportRefused("n1", key, "no"),
    ],
)
def test_an_attempt_named_twice_counts_once(story: Story, word: Callable[[Key], c.AgentReport]) -> None:
    """A hello that names an attempt twice must not stop the master."""
    job = story.submit(a_job())
    story.plan()
    key = story.key(job)
    story.back("n1", *[c.HeldAttempt(key, word(key), True)] * 2)
    assert story.cluster.attempts.get(key) is None or story.cluster.attempts[key].over


def test_a_host_speaks_of_itself_alone(story: Story) -> None:
    """A report of usage from a host without a share of the job is ignored."""
    key = story.run(a_job())
    observe(story.cluster, "n2", ((key, HostUsage(cpu_s=1e9)),))
    observe(story.cluster, "n1", ((key, HostUsage(cpu_s=5.0)),))
    assert {host: usage.cpu_s for host, usage in story.cluster.attempts[key].usage.items()} == {"n1": 5.0}
