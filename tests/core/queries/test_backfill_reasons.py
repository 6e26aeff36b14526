"""A job that fits but would delay another: which one, from when on, and the run limit that would avoid it."""

from typing import Any

import pytest

from lavad.core import commands as c
from lavad.core.model import JobState
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import PendingReason
from lavad.core.model.rules.queues import Queue
from lavad.core.model.rules.users import UserRule
from lavad.core.model.windows import Window, moment_text
from lavad.core.passes import slice_pass
from lavad.core.queries.backfill_reasons import DelayedBy, delayed_by
from lavad.core.queries.pending_reasons import explain
from lavad.core.queries.start_estimate import Confidence, StartEstimate, forecast
from lavad.core.queries.suggestions import remedies
from lavad.core.scheduling.queueing.ordering import Ranking
from tests.builders import ROOT, Story, a_cluster, a_host, a_job, in_one_go

HOUR = 3600
MINUTE = 60


def a_story(depth: int = 1, slots: int = 4, **rules: Any) -> Story:
    """Two hosts; three slots of the first are busy for ten minutes."""
    policy = Policy(queues=(Queue("normal", 30, backfill_depth=depth),), **rules)
    story = a_cluster(a_host("n1", slots), a_host("n2", 1), policy=policy)
    story.run(a_job(3, hosts=("n1",), run_limit_s=10 * MINUTE))
    return story


def why(story: Story, job: int, index: int = 0) -> list[PendingReason]:
    """Explanation of the delay, from the scheduler's state."""
    return explain(story.cluster, story.cluster.jobs[job], index, story.now, story.worklist.reservation_table)


def held(story: Story, job: int) -> DelayedBy | None:
    """Job whose reservation delays it."""
    return delayed_by(story.cluster, story.worklist.reservation_table, story.cluster.jobs[job], 0, story.now)


def cures(story: Story, job: int) -> tuple[str, ...]:
    """Commands that would let it start."""
    record = story.cluster.jobs[job]
    return in_one_go(remedies(story.cluster, record, 0, story.now, story.worklist.reservation_table)).commands


# Requests of the first blocked job: any slots, one host, and memory.
@pytest.mark.parametrize("asks", [{}, {"one_host": True}, {"memory_mib": 10}], ids=["slots", "host", "memory"])
def test_it_is_told_who_holds_it_back_and_what_helps(asks: dict[str, Any]) -> None:
    """It is the job before it, from the end of running ones; nine and a half minutes leave time to type the command."""
    story = a_story()
    story.run(a_job(1, run_limit_s=2 * HOUR, hosts=("n2",)))
    first = story.submit(a_job(4, run_limit_s=HOUR, hosts=("n1",) if asks else (), **asks))
    other = story.submit(a_job(4, run_limit_s=HOUR))
    job = story.submit(a_job(1, run_limit_s=HOUR))
    story.plan()
    at = story.now + 10 * MINUTE
    assert held(story, job) == DelayedBy(first, 0, at, 10 * MINUTE)
    (reason,) = why(story, job)
    when = moment_text(at, story.cluster.policy.zone)
    assert reason.text == f"The job would delay a job that goes before it (Job: {first}, From: {when})"
    assert reason.advice == "with a run limit of at most 9 minutes it would be over by then"
    assert cures(story, job) == ("bmod -W 9 {}",)
    story.do(c.ModifyJob(c.Target(job), a_job(1, run_limit_s=9 * MINUTE), ROOT, "", frozenset()))
    story.plan()
    assert story.state(job) is JobState.STAGING
    assert story.state(other) is JobState.PEND


def test_of_several_it_is_the_one_whose_turn_makes_the_difference() -> None:
    """It fits beside the first, and not beside both; for that it has to end before the first begins."""
    story = a_cluster(a_host("n1", 6), policy=Policy(queues=(Queue("normal", 30, backfill_depth=9),)))
    story.run(a_job(4, run_limit_s=10 * MINUTE))
    story.submit(a_job(3, run_limit_s=20 * MINUTE))
    second = story.submit(a_job(3, run_limit_s=20 * MINUTE))
    job = story.submit(a_job(1, run_limit_s=HOUR))
    story.plan()
    assert held(story, job) == DelayedBy(second, 0, story.now + 10 * MINUTE, 10 * MINUTE)


def test_where_no_run_limit_helps_none_is_named() -> None:
    """The reservation begins in a moment: the jobs on its slots should have ended by now."""
    story = a_story()
    first = story.submit(a_job(4, run_limit_s=HOUR, hosts=("n1",)))
    job = story.submit(a_job(1, hosts=("n1",), run_limit_s=HOUR))
    story.now += 11 * MINUTE
    story.plan()
    (reason,) = why(story, job)
    assert reason.text.startswith(f"The job would delay a job that goes before it (Job: {first}, ")
    assert (reason.advice, cures(story, job)) == ("", ())


def test_an_element_is_told_by_its_index() -> None:
    """The array goes before it."""
    story = a_story()
    array = story.submit(a_job(4, array="3-4", run_limit_s=HOUR, hosts=("n1",)))
    job = story.submit(a_job(1, hosts=("n1",), run_limit_s=HOUR))
    story.plan()
    assert f"(Job: {array}[3], " in why(story, job)[0].text
    assert why(story, array, 3)[0].text == "Not enough job slot(s)"


def test_within_limits_it_is_the_same() -> None:
    """The user has a slot limit."""
    story = a_story(user_rules={"ann": UserRule(slots=8)})
    first = story.submit(a_job(4, run_limit_s=HOUR, hosts=("n1",)))
    job = story.submit(a_job(1, hosts=("n1",), run_limit_s=HOUR))
    story.plan()
    found = held(story, job)
    assert found is not None
    assert found.job == first


def test_nobody_is_told_what_holds_him_back_no_more() -> None:
    """The first job was killed: this one is to be tried next, which is all that is reported."""
    story = a_story()
    first = story.submit(a_job(4, run_limit_s=HOUR))
    job = story.submit(a_job(1, run_limit_s=HOUR))
    story.plan()
    story.run(a_job(1, run_limit_s=MINUTE))
    story.kill(first)
    story.plan()
    assert story.state(job) is JobState.STAGING


def test_it_is_told_in_the_middle_of_a_pass() -> None:
    """After each slice, however small: the explanation is the result of the whole pass, or that the job is not tried
    yet."""
    story = a_story(depth=3)
    first = story.submit(a_job(4, run_limit_s=HOUR, hosts=("n1",)))
    job = story.submit(a_job(1, hosts=("n1",), run_limit_s=HOUR))
    for number in range(6):
        story.submit(a_job(5 + number, run_limit_s=HOUR))
    codes = []
    while True:
        plan = slice_pass(story.cluster, story.worklist, 1, story.now)
        story.do(c.ApplyPlan(plan))
        codes.append(why(story, job)[0])
        if plan.is_complete:
            break
    assert len(codes) > 3, "there are slices"
    told = [one for one in codes if one.code == 342]
    assert told == codes[-len(told) :], "from the moment on at which the reservation is made"
    assert f"(Job: {first}, " in told[0].text
    assert len(told) > 2


def test_asking_changes_nothing() -> None:
    """It enters no expected end and makes no reservation: the next pass is unchanged."""
    story = a_story()
    story.submit(a_job(4, run_limit_s=HOUR, hosts=("n1",)))
    job = story.submit(a_job(1, hosts=("n1",), run_limit_s=HOUR))
    story.plan()
    story.submit(a_job(1, hosts=("n1",), run_limit_s=30))
    before = (
        list(story.worklist.reservation_table.ends),
        story.worklist.reservation_table.host_reservations.version,
        set(story.cluster.changed_attempts),
    )
    why(story, job)
    reservation_table = story.worklist.reservation_table
    assert (
        list(reservation_table.ends),
        reservation_table.host_reservations.version,
        set(story.cluster.changed_attempts),
    ) == before


def test_its_start_is_expected_behind_those_that_hold_it_back() -> None:
    """It fits now, and no immediate start is predicted."""
    story = a_story()
    story.submit(a_job(5, run_limit_s=HOUR))
    job = story.submit(a_job(1, run_limit_s=HOUR))
    story.plan()
    record, ranking = story.cluster.jobs[job], Ranking(story.cluster, story.now)
    is_held = held(story, job) is not None
    found = in_one_go(forecast(story.cluster, ranking, record, 0, is_held))
    assert found.start_at == story.now + 10 * MINUTE + HOUR


# -- slot reservations ---------------------------------------------------------------------------------------------


def a_saver() -> tuple[Story, int]:
    """A job of four slots that has reserved one on n1, where memory is short."""
    story = a_cluster(
        a_host("n1", 2), a_host("n2", 2), policy=Policy(queues=(Queue("normal", 30, slot_reserve_s=600.0),))
    )
    story.run(a_job(1, memory_mib=7000, hosts=("n1",)))
    story.run(a_job(2, hosts=("n2",)))
    job = story.submit(a_job(2, one_host=True, memory_mib=3000, hosts=("n1",)))
    wide = story.submit(a_job(3))
    story.plan()
    assert [share.host for share in story.cluster.claims[wide, 0].allocation] == ["n1"]
    return story, job


def test_slots_that_others_save_up_are_told_with_the_job() -> None:
    """There is one slot, and it is not free."""
    story, _ = a_saver()
    (wide, _), *_ = story.cluster.claims
    job = story.submit(a_job(hosts=("n1",)))
    assert (f"Job slots reserved for another job (Job: {wide})", ("n1",)) in [
        (one.text, one.hosts) for one in why(story, job)
    ]


def test_what_a_job_has_saved_up_does_not_hide_what_it_lacks() -> None:
    """Its own slots are not what is missing."""
    story, _ = a_saver()
    (wide, _), *_ = story.cluster.claims
    (reason,) = why(story, wide)
    assert reason.text == "Not enough job slot(s)"
    assert reason.hosts == ("n2",)
    assert reason.advice == "it needs 3 slots; the hosts it could use have 1 free"


# -- advance reservations ------------------------------------------------------------------------------------------


def seen(story: Story, job: int) -> StartEstimate:
    """Start estimate as of the story's present."""
    return in_one_go(forecast(story.cluster, Ranking(story.cluster, story.now), story.cluster.jobs[job]))


def test_a_job_starts_when_its_advance_reservation_begins() -> None:
    """Once, or every week; the first pending job, and the next."""
    story = a_cluster(a_host("n1", 4))
    name = story.reserve(2, begin=HOUR, end=2 * HOUR).name
    first, second = (story.submit(a_job(2, reservation=name)) for _ in range(2))
    story.plan()
    assert seen(story, first) == StartEstimate(story.now + HOUR, Confidence.WINDOW, 0)
    assert seen(story, second) == StartEstimate(story.now + HOUR, Confidence.WINDOW, 1)
    weekly = story.reserve(2, windows=(Window(0, 60),)).name  # on Sundays, at midnight
    at = seen(story, story.submit(a_job(2, reservation=weekly))).start_at
    assert at is not None
    assert moment_text(at, story.cluster.policy.zone).startswith("Sun ")


def test_a_job_that_waits_for_something_else_is_promised_no_window() -> None:
    """Its dependency may become true later, or never."""
    story = a_cluster(a_host("n1", 4))
    name = story.reserve(2, begin=HOUR, end=2 * HOUR).name
    other = story.submit(a_job(4))
    story.submit(a_job(2, reservation=name))
    job = story.submit(a_job(2, reservation=name, dependency=f"done({other})"))
    assert seen(story, job) == StartEstimate(None, Confidence.UNKNOWN, 0)
