"""Where much runs when the first job has to wait, the ends it may wait for are entered in several slices."""

from lavad.core import commands as c
from lavad.core.model import JobState
from lavad.core.policy import Policy, Queue
from lavad.core.scheduling.cycle import slice_pass
from tests.builders import Story, a_host, a_job

RUNNING = 200
A_FEW = 64
HOUR = 3600


def a_full_house() -> Story:
    """Many jobs of half an hour and more run; one slot is left, and the next job wants more."""
    story = Story(a_host("n1", RUNNING + 1), policy=Policy(queues=(Queue("normal", backfill_depth=1),)))
    for number in range(RUNNING):
        story.submit(a_job(memory_mib=1, run_limit_s=HOUR // 2 + number))
    story.plan()
    story.submit(a_job(slots=RUNNING // 2, one_host=True, memory_mib=1, run_limit_s=HOUR))
    return story


def test_each_slice_enters_a_few() -> None:
    """Nothing starts meanwhile, and then what would have started at once."""
    story = a_full_house()
    short = story.submit(a_job(memory_mib=1, run_limit_s=HOUR // 4))
    entered = [0]
    while True:
        plan = slice_pass(story.cluster, story.agenda, 1, story.now)
        entered.append(len(story.agenda.book.ends.entries))
        assert entered[-1] - entered[-2] <= A_FEW
        story.do(c.ApplyPlan(plan))
        if plan.starts:
            break
    assert [start.job for start in plan.starts] == [short]
    assert entered[-1] == RUNNING


def test_nobody_goes_first_who_would_hold_on_for_too_long() -> None:
    """However many slices it takes to tell: the job ahead can start when half of them have ended."""
    for steps in (1, 100_000):
        story = a_full_house()
        long = story.submit(a_job(memory_mib=1, run_limit_s=2 * HOUR))
        short = story.submit(a_job(memory_mib=1, run_limit_s=HOUR // 4))
        story.plan(steps)
        assert [story.state(job) is JobState.PEND for job in (long, short)] == [True, False], steps
