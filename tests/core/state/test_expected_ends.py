"""Expected ends are entered in several slices if many jobs run when the first one is blocked."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavad.core import commands as c
from lavad.core.model import JobState, Key
from lavad.core.model.policy import Policy
from lavad.core.model.rules.queues import Queue
from lavad.core.passes import slice_pass
from lavad.core.state import expected_ends
from lavad.core.state.expected_ends import NEVER
from lavad.core.state.paged import Paged
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
    """Nothing starts meanwhile, and then the same as without slices."""
    story = a_full_house()
    short = story.submit(a_job(memory_mib=1, run_limit_s=HOUR // 4))
    entered = [0]
    while True:
        plan = slice_pass(story.cluster, story.worklist, 1, story.now)
        entered.append(len(story.worklist.reservation_table.ends))
        assert entered[-1] - entered[-2] <= A_FEW
        story.do(c.ApplyPlan(plan))
        if plan.starts:
            break
    assert [start.job for start in plan.starts] == [short]
    assert entered[-1] == RUNNING


def test_nobody_goes_first_who_would_hold_on_for_too_long() -> None:
    """However many slices it takes: the job ahead can start when half of them have ended."""
    for steps in (1, 100_000):
        story = a_full_house()
        long = story.submit(a_job(memory_mib=1, run_limit_s=2 * HOUR))
        short = story.submit(a_job(memory_mib=1, run_limit_s=HOUR // 4))
        story.plan(steps)
        assert [story.state(job) is JobState.PEND for job in (long, short)] == [True, False], steps


def test_what_runs_is_looked_through_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first request for expected ends, with very many running jobs."""
    running = 2500
    story = Story(a_host("n1", running + 1), policy=Policy(queues=(Queue("normal", backfill_depth=1),)))
    story.submit(a_job(memory_mib=1, run_limit_s=HOUR, array=f"1-{running}"))
    story.plan()
    story.submit(a_job(slots=running, one_host=True, memory_mib=1, run_limit_s=HOUR))
    short = story.submit(a_job(memory_mib=1, run_limit_s=HOUR // 2))
    pages: list[int] = []
    look = Paged.page

    def noted(paged: Paged[Any], number: int) -> Iterable[Key]:
        pages.append(number)
        return look(paged, number)

    monkeypatch.setattr(Paged, "page", noted)
    counts = []
    while story.state(short) is JobState.PEND:
        story.do(c.ApplyPlan(slice_pass(story.cluster, story.worklist, 1, story.now)))
        counts.append(len(pages))
    assert counts[-1] > 2, "there are pages"
    assert all(later - before <= 1 for before, later in zip([0, *counts], counts, strict=False))


entries = st.tuples(st.sampled_from([1.0, 2.0, 3.0, NEVER]), st.integers(1, 3))


@given(st.lists(st.tuples(st.integers(1, 40), st.none() | entries), max_size=120), st.integers(1, 9))
def test_ends_in_pages_are_those_in_one_list(changes: list[tuple[int, tuple[float, int] | None]], size: int) -> None:
    """After any inserts, moves and removals, with pages of any size."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(expected_ends, "_PAGE_MAX", size)
        paged, plain = expected_ends.ExpectedEnds(), dict[Key, expected_ends.ExpectedEnd]()
        for job, change in changes:
            key = Key(job, 0, 1)
            paged.update({key: expected_ends.ExpectedEnd(*change, key) if change is not None else None})
            plain.pop(key, None)
            if change is not None:
                plain[key] = expected_ends.ExpectedEnd(*change, key)
            assert list(paged) == sorted(plain.values())
            assert (len(paged), paged.first()) == (len(plain), min([one.at for one in plain.values()], default=NEVER))
            assert paged.of(key) == plain.get(key)


def test_what_is_left_of_a_forgotten_job_is_expected_at_once() -> None:
    """Its record has left memory while a silent host still holds its slots."""
    for exclusive in (False, True):
        story = Story(a_host("n1", 2), a_host("n2", 2), policy=Policy(queues=(Queue("normal", backfill_depth=1),)))
        key = story.run(a_job(2, exclusive=exclusive, run_limit_s=HOUR, hosts=("n1",)))
        story.kill(key.job, remove=True)
        story.wait(story.cluster.policy.clean_period_s + 100)
        assert key.job not in story.cluster.jobs
        assert key in story.cluster.attempts
        story.hear("n2")
        running = story.run(a_job(2, memory_mib=1, run_limit_s=HOUR))
        table = story.worklist.reservation_table
        ends = {end.key: (end.at <= story.now, end.slots) for end in table.ends_of(story.cluster)}
        assert ends == {key: (True, 2), running: (False, 2)}
