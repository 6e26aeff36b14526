"""Conditions under which a pass begins: each is preceded by the question whether there is work, and by nothing else."""

from dataclasses import replace

from lavad.core import commands as c
from lavad.core.model import Alternative, JobState, Request
from lavad.core.model.policy import Policy, Queue
from tests.builders import Story, a_host, a_job, a_role


def is_idle(story: Story) -> bool:
    """True if no pass would begin now."""
    return not story.worklist.has_work(story.cluster, story.now)


def test_new_rules_let_a_pass_begin() -> None:
    """Nothing else has changed: whatever was decided under the former rules is looked at again."""
    policy = Policy(queues=(Queue("normal", backfill_depth=1),))
    story = Story(a_host("n1", 1), policy=policy)
    story.run(a_job())
    story.submit(a_job())
    story.plan()
    assert is_idle(story)
    story.do(c.Reconfigure(replace(policy, clean_period_s=60.0)))
    assert not is_idle(story)
    story.plan()
    assert is_idle(story)


def test_an_alternative_whose_time_has_come_lets_a_pass_begin() -> None:
    """Of two requests in braces the second counts only after a delay; no event falls on its end."""
    story = Story(a_host("n1", 1))
    roles, others = (a_role(1, select="maxslots > 9"),), (a_role(1),)
    job = story.submit(a_job(request=Request(roles, alternatives=(Alternative(others, delay_s=30),))))
    story.plan()
    assert is_idle(story)
    story.now += 29
    story.hear("n1")
    assert is_idle(story)
    story.now += 2
    assert not is_idle(story)
    story.plan()
    assert story.state(job) is JobState.STAGING


def test_growth_that_is_due_lets_a_pass_begin() -> None:
    """A waiting job that is killed frees nothing; some time later the elastic job is looked at by itself."""
    story = Story(a_host("n1", 2), a_host("n2", 2))
    first = story.run(a_job(2, hosts=("n1",)))
    elastic = story.run(a_job(tasks_min=1, tasks_max=4, resizable=True))
    waiting = story.submit(a_job(3))
    story.plan()
    story.finished("n1", first)
    story.plan()
    story.kill(waiting)
    story.plan()
    assert not story.cluster.attempts[elastic].resizing.growth
    assert is_idle(story)
    story.now += 3
    story.hear("n1", "n2")
    assert not is_idle(story)
    story.plan()
    assert story.cluster.attempts[elastic].resizing.growth
