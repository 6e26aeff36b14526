"""Warnings of idle and faulty GPUs of running jobs, and the limit that ends or requeues a job."""

from dataclasses import replace

import pytest

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.activity_events import JobWarned
from lavad.core.apply.charge import observe
from lavad.core.model import JobState, Key
from lavad.core.model.gpu_use import GpuIdleRule, GpuUse
from lavad.core.model.policy import Policy
from lavad.core.model.rules.queues import Queue
from lavad.core.model.usage import HostUsage
from tests.builders import Story, a_cluster, a_host, a_job, each

S = JobState


def a_site(**rule: object) -> Story:
    """One host with two GPUs; the queue's rule about idle ones."""
    queue = Queue("normal", gpu_idle=GpuIdleRule(**rule))  # type: ignore[arg-type]
    return a_cluster(a_host("n1", gpus=2), policy=Policy(queues=(queue,)))


def a_gpu_job(story: Story, gpus: int = 2) -> Key:
    """A running job with GPUs."""
    key = story.run(a_job(gpus=gpus))
    story.started("n1", key)
    return key


def said(story: Story, key: Key, *uses: GpuUse) -> list[e.Event]:
    """Decision of the master when the host reports this use."""
    observe(story.cluster, "n1", ((key, HostUsage(gpus=uses)),))
    return story.do(c.CheckGpus("n1", key)).events


def texts(events: list[e.Event]) -> list[str]:
    """The warnings among events."""
    return [event.text for event in events if isinstance(event, JobWarned)]


def test_an_idle_gpu_is_told_once_until_it_was_in_use() -> None:
    """The warning names device, time, power and the utilisation that says otherwise; it is repeated after a use."""
    story = a_site(warn_s=600.0)
    key = a_gpu_job(story)
    busy, idle = GpuUse(0, power_w=500.0), GpuUse(1, power_w=71.0, utilisation=1.0, idle_s=599.0)
    assert texts(said(story, key, busy, idle)) == []
    story.wait(1)
    assert texts(said(story, key, busy, replace(idle, idle_s=600.0))) == [
        "GPU 1 of n1 has been idle for 600 seconds: it draws 71 W, whatever its utilisation (100%)"
    ]
    story.wait(100)
    assert texts(said(story, key, busy, replace(idle, idle_s=700.0))) == []
    story.wait(1000)
    story.hear("n1")
    assert len(texts(said(story, key, busy, replace(idle, idle_s=650.0)))) == 1
    assert len(story.cluster.attempts[key].warnings) == 1


def test_a_fault_is_told_with_the_words_of_the_driver() -> None:
    """A device that is lost under a running job is a warning, once; another fault is another one."""
    story = a_site()
    key = a_gpu_job(story)
    assert texts(said(story, key, GpuUse(0, trouble="GPU is lost"))) == ["GPU 0 of n1: GPU is lost"]
    assert texts(said(story, key, GpuUse(0, trouble="GPU is lost"))) == []
    assert texts(said(story, key, GpuUse(0, trouble="Unknown Error"))) == ["GPU 0 of n1: Unknown Error"]


def test_each_of_many_idle_gpus_is_told_once() -> None:
    """However many a job has: the last warnings are shown, and what was said before is not said again."""
    queue = Queue("normal", gpu_idle=GpuIdleRule(warn_s=600.0))
    story = a_cluster(a_host("n1", slots=32, gpus=32), policy=Policy(queues=(queue,)))
    key = a_gpu_job(story, 32)
    uses = [GpuUse(index, idle_s=600.0) for index in range(32)]
    assert len(texts(said(story, key, *uses))) == 32
    story.wait(60)
    story.hear("n1")
    assert texts(said(story, key, *[replace(use, idle_s=660.0) for use in uses])) == []
    assert len(story.cluster.attempts[key].warnings) == 20


def test_a_report_leads_to_warnings_about_its_own_host() -> None:
    """Those of others come with theirs: a large job's reports would cost their number squared."""
    queue = Queue("normal", gpu_idle=GpuIdleRule(warn_s=600.0, limit_s=900.0))
    story = a_cluster(*(a_host(f"n{number}", gpus=1) for number in (1, 2)), policy=Policy(queues=(queue,)))
    key = story.run(each(4, gpus=1, tasks_min=2, tasks_max=2))
    idle = HostUsage(gpus=(GpuUse(0, idle_s=1000.0),))
    for name in ("n1", "n2"):
        observe(story.cluster, name, ((key, idle),))
    events = story.do(c.CheckGpus("n2", key)).events
    assert [text.split(" has")[0] for text in texts(events)] == ["GPU 0 of n2"]
    assert any(isinstance(event, e.JobSignalled) for event in events)  # all of them are idle for too long


@pytest.mark.parametrize("requeues", [False, True])
def test_the_limit_counts_when_all_gpus_are_idle(requeues: bool) -> None:
    """One busy device keeps the job; with all idle it is ended with that reason, or requeued."""
    story = a_site(limit_s=900.0, requeues=requeues)
    key = a_gpu_job(story)
    idle = GpuUse(0, power_w=71.0, idle_s=900.0)
    assert not [event for event in said(story, key, idle, GpuUse(1, power_w=400.0)) if not isinstance(event, JobWarned)]
    ended = said(story, key, idle, replace(idle, index=1))[-1]
    if requeues:
        assert isinstance(ended, e.JobDoomed)
        assert (ended.again, ended.reason) == (True, "all its GPUs were idle for 900 seconds")
    else:
        assert isinstance(ended, e.JobSignalled)
        assert (ended.signal, ended.reason[:13]) == (0, "TERM_GPU_IDLE")
    assert said(story, key, idle, replace(idle, index=1)) == []


def test_without_a_limit_nothing_is_ended() -> None:
    """The limit is off unless a site sets it; warnings are on."""
    story = a_site()
    key = a_gpu_job(story, gpus=1)
    events = said(story, key, GpuUse(0, power_w=71.0, idle_s=1e6))
    assert [type(event) for event in events] == [JobWarned]
    assert story.state(key.job) is S.RUN


def test_a_queue_says_what_differs_from_the_cluster() -> None:
    """Watts of the queue replace the cluster's fraction, and the other way round; the rest stays."""
    cluster = GpuIdleRule(600.0, 0.0, 0.2, 3600.0, requeues=True)
    assert GpuIdleRule(power_w=150.0).over(cluster) == GpuIdleRule(600.0, 150.0, 0.0, 3600.0, requeues=True)
    assert GpuIdleRule(warn_s=0.0).over(cluster) == replace(cluster, warn_s=0.0)
