"""Holders of reservations, and jobs tried again after changes other than freed resources."""

import pytest

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.apply.events import apply_event
from lavad.core.model import JobState, Key
from lavad.core.model.policy import Policy
from lavad.core.model.rules.queues import Queue
from lavad.core.scheduling.backfill.profile import PoolProfile
from lavad.core.scheduling.fast import easy
from tests.builders import BOB, ROOT, Story, a_cluster, a_host, a_job

RULES = Policy(queues=(Queue("normal", 30, backfill_depth=1), Queue("urgent", 50), Queue("other", 20)))


@pytest.fixture(params=["short way", "long way"])
def story(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Story:
    """Four slots, three of them held by a job for ten minutes; both ways of a pass must have the same result."""
    if request.param == "long way":
        monkeypatch.setattr(easy, "entries_of", lambda cluster, worklist: None)
    story = a_cluster(a_host("n1", 4), policy=RULES)
    story.run(a_job(3, run_limit_s=600))
    return story


def delayed_by(story: Story, run_limit_s: int, queue: str = "normal") -> int:
    """Submit a job of one slot that fits, and may not start."""
    job = story.submit(a_job(run_limit_s=run_limit_s, queue=queue))
    story.plan()
    assert story.state(job) is JobState.PEND
    return job


def test_a_start_that_was_long_in_coming_moves_the_reservation() -> None:
    """A job of ten minutes is dispatched, and starts 20 s later: a job that takes no longer fits before its end."""
    story = a_cluster(a_host("n1", 4), policy=RULES)
    number = story.submit(a_job(3, run_limit_s=600))
    story.plan()
    story.submit(a_job(4, run_limit_s=600))
    story.now += 10
    job = delayed_by(story, 600)
    story.now += 10
    story.started("n1", story.key(number))
    story.plan()
    assert story.state(job) is JobState.STAGING


def test_more_time_for_what_runs_moves_it_too(story: Story) -> None:
    """bmod -W of a running job."""
    story.submit(a_job(4, run_limit_s=600))
    job = delayed_by(story, 900)
    story.do(c.ModifyJob(c.Target(1), a_job(3, run_limit_s=1200), ROOT, "", frozenset({"run_limit_s"})))
    assert story.worklist.has_work(story.cluster, story.now), "else nobody would begin a pass"
    story.plan()
    assert story.state(job) is JobState.STAGING


def holders(story: Story) -> list[tuple[int, int]]:
    """Holders of reservations, after a job of highest rank was submitted."""
    story.plan()
    delayed_by(story, 9000, queue="other")
    return [(one.job, one.index) for one in story.worklist.reservation_table.reservations]


def test_whoever_is_put_on_hold_holds_no_reservation(story: Story) -> None:
    """Other jobs like it are pending."""
    first, second = story.submit(a_job(4, run_limit_s=600)), story.submit(a_job(4, run_limit_s=600))
    assert holders(story) == [(first, 0)]
    story.do(c.StopJob(c.Target(first), ROOT))
    assert holders(story) == [(second, 0)]


def test_whoever_is_moved_back_leaves_the_reservation_to_the_next(story: Story) -> None:
    """Other jobs like it stay in their place."""
    first, second = story.submit(a_job(4, run_limit_s=600)), story.submit(a_job(2, run_limit_s=600))
    story.submit(a_job(4, run_limit_s=600))
    assert holders(story) == [(first, 0)]
    story.move(first, -1, ROOT)
    assert holders(story) == [(second, 0)]


def test_an_element_that_is_killed_leaves_the_reservation_to_the_next(story: Story) -> None:
    """The array keeps its place."""
    array = story.submit(a_job(4, array="1-2", run_limit_s=600))
    assert holders(story) == [(array, 1)]
    story.kill(array, "1")
    assert holders(story) == [(array, 2)]


def test_what_starts_before_the_reservation_lets_others_start(story: Story) -> None:
    """An urgent job takes the last slots for long; the reservation begins later, and a short job fits before it."""
    story = a_cluster(a_host("n1", 4), a_host("n2", 2), policy=RULES)
    story.run(a_job(4, run_limit_s=600))
    story.submit(a_job(6, run_limit_s=600))
    job = delayed_by(story, 900)
    urgent = story.submit(a_job(run_limit_s=1000, queue="urgent"))
    story.plan()
    assert story.state(urgent) is JobState.STAGING
    assert story.state(job) is JobState.STAGING


def test_whoever_is_held_back_goes_before_a_new_one_behind_it(story: Story) -> None:
    """A more urgent job without a predictable start takes the reservation over: no job has to wait for it."""
    story.submit(a_job(4, run_limit_s=600))
    job = delayed_by(story, 900)
    story.do(c.SubmitJob(a_job(40, priority=0), ROOT))
    first = story.submit(a_job(40))
    story.move(first, 1, ROOT)
    late = story.submit(a_job(run_limit_s=900))
    story.plan()
    assert (story.state(job), story.state(late)) == (JobState.STAGING, JobState.PEND)


def test_whoever_asks_for_no_less_than_was_refused_is_not_asked_for(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many jobs that would delay the first one only one is tried, if none is smaller or shorter."""
    monkeypatch.setattr(easy, "entries_of", lambda cluster, worklist: None)
    asked: list[float] = []
    look = PoolProfile.free_until

    def noted(profile: PoolProfile, end: float) -> int:
        asked.append(end)
        return look(profile, end)

    monkeypatch.setattr(PoolProfile, "free_until", noted)
    story.submit(a_job(4, run_limit_s=600))
    for run_limit_s in (700, 800, 900, 650, 660):
        story.submit(a_job(run_limit_s=run_limit_s))
    story.plan()
    assert [end - story.now for end in asked] == [700, 650]


def test_a_bucket_stands_where_its_next_job_stands(story: Story) -> None:
    """The first of two equal jobs is killed: the other ranks behind the one that was submitted between them."""
    story.run(a_job())
    first, between, second = story.submit(a_job(2)), story.submit(a_job(3)), story.submit(a_job(2))
    story.plan()
    story.kill(first)
    story.finished("n1", story.key(1))
    story.plan()
    assert (story.state(between), story.state(second)) == (JobState.STAGING, JobState.PEND)


def test_an_array_that_was_moved_starts(story: Story) -> None:
    """bbot and btop still treat it as an array."""
    story.run(a_job())
    array, other = story.submit(a_job(array="1-2")), story.submit(a_job())
    story.move(array, -1, ROOT)
    story.finished("n1", story.key(1))
    story.plan()
    assert Key(array, 2, 1) in story.cluster.attempts
    assert story.state(other) is JobState.STAGING


def test_equal_places_of_two_queues_are_served_by_number() -> None:
    """A move may give two jobs the same position, in queues of one priority."""
    story = a_cluster(a_host("n1", 1), policy=Policy((Queue("normal", 30), Queue("other", 30))))
    story.run(a_job())
    first, moved = story.submit(a_job(memory_mib=1)), story.submit(a_job(queue="other"))
    story.plan()
    apply_event(story.cluster, e.JobMoved(story.now, moved, story.cluster.jobs[first].position, 0.0, "root", 1))
    story.finished("n1", story.key(1))
    story.plan()
    assert (story.state(first), story.state(moved)) == (JobState.STAGING, JobState.PEND)


def test_a_host_that_opens_is_thought_of_anew() -> None:
    """While it was closed the first blocked job had no predictable start; now another job may delay it."""
    story = a_cluster(a_host("n1", 4), a_host("n2", 2), policy=RULES)
    story.do(c.CloseHost("n2", ROOT))
    story.run(a_job(2, run_limit_s=600))
    story.run(a_job())
    first = story.submit(a_job(5, memory_mib=1, run_limit_s=600))
    story.run(a_job(run_limit_s=600))
    assert [(one.job, one.start_at) for one in story.worklist.reservation_table.reservations] == [(first, float("inf"))]
    long = story.submit(a_job(2, run_limit_s=900))
    story.plan()
    story.do(c.OpenHost("n2", ROOT))
    story.plan()
    assert story.state(long) is JobState.PEND


def test_a_second_reservation_goes_to_whoever_is_second_by_now() -> None:
    """A job gets a rank between two with reservations, although nothing has become free."""
    queues = Queue("normal", 30, backfill_depth=2), Queue("urgent", 30, backfill_depth=2)
    story = a_cluster(a_host("n1", 4), policy=Policy(queues, user_priority_max=10))
    story.run(a_job(4, run_limit_s=600))
    first, last = story.submit(a_job(2, priority=9)), story.submit(a_job(3))
    story.plan()
    between = story.submit(a_job(4, priority=8))
    story.plan()
    assert [one.job for one in story.worklist.reservation_table.reservations] == [first, between]
    assert story.state(last) is JobState.PEND


def test_a_short_job_of_any_queue_goes_before_a_long_one_that_is_held_back(story: Story) -> None:
    """Their queue makes no reservations itself, but has to respect that of another."""
    story.submit(a_job(4, run_limit_s=600))
    long = delayed_by(story, 900, queue="other")
    short = story.submit(a_job(run_limit_s=300, queue="other"))
    story.plan()
    assert (story.state(short), story.state(long)) == (JobState.STAGING, JobState.PEND)


@pytest.mark.parametrize("with_array", [False, True])
def test_whoever_is_asked_again_in_a_pass_has_his_turn_in_it(with_array: bool) -> None:
    """An array makes the pass use the plain way: a job delayed before is tried first all the same."""
    story = a_cluster(a_host("n1", 20), policy=Policy(queues=(RULES.queues[0], Queue("urgent", 50))))
    story.run(a_job(10, run_limit_s=100))
    story.submit(a_job(18, run_limit_s=50))
    held = story.submit(a_job(3, run_limit_s=150))
    story.plan()
    assert story.state(held) is JobState.PEND
    story.submit(a_job(3, queue="urgent", run_limit_s=200))
    story.submit(a_job(7, run_limit_s=50, array="1-1" if with_array else ""))
    story.plan()
    assert story.state(held) is JobState.STAGING


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("memory_mib", [0, 10])
def test_a_bucket_whose_first_job_was_forced_to_run_stands_where_its_next_one_does(depth: int, memory_mib: int) -> None:
    """brun of the first of two: another user's job submitted between them ranks before the second."""
    story = a_cluster(a_host("n1", 4), a_host("n2", 4), policy=Policy((Queue("normal", 30, backfill_depth=depth),)))
    _, second = story.run(a_job(4, hosts=("n1",))), story.run(a_job(4, hosts=("n2",)))
    one_host = {"memory_mib": memory_mib, "one_host": True} if memory_mib else {}
    first = story.submit(a_job(4, **one_host))
    others, last = story.submit(a_job(4, caller=BOB, **one_host)), story.submit(a_job(4, **one_host))
    story.plan()
    story.do(c.ForceJob(story.target(first), ROOT, (("n1", 0),)))
    story.plan()
    story.finished("n2", second)
    story.plan()
    assert (story.state(others), story.state(last)) == (JobState.STAGING, JobState.PEND)
