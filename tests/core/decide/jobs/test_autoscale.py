"""Sizes of elastic roles that follow a metric: within bounds, not too often, and never at the cost of pending jobs."""

from lavad.core import commands as c
from lavad.core import task_events as t
from lavad.core.model import JobState, Key
from lavad.core.step import Outcome
from protos.jobs_pb2 import Autoscale
from tests.builders import a_host, a_job
from tests.core.decide.jobs.test_scale import adapt, leave, sizes
from tests.task_jobs import TaskStory, a_task_role, a_task_spec, submission


def run(story: TaskStory, cooldown_s: float = 30, **fields: object) -> Key:
    """Run an elastic job with a rule."""
    rule = Autoscale(role="worker", metric="script", command="x", interval_s=1, limit_s=1, cooldown_s=cooldown_s)
    for name, value in fields.items():
        setattr(rule, name, value)
    spec = a_task_spec(a_task_role("worker", 1, 6))
    spec.tasks.autoscale.CopyFrom(rule)
    job = story.do(submission(spec)).reply.job
    story.plan()
    key = story.key(job)
    story.stage(key)
    story.runs(key)
    return key


def asks(story: TaskStory, key: Key, tasks: int, error: str = "") -> Outcome:
    """The script has printed a number, or failed."""
    host = story.cluster.attempts[key].allocation[0].host
    return story.do(c.ReportWanted(host, key, tasks, error))


def test_the_size_follows_the_script_within_its_bounds() -> None:
    """And not more often than the cooldown allows."""
    story = TaskStory(a_host("n1", 6))
    key = run(story, least=2, most=5)
    assert sizes(story, key) == [6]
    asks(story, key, 3)
    assert sizes(story, key) == [3]
    leave(story, key)
    assert asks(story, key, 5).events == []  # within the cooldown
    story.now += 31
    asks(story, key, 100)
    story.plan()
    adapt(story, key)
    assert sizes(story, key) == [5]
    assert asks(story, key, 5).events == []
    story.runs(key)
    story.now += 31
    asks(story, key, 0)
    assert sizes(story, key) == [2]


def test_growth_waits_for_pending_jobs() -> None:
    """The size asked for is a wish like any other."""
    story = TaskStory(a_host("n1", 3))
    key = run(story, cooldown_s=0)
    asks(story, key, 1)
    leave(story, key)
    waiting = story.submit(a_job(2))
    asks(story, key, 3)
    story.plan()
    assert story.state(waiting) is JobState.STAGING
    assert sizes(story, key) == [1]


def test_a_script_without_an_answer_changes_nothing_and_is_told_once() -> None:
    """Until it answers again."""
    story = TaskStory(a_host("n1", 6))
    key = run(story)
    (event,) = asks(story, key, 0, "its script exits with 3").events
    assert isinstance(event, t.AutoscaleNoted)
    assert asks(story, key, 0, "its script exits with 3").events == []
    assert story.tasks(key).autoscale_error == "its script exits with 3"
    assert sizes(story, key) == [6]
    asks(story, key, 6)
    assert story.tasks(key).autoscale_error == ""


def test_the_size_follows_the_pending_slots_of_the_queue() -> None:
    """Without a script, at each tick."""
    story = TaskStory(a_host("n1", 6))
    key = run(story, cooldown_s=5, metric="pending-slots", command="", target=2)
    story.wait(1)
    assert sizes(story, key) == [1]
    leave(story, key)
    story.submit(a_job(64))
    story.now += 5
    story.hear("n1")
    story.wait(0)
    assert story.tasks(key).wishes == (6,)
