"""Exceptions of running jobs: what is an overrun, what is idle, and that each is told once an attempt."""

from lavad.core import activity_events as a
from lavad.core import commands as c
from lavad.core.model.policy import Policy
from lavad.core.model.rules.exceptions import ExceptionRule
from lavad.core.model.rules.queues import Queue
from lavad.core.model.usage import HostUsage
from tests.builders import Story, a_cluster, a_host, a_job

RULE = ExceptionRule(overrun_s=600.0, idle_factor=0.1)


def a_story(rule: ExceptionRule = RULE) -> Story:
    """A job that has started under these thresholds."""
    story = a_cluster(a_host("n1", 4), policy=Policy(queues=(Queue("normal", exceptions=rule),), idle_after_s=1200.0))
    job = story.submit(a_job())
    story.plan()
    story.started("n1", story.key(job))
    return story


def told(story: Story) -> list[str]:
    """Exceptions so far."""
    return [event.about for event in story.events if isinstance(event, a.JobWarned)]


def passes(story: Story, seconds: float) -> None:
    """Time passes in which the host reports."""
    story.now += seconds
    story.hear("n1")
    story.do(c.Tick())


def test_a_job_that_runs_too_long_is_told_once() -> None:
    """Beyond the minutes of JOB_OVERRUN, and never again."""
    story = a_story()
    passes(story, 590.0)
    assert told(story) == []
    passes(story, 20.0)
    passes(story, 20.0)
    assert told(story) == ["overrun"]


def test_a_job_is_idle_only_after_a_while() -> None:
    """It has DETECT_IDLE_JOB_AFTER to begin with its work."""
    story = a_story(ExceptionRule(idle_factor=0.1))
    passes(story, 1100.0)
    assert told(story) == []
    passes(story, 200.0)
    assert told(story) == ["idle"]


def test_a_job_that_computes_is_not_idle() -> None:
    """Its CPU time is a tenth of its run time or more."""
    story = a_story(ExceptionRule(idle_factor=0.1))
    (attempt,) = story.cluster.attempts.values()
    attempt.usage = {"n1": HostUsage(cpu_s=200.0)}
    passes(story, 1300.0)
    assert told(story) == []
    passes(story, 1300.0)
    assert told(story) == ["idle"]


def test_a_queue_without_thresholds_tells_nothing() -> None:
    """However long its jobs run."""
    story = a_story(ExceptionRule())
    passes(story, 1e6)
    assert told(story) == []
