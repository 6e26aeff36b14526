"""Locks of hosts: no new jobs there, those that run are suspended; by an administrator, for a while or without end."""

import pytest

from lavad.core import commands as c
from lavad.core.model import LOCK, JobState
from lavad.core.model.reasons import Refused
from lavad.core.queries.pending_reasons import explain
from tests.builders import ANN, ROOT, Story, a_host, a_job


def test_a_locked_host_takes_no_jobs_and_suspends_its_own() -> None:
    """Until it is unlocked; the pending reason is LSF's."""
    story = Story(a_host("n1", 2))
    job = story.run(a_job()).job
    story.do(c.LockHost("n1", ROOT))
    assert story.state(job) is JobState.SSUSP
    waiting = story.submit(a_job())
    story.plan()
    assert story.state(waiting) is JobState.PEND
    texts = [one.text for one in explain(story.cluster, story.cluster.jobs[waiting], 0, story.now)]
    assert any("Host is locked by LSF administrator" in text for text in texts)
    story.do(c.UnlockHost("n1", ROOT))
    assert story.state(job) is JobState.RUN
    story.plan()
    assert story.state(waiting) is not JobState.PEND


def test_a_lock_ends_with_its_time() -> None:
    """By the clock, at the next tick."""
    story = Story(a_host("n1", 2))
    job = story.run(a_job()).job
    story.do(c.LockHost("n1", ROOT, 60.0))
    story.now += 30
    story.hear("n1")
    story.do(c.Tick())
    assert story.state(job) is JobState.SSUSP
    story.now += 31
    story.hear("n1")
    story.do(c.Tick())
    assert story.state(job) is JobState.RUN
    assert story.cluster.hosts["n1"].lock is None


def test_who_may_lock() -> None:
    """Administrators; what is not locked can't be unlocked."""
    story = Story(a_host("n1", 2))
    with pytest.raises(Refused, match="permission denied"):
        story.do(c.LockHost("n1", ANN))
    with pytest.raises(Refused, match="n1: Host is not locked"):
        story.do(c.UnlockHost("n1", ROOT))
    with pytest.raises(Refused, match="n9: Bad host name"):
        story.do(c.LockHost("n9", ROOT))
    assert LOCK not in story.cluster.locked_hosts
