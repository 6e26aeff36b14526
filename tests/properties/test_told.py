"""A job pending after a full pass always has a reason, and reasons about reservations are true."""

import copy

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lavad.core import commands as c
from lavad.core.model import JobState
from lavad.core.model import reasons as r
from lavad.core.queries.backfill_reasons import DelayedBy, delayed_by
from lavad.core.queries.pending_reasons import explain
from lavad.core.state.records import Job
from tests.builders import ROOT, Story, a_job
from tests.properties.test_cycle import whole_pass
from tests.properties.test_easy import EasyPlayer, PlaceOfItsOwn


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
@example(5106, True)  # a job took slots that a reservation needs: a later one, on other hosts, hid them
def test_nobody_waits_for_nothing(seed: int, where: bool) -> None:
    """No job is told to wait for its turn after a full pass; with the run limit named in the advice a job starts."""
    player = PlaceOfItsOwn(seed) if where else EasyPlayer(seed, False)
    for _ in range(25):
        player.play()
        story = player.story
        whole_pass(story, story.worklist, 100_000)
        for job, record in story.cluster.jobs.items():
            if isinstance(record, Job) and record.may_start:
                codes = [
                    one.code for one in explain(story.cluster, record, 0, story.now, story.worklist.reservation_table)
                ]
                assert r.NEW_JOB[0] not in codes
                if codes == [r.HELD_BACK[0]]:
                    check_held(story, job, record)


def check_held(story: Story, job: int, record: Job) -> None:
    """The named job waits for the resources; a job that ends before its start starts now."""
    found = delayed_by(story.cluster, story.worklist.reservation_table, record, 0, story.now)
    assert isinstance(found, DelayedBy)
    assert (found.job, found.element) in [(one.job, one.index) for one in story.worklist.reservation_table.reservations]
    assert found.begins_at >= story.now
    if found.longest_s >= 1:
        twin, shared = copy.deepcopy(story), record.shared
        caller = c.Caller(shared.user, shared.uid)
        words = {"queue": shared.queue, "request": shared.request, "priority": record.priority}
        shorter = a_job(run_limit_s=int(found.longest_s), caller=caller, **words)
        twin.do(c.ModifyJob(c.Target(job), shorter, ROOT, "", frozenset({"run_limit_s"})))
        whole_pass(twin, twin.worklist, 100_000)
        assert twin.state(job) is JobState.STAGING, found
