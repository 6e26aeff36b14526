"""Pre- and post-execution commands in the master: tries, pauses and holds, and what dependants wait for."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.apply import start_conditions
from lavad.core.decide.clock.tick import wake_at
from lavad.core.events import NewJob
from lavad.core.model import JobState, Key, PostState, Retry, SpecialOptions
from lavad.core.model import reasons as r
from lavad.core.model.policy import Policy
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.applications import Application
from lavad.core.model.rules.queues import AROUND, AroundJob
from lavad.core.orders import SignalOrder, StageOrder
from lavad.core.queries.pending_reasons import explain
from lavad.core.step import Outcome
from lavad.simulator.cluster.restart import reborn
from tests.builders import ANN, BOB, ROOT, Story, a_cluster, a_host, a_job, each

S = JobState
PAUSE_S = Policy().pre_exec_pause_s


def replace_shared(job: NewJob, **values: Any) -> NewJob:
    """The submission with other shared facts."""
    return job._replace(shared=replace(job.shared, **values))


def cluster_with(
    *,
    queue: AroundJob = AROUND,
    slots: int = 4,
    profile: Application = Application("none"),  # noqa: B008
) -> Story:
    """One host, a rule for the queue ``normal``, and a profile."""
    policy = Policy()
    queues = tuple(replace(one, around=queue) if one.name == "normal" else one for one in policy.queues)
    policy = replace(policy, queues=queues, applications={profile.name: profile})
    return a_cluster(a_host("n1", slots), policy=policy)


def fails(story: Story, job: int, index: int = 0, whose: str = "job", code: int = 1) -> Outcome:
    """Dispatch the job, whose pre-execution command then fails."""
    story.plan()
    key = story.key(job, index)
    why = f"it exited with code {code}"
    return story.do(c.ReportRefused("n1", key, why, host_fault=True, pre_exec=whose, pre_exec_code=code))


def pause(story: Story) -> None:
    """Let the time between two tries pass, in which the host is heard."""
    story.now += PAUSE_S + 1
    story.hear("n1")
    story.do(c.Tick())


def why(story: Story, job: int, index: int = 0) -> list[r.Reason]:
    """The pending reasons."""
    found = explain(story.cluster, story.cluster.jobs[job], index, story.now)
    return [one.reason for one in found]


@pytest.mark.parametrize(("whose", "code"), [("job", 6), ("queue", 306), ("host", 306)])
def test_a_failed_command_puts_the_job_back(whose: str, code: int) -> None:
    """It waits for the pause, with LSF's reason, and is tried again; the host is as good as before for others."""
    story = cluster_with()
    job = story.submit(a_job())
    fails(story, job, whose=whose)
    assert story.state(job) is S.PEND
    assert [one.code for one in why(story, job)] == [code]
    other = story.submit(a_job())
    story.plan()
    assert (story.state(job), story.state(other)) == (S.PEND, S.STAGING)
    assert story.now + PAUSE_S <= wake_at(story.cluster, story.now) <= story.now + PAUSE_S + 1
    pause(story)
    assert code in [one.code for one in why(story, job)]
    story.plan()
    assert story.state(job) is S.STAGING
    key = story.key(job)
    story.started("n1", key)
    assert story.job(job).retry.failures == 0


def test_only_so_many_tries() -> None:
    """Then the job is held; bresume lets it be tried from the beginning."""
    story = cluster_with(queue=AroundJob(tries_max=2))
    job = story.submit(a_job())
    fails(story, job)
    pause(story)
    fails(story, job)
    assert story.state(job) is S.PSUSP
    assert why(story, job) == [r.PRE_EXEC["job"]]
    story.do(c.ResumeJob(story.target(job), ANN))
    assert story.state(job) is S.PEND
    fails(story, job)
    assert story.state(job) is S.PEND


def test_the_job_is_ended_where_the_queue_says_so() -> None:
    """LOCAL_MAX_PREEXEC_RETRY_ACTION = EXIT, with the exit code that LSF has for it."""
    story = cluster_with(queue=AroundJob(tries_max=1, exits=True))
    job = story.submit(a_job())
    fails(story, job)
    end = story.job(job).end
    assert end is not None
    assert (story.state(job), end.status, end.reason) == (S.EXIT, 98 << 8, r.TERM_PRE_EXEC_FAIL)


def test_an_exit_code_that_excludes_the_host() -> None:
    """PREEXEC_EXCLUDE_HOST_EXIT_VALUES: the job never comes back to the host, others do."""
    story = cluster_with(queue=AroundJob(excluding=frozenset({7})))
    job, other = story.submit(a_job()), story.submit(a_job())
    fails(story, job, code=6)
    pause(story)
    fails(story, job, code=7)
    pause(story)
    story.plan()
    assert (story.state(job), story.state(other)) == (S.PEND, S.STAGING)
    story.join(a_host("n2"))
    story.plan()
    holder = story.job(job).attempt
    assert holder is not None
    assert [share.host for share in holder.allocation] == ["n2"]


def test_a_profile_comes_before_the_queue() -> None:
    """Its commands are in place of the job's, its bounds in place of the queue's; the queue's commands stay."""
    queue = AroundJob(host_pre="mount", tries_max=5, post_limit_s=60.0)
    profile = Application("md", around=AroundJob(job_pre="fetch", tries_max=1, host_pre="warm", host_post="cool"))
    story = cluster_with(queue=queue, profile=profile)
    job = story.submit(replace_shared(a_job(), application="md"))
    (order,) = [one for one in story.plan() if isinstance(one, StageOrder)]
    found = order.setup.around
    assert (found.host_pre, found.job_pre, found.post_limit_s, found.user) == ("mount", "fetch", 60.0, "")
    assert (found.profile_host_pre, found.profile_host_post, found.host_post) == ("warm", "cool", "")
    story.do(c.ReportRefused("n1", story.key(job), "it exited with code 1", pre_exec="job"))
    assert story.state(job) is S.PSUSP


def test_an_element_waits_alone() -> None:
    """The other elements of its array start meanwhile, also of one whose dependency is met later."""
    story = cluster_with(slots=2)
    first = story.submit(a_job())
    story.plan()
    array = story.submit(a_job(array="1-3", limit=1))
    fails(story, array, 1)
    story.plan()
    assert [story.state(array, index) for index in (1, 2, 3)] == [S.PEND, S.STAGING, S.PEND]
    assert [one.code for one in why(story, array, 1)] == [6]
    key = story.key(array, 2)
    story.started("n1", key)
    story.finished("n1", key)
    pause(story)
    story.plan()
    assert story.state(array, 1) is S.STAGING
    assert story.state(first) is S.STAGING


class Watched(dict[int, Retry]):
    """Failed elements of an array that count how often all are gone through."""

    sweeps = 0

    def __iter__(self) -> Iterator[int]:
        self.sweeps += 1
        return super().__iter__()

    def items(self) -> Any:
        """As of any dictionary."""
        self.sweeps += 1
        return super().items()


def test_one_element_is_tried_again_without_a_look_at_the_others() -> None:
    """Each requeue and each start went through all elements that had failed: quadratic in the size of an array."""
    story = a_cluster(a_host(slots=1))
    array = story.array(story.submit(a_job(array="1-100")))
    array.retries = watched = Watched({index: Retry(1, "job", story.now + 60) for index in range(1, 101)})
    array.divide()
    assert (array.pending.text(), array.blocked.text()) == ("", "1-100")
    watched.sweeps = 0
    for index in (7, 9):
        array.blocked.discard(index)
        array.admit(Ranges.of(index))
        start_conditions.forget_failures(array, (index,), story.now)
        array.blocked.discard(index)
        array.admit(Ranges.of(index))
    assert watched.sweeps == 0
    assert (array.pending.text(), array.blocked.text()) == ("7,9", "1-6,8,10-100")
    start_conditions.forget_failures(array, Ranges.parse("1-200"), story.now)
    assert not watched


def test_a_killed_job_is_not_tried_again() -> None:
    """The command failed because it was ended."""
    story = cluster_with()
    job = story.submit(a_job())
    story.plan()
    key = story.key(job)
    story.kill(job)
    story.do(c.ReportRefused("n1", key, "it was ended", pre_exec="job"))
    assert story.state(job) is S.EXIT


def test_a_job_on_several_hosts_leaves_them_all_first() -> None:
    """Its tasks elsewhere are ended before it is pending again; then it waits as any other."""
    story = a_cluster(a_host("n1", 1), a_host("n2", 1))
    job = story.submit(each(2))
    story.plan()
    key = story.key(job)
    story.staged("n1", key)
    story.staged("n2", key)
    lead, other = story.where(job)
    story.do(c.ReportRefused(lead, key, "it exited with code 1", pre_exec="queue"))
    assert story.state(job) is S.STAGING
    story.finished(other, key, 130 << 8)
    assert story.state(job) is S.PEND
    assert [one.code for one in why(story, job)] == [306]


def waits_for_staging(story: Story, seconds: float, *hosts: str) -> None:
    """Let time pass in which the hosts are heard, but are not ready."""
    story.now += seconds
    story.hear(*hosts)
    story.do(c.Tick())


@pytest.mark.parametrize(("limit_s", "profile_s"), [(60.0, None), (600.0, 60.0), (None, None)])
def test_hosts_have_the_time_of_their_command_before_the_job(limit_s: float | None, profile_s: float | None) -> None:
    """Only after its limit, by the profile, the queue or the cluster, are they given up; without one they are not."""
    rule = AroundJob(host_pre="mount", pre_limit_s=limit_s)
    profile = Application("md", around=AroundJob(pre_limit_s=profile_s))
    story = cluster_with(queue=rule, profile=profile, slots=1)
    story.join(a_host("n2", 1))
    job = story.submit(each(2, application="md"))
    story.plan()
    waits_for_staging(story, 60 + Policy().staging_timeout_s - 1, "n1", "n2")
    assert story.state(job) is S.STAGING
    waits_for_staging(story, 2, "n1", "n2")
    assert story.state(job) is (S.STAGING if limit_s is None else S.PEND)
    if limit_s is None:
        waits_for_staging(story, 1e6, "n1", "n2")
        story.cluster = reborn(story.cluster)
        assert story.state(job) is S.STAGING


def test_hosts_of_a_growth_have_that_time_too() -> None:
    """The growth is not given up, and the new host not avoided, before the limit of the command is over."""
    rule = AroundJob(host_pre="mount", pre_limit_s=60.0)
    story = cluster_with(queue=rule, slots=1)
    elastic = story.run(a_job(tasks_min=1, tasks_max=2, resizable=True))
    story.join(a_host("n2", 1))
    story.plan()
    waits_for_staging(story, 60 + Policy().staging_timeout_s - 1, "n1", "n2")
    assert story.cluster.attempts[elastic].resizing.growth
    waits_for_staging(story, 2, "n1", "n2")
    assert not story.cluster.attempts[elastic].resizing.growth


@pytest.mark.parametrize("is_element", [False, True])
def test_tries_are_counted_over_a_restart(is_element: bool) -> None:
    """So are the post-execution commands of ended jobs, those not told of yet included."""
    story = cluster_with(queue=AroundJob(tries_max=2))
    index = 1 if is_element else 0
    job = story.submit(a_job(array="1-2") if is_element else a_job())
    fails(story, job, index)
    story.cluster = reborn(story.cluster)
    story.back("n1")
    pause(story)
    fails(story, job, index)
    assert story.state(job, index) is S.PSUSP


def ends(story: Story, key: Key, post: PostState, status: int = 0) -> Outcome:
    """The host reports the end of the job, and that of its commands."""
    is_over = post is not PostState.AWAITED
    return story.do(c.ReportFinished("n1", key, status, story.now, also_released=is_over, post=post))


def test_bkill_ends_the_commands_of_an_ended_job() -> None:
    """Its first host is told; when they have ended, or where none are awaited, the job is over for good."""
    story = cluster_with()
    key = story.run(a_job())
    ends(story, key, PostState.AWAITED)
    orders = story.kill(key.job).orders
    assert [(one.host, one.key, one.signal) for one in orders if isinstance(one, SignalOrder)] == [("n1", key, 0)]
    orders = story.do(c.SignalJob(story.target(key.job), 9, ANN)).orders
    assert [one.key for one in orders if isinstance(one, SignalOrder)] == [key]
    with pytest.raises(Refused, match="finished"):
        story.do(c.SignalJob(story.target(key.job), 10, ANN))
    with pytest.raises(Refused, match="denied"):
        story.do(c.KillJob(story.target(key.job), BOB))
    ends(story, key, PostState.ERR)
    with pytest.raises(Refused, match="finished"):
        story.kill(key.job)


def test_bkill_ends_the_commands_of_ended_elements() -> None:
    """Of those that are named, or of all; the others of the array are ended as ever."""
    story = cluster_with()
    array = story.submit(a_job(array="1-3"))
    story.plan()
    one, two, three = (story.key(array, index) for index in (1, 2, 3))
    for key in (one, two):
        story.started("n1", key)
        ends(story, key, PostState.AWAITED)
    story.started("n1", three)
    orders = story.do(c.KillJob(c.Target(array, Ranges([range(2, 3)])), ANN)).orders
    assert [order.key for order in orders if isinstance(order, SignalOrder)] == [two]
    orders = story.do(c.KillJob(c.Target(array), ANN)).orders
    assert {order.key for order in orders if isinstance(order, SignalOrder)} == {one, two, three}


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(
    ("condition", "post", "starts"),
    [
        ("post_done({})", PostState.DONE, True),
        ("post_done({})", PostState.ERR, False),
        ("post_err({})", PostState.ERR, True),
        ("post_err({})", PostState.DONE, False),
    ],
)
def test_a_job_waits_for_the_commands_of_another(condition: str, post: PostState, starts: bool, at_once: bool) -> None:
    """The end of the job alone is not enough, whatever it was; a job that only waits for that starts."""
    story = cluster_with()
    key = story.run(a_job())
    waits = story.submit(a_job(dependency=condition.replace("{}", str(key.job))))
    for_end = story.submit(a_job(dependency=f"ended({key.job})"))
    if not at_once:
        ends(story, key, PostState.AWAITED, 1 << 8)
        story.plan()
        assert (story.state(waits), story.state(for_end)) == (S.PEND, S.STAGING)
    outcome = ends(story, key, post, 1 << 8)
    assert [one.post for one in outcome.events if isinstance(one, e.PostExecEnded)] == [post]
    assert not any(isinstance(one, e.PostExecEnded) for one in ends(story, key, post, 1 << 8).events)
    story.plan()
    assert story.state(waits) is (S.STAGING if starts else S.PEND)
    if not starts:
        assert why(story, waits) == [r.NEVER_SATISFIED]


def test_commands_that_are_not_told_of_have_failed() -> None:
    """Their host has nothing of the job any more, and does not say how they ended."""
    story = cluster_with()
    key = story.run(a_job())
    ends(story, key, PostState.AWAITED)
    waits = story.submit(a_job(dependency=f"post_err({key.job})"))
    story.released("n1", key)
    story.plan()
    assert story.state(waits) is S.STAGING


def test_a_job_waits_for_the_commands_of_an_array() -> None:
    """Of all its elements, or element by element; also after a restart."""
    story = cluster_with(slots=8)
    array = story.submit(a_job(array="1-2"))
    story.plan()
    one, two = (story.key(array, index) for index in (1, 2))
    for key in (one, two):
        story.started("n1", key)
        ends(story, key, PostState.AWAITED)
    whole = story.submit(a_job(dependency=f"post_done({array})"))
    never = story.submit(a_job(dependency=f"post_err({array}[1])"))
    each_one = story.submit(a_job(array="1-2", dependency=f"post_done({array}[*])"))
    ends(story, one, PostState.DONE)
    story.plan()
    assert [story.state(each_one, index) for index in (1, 2)] == [S.STAGING, S.PEND]
    assert (story.state(whole), why(story, never)) == (S.PEND, [r.NEVER_SATISFIED])
    story.cluster = reborn(story.cluster)
    ends(story, two, PostState.ERR)
    assert why(story, whole) == [r.NEVER_SATISFIED]
    assert story.state(each_one, 2) is S.PEND


@pytest.mark.parametrize("whose", ["job", "queue", "profile"])
def test_a_job_waits_for_an_agent_that_runs_its_commands(whose: str) -> None:
    """An agent of an earlier version leaves them out; jobs without commands run there, and brun says why it refuses."""
    rule = AroundJob(host_pre="check") if whose == "queue" else AROUND
    profile = Application("app", around=AroundJob(job_post="clean") if whose == "profile" else AroundJob())
    story = cluster_with(queue=rule, profile=profile)
    story.join(a_host("n1", lacks_commands=True))
    application = "app" if whose == "profile" else ""
    job = story.submit(
        replace_shared(a_job(application=application), special=SpecialOptions(has_commands=whose == "job"))
    )
    other = story.submit(a_job(queue="idle"))
    story.plan()
    assert (story.state(job), story.state(other)) == (S.PEND, S.STAGING)
    assert why(story, job) == [r.LACKS_COMMANDS]
    with pytest.raises(Refused, match="without pre- and post-execution commands"):
        story.do(c.ForceJob(story.target(job), ROOT, (("n1", 0),)))
    story.join(a_host("n2"))
    story.plan()
    assert story.where(job) == ["n2"]


def test_a_job_waits_for_an_agent_that_makes_checkpoints() -> None:
    """-k: an agent of an earlier version would make none; other jobs run there."""
    story = cluster_with(queue=AROUND)
    story.join(a_host("n1", lacks_checkpoints=True))
    job = story.submit(replace_shared(a_job(), special=SpecialOptions(checkpointable=True)))
    other = story.submit(a_job())
    story.plan()
    assert (story.state(job), story.state(other)) == (S.PEND, S.STAGING)
    assert why(story, job) == [r.LACKS_CHECKPOINTS]
    with pytest.raises(Refused, match="makes no checkpoints"):
        story.do(c.ForceJob(story.target(job), ROOT, (("n1", 0),)))


def test_a_job_waits_for_an_agent_that_copies_its_files() -> None:
    """-f: an agent of an earlier version would leave the copies out; other jobs run there."""
    story = cluster_with(queue=AROUND)
    story.join(a_host("n1", lacks_copies=True))
    job = story.submit(replace_shared(a_job(), special=SpecialOptions(has_copies=True)))
    other = story.submit(a_job())
    story.plan()
    assert (story.state(job), story.state(other)) == (S.PEND, S.STAGING)
    assert why(story, job) == [r.LACKS_COPIES]
    with pytest.raises(Refused, match="copies no files"):
        story.do(c.ForceJob(story.target(job), ROOT, (("n1", 0),)))
    story.join(a_host("n2"))
    story.plan()
    assert story.where(job) == ["n2"]


def test_an_upgraded_host_takes_jobs_with_commands() -> None:
    """Its agent says so when it comes back; the queue has had commands since a reconfiguration."""
    story = cluster_with()
    story.join(a_host("n1", lacks_commands=True))
    first = story.submit(a_job())
    policy = story.cluster.configured
    queues = tuple(replace(one, around=AroundJob(host_post="clean")) for one in policy.queues)
    story.do(c.Reconfigure(replace(policy, queues=queues)))
    story.plan()
    assert story.state(first) is S.PEND
    story.join(a_host("n1"))
    story.plan()
    assert story.state(first) is S.STAGING
