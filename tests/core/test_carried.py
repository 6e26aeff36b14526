"""A slice goes on with the room of the slice before it only if nothing but that one's starts has happened."""

from collections.abc import Callable

import pytest

from lavad.core import commands as c
from lavad.core.model import JobState
from lavad.core.plan import Plan
from lavad.core.scheduling.cycle import slice_pass
from tests.builders import ROOT, Story, a_host, a_job

JOBS = 40
STEPS = 200  # of one slice: enough for some of the jobs


def a_story() -> Story:
    """More jobs than one slice starts, beside one that has all of the first host."""
    story = Story(*(a_host(f"n{number}", 4, 400) for number in range(1, 20)))
    story.run(a_job(slots=4, memory_mib=1))
    for _ in range(JOBS):
        story.submit(a_job(memory_mib=1))
    return story


def a_slice(story: Story) -> Plan:
    """The next slice's plan, not applied yet."""
    plan = slice_pass(story.cluster, story.agenda, STEPS, story.now)
    assert plan.starts
    assert not plan.is_complete
    return plan


def knows_hosts(story: Story) -> bool:
    """Does the next slice begin with hosts that the last one has found?"""
    return bool(story.agenda.carried.take(story.cluster).front(1, 0).hosts)


def test_after_its_own_starts_a_slice_knows_where_it_stood() -> None:
    """Of plain jobs and of elements of an array."""
    story = a_story()
    story.do(c.ApplyPlan(a_slice(story)))
    assert knows_hosts(story)
    story = Story(a_host("n1", JOBS))
    story.submit(a_job(memory_mib=1, array=f"1-{JOBS}"))
    story.submit(a_job(memory_mib=1))
    story.do(c.ApplyPlan(a_slice(story)))
    assert knows_hosts(story)


def test_what_was_left_is_taken_once() -> None:
    """Whoever comes next without a slice before it finds a new room."""
    story = a_story()
    story.do(c.ApplyPlan(a_slice(story)))
    assert knows_hosts(story)
    assert not knows_hosts(story)


def test_nothing_is_left_when_the_pass_is_over() -> None:
    """Be it that all who were still to be looked at are gone."""
    story = a_story()
    plan = a_slice(story)
    story.do(c.ApplyPlan(plan))
    for job in list(story.cluster.jobs):
        if story.state(job) is JobState.PEND:
            story.kill(job)
    assert slice_pass(story.cluster, story.agenda, STEPS, story.now).is_complete
    assert story.agenda.carried._room is None


def never_applied(story: Story, plan: Plan) -> None:
    """Nothing has come of the plan."""


def others_instead(story: Story, plan: Plan) -> None:
    """As many dispatches as the plan has, but of other jobs on those hosts."""
    last = max(story.cluster.jobs)
    moved = [start._replace(job=last - number) for number, start in enumerate(plan.starts)]
    story.do(c.ApplyPlan(plan._replace(starts=tuple(moved))))


def elsewhere(story: Story, plan: Plan) -> None:
    """The same jobs, each alike, but on another host."""
    there = plan.starts[0].allocation[0]._replace(host="n19")
    moved = (plan.starts[0]._replace(allocation=(there,)), *plan.starts[1:])
    story.do(c.ApplyPlan(plan._replace(starts=moved)))


def closed(story: Story, plan: Plan) -> None:
    """A host was closed meanwhile."""
    story.do(c.CloseHost("n5", ROOT))
    story.do(c.ApplyPlan(plan))


def shut(story: Story, plan: Plan) -> None:
    """A host's load says that it takes nothing; no event tells."""
    story.do(c.ApplyPlan(plan))
    story.cluster.table.set_usable(4, False)


def ended(story: Story, plan: Plan) -> None:
    """The job that ran before has ended."""
    story.do(c.ApplyPlan(plan))
    story.finished("n1", next(iter(story.cluster.attempts)))


@pytest.mark.parametrize("meanwhile", [never_applied, others_instead, elsewhere, closed, shut, ended])
def test_whatever_else_has_happened_a_slice_looks_anew(meanwhile: Callable[[Story, Plan], None]) -> None:
    """Each of these makes what the last slice knew worthless."""
    story = a_story()
    meanwhile(story, a_slice(story))
    assert not knows_hosts(story)


def test_room_behind_the_slice_is_seen_by_the_next_one() -> None:
    """A job on the first host has ended between two slices: the next job goes there."""
    story = a_story()
    ended(story, a_slice(story))
    assert a_slice(story).starts[0].allocation[0].host == "n1"
