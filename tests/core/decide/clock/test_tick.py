"""Several timer events of one job in one tick: each is decided in the state that the one before it leaves.

Each of these once stopped the master, and again at each restart, since the same events were due then.
"""

from lavad.core import commands as c
from lavad.core.model import LOAD_INDICES, JobState
from lavad.core.model.policy import Policy
from lavad.core.model.rules.queues import Queue, Threshold
from lavad.core.orders import SignalOrder
from lavad.simulator.cluster.restart import reborn
from tests.builders import Story, a_host, a_job
from tests.core.decide.clock.test_windows import in_minutes

S = JobState
BUSY = (Threshold("r1m", 1.0, 2.0),)


def story_of(queue: Queue) -> Story:
    """Two hosts and that queue, after the first tick."""
    story = Story(a_host("n1", 2), a_host("n2", 2), policy=Policy(queues=(queue,)))
    story.do(c.Tick())
    return story


def load(story: Story, host: str, r1m: float) -> None:
    """The host reports that run queue."""
    story.cluster.observe_load(host, [r1m if name == "r1m" else 0.0 for name in LOAD_INDICES])


def test_staging_is_given_up_when_the_window_closes() -> None:
    """The job waits again, and is not suspended: it runs nowhere."""
    story = story_of(Queue("normal", run_windows=(in_minutes(-5, 10),)))
    story.now += 9.9 * 60
    story.hear("n1", "n2")
    job = story.submit(a_job(4))
    story.plan()
    story.now += story.cluster.policy.staging_timeout_s + 1
    story.hear("n1", "n2")
    story.do(c.Tick())
    assert story.state(job) is S.PEND


def test_hosts_fall_silent_when_the_window_closes() -> None:
    """The host can't be told to suspend the job: it is lost, and nothing else happens."""
    story = story_of(Queue("normal", run_windows=(in_minutes(-5, 10),)))
    key = story.run(a_job(4))
    story.wait(900)
    assert story.state(key.job) is S.UNKWN


def test_the_window_opens_while_a_suspended_job_is_lost() -> None:
    """The host gets the signal when it is back."""
    story = story_of(Queue("normal", run_windows=(in_minutes(-5, 10), in_minutes(30, 90))))
    key = story.run(a_job())
    for minutes, state in ((10, S.SSUSP), (5, S.UNKWN), (20, S.UNKWN)):
        story.now += 60 * minutes
        story.hear("n2", *(["n1"] if state is S.SSUSP else []))
        story.do(c.Tick())
        assert story.state(key.job) is state
    orders = story.back("n1", story.runs_there("n1", key))
    assert story.state(key.job) is S.RUN
    assert [order.signal for order in orders if isinstance(order, SignalOrder)] == [18]
    assert not story.cluster.attempts[key].suspended


def test_the_window_closes_while_a_job_is_lost() -> None:
    """It is suspended when its host is heard again, also after a restart of the master."""
    story = story_of(Queue("normal", run_windows=(in_minutes(-5, 10), in_minutes(30, 90))))
    key = story.run(a_job())
    story.wait(300)
    story.wait(400)
    assert story.state(key.job) is S.UNKWN
    story.cluster = reborn(story.cluster)
    story.do(c.Tick())
    orders = story.back("n1", story.runs_there("n1", key))
    assert story.state(key.job) is S.SSUSP
    assert [order.signal for order in orders if isinstance(order, SignalOrder)] == [19]


def test_one_host_falls_silent_when_another_is_too_busy() -> None:
    """The job that both hold is lost with its lead host, and is not to be suspended any more."""
    story = story_of(Queue("normal", thresholds=BUSY))
    key = story.run(a_job(4))
    load(story, "n2", 5.0)
    story.now += 900
    story.hear("n2")
    story.do(c.Tick())
    assert story.where(key.job)[0] == "n1"
    assert story.state(key.job) is S.UNKWN


def test_the_window_closes_when_the_load_has_fallen() -> None:
    """The job that was suspended for load stays suspended, for the window now."""
    story = story_of(Queue("normal", thresholds=BUSY, run_windows=(in_minutes(-5, 10),)))
    key = story.run(a_job())
    load(story, "n1", 5.0)
    story.do(c.Tick())
    assert story.cluster.attempts[key].suspended.keys() == {"load"}
    story.now += 600
    story.hear("n1", "n2")
    load(story, "n1", 0.0)
    story.do(c.Tick())
    assert story.cluster.attempts[key].suspended.keys() == {"window"}
    assert story.state(key.job) is S.SSUSP
