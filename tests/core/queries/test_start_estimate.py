"""Start estimates: time, confidence, and jobs ahead."""

import pytest

from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import Queue
from lavad.core.model.rules.resources import ComputeUnit
from lavad.core.queries.start_estimate import Confidence, StartEstimate, forecast
from lavad.core.scheduling.queueing.ordering import Ranking
from tests.builders import BEGIN, BOB, Story, a_cluster, a_host, a_job, in_one_go


def ask(story: Story, job: int, index: int = 0) -> StartEstimate:
    """Start estimate as of the story's present."""
    return in_one_go(forecast(story.cluster, Ranking(story.cluster, story.now), story.cluster.jobs[job], index))


@pytest.fixture
def story() -> Story:
    """Two hosts with four slots, in a queue that makes a reservation for the first blocked job."""
    queue = Queue("normal", 30, backfill_depth=1)
    return a_cluster(a_host("n1", 4), a_host("n2", 4), policy=Policy(queues=(queue, Queue("urgent", 50))))


def test_the_head_starts_when_enough_running_jobs_have_reached_their_limits(story: Story) -> None:
    """The second of two ends frees enough; all run limits are known, so it is firm."""
    story.run(a_job(4, run_limit_s=600))
    story.run(a_job(4, run_limit_s=900))
    job = story.submit(a_job(8, run_limit_s=60))
    seen = ask(story, job)
    assert (seen.start_at, seen.confidence, seen.ahead) == (BEGIN + 900, Confidence.FIRM, 0)
    assert [(share.host, share.slots) for share in seen.promised] == [("n1", 4), ("n2", 4)]


def test_jobs_ahead_are_played_first(story: Story) -> None:
    """It follows the job ahead, for as long as that one may run."""
    story.run(a_job(8, run_limit_s=600))
    story.submit(a_job(8, run_limit_s=100))
    job = story.submit(a_job(8, run_limit_s=60, caller=BOB))
    assert ask(story, job) == StartEstimate(BEGIN + 700, Confidence.ROUGH, 1)


def test_a_more_urgent_queue_goes_first(story: Story) -> None:
    """A job submitted later but of higher rank counts as ahead."""
    story.run(a_job(8, run_limit_s=600))
    job = story.submit(a_job(8, run_limit_s=60))
    story.submit(a_job(8, run_limit_s=100, queue="urgent"))
    assert ask(story, job) == StartEstimate(BEGIN + 700, Confidence.ROUGH, 1)


def test_without_run_limits_nothing_is_known(story: Story) -> None:
    """A job without a run limit has no expected end."""
    story.run(a_job(8))
    assert ask(story, story.submit(a_job(8))) == StartEstimate(None, Confidence.UNKNOWN, 0)


def test_one_unlimited_job_ahead_makes_it_rough() -> None:
    """It fits beside the job without a limit, if nothing else is submitted."""
    story = a_cluster(a_host("n1", 4), a_host("n2", 4))
    story.run(a_job(8, run_limit_s=600))
    story.submit(a_job(4))
    job = story.submit(a_job(4, run_limit_s=60, caller=BOB))
    assert ask(story, job) == StartEstimate(BEGIN + 600, Confidence.ROUGH, 1)


def test_an_overdue_job_is_expected_to_end_at_once(story: Story) -> None:
    """Its run limit has passed; the kill is under way."""
    story.run(a_job(8, run_limit_s=60))
    job = story.submit(a_job(8, run_limit_s=60))
    story.now += 100
    story.hear("n1", "n2")
    assert ask(story, job).start_at == story.now + 1


def test_elements_of_an_array_count_once_in_the_order_and_are_played_one_by_one(story: Story) -> None:
    """Three waves of two elements go before the job."""
    story.run(a_job(8, run_limit_s=100))
    story.submit(a_job(4, array="1-6", run_limit_s=50))
    job = story.submit(a_job(8, run_limit_s=10, caller=BOB))
    assert ask(story, job) == StartEstimate(BEGIN + 250, Confidence.ROUGH, 1)


def test_a_limit_is_free_when_those_who_use_it_have_ended() -> None:
    """The hosts are half empty, but alice may have four slots; slots released by bob's job do not help her."""
    queue = Queue("normal", 30, backfill_depth=1, user_slot_limit=4)
    story = a_cluster(a_host("n1", 8), a_host("n2", 8), policy=Policy(queues=(queue,)))
    story.run(a_job(4, run_limit_s=600))
    story.run(a_job(4, run_limit_s=60, caller=BOB))
    job = story.submit(a_job(2, run_limit_s=60))
    assert ask(story, job).start_at == BEGIN + 600


def test_nothing_is_promised_to_a_job_that_a_limit_holds_back() -> None:
    """L2: a job of a user at his limit was told of reserved slots, one of which a job behind it then took."""
    queue = Queue("normal", 30, backfill_depth=1, user_slot_limit=8)
    story = a_cluster(a_host("n1", 4), a_host("n2", 4), policy=Policy(queues=(queue,)))
    story.run(a_job(4, run_limit_s=600))
    job = story.submit(a_job(8, run_limit_s=600))
    seen = ask(story, job)
    assert (seen.start_at, seen.confidence, seen.promised) == (BEGIN + 600, Confidence.ROUGH, ())
    behind = story.submit(a_job(run_limit_s=1800, caller=BOB))
    story.plan()
    assert story.where(behind) == ["n2"]


def test_what_a_limit_keeps_back_is_not_in_the_way_of_others() -> None:
    """Alice's next job is ahead in the order, yet bob's starts before it; hers follows her own."""
    queue = Queue("normal", 30, backfill_depth=1, user_slot_limit=8)
    story = a_cluster(a_host("n1", 8), a_host("n2", 8), policy=Policy(queues=(queue,)))
    story.run(a_job(8, run_limit_s=600))
    story.run(a_job(8, run_limit_s=100, caller=BOB))
    story.submit(a_job(8, run_limit_s=60))
    job = story.submit(a_job(8, run_limit_s=60, caller=BOB))
    assert ask(story, job).start_at == BEGIN + 100


def test_nothing_changes_by_asking(story: Story) -> None:
    """Hosts, buckets and the worklist are as before."""
    story.run(a_job(8, run_limit_s=600))
    job = story.submit(a_job(8, run_limit_s=60))
    before = story.cluster.table.slots_free.copy(), len(story.cluster.pending), set(story.cluster.table.freed_hosts)
    ask(story, job)
    assert (before[0] == story.cluster.table.slots_free).all()
    assert before[1:] == (len(story.cluster.pending), set(story.cluster.table.freed_hosts))


def test_what_holds_no_place_in_the_order_has_no_forecast(story: Story) -> None:
    """A held job waits for its user, also when another of its class is pending."""
    story.submit(a_job(8))
    assert ask(story, story.submit(a_job(8, hold=True))) == StartEstimate(None, Confidence.UNKNOWN, 0)


def test_no_start_in_what_is_set_apart(story: Story) -> None:
    """From 50 s on a host is free, but for too short a time before a reservation begins there; it is again
    afterwards."""
    story.run(a_job(4, hosts=("n1",), run_limit_s=50))
    story.run(a_job(4, hosts=("n2",), run_limit_s=900))
    story.reserve(4, begin=100, end=400, hosts=("n1",))
    job = story.submit(a_job(4, caller=BOB, run_limit_s=200))
    assert ask(story, job).start_at == BEGIN + 400
    assert ask(story, story.submit(a_job(2, caller=BOB, run_limit_s=50))).start_at == BEGIN + 50


def test_a_closed_reservation_ends_its_jobs(story: Story) -> None:
    """One of its jobs has no run limit, and ends with it; for jobs of an open one no end is known."""
    story.run(a_job(4, hosts=("n2",), run_limit_s=900))
    one = story.reserve(4, end=400, hosts=("n1",))
    story.run(a_job(2, reservation=one.name))
    job = story.submit(a_job(4, caller=BOB, run_limit_s=200))
    assert ask(story, job).start_at == BEGIN + 400


def test_a_host_rests_first() -> None:
    """Free slots alone do not suffice between two dispatches to a host; jobs ahead do not start on one host at once
    either."""
    queue = Queue("normal", 30, backfill_depth=1, accept_interval=60.0)
    story = a_cluster(a_host("n1", 4), policy=Policy(queues=(queue,)))
    story.run(a_job(1, run_limit_s=600))
    ahead = story.submit(a_job(1, run_limit_s=600))
    job = story.submit(a_job(1, run_limit_s=600, caller=BOB))
    assert ask(story, ahead).start_at == BEGIN + 60
    assert ask(story, job).start_at == BEGIN + 120


def test_units_that_a_job_keeps_for_itself_come_back_with_its_end() -> None:
    """The rest of the unit is idle, and closed to other jobs until then."""
    unit = ComputeUnit("rack1", "rack", Names(False, frozenset({"n1", "n2"})))
    queue = Queue("normal", 30, backfill_depth=1)
    policy = Policy(queues=(queue,), compute_units=(unit,), compute_unit_types=("rack",))
    story = a_cluster(a_host("n1", 4), a_host("n2", 4), policy=policy)
    story.run(a_job(2, cu="type=rack:excl", run_limit_s=600))
    job = story.submit(a_job(2, run_limit_s=60))
    assert ask(story, job).start_at == BEGIN + 600
