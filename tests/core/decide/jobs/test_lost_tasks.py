"""Elastic roles go on without tasks that were lost, and take them back later."""

from lavad.core import commands as c
from lavad.core.model import JobState, Key
from lavad.core.model.policy import Policy
from lavad.core.model.task_rules import TaskEvent, TaskKey, TaskPhase
from lavad.core.model.task_values import TaskReport
from tests.builders import ANN, a_host
from tests.core.decide.jobs.test_scale import adapt, sizes
from tests.task_jobs import NONE, TaskStory, a_policy, a_task_role

POLICY = Policy(avoid_host_s=60)


def killed(story: TaskStory, key: Key, role: int, index: int) -> None:
    """The task has ended by SIGKILL."""
    record = story.task(key, role, index)
    state = TaskReport(TaskKey(role, index), record.run, TaskPhase.EXITED, record.pid, story.now, story.now, 9)
    story.do(c.ReportTasks(record.host, key, (state,)))


def test_a_killed_task_leaves_and_is_replaced_later() -> None:
    """By a new one of the same index, after a while."""
    story = TaskStory(a_host("n1", 3), policy=POLICY)
    key = story.begin(a_task_role("worker", 1, 3))
    story.runs(key)
    killed(story, key, 0, 1)
    story.wait(0.1)
    assert (sizes(story, key), story.phases(key)) == ([2], "RWR")
    adapt(story, key)
    story.plan()
    assert sizes(story, key) == [2]
    story.wait(60)
    story.hear("n1")
    story.plan()
    adapt(story, key)
    assert (sizes(story, key), story.phases(key)) == ([3], "RSR")
    assert story.task(key, 0, 1).run == 2


def test_an_evicted_task_is_lost_however_it_ends() -> None:
    """Also one that has no process of its own."""
    story = TaskStory(a_host("n1", 4), policy=POLICY)
    key = story.begin(a_task_role("worker", 1, 3), a_task_role("held", 1, 1, launch=NONE))
    story.runs(key)
    story.do(c.KillJob(c.Target(key.job, role="worker", task=2), ANN))
    story.ends(key, 0, 2, 0)
    story.wait(0.1)
    assert sizes(story, key) == [2, 1]


def test_what_ends_by_itself_keeps_its_place() -> None:
    """Its exit code is the program's own word, and counts for the job."""
    story = TaskStory(a_host("n1", 3))
    key = story.begin(a_task_role("worker", 1, 3))
    story.runs(key)
    story.ends(key, 0, 1, 3)
    story.ends(key, 0, 2, 0)
    story.wait(0.1)
    assert sizes(story, key) == [3]


def test_the_minimum_and_policies_come_first() -> None:
    """A role at its minimum gives nothing up; a policy that restarts the task does so on its host."""
    story = TaskStory(a_host("n1", 5))
    key = story.begin(a_task_role("worker", 2, 3), a_task_role("fixed", 2, 2))
    story.runs(key)
    for role, index in ((0, 0), (0, 1), (1, 0)):
        killed(story, key, role, index)
    story.wait(0.1)
    assert sizes(story, key) == [2, 2]
    assert story.state(key.job) is JobState.RUN
    other = TaskStory(a_host("n1", 3))
    key = other.begin(a_task_role("worker", 1, 3), policies=[a_policy(TaskEvent.FAILED)], restarts_max=3)
    other.runs(key)
    killed(other, key, 0, 1)
    other.wait(0.1)
    assert sizes(other, key) == [3]
