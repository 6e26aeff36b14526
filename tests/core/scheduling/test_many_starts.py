"""A plan holds as long as nothing has changed since it was made; else each of its starts is verified again."""

from lavad.core import commands as c
from lavad.core.passes import slice_pass
from lavad.core.plan import Start, Starts
from tests.builders import ROOT, Story, a_host, a_job

JOBS = 40


def a_plan(story: Story, **job: int) -> Starts:
    """Plan of many starts, not applied yet."""
    for _ in range(JOBS):
        story.submit(a_job(**job))
    plan = slice_pass(story.cluster, story.worklist, 100_000, story.now)
    assert isinstance(plan, Starts)
    assert len(plan.starts) == JOBS
    return plan


def test_all_that_holds_starts() -> None:
    """Nothing has changed since the plan was made, so every job starts."""
    story = Story(a_host("n1", JOBS))
    assert story.do(c.ApplyPlan(a_plan(story))).reply == 0
    assert len(story.cluster.attempts) == JOBS


def test_a_job_that_was_killed_meanwhile_does_not_start() -> None:
    """All others start."""
    story = Story(a_host("n1", JOBS))
    plan = a_plan(story)
    story.do(c.KillJob(c.Target(plan.starts[7].job), ROOT))
    assert story.do(c.ApplyPlan(plan)).reply == 1
    assert len(story.cluster.attempts) == JOBS - 1


def test_what_no_event_tells_is_a_change_as_well() -> None:
    """A host beyond a load threshold, one whose elim reports less, or one where a job has taken back freed memory."""
    table = (story := Story(a_host("n1", JOBS))).cluster.table
    for change in (
        lambda: table.set_usable(0, False),
        lambda: table.set_external(0, {}),
        lambda: table.ease(0, "mem", -1000),
    ):
        before = story.cluster.version
        change()
        assert story.cluster.version != before
    plan = a_plan(Story(a_host("n1", JOBS)))
    assert plan.version != Starts().version, "a plan that says nothing is never taken for a fresh one"


def test_a_host_that_was_shut_without_an_event_gets_nothing() -> None:
    """Its load has risen since the plan was made."""
    story = Story(a_host("n1", JOBS))
    plan = a_plan(story)
    story.cluster.table.set_usable(0, False)
    assert story.do(c.ApplyPlan(plan)).reply == JOBS


def test_what_does_not_fit_any_more_does_not_start() -> None:
    """Slots, memory and GPUs taken since, and hosts closed since, are found in many starts."""
    for job in ({}, {"memory_mib": 100}, {"gpus": 1}):
        story = Story(a_host("n1", JOBS, 100 * JOBS, JOBS), a_host("n2", JOBS, 100 * JOBS, JOBS))
        plan = a_plan(story, **job)
        ahead = plan.starts[0].allocation
        other = story.submit(a_job(slots=JOBS, **({"memory_mib": 100 * JOBS} if job else {})))
        whole = ahead[0]._replace(slots=JOBS, tasks_by_role=(JOBS,))
        story.do(c.ApplyPlan(Starts((Start(other, 0, (whole,)),))))
        assert story.do(c.ApplyPlan(plan)).reply == JOBS, job
    story = Story(a_host("n1", JOBS))
    plan = a_plan(story)
    story.do(c.CloseHost("n1", ROOT))
    assert story.do(c.ApplyPlan(plan)).reply == JOBS


def test_no_job_starts_twice() -> None:
    """A job that the plan names twice starts once."""
    story = Story(a_host("n1", 2 * JOBS))
    plan = a_plan(story)
    assert story.do(c.ApplyPlan(Starts((*plan.starts, *plan.starts)))).reply == JOBS
    assert len(story.cluster.attempts) == JOBS


def test_no_device_is_given_twice() -> None:
    """Two starts of one plan name the same GPU."""
    story = Story(a_host("n1", JOBS, 1000, JOBS))
    plan = a_plan(story, gpus=1)
    first, second = plan.starts[:2]
    same = second._replace(allocation=(second.allocation[0]._replace(gpus=first.allocation[0].gpus),))
    assert story.do(c.ApplyPlan(Starts((first, same, *plan.starts[2:])))).reply == 1


def test_a_slice_counts_what_its_own_starts_take() -> None:
    """No more slots, memory and GPUs are planned in one slice than there are."""
    for job, starts in (({}, 20), ({"memory_mib": 100}, 10), ({"gpus": 1}, 5)):
        story = Story(a_host("n1", 20, 1000, 5))
        for _ in range(JOBS):
            story.submit(a_job(**job))
        assert len(slice_pass(story.cluster, story.worklist, 100_000, story.now).starts) == starts, job
