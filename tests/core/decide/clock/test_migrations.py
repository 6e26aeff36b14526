"""MIG: jobs that the system has suspended for that long migrate by themselves."""

from dataclasses import replace

import pytest

from lavad.core import commands as c
from lavad.core.model import JobState, Key, SpecialOptions
from lavad.core.model.policy import Policy
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import TERM_CHKPNT, Refused
from lavad.core.model.rules.applications import Application
from lavad.core.model.rules.hosts import HostRule
from lavad.core.model.rules.queues import Queue
from lavad.simulator.cluster.restart import reborn
from tests.builders import ANN, ROOT, Story, a_cluster, a_host, a_job

S = JobState
HALF_AN_HOUR = 1800.0
HOSTS = (a_host("n1", 2), a_host("n2", 2), a_host("n3", 2))


def a_policy(**more: object) -> Policy:
    """Half an hour in its queue, ten minutes in a profile, none in another queue."""
    queues = (Queue("normal", 30, migration_s=HALF_AN_HOUR), Queue("plain", 20))
    return Policy(queues=queues, applications={"quick": Application("quick", migration_s=600.0)}, **more)  # type: ignore[arg-type]


def running(
    story: Story, kind: str = "rerunnable", slots: int = 1, array: str = "", own_s: float | None = None, **shared: str
) -> Key:
    """A job that runs and, as its kind says, may migrate."""
    job = a_job(slots, array=array)
    special = SpecialOptions(checkpointable=kind == "checkpointable", migration_s=own_s)
    own = replace(job.shared, rerunnable=kind == "rerunnable", special=special, **shared)  # type: ignore[arg-type]
    number = story.submit(job._replace(shared=own))
    story.plan()
    key = story.key(number, 1 if array else 0)
    for host in story.where(number, key.index):
        if len(story.where(number, key.index)) > 1:
            story.staged(host, key)
    story.started(story.where(number, key.index)[0], key)
    return key


def later(story: Story, seconds: float) -> None:
    """Let time pass; no host falls silent."""
    story.now += seconds
    story.hear("n1", "n2", "n3")
    story.do(c.Tick())


def is_leaving(story: Story, key: Key) -> bool:
    """It is being ended to run again, or its checkpoint is being made for that."""
    attempt = story.cluster.attempts[key]
    return bool(attempt.doomed and attempt.again) or attempt.checkpoints.migrates


def lock(story: Story, key: Key) -> str:
    """Suspend the job with its first host."""
    host = story.cluster.attempts[key].lead
    story.do(c.LockHost(host, ROOT))
    return host


@pytest.mark.parametrize(
    ("shared", "slots", "array", "after_s"),
    [
        ({}, 1, "", HALF_AN_HOUR),
        ({"application": "quick"}, 1, "", 600.0),
        ({"application": "quick", "queue": "plain"}, 1, "", 600.0),
        ({}, 4, "", HALF_AN_HOUR),
        ({}, 1, "1-3", HALF_AN_HOUR),
        ({"queue": "plain"}, 1, "", 0.0),
    ],
)
def test_a_job_migrates_when_it_was_suspended_for_its_threshold(
    shared: dict[str, str], slots: int, array: str, after_s: float
) -> None:
    """That of its profile comes before its queue's; without any it stays. A job on two hosts leaves both; of an array
    the element goes that is suspended."""
    story = a_cluster(*HOSTS, policy=a_policy())
    key = running(story, slots=slots, array=array, **shared)
    hosts = story.where(key.job, key.index)
    first = lock(story, key)
    later(story, (after_s or 10 * HALF_AN_HOUR) - 1)
    assert (story.state(key.job, key.index), is_leaving(story, key)) == (S.SSUSP, False)
    later(story, 1)
    assert is_leaving(story, key) is bool(after_s)
    if after_s:
        for host in hosts:
            story.finished(host, key, 9)
        story.plan()
        assert first not in story.where(key.job, key.index)


def test_a_checkpointable_job_migrates_by_a_checkpoint() -> None:
    """As with bmig: if that fails it stays, and is tried again later, over a restart of the master, too."""
    story = a_cluster(*HOSTS, policy=a_policy())
    key = running(story, "checkpointable")
    host = lock(story, key)
    later(story, HALF_AN_HOUR)
    asked = story.cluster.attempts[key].checkpoints.open
    assert asked is not None
    assert (asked.ends, asked.migrates) == (True, True)
    story.do(c.ReportCheckpoint(host, key, asked.number, story.now, "there is no room", ends=True))
    assert not is_leaving(story, key)
    later(story, 299)
    assert not is_leaving(story, key)
    story.cluster = reborn(story.cluster)
    for name in ("n1", "n2", "n3"):
        story.back(name, *([story.runs_there(name, key)] if name == host else []))
    later(story, 1)
    assert is_leaving(story, key)
    story.do(c.ReportFinished(host, key, 9, story.now, TERM_CHKPNT, also_released=True))
    story.plan()
    assert story.state(key.job) is S.STAGING


@pytest.mark.parametrize(
    ("host_s", "queue", "after_s"), [(60.0, "normal", 60.0), (9e3, "normal", 1.8e3), (60.0, "plain", 60.0)]
)
def test_a_hosts_threshold_counts_if_it_is_shorter(host_s: float, queue: str, after_s: float) -> None:
    """Or if the job has none."""
    story = a_cluster(*HOSTS, policy=a_policy(host_rules={"default": HostRule(migration_s=host_s)}))
    key = running(story, queue=queue)
    lock(story, key)
    later(story, after_s - 1)
    assert not is_leaving(story, key)
    later(story, 1)
    assert is_leaving(story, key)


def test_at_once() -> None:
    """MIG = 0: at the next tick, which is due then."""
    story = a_cluster(*HOSTS, policy=Policy(queues=(Queue("normal", 30, migration_s=0.0),)))
    key = running(story)
    lock(story, key)
    assert not is_leaving(story, key)
    assert story.cluster.migrations.next_at <= story.now
    later(story, 0)
    assert is_leaving(story, key)


@pytest.mark.parametrize(("own_s", "after_s"), [(60.0, 60.0), (9e3, 9e3), (0.0, 0.0)])
def test_a_jobs_own_threshold_comes_first(own_s: float, after_s: float) -> None:
    """-mig, also one that is longer than its queue's."""
    story = a_cluster(*HOSTS, policy=a_policy())
    key = running(story, own_s=own_s)
    lock(story, key)
    if after_s:
        later(story, after_s - 1)
        assert not is_leaving(story, key)
    later(story, 1)
    assert is_leaving(story, key)


def test_a_threshold_of_a_job_that_cannot_migrate_is_refused() -> None:
    """It would never count; in a queue of rerunnable jobs it does."""
    rerunning = Queue("again", 20, rerunnable=True)
    story = a_cluster(*HOSTS, policy=Policy(queues=(Queue("normal", 30), rerunning)))
    job = a_job()
    shared = replace(job.shared, special=SpecialOptions(migration_s=60.0))
    with pytest.raises(Refused, match="-mig needs a job that may migrate"):
        story.submit(job._replace(shared=shared))
    assert story.submit(job._replace(shared=replace(shared, queue="again")))


def test_who_stays() -> None:
    """Jobs that would lose what they have done, those that go on in time, and those that their user suspended: for them
    the time begins when the system alone keeps them suspended."""
    story = a_cluster(*HOSTS, policy=a_policy())
    lost, resumed, stopped = running(story, "neither"), running(story), running(story)
    hosts = {lock(story, one) for one in (lost, resumed, stopped)}
    story.do(c.StopJob(story.target(stopped.job), ANN))
    later(story, HALF_AN_HOUR / 2)
    for host in hosts - {story.cluster.attempts[stopped].lead}:
        story.do(c.UnlockHost(host, ROOT))
    later(story, HALF_AN_HOUR)
    assert not any(is_leaving(story, one) for one in (lost, resumed, stopped))
    story.do(c.ResumeJob(story.target(stopped.job), ANN))
    assert story.state(stopped.job) is S.SSUSP
    later(story, HALF_AN_HOUR - 1)
    assert not is_leaving(story, stopped)
    later(story, 1)
    assert is_leaving(story, stopped)


def test_a_changed_threshold_counts_for_suspended_jobs() -> None:
    """From their suspension on."""
    story = a_cluster(*HOSTS, policy=Policy(queues=(Queue("normal", 30),)))
    key = running(story)
    lock(story, key)
    later(story, HALF_AN_HOUR)
    story.do(c.Reconfigure(a_policy()))
    later(story, 0)
    assert is_leaving(story, key)


@pytest.mark.parametrize("array", ["", "1-2"])
@pytest.mark.parametrize(("before", "after", "leaves"), [("normal", "plain", False), ("plain", "normal", True)])
def test_a_switched_job_has_the_threshold_of_its_new_queue(before: str, after: str, leaves: bool, array: str) -> None:
    """From its suspension on; an element that is switched by itself, too."""
    story = a_cluster(*HOSTS, policy=a_policy())
    key = running(story, queue=before, array=array)
    lock(story, key)
    later(story, HALF_AN_HOUR / 2)
    new = a_job(array=array)._replace(shared=replace(story.cluster.jobs[key.job].shared, queue=after))
    one = Ranges([range(1, 2)]) if array else None
    target, fields = c.Target(key.job, one), frozenset({"queues"})
    story.do(c.ModifyJob(target, new, ANN, "queue", fields, is_switch=True, elements=one))
    later(story, HALF_AN_HOUR / 2)
    assert is_leaving(story, key) is leaves
