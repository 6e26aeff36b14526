"""A silence of some seconds ends no job; commands on a job in UNKWN, and their answers."""

import pytest

from lavad.agent_links.host_log import HostLog
from lavad.core import commands as c
from lavad.core.model import JobState
from lavad.core.orders import Order, ReleaseOrder, SignalOrder
from tests.builders import ANN, ROOT, Story, a_host, a_job, each

S = JobState
REQUEUED = frozenset({S.STAGING, S.RUN, S.UNKWN, S.USUSP, S.SSUSP})


@pytest.fixture
def story() -> Story:
    """Three hosts with four slots each."""
    return Story(a_host("n1", 4), a_host("n2", 4), a_host("n3", 4))


def kinds(orders: list[Order]) -> list[tuple[str, str]]:
    """(kind, host) of each order."""
    return [(type(order).__name__.removesuffix("Order").lower(), order.host) for order in orders]


def _cut_off(story: Story, *names: str, seconds: float = 20.0) -> None:
    """Let these hosts be silent until the master detects it."""
    story.now += seconds
    story.hear(*(name for name in story.cluster.hosts if name not in names))
    story.do(c.Tick())


@pytest.mark.parametrize("silent", ["n1", "n2"])
def test_a_parallel_job_survives_the_silence_of_one_agent(story: Story, silent: str) -> None:
    """It was ended after 16 s: ``Failed as a whole: n2 of the job's hosts is lost``. It becomes UNKWN and continues."""
    key = story.run(each(2))
    _cut_off(story, silent)
    assert story.state(key.job) is S.UNKWN
    _cut_off(story, silent, seconds=3600)
    assert story.state(key.job) is S.UNKWN
    story.hear(silent)
    assert story.state(key.job) is S.RUN
    story.finished("n1", key)
    assert story.state(key.job) is S.DONE


def test_a_parallel_job_goes_on_when_the_last_of_its_hosts_is_back(story: Story) -> None:
    """Both hosts are silent from the same moment, and come back one after the other."""
    key = story.run(each(2))
    _cut_off(story, "n1", "n2")
    assert [type(event).__name__ for event in story.events].count("JobLost") == 1
    story.back("n1", story.runs_there("n1", key))
    assert story.state(key.job) is S.UNKWN
    story.back("n2", story.runs_there("n2", key))
    assert story.state(key.job) is S.RUN


def test_a_parallel_job_starts_while_another_of_its_hosts_is_silent(story: Story) -> None:
    """After the launch order the second host falls silent, and only then the first one reports the start."""
    job = story.submit(each(2))
    story.plan()
    key = story.key(job)
    for host in story.where(job):
        story.staged(host, key)
    _cut_off(story, "n2")
    story.started("n1", key)
    assert story.state(job) is S.UNKWN
    story.hear("n2")
    assert story.state(job) is S.RUN


def test_a_parallel_job_ends_by_itself_while_one_of_its_hosts_is_silent(story: Story) -> None:
    """Its command has ended on its first host: DONE; the slots of the silent host are free when it reports released."""
    key = story.run(each(2))
    _cut_off(story, "n2")
    story.finished("n1", key)
    assert story.state(key.job) is S.DONE
    assert key in story.cluster.hosts["n2"].attempts
    assert ("release", "n2") in kinds(story.back("n2", story.runs_there("n2", key)))


def test_a_rebooted_host_ends_a_parallel_job(story: Story) -> None:
    """It reports that it does not know the job, or lost it: the others are ordered to end their parts."""
    key = story.run(each(2))
    _cut_off(story, "n2")
    assert ("signal", "n1") in kinds(story.back("n2"))
    story.finished("n1", key, 2)
    assert story.state(key.job) is S.EXIT


def test_an_unknown_parallel_job_is_killed_where_it_can_be_reached(story: Story) -> None:
    """Its first host is connected: it ends now, and is no zombie."""
    key = story.run(each(2))
    _cut_off(story, "n2")
    outcome = story.kill(key.job)
    assert ("signal", "n1") in kinds(outcome.orders)
    assert not outcome.reply
    story.finished("n1", key, 2)
    assert story.state(key.job) is S.EXIT


def test_a_zombie_ends_its_parts_that_can_be_reached(story: Story) -> None:
    """Its first host is silent: the answer reports it, and the others are ordered to end their parts at once."""
    key = story.run(each(2))
    _cut_off(story, "n1")
    outcome = story.kill(key.job)
    assert story.state(key.job) is S.ZOMBI
    assert outcome.reply == "n1 is silent: the job ends when the host is back; bkill -r does not wait"
    assert [order.host for order in outcome.orders if isinstance(order, SignalOrder)] == ["n1", "n2"]


def test_a_removed_job_says_what_may_still_run(story: Story) -> None:
    """bkill -r: EXIT at once, and the answer names the hosts where it may still run."""
    key = story.run(a_job())
    _cut_off(story, "n1")
    reply = story.kill(key.job, remove=True).reply
    assert reply == "n1 is silent: what runs there may go on, and is killed when the host is back"
    assert story.state(key.job) is S.EXIT


@pytest.mark.parametrize("caller", [ANN, ROOT])
def test_brequeue_of_an_unknown_job_does_what_it_says(story: Story, caller: c.Caller) -> None:
    """It answered ``is being requeued``, without any effect until the host was back."""
    key = story.run(a_job())
    _cut_off(story, "n1")
    outcome = story.do(c.RequeueJob(story.target(key.job), caller, REQUEUED, False))
    assert outcome.reply == "n1 is silent: what runs there may go on, and is killed when the host is back"
    assert story.state(key.job) is S.PEND
    story.plan()
    assert story.where(key.job) != ["n1"]
    orders = story.back("n1", story.runs_there("n1", key))
    assert [order.key for order in orders if isinstance(order, ReleaseOrder)] == [key]


def test_brequeue_waits_for_the_hosts_that_can_be_reached(story: Story) -> None:
    """A parallel job of which one host is silent: the parts on the others are ended first, as always."""
    key = story.run(each(2))
    _cut_off(story, "n2")
    story.do(c.RequeueJob(story.target(key.job), ANN, REQUEUED, False))
    assert story.state(key.job) is S.UNKWN
    story.finished("n1", key, 2)
    assert story.state(key.job) is S.PEND
    assert key in story.cluster.hosts["n2"].attempts


def test_brequeue_does_not_wait_for_a_host_that_falls_silent_after_it(story: Story) -> None:
    """The last host that it waits for is silent by now, too."""
    key = story.run(each(2))
    _cut_off(story, "n2")
    story.do(c.RequeueJob(story.target(key.job), ANN, REQUEUED, False))
    _cut_off(story, "n1", "n2")
    assert story.state(key.job) is S.PEND


def test_brequeue_of_a_running_job_still_waits_for_its_hosts(story: Story) -> None:
    """Without a warning about a silent host nothing may run twice: it is requeued when the host has ended its part."""
    key = story.run(a_job())
    assert not story.do(c.RequeueJob(story.target(key.job), ANN, REQUEUED, False)).reply
    _cut_off(story, "n1")
    assert story.state(key.job) is S.UNKWN
    reply = story.do(c.RequeueJob(story.target(key.job), ANN, REQUEUED, False)).reply
    assert reply.startswith("n1 is silent")
    assert story.state(key.job) is S.PEND


def test_a_host_that_is_silent_is_told_at_warning(story: Story, caplog: pytest.LogCaptureFixture) -> None:
    """The journal had one line at INFO, ``session=closed``, without the loss or the number of jobs."""
    story.run(a_job())
    log = HostLog(story.cluster)
    _cut_off(story, "n1")
    log.notify(story.events)
    story.events.clear()
    story.now += 55
    story.hear("n1")
    log.notify(story.events)
    told = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert told == [
        ("WARNING", "host=silent name=n1 jobs=1 silent_s=20"),
        ("WARNING", "host=back name=n1 jobs=1 silent_s=75"),
    ]
