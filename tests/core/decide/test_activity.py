"""Jobs that hang, and hosts without a process of their job: what the master makes of the reports of hosts."""

from typing import TYPE_CHECKING, Any

import pytest

from lavad.core import activity_events as a
from lavad.core import commands as c
from lavad.core import task_events as t
from lavad.core.model import JobState, Key
from lavad.core.model.activity import ACTIVE
from lavad.core.model.task_rules import TaskAction, TaskEvent, TaskPhase
from lavad.core.orders import StacksOrder
from lavad.core.step import Outcome
from tests.builders import ANN, Story, a_host, a_job
from tests.task_jobs import NONE, TaskStory, a_policy, a_task_role, stops

if TYPE_CHECKING:
    from protos.common_pb2 import Role

HANGS = TaskEvent.HANGS
RESTART = (a_policy(HANGS),)


def started(story: Story, hosts: int = 2) -> Key:
    """A job on two slots a host runs."""
    job = story.submit(a_job(2 * hosts))
    story.plan()
    key = story.key(job)
    names = [share.host for share in story.cluster.attempts[key].allocation]
    for name in names:
        story.staged(name, key)
    story.started(names[0], key)
    return key


def activity(story: Story, key: Key, host: str, inactive_s: float = 0.0, unused_s: float = 0.0) -> Outcome:
    return story.do(c.ReportActivity(host, key, inactive_s, unused_s))


def all_inactive(story: Story, key: Key, seconds: float = 300.0) -> Outcome:
    """Each host of the job says so; the outcome of the last."""
    outcome = Outcome()
    for name in sorted(story.cluster.attempts[key].unreleased):
        outcome = activity(story, key, name, seconds)
    return outcome


def saved(story: Story, key: Key, host: str, number: int = 1, path: str = "/out/stacks") -> Outcome:
    return story.do(c.ReportStacks(host, key, number, path, "" if path else "there is no room"))


def later(story: Story, seconds: float) -> Outcome:
    """Time passes in which all hosts are heard."""
    story.now += seconds
    story.hear(*story.cluster.hosts)
    return story.do(c.Tick())


def kinds(outcome: Outcome) -> list[str]:
    return [type(one).__name__ for one in outcome.events]


@pytest.fixture
def two() -> Story:
    return Story(a_host("h1", 2), a_host("h2", 2))


# -- hangs -------------------------------------------------------------------------------------------------------------


def test_a_job_hangs_only_if_all_its_hosts_say_so(two: Story) -> None:
    """It is told once, and the stacks of all hosts are asked for; nothing is ended."""
    key = started(two)
    assert kinds(activity(two, key, "h1", 300)) == ["PartActivity"]
    outcome = activity(two, key, "h2", 300)
    assert kinds(outcome) == ["PartActivity", "JobHangs"]
    assert [(one.host, one.number) for one in outcome.orders if isinstance(one, StacksOrder)] == [("h1", 1), ("h2", 1)]
    assert kinds(activity(two, key, "h2", 310)) == []
    later(two, 3600)
    assert two.state(key.job) is JobState.RUN
    assert two.cluster.attempts[key].activity.hang is not None


def test_one_part_that_works_again_ends_the_hang(two: Story) -> None:
    """The next one counts anew, and asks for stacks anew."""
    key = started(two)
    all_inactive(two, key)
    assert kinds(activity(two, key, "h1")) == ["PartActivity", "JobActive"]
    assert two.cluster.attempts[key].activity.hang is None
    outcome = activity(two, key, "h1", 300)
    assert [(one.host, one.number) for one in outcome.orders if isinstance(one, StacksOrder)] == [("h1", 2), ("h2", 2)]


def test_a_suspended_job_does_not_hang_nor_does_one_that_was_resumed_just_now(two: Story) -> None:
    """Reports about the time in which it was stopped count no more."""
    key = started(two)
    two.do(c.StopJob(two.target(key.job), ANN))
    assert kinds(all_inactive(two, key)) == ["PartActivity"]
    two.do(c.ResumeJob(two.target(key.job), ANN))
    assert kinds(activity(two, key, "h2", 300)) == ["PartActivity"]
    assert kinds(activity(two, key, "h1", 300)) == ["PartActivity", "JobHangs"]


def test_a_job_with_a_silent_host_does_not_hang(two: Story) -> None:
    """Nothing is known of that part."""
    key = started(two)
    activity(two, key, "h2", 300)
    two.now += 20
    two.hear("h1")
    two.do(c.Tick())
    assert two.state(key.job) is JobState.UNKWN
    assert kinds(activity(two, key, "h1", 300)) == ["PartActivity"]


def test_what_a_host_said_counts_until_its_next_session(two: Story) -> None:
    """Its agent says all anew after a hello; what it said before may have changed meanwhile."""
    key = started(two)
    activity(two, key, "h2", 300)
    two.back("h2", two.runs_there("h2", key))
    assert two.cluster.attempts[key].activity is ACTIVE
    assert kinds(activity(two, key, "h1", 300)) == ["PartActivity"]
    assert kinds(activity(two, key, "h2", 300)) == ["PartActivity", "JobHangs"]


def test_a_job_hangs_when_its_last_active_part_leaves(two: Story) -> None:
    """The host is given back, and nothing works on those that stay; the time counts from the last of these."""
    job = two.submit(a_job(tasks_min=1, tasks_max=4, resizable=True))
    two.plan()
    key = two.key(job)
    two.staged("h1", key)
    two.staged("h2", key)
    two.started("h1", key)
    two.do(c.ShrinkJob(two.target(job), "2*h2", ANN))
    two.do(c.ReportResized("h1", key, two.cluster.attempts[key].version))
    activity(two, key, "h1", 300)
    two.now += 20
    outcome = two.released("h2", key)
    (hang,) = [one for one in outcome.events if isinstance(one, a.JobHangs)]
    assert hang.inactive_s == 320


def test_a_job_hangs_when_contact_is_back_and_nothing_works(two: Story) -> None:
    """The other host had said so meanwhile, and says it once."""
    key = started(two)
    activity(two, key, "h2", 300)
    two.now += 20
    two.hear("h1")
    two.do(c.Tick())
    activity(two, key, "h1", 300)
    assert "JobHangs" in kinds(two.do(c.AgentHeard("h2")))


def test_reports_about_other_attempts_and_from_other_hosts_are_dropped(two: Story) -> None:
    """Whatever comes late, or twice."""
    key = started(two)
    assert kinds(two.do(c.ReportActivity("h9", key, 300))) == []
    assert kinds(two.do(c.ReportActivity("h1", key._replace(attempt=7), 300))) == []
    assert kinds(saved(two, key, "h1")) == []
    assert two.cluster.attempts[key].activity is ACTIVE


# -- policies ----------------------------------------------------------------------------------------------------------


def workers(*policies: Any, tasks: int = 4, **rules: Any) -> tuple[TaskStory, Key]:
    story = TaskStory(a_host("h1", 2), a_host("h2", 2))
    key = story.begin(a_task_role(tasks=tasks), policies=policies, **{"restarts_max": 3, **rules})
    story.runs(key)
    return story, key


def test_a_policy_acts_when_the_stacks_of_all_hosts_are_saved() -> None:
    """Not before: nothing would be left to look at."""
    story, key = workers(*RESTART)
    assert not stops(all_inactive(story, key).orders)
    assert not stops(saved(story, key, "h1").orders)
    outcome = saved(story, key, "h2", path="")
    assert stops(outcome.orders) == {"h1": [(0, 0, 1), (0, 1, 1)], "h2": [(0, 2, 1), (0, 3, 1)]}
    assert kinds(outcome)[:2] == ["StacksSaved", "HangEnded"]
    story.stops(key)
    story.runs(key)
    assert story.phases(key) == "RRRR"
    assert story.tasks(key).restarts == 1
    assert story.cluster.attempts[key].activity.hang is None


def test_a_host_that_saves_no_stacks_delays_the_policy_for_a_while_only() -> None:
    """It may hang itself."""
    story, key = workers(*RESTART)
    all_inactive(story, key)
    saved(story, key, "h1")
    later(story, 60)
    assert story.phases(key) == "RRRR"
    later(story, 20)
    assert story.phases(key) == "TTTT"


def test_a_job_that_is_active_again_while_its_stacks_are_saved_is_left_alone() -> None:
    """Nothing is ended that works."""
    story, key = workers(*RESTART)
    all_inactive(story, key)
    saved(story, key, "h1")
    assert kinds(activity(story, key, "h2")) == ["PartActivity", "JobActive"]
    saved(story, key, "h2")
    later(story, 600)
    assert story.phases(key) == "RRRR"


def test_a_hang_without_a_policy_for_it_does_nothing() -> None:
    """Nor is it counted with the failures of the job."""
    story, key = workers(a_policy(TaskEvent.FAILED))
    all_inactive(story, key)
    for host in ("h1", "h2"):
        saved(story, key, host)
    later(story, 600)
    assert story.phases(key) == "RRRR"
    assert not any(isinstance(one, t.TasksConcluded) for one in story.events)


def test_hangs_use_up_the_restarts_of_the_job() -> None:
    """A job that hangs each time ends."""
    story, key = workers(*RESTART, restarts_max=1)
    for number in (1, 2):
        all_inactive(story, key)
        for host in ("h1", "h2"):
            saved(story, key, host, number)
        story.stops(key)
        if number == 1:
            assert kinds(activity(story, key, "h1")) == []
            story.runs(key)
    assert story.job(key.job).state is JobState.EXIT
    verdicts = [one.verdict.reason for one in story.events if isinstance(one, t.TasksConcluded)]
    assert verdicts == ["task worker[0] hangs, after 1 restart"]


def test_tasks_that_are_being_started_do_not_hang() -> None:
    """A job of which a part waits for others, or that is restarted for another reason."""
    story = TaskStory(a_host("h1", 2), a_host("h2", 2))
    key = story.begin(a_task_role(tasks=4), policies=RESTART, restarts_max=3)
    story.runs(key, (0, 0), (0, 1), (0, 2))
    assert "JobHangs" not in kinds(all_inactive(story, key))
    story.runs(key, (0, 3))
    activity(story, key, "h1")
    assert "JobHangs" in kinds(activity(story, key, "h1", 300))


def test_a_host_of_ended_tasks_takes_no_part() -> None:
    """It has nothing to say: the job hangs if those that run do."""
    story, key = workers(*RESTART)
    for index in (2, 3):
        story.ends(key, 0, index)
    assert "JobHangs" in kinds(activity(story, key, "h1", 300))


def test_a_job_hangs_when_its_last_active_tasks_have_ended() -> None:
    """The tasks of one host hang, those of the other end: no host has anything new to say about its part."""
    story, key = workers()
    activity(story, key, "h1", 300)
    story.ends(key, 0, 2)
    outcome = story.ends(key, 0, 3)
    assert "JobHangs" in kinds(outcome)


def test_the_role_whose_policy_names_hangs_is_the_one_that_is_restarted() -> None:
    """Others run on."""
    story = TaskStory(a_host("h1", 2), a_host("h2", 2))
    policy = a_policy(HANGS, action=TaskAction.RESTART_ROLE)
    roles: tuple[Role, ...] = (a_task_role("server", 2), a_task_role("worker", 2, policies=[policy]))
    key = story.begin(*roles, restarts_max=3)
    story.runs(key)
    all_inactive(story, key)
    for host in ("h1", "h2"):
        saved(story, key, host)
    assert story.phases(key) == "RRTT"


# -- hosts without a process -------------------------------------------------------------------------------------------


def test_an_unused_host_is_told_once_and_again_when_it_is_used(two: Story) -> None:
    """Each change is one line."""
    key = started(two)
    assert kinds(activity(two, key, "h2", unused_s=60)) == ["HostUnused"]
    assert dict(two.cluster.attempts[key].activity.unused) == {"h2": two.now - 60}
    assert kinds(activity(two, key, "h2", unused_s=75)) == []
    outcome = activity(two, key, "h2")
    assert [one.seconds for one in outcome.events if isinstance(one, a.HostUnused)] == [0]
    assert two.cluster.attempts[key].activity is ACTIVE


def test_hosts_whose_tasks_wait_or_have_ended_are_not_unused() -> None:
    """Only where tasks are to run by the table, such as those that hold slots for the ranks of a launcher."""
    story = TaskStory(a_host("h1", 2), a_host("h2", 2), a_host("h3", 2))
    key = story.begin(a_task_role("launcher", 2), a_task_role("held", 2, launch=NONE), a_task_role("last", 2))
    assert kinds(activity(story, key, "h1", unused_s=60)) == []
    story.runs(key)
    assert kinds(activity(story, key, "h2", unused_s=60)) == ["HostUnused"]
    for index in (0, 1):
        story.ends(key, 2, index)
    assert story.task(key, 2, 0).phase is TaskPhase.DONE
    assert kinds(activity(story, key, "h3", unused_s=60)) == []
