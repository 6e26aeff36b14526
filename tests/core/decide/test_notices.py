"""Notices that jobs get before lava ends or suspends them: the event, the time before it, and what is not delayed."""

from dataclasses import replace

import pytest

from agents.attempts import resizes
from lavad.core import commands as c
from lavad.core import events as e
from lavad.core import notices
from lavad.core.apply.charge import observe_progress
from lavad.core.model import HostShare, JobState, SpecialOptions
from lavad.core.model.policy import Policy
from lavad.core.model.progress import SAVED_EVERY_S, Progress
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.queues import Queue
from lavad.core.notices import NoticeOrder
from lavad.core.orders import SignalOrder
from lavad.core.queries.start_estimate import Confidence, forecast
from lavad.core.scheduling.queueing.ordering import Ranking
from lavad.simulator.cluster.restart import reborn
from tests.builders import ANN, BEGIN, Story, a_cluster, a_host, a_job, in_one_go

QUEUES = (
    Queue("normal", 30, warning_time_s=20.0, terminate_when=frozenset({"PREEMPT", "WINDOW"})),
    Queue("urgent", 50, preempts=(("normal", 0),)),
)


@pytest.fixture
def story() -> Story:
    """One host of four slots; jobs of its low queue get twenty seconds before they are requeued."""
    return a_cluster(a_host("n1", 4), policy=Policy(queues=QUEUES, warning_time_max_s=60.0))


def signals(orders: list[object]) -> list[tuple[str, float]]:
    """Event and time of the notices of signal orders."""
    return [(one.notice.event, one.notice.seconds) for one in orders if isinstance(one, SignalOrder)]


def test_master_and_agents_know_the_same_longest_notice_of_a_shrink() -> None:
    """Hosts that leave are told a time that those that stay keep to."""
    assert notices.SHRINK_MAX_S == resizes.NOTICE_MAX_S


def test_another_signal_does_not_take_the_notice_before_the_end_back(story: Story) -> None:
    """A host that is told again, after a hello, gives the job its time all the same."""
    victim = story.run(a_job(4))
    story.submit(a_job(4, queue="urgent"))
    story.plan()
    story.do(c.SignalJob(story.target(victim.job), 10, ANN))
    assert story.cluster.attempts[victim].warned == "preempt"


@pytest.mark.parametrize(("own", "waits"), [(0.0, 20.0), (45.0, 45.0), (900.0, 60.0)])
def test_a_victim_has_its_warning_time(story: Story, own: float, waits: float) -> None:
    """The job's own, else its queue's, never more than the site allows; the preemptor's claim lasts as much longer."""
    job = a_job(4)
    victim = story.run(job._replace(shared=replace(job.shared, special=SpecialOptions(warning_time_s=own))))
    urgent = story.submit(a_job(4, queue="urgent"))
    orders = story.plan()
    assert signals(list(orders)) == [("preempt", waits)]
    assert story.cluster.attempts[victim].warned == "preempt"
    (claim,) = [claim for claim in story.cluster.claims.values() if claim.job == urgent]
    assert claim.until == story.now + story.cluster.policy.claim_timeout_s + waits


def test_a_host_that_comes_back_gives_the_same_notice(story: Story) -> None:
    """Also from a master that was restarted meanwhile."""
    victim = story.run(a_job(4))
    story.submit(a_job(4, queue="urgent"))
    story.plan()
    held = c.HeldAttempt(victim, c.ReportStarted("n1", victim, 1, story.now), True)
    hello = c.AgentHello(story.cluster.hosts["n1"].offered, 7, (held,))
    assert signals(list(story.do(hello).orders)) == [("preempt", 20.0)]


def test_what_users_do_is_told_and_not_delayed(story: Story) -> None:
    """A kill, a requeue and a suspension come at once, with their event."""
    first, second, third = (story.run(a_job(1)) for _ in range(3))
    killed = story.do(c.KillJob(c.Target(first.job), ANN)).orders
    requeued = story.do(c.RequeueJob(c.Target(second.job), ANN, frozenset({JobState.RUN}))).orders
    stopped = story.do(c.StopJob(c.Target(third.job), ANN)).orders
    assert [signals(list(orders)) for orders in (killed, requeued, stopped)] == [
        [("terminate", 0.0)],
        [("requeue", 0.0)],
        [("suspend", 0.0)],
    ]


def told(story: Story, key: object, at: float, left_s: float) -> bool:
    """Progress of an attempt, as its host tells it."""
    return observe_progress(story.cluster, "n1", key, Progress(at, 50.0, left_s), story.now)  # type: ignore[arg-type]


def test_the_newest_progress_counts_and_is_kept_once_a_minute(story: Story) -> None:
    """An older report changes nothing; a stranger's neither; what is kept comes back with the attempt."""
    key = story.run(a_job(4, run_limit_s=600))
    assert told(story, key, story.now, 100)
    story.do(c.ReportProgress("n1", key, Progress(story.now, 50.0, 100)))
    assert not told(story, key, story.now - 5, 300)
    assert not observe_progress(story.cluster, "n9", key, Progress(story.now, 99.0), story.now)
    progress = story.cluster.attempts[key].progress
    assert progress is not None
    assert progress.seconds_left == 100
    story.now += SAVED_EVERY_S
    assert told(story, key, story.now, 40)
    assert any(isinstance(one, e.ProgressReported) for one in story.events)


def test_an_estimate_believes_a_shorter_time_and_promises_nothing(story: Story) -> None:
    """The report counts where it is earlier than the run limit and still to come; reservations do not hear of it."""
    key = story.run(a_job(4, run_limit_s=600))
    job = story.submit(a_job(4, run_limit_s=60))

    def estimate() -> tuple[float | None, Confidence, object]:
        record = story.cluster.jobs[job]
        seen = in_one_go(forecast(story.cluster, Ranking(story.cluster, story.now), record))
        return seen.start_at, seen.confidence, seen.promised

    before = estimate()
    assert before[0] == BEGIN + 600
    told(story, key, story.now, 120)
    assert estimate() == (BEGIN + 120, Confidence.REPORTED, ())
    told(story, key, story.now, 5000)
    assert estimate() == before
    told(story, key, story.now, 30)
    story.now += 60
    story.hear("n1")
    assert estimate() == before


def test_a_kept_word_outlives_the_master(story: Story) -> None:
    """Progress and the pending notice are in the attempt's row."""
    victim = story.run(a_job(4))
    story.do(c.ReportProgress("n1", victim, Progress(story.now, 12.5, 9.0, "epoch 3", "worker", 2, "n1")))
    story.submit(a_job(4, queue="urgent"))
    story.plan()
    again = reborn(story.cluster).attempts[victim]
    assert again.progress == Progress(story.now, 12.5, 9.0, "epoch 3", "worker", 2, "n1")
    assert again.warned == "preempt"
    assert again.allocation == (HostShare("n1", 4, 0, (), (4,)),)


def test_a_shrink_is_announced_where_the_job_leaves() -> None:
    """To the hosts that it gives up, for as long as those that stay wait; it counts as adapted later by that time."""
    queue = Queue("normal", 30, warning_time_s=20.0)
    story = a_cluster(a_host("n1", 2), a_host("n2", 2), policy=Policy(queues=(queue,), resize_timeout_s=60.0))
    key = story.run(a_job(1, tasks_max=4, resizable=True))
    orders = story.do(c.ShrinkJob(c.Target(key.job), "n2", ANN)).orders
    (notice,) = [one for one in orders if isinstance(one, NoticeOrder)]
    assert (notice.host, notice.event, notice.at) == ("n2", "shrink", story.now + 20)
    assert story.cluster.attempts[key].resizing.due == story.now + 80


def test_an_action_without_a_time_is_refused_where_the_queue_has_none(story: Story) -> None:
    """It would never be taken; the sentence says what is missing."""
    asked = c.Asked(("urgent",), has_warning_action=True)
    with pytest.raises(Refused, match="-wa needs -wt, since queue urgent has no JOB_ACTION_WARNING_TIME"):
        story.do(c.SubmitJob(a_job(1, queue="urgent"), ANN, asked))
    assert story.do(c.SubmitJob(a_job(1), ANN, replace(asked, queues=("normal",)))).reply.job
    by_checkpoint = c.Asked(("normal",), has_warning_action=True, warns_by_checkpoint=True)
    with pytest.raises(Refused, match="-wa CHKPNT needs a job that has checkpoints"):
        story.do(c.SubmitJob(a_job(1), ANN, by_checkpoint))
    job = a_job(1)
    saved = job._replace(shared=replace(job.shared, special=SpecialOptions(warning_time_s=60.0, checkpointable=True)))
    assert story.do(c.SubmitJob(saved, ANN, by_checkpoint)).reply.job
