"""Windows and deadlines: effects on queues, jobs and hosts; several causes of a suspension at once."""

from dataclasses import replace
from datetime import UTC, datetime

from lavad.core import commands as c
from lavad.core.decide.clock.tick import wake_at
from lavad.core.model import JobState, Key
from lavad.core.model.policy import Policy
from lavad.core.model.rules.hosts import HostRule
from lavad.core.model.rules.queues import Queue
from lavad.core.model.windows import Window
from lavad.core.queries.pending_reasons import explain
from lavad.simulator.cluster.restart import reborn
from tests.builders import ANN, BEGIN, ROOT, Story, a_host, a_job

S = JobState


def in_minutes(begin: int, end: int) -> Window:
    """A window in minutes after the start of all stories."""
    now = datetime.fromtimestamp(BEGIN, UTC)
    minute = now.isoweekday() % 7 * 1440 + now.hour * 60 + now.minute
    return Window(minute + begin, minute + end)


def story_of(queue: Queue, **policy: object) -> Story:
    """A cluster with that queue, after its first tick."""
    story = Story(a_host("n1", 2), policy=Policy(queues=(queue,), **policy))  # type: ignore[arg-type]
    story.do(c.Tick())
    return story


def later(story: Story, minutes: float) -> None:
    """Time goes on, with the host heard."""
    story.now += 60 * minutes
    story.hear("n1")
    story.do(c.Tick())


def why(story: Story, job: int) -> list[str]:
    """Pending reason of a job."""
    return [reason.text for reason in explain(story.cluster, story.cluster.jobs[job], 0, story.now)]


def advice(story: Story, job: int) -> list[str]:
    """Advice for a pending job."""
    return [reason.advice for reason in explain(story.cluster, story.cluster.jobs[job], 0, story.now)]


def clock_after(minutes: int) -> str:
    """Time at a number of whole minutes after the start of all stories."""
    return f"{datetime.fromtimestamp(BEGIN + 60 * minutes, UTC):%a %b %e %H:%M}"


def test_terminate_when_the_window_closes() -> None:
    """TERMINATE_WHEN: killed instead of suspended, also while it is staged; a lost job is left alone."""
    queue = Queue("normal", run_windows=(in_minutes(-5, 10),), terminate_when=frozenset({"WINDOW"}))
    story = story_of(queue)
    runs, staged = story.run(a_job()), story.submit(a_job())
    story.plan()
    later(story, 10)
    assert orders(story, runs) == orders(story, story.key(staged)) == [0]
    later(story, 1)
    story.finished("n1", runs, 2)
    end = story.job(runs.job).end
    assert end is not None
    assert end.reason.startswith("TERM_WINDOW")


def orders(story: Story, key: Key) -> list[int]:
    """The newest signal noted for an attempt."""
    signal = story.cluster.attempts[key].last_signal
    return [signal[0]] if signal else []


def test_a_dispatch_window_lets_no_job_start_while_it_is_closed() -> None:
    """Running jobs go on; pending ones start when the window opens, without another event."""
    story = story_of(Queue("normal", dispatch_windows=(in_minutes(-5, 1), in_minutes(30, 60))))
    runs = story.run(a_job())
    later(story, 2)
    waits = story.submit(a_job())
    story.plan()
    assert story.state(waits) is S.PEND
    assert why(story, waits) == ["The queue is inactivated by its time windows"]
    assert advice(story, waits) == [f"they open next on {clock_after(30)}"]
    assert story.state(runs.job) is S.RUN
    assert wake_at(story.cluster, story.now) == BEGIN - BEGIN % 60 + 30 * 60
    later(story, 28)
    story.plan()
    assert story.state(waits) is S.STAGING


def test_jobs_of_a_queue_are_suspended_while_its_run_window_is_closed() -> None:
    """Also a job that was being staged, and after a restart; they are resumed when the window opens."""
    story = story_of(Queue("normal", run_windows=(in_minutes(-5, 10), in_minutes(30, 90))))
    runs = story.run(a_job())
    staged = story.submit(a_job())
    story.plan()
    later(story, 10)
    assert story.state(runs.job) is S.SSUSP
    assert story.state(staged) is S.STAGING
    story.started("n1", story.key(staged))
    assert story.state(staged) is S.SSUSP
    assert story.cluster.attempts[runs].suspended == {"window": "The run windows of the queue are closed"}
    story.cluster = reborn(story.cluster)
    story.join(a_host("n1", 2), tuple(story.runs_there("n1", key) for key in (runs, story.key(staged))))
    story.do(c.Tick())
    assert story.state(runs.job) is S.SSUSP
    later(story, 20)
    assert [story.state(job) for job in (runs.job, staged)] == [S.RUN, S.RUN]
    assert orders(story, runs) == [18]


def test_windows_that_the_rules_have_no_more_keep_nobody_back() -> None:
    """Suspended jobs and closed hosts are released with the new rules."""
    shut = {"n1": HostRule(dispatch_windows=(in_minutes(-5, 10),))}
    story = story_of(Queue("normal", run_windows=(in_minutes(-5, 10),)), host_rules=shut)
    runs = story.run(a_job())
    later(story, 12)
    assert story.state(runs.job) is S.SSUSP
    assert story.cluster.hosts["n1"].is_shut
    story.do(c.Reconfigure(Policy(queues=(Queue("normal"),))))
    later(story, 0)
    assert story.state(runs.job) is S.RUN
    assert not story.cluster.hosts["n1"].is_shut


def test_two_causes_keep_a_job_suspended() -> None:
    """A stopped job stays stopped when the window opens; a resumed one waits for the window."""
    story = story_of(Queue("normal", run_windows=(in_minutes(-5, 10), in_minutes(30, 90))))
    first, second = story.run(a_job()), story.run(a_job())
    for key in (first, second):
        story.do(c.StopJob(story.target(key.job), ANN))
    later(story, 12)
    story.do(c.ResumeJob(story.target(second.job), ANN))
    assert [story.state(key.job) for key in (first, second)] == [S.USUSP, S.SSUSP]
    assert orders(story, second) == [19]
    later(story, 20)
    assert [story.state(key.job) for key in (first, second)] == [S.USUSP, S.RUN]


def test_a_stop_wished_while_the_job_is_staged() -> None:
    """The suspension takes effect at the start, unless the user has resumed the job before."""
    story = Story(a_host("n1", 2))
    jobs = [story.submit(a_job()) for _ in range(2)]
    story.plan()
    for job in jobs:
        story.do(c.StopJob(story.target(job), ROOT))
    story.do(c.ResumeJob(story.target(jobs[1]), ROOT))
    for job in jobs:
        story.started("n1", story.key(job))
    assert [story.state(job) for job in jobs] == [S.USUSP, S.RUN]
    assert [orders(story, story.key(job)) for job in jobs] == [[19], []]


def test_a_job_that_would_not_end_in_time_is_not_started() -> None:
    """It would not end before its queue's window closes; a short one would; a queue may ignore the deadline."""
    queue = Queue("normal", run_windows=(in_minutes(-5, 10), in_minutes(30, 90)))
    for ignores in (False, True):
        story = story_of(replace(queue, ignores_deadline=ignores))
        long, short = story.submit(a_job(run_limit_s=1200)), story.submit(a_job(run_limit_s=300))
        story.plan()
        assert story.state(short) is S.STAGING
        assert (story.state(long) is S.STAGING) == ignores
        assert ignores or why(story, long) == ["Job will not finish before queue's run window is closed"]
        later(story, 30)
        story.plan()
        assert story.state(long) is S.STAGING


def test_a_job_that_would_not_end_before_its_deadline_is_not_started() -> None:
    """The pending reason says so, and the job ends at the deadline."""
    story = story_of(Queue("normal"))
    late = story.submit(a_job(run_limit_s=600, terminate_at=story.now + 500))
    fits = story.submit(a_job(run_limit_s=400, terminate_at=story.now + 500))
    story.plan()
    assert [story.state(job) for job in (late, fits)] == [S.PEND, S.STAGING]
    assert why(story, late) == ["Job will not finish on the host before job's termination deadline"]
    later(story, 10)
    assert story.state(late) is S.EXIT


def test_a_host_takes_no_jobs_while_its_dispatch_window_is_closed() -> None:
    """The pending reason says so."""
    rules = {"n1": HostRule(dispatch_windows=(in_minutes(30, 60),))}
    story = story_of(Queue("normal"), host_rules=rules)
    waits = story.submit(a_job())
    story.plan()
    assert why(story, waits) == ["Dispatch windows closed"]
    assert advice(story, waits) == [f"the first opens on {clock_after(30)}"]
    later(story, 30)
    story.plan()
    assert story.state(waits) is S.STAGING


def test_what_new_rules_close_is_closed_at_once() -> None:
    """A host and a queue: nothing starts between the reconfiguration and the next tick."""
    story = Story(a_host("n1", 2), policy=Policy(queues=(Queue("normal"), Queue("other"))))
    shut = (in_minutes(30, 60),)
    queues = (Queue("normal", dispatch_windows=shut), Queue("other"))
    story.do(c.Reconfigure(Policy(queues=queues)))
    first = story.submit(a_job(queue="normal"))
    story.plan()
    assert story.state(first) is S.PEND
    story.do(c.Reconfigure(Policy(queues=queues, host_rules={"n1": HostRule(dispatch_windows=shut)})))
    second = story.submit(a_job(queue="other"))
    story.plan()
    assert why(story, second) == ["Dispatch windows closed"]
    story.do(c.Reconfigure(Policy(queues=(Queue("normal"), Queue("other")))))
    story.plan()
    assert {story.state(first), story.state(second)} == {S.STAGING}


def test_a_host_that_joins_outside_its_window_takes_no_job() -> None:
    """None starts before the next tick either."""
    rules = {"default": HostRule(dispatch_windows=(in_minutes(30, 60),))}
    story = Story(policy=Policy(queues=(Queue("normal"),), host_rules=rules))
    job = story.submit(a_job())
    story.join(a_host("n1", 2))
    story.plan()
    assert story.state(job) is S.PEND
    later(story, 30)
    story.plan()
    assert story.state(job) is S.STAGING
