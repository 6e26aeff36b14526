"""Budgets of slot, CPU and GPU hours: what starts, what counts, periods, warnings, and what a restart keeps."""

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from lavad.core import activity_events as a
from lavad.core import commands as c
from lavad.core.model import JobState
from lavad.core.model.policy import Policy
from lavad.core.model.rules.budgets import HOUR_S, Amounts, Budget, Every
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import Queue
from lavad.core.queries.pending_reasons import explain
from lavad.core.state.budgets import BudgetAccount
from tests.builders import ANN, BOB, Story, a_cluster, a_host, a_job

ANN_ONLY = Names(False, frozenset({"ann"}))
HOUR = int(HOUR_S)


def with_budgets(*budgets: Budget, slots: int = 8, gpus: int = 0) -> Story:
    """One host under these budgets."""
    return a_cluster(a_host("n1", slots, gpus=gpus), policy=Policy(budgets=budgets))


def running(story: Story, *jobs: int) -> list[bool]:
    """True for each job that holds a host."""
    return [story.state(job) is not JobState.PEND for job in jobs]


def passes(story: Story, seconds: float) -> None:
    """Let time pass in which the host reports."""
    story.now += seconds
    story.hear("n1")
    story.do(c.Tick())


def ended(story: Story, job: int, cpu_s: float = 0.0) -> None:
    """The job's process ends; it used so much processor time."""
    key = story.key(job)
    story.do(c.ReportFinished("n1", key, 0, story.now, "", cpu_s, 1, also_released=True))


def account(story: Story, name: str = "b", consumer: str = "") -> BudgetAccount:
    """The account of a budget."""
    return story.cluster.budgets.accounts[name, consumer]


def test_a_job_starts_if_the_budget_is_enough_for_its_run_limit() -> None:
    """Ten slot hours: two jobs of four slots and an hour fit beside each other, a third waits and says why."""
    story = with_budgets(Budget("b", slot_s=10 * HOUR_S, users=ANN_ONLY), slots=100)
    jobs = [story.submit(a_job(4, run_limit_s=HOUR)) for _ in range(3)]
    story.plan()
    assert running(story, *jobs) == [True, True, False]
    (reason, *_) = explain(story.cluster, story.cluster.jobs[jobs[2]], 0, story.now)
    assert reason.text == "What is left of the budget is not enough for the job (Budget: b, slot hours: 10)"
    other = story.submit(a_job(4, BOB, run_limit_s=HOUR))
    story.plan()
    assert running(story, other) == [True]


def test_what_a_job_leaves_of_its_run_limit_is_free_again() -> None:
    """Half an hour of the two reserved was used: then there is room for another job of an hour."""
    story = with_budgets(Budget("b", slot_s=2 * HOUR_S))
    first, second = story.submit(a_job(run_limit_s=2 * HOUR)), story.submit(a_job(run_limit_s=HOUR))
    story.plan()
    assert running(story, first, second) == [True, False]
    story.started("n1", story.key(first))
    assert account(story).reserved(story.now).slot_s == 2 * HOUR_S
    passes(story, HOUR / 2)
    assert account(story).used(story.now).slot_s == pytest.approx(HOUR_S / 2)
    ended(story, first)
    story.plan()
    assert running(story, second) == [True]
    assert account(story).ended == Amounts(HOUR_S / 2, 0.0, 0.0)


def test_a_job_without_a_run_limit_starts_as_long_as_anything_is_left() -> None:
    """It reserves nothing; when it has used everything, none starts any more, and it runs on."""
    story = with_budgets(Budget("b", slot_s=HOUR_S))
    first = story.submit(a_job())
    story.plan()
    story.started("n1", story.key(first))
    passes(story, HOUR + 10)
    second = story.submit(a_job())
    story.plan()
    assert running(story, first, second) == [True, False]


@pytest.mark.parametrize(("budget", "names"), [
    (Budget("b", slot_s=HOUR_S, per_user=Names()), ["ann", "bob"]),
    (Budget("b", slot_s=HOUR_S, per_project=Names()), ["default", "p2"]),
    (Budget("b", slot_s=HOUR_S, per_user=Names(), per_project=Names()), ["ann/default", "bob/p2"]),
])  # fmt: skip
def test_each_has_a_budget_of_his_own(budget: Budget, names: list[str]) -> None:
    """PER_USER and PER_PROJECT count each alone."""
    story = with_budgets(budget)
    jobs = [story.submit(a_job(run_limit_s=HOUR)) for _ in range(2)]
    jobs += [story.submit(a_job(caller=BOB, project="p2", run_limit_s=HOUR)) for _ in range(2)]
    story.plan()
    assert running(story, *jobs) == [True, False, True, False]
    assert [name for _, name in story.cluster.budgets.accounts] == names


def test_a_job_of_a_range_takes_what_the_budget_leaves() -> None:
    """Three slot hours are enough for three of its slots."""
    story = with_budgets(Budget("b", slot_s=3 * HOUR_S))
    job = story.submit(a_job(tasks_min=1, tasks_max=6, run_limit_s=HOUR))
    story.plan()
    assert sum(share.slots for share in story.cluster.attempts[story.key(job)].booked) == 3


def test_gpus_and_processor_time_have_their_own_budgets() -> None:
    """A job without GPUs is not held up by the end of GPU hours; CPU hours are what was used, not what was reserved."""
    story = with_budgets(Budget("g", gpu_s=HOUR_S), Budget("c", cpu_s=2 * HOUR_S), gpus=4)
    jobs = [story.submit(a_job(gpus=1, run_limit_s=HOUR)) for _ in range(2)]
    story.plan()
    assert running(story, *jobs) == [True, False]
    story.started("n1", story.key(jobs[0]))
    passes(story, 60.0)
    ended(story, jobs[0], cpu_s=30.0)
    assert account(story, "c").ended.cpu_s == 30.0
    assert account(story, "g").ended.gpu_s == pytest.approx(60.0)
    plain = story.submit(a_job(run_limit_s=HOUR))
    story.plan()
    assert running(story, jobs[1], plain) == [False, True]


def test_a_new_period_begins_with_nothing_used() -> None:
    """A waiting job starts then without any other change."""
    story = with_budgets(Budget("b", slot_s=HOUR_S, every=Every.WEEK))
    first = story.submit(a_job(run_limit_s=HOUR))
    story.plan()
    story.started("n1", story.key(first))
    passes(story, HOUR)
    ended(story, first)
    second = story.submit(a_job(run_limit_s=HOUR))
    story.plan()
    assert running(story, second) == [False]
    passes(story, account(story).span.end - story.now - 1)
    story.plan()
    assert running(story, second) == [False]
    passes(story, 1)
    assert story.worklist.has_work(story.cluster, story.now)
    story.plan()
    assert running(story, second) == [True]


@pytest.mark.parametrize(("every", "day", "begin", "end"), [
    (Every.WEEK, "2026-11-29", "2026-11-23", "2026-11-30"),
    (Every.MONTH, "2026-12-31", "2026-12-01", "2027-01-01"),
    (Every.QUARTER, "2026-11-29", "2026-10-01", "2027-01-01"),
    (Every.QUARTER, "2026-02-28", "2026-01-01", "2026-04-01"),
    (Every.YEAR, "2026-06-01", "2026-01-01", "2027-01-01"),
])  # fmt: skip
def test_periods_are_those_of_the_calendar(every: Every, day: str, begin: str, end: str) -> None:
    """A week begins on Monday."""

    def at(text: str) -> float:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()

    assert Budget("b", every=every).span(at(day) + 3600, UTC) == (at(begin), at(end))


def test_a_budget_for_some_days_holds_in_them_only() -> None:
    """Before the first and after the last there is no bound, and nothing counts."""
    day = datetime.fromtimestamp(a_cluster().now, UTC).date()
    budget = Budget("b", slot_s=60.0, once=(date(day.year + 1, 1, 1), date(day.year + 1, 1, 2)))
    story = with_budgets(budget)
    job = story.submit(a_job(run_limit_s=HOUR))
    story.plan()
    assert running(story, job) == [True]
    story.started("n1", story.key(job))
    passes(story, 60.0)
    ended(story, job)
    assert account(story).ended.slot_s == 0.0
    span = budget.span(0.0, UTC)
    assert span.end - span.begin == 2 * 86400
    passes(story, span.begin - story.now + 10)
    later = story.submit(a_job(run_limit_s=HOUR))
    story.plan()
    assert running(story, later) == [False]


def test_what_lies_before_the_period_does_not_count() -> None:
    """A job that runs over its begin is charged for what comes after."""
    story = with_budgets(Budget("b", slot_s=1000 * HOUR_S, every=Every.WEEK))
    job = story.submit(a_job())
    story.plan()
    story.started("n1", story.key(job))
    end = account(story).rule.span(story.now, UTC).end
    passes(story, end - story.now + 100)
    assert account(story).used(story.now).slot_s == 100.0
    ended(story, job)
    assert account(story).ended.slot_s == 100.0


def test_running_jobs_are_told_once_when_most_is_used() -> None:
    """At 80 % of the amount used or reserved; again only in the next period."""
    story = with_budgets(Budget("b", slot_s=10 * HOUR_S))
    job = story.submit(a_job(8, run_limit_s=HOUR))
    story.plan()
    story.started("n1", story.key(job))
    passes(story, 20.0)
    told = [event for event in story.events if isinstance(event, a.JobWarned)]
    assert [event.text for event in told] == ["budget b: 80% of 10 slot hours are used or reserved"]
    passes(story, 20.0)
    assert len([event for event in story.events if isinstance(event, a.BudgetWarned)]) == 1


def test_a_reconfiguration_keeps_what_was_used() -> None:
    """The bound is the new one, what was used stays; one that is gone holds nothing."""
    story = with_budgets(Budget("b", slot_s=HOUR_S))
    job = story.submit(a_job(run_limit_s=HOUR))
    story.plan()
    story.started("n1", story.key(job))
    passes(story, HOUR / 2)
    ended(story, job)
    policy = replace(story.cluster.policy, budgets=(Budget("b", slot_s=3 * HOUR_S),))
    story.do(c.Reconfigure(policy))
    assert account(story).left(story.now).slot_s == pytest.approx(2.5 * HOUR_S)
    story.do(c.Reconfigure(replace(policy, budgets=())))
    assert not story.cluster.budgets


def test_a_site_without_budgets_has_no_such_constraint() -> None:
    """Nor are jobs charged for it."""
    story = a_cluster(a_host("n1", 8))
    job = story.submit(a_job(1, ANN))
    story.plan()
    assert running(story, job) == [True]
    assert not story.cluster.charges
    assert not story.cluster.budgets.accounts


def test_no_job_is_preempted_for_one_whose_budget_is_used_up() -> None:
    """The victim's slots would not help it."""
    urgent = Queue("urgent", priority=50, preempts=(("normal", 0),))
    policy = Policy(
        queues=(urgent, Queue("normal")),
        budgets=(Budget("b", slot_s=HOUR_S, queues=Names(False, frozenset({"urgent"}))),),
    )
    story = a_cluster(a_host("n1", 2), policy=policy)
    low = story.submit(a_job(2, BOB, run_limit_s=HOUR))
    story.plan()
    story.started("n1", story.key(low))
    high = story.submit(a_job(2, queue="urgent", run_limit_s=HOUR))
    for _ in range(3):
        story.plan()
        passes(story, 10.0)
    assert story.state(low) is JobState.RUN
    assert running(story, high) == [False]
    fitting = story.submit(a_job(1, queue="urgent", run_limit_s=HOUR // 2))
    story.plan()
    assert story.state(low) is JobState.SSUSP or story.cluster.attempts[story.key(low)].suspended
    assert story.state(fitting) is not JobState.EXIT
