"""bmod of some elements of an array: these are jobs of their own from then on, and stay elements of their array."""

from dataclasses import replace

import pytest

from lavad.core import commands as c
from lavad.core import invariants
from lavad.core.decide.jobs.changes.elements import ELEMENTS_MAX, parts_of
from lavad.core.model import JobState
from lavad.core.model.policy import Policy
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.names import ALL
from lavad.core.model.rules.queues import Queue
from lavad.core.queries.pending_reasons import explain
from lavad.simulator.cluster.restart import reborn
from tests.builders import ANN, ROOT, Story, a_cluster, a_host, a_job

S = JobState
NIGHT = frozenset({"queues"})


@pytest.fixture
def story() -> Story:
    """One host with two slots, and three queues, of which the last one starts nothing."""
    queues = (Queue("normal", priority=30), Queue("night", priority=50), Queue("shut", active=False))
    return a_cluster(a_host("n1", 2), policy=Policy(queues=queues, max_array_size=1_000_000))


def switch(story: Story, array: int, indices: str, queue: str = "night", **job: object) -> None:
    """bswitch of these elements, each part of them as the API gives it."""
    parts = parts_of(story.array(array), Ranges.parse(indices) if indices else None)
    for part in parts:
        changed = a_job(array="1-9", queue=queue, **job)
        target = story.target(array, indices)
        is_whole = part.indices is not None and parts[0].indices is None
        command = c.ModifyJob(target, changed, ANN, "queue", NIGHT, elements=part.indices, is_whole=is_whole)
        story.do(command)


def states(story: Story, array: int, count: int) -> str:
    """The states of the first elements, as one word."""
    return " ".join(str(state.name if (state := story.state(array, index)) else None) for index in range(1, count + 1))


def queues(story: Story, array: int, count: int) -> list[str]:
    """The queues that the first elements are in."""
    return [story.array(array).shared_of(index).queue for index in range(1, count + 1)]


def test_only_the_named_elements_change(story: Story) -> None:
    """They are in the other queue, counted there, and start first, since that queue has the higher priority."""
    array = story.submit(a_job(array="1-4"))
    switch(story, array, "3-4")
    assert queues(story, array, 4) == ["normal", "normal", "night", "night"]
    assert story.cluster.counters.slots_by_queue["night", S.PEND] == 2
    assert story.array(array).pending.text() == "1-2"
    story.plan()
    assert states(story, array, 4) == "PEND PEND STAGING STAGING"
    story.started("n1", story.key(array, 3))
    story.finished("n1", story.key(array, 3))
    story.plan()
    assert states(story, array, 4) == "STAGING PEND DONE STAGING"


def test_an_element_of_the_same_bucket_as_its_array(story: Story) -> None:
    """A change that matters to no scheduler leaves it among those that start, after the others."""
    array = story.submit(a_job(array="1-3"))
    switch(story, array, "1", "normal")
    assert story.array(array).changed == {1}
    story.plan()
    assert states(story, array, 3) == "PEND STAGING STAGING"
    for index in (2, 3):
        story.started("n1", story.key(array, index))
        story.finished("n1", story.key(array, index))
    story.plan()
    assert story.where(array, 1) == ["n1"]


def test_the_limit_of_running_elements_is_the_arrays(story: Story) -> None:
    """However many queues its elements are in; the reason names the limit."""
    array = story.submit(a_job(array="1-4", limit=1))
    switch(story, array, "3-4")
    story.plan()
    assert states(story, array, 4) == "PEND PEND STAGING PEND"
    reasons = explain(story.cluster, story.cluster.bearer(array, 4), 4, story.now)
    assert any("running element limit" in one.reason.text for one in reasons)
    story.plan()
    assert len(story.array(array).live) == 1
    story.started("n1", story.key(array, 3))
    story.finished("n1", story.key(array, 3))
    story.plan()
    assert states(story, array, 4) == "PEND PEND DONE STAGING"


def test_the_limit_holds_within_one_pass_after_a_requeue() -> None:
    """An element that waits by itself again does not start beside as many others as the limit allows."""
    story = a_cluster(a_host("n1", 4))
    array = story.submit(a_job(array="1-4", limit=2, hold=True))
    switch(story, array, "3", "normal")
    story.do(c.ResumeJob(story.target(array, "3"), ANN))
    story.plan()
    key = story.key(array, 3)
    story.started("n1", key)
    switch(story, array, "", "normal", limit=2)
    story.do(c.RequeueJob(story.target(array, "3"), ANN, frozenset({S.RUN})))
    story.finished("n1", key)
    story.do(c.ResumeJob(story.target(array), ANN))
    story.plan()
    assert states(story, array, 4) == "STAGING STAGING PEND PEND"


def test_a_requeue_returns_it_to_its_own_queue(story: Story) -> None:
    """And so do a hold, a restart of the master and a second start."""
    array = story.submit(a_job(array="1-3", rerunnable=True))
    switch(story, array, "2")
    story.plan()
    key = story.key(array, 2)
    story.started("n1", key)
    story.do(c.RequeueJob(story.target(array, "2"), ANN, frozenset({S.RUN}), hold=True))
    story.finished("n1", key)
    assert (story.state(array, 2), queues(story, array, 2)) == (S.PSUSP, ["normal", "night"])
    story.cluster = reborn(story.cluster)
    invariants.check(story.cluster)
    story.join(a_host("n1", 2))
    story.do(c.ResumeJob(story.target(array), ANN))
    assert (story.state(array, 2), queues(story, array, 2)) == (S.PEND, ["normal", "night"])
    story.finished("n1", story.key(array, 1))
    story.plan()
    assert story.key(array, 2).attempt == 2
    assert story.job(array, 2).shared.queue == "night"


def test_commands_for_the_whole_array_reach_it(story: Story) -> None:
    """bstop, bresume and bkill; the array is over when the last of its elements is."""
    array = story.submit(a_job(array="1-3"))
    switch(story, array, "2", "shut")
    story.do(c.StopJob(story.target(array), ANN))
    assert states(story, array, 3) == "PSUSP PSUSP PSUSP"
    story.do(c.ResumeJob(story.target(array, "2"), ANN))
    assert states(story, array, 3) == "PSUSP PEND PSUSP"
    story.kill(array, "1,3")
    assert not story.array(array).is_over
    story.kill(array)
    assert states(story, array, 3) == "EXIT EXIT EXIT"
    assert story.array(array).is_over
    story.do(c.RequeueJob(story.target(array), ANN, frozenset({S.EXIT})))
    assert queues(story, array, 3) == ["normal", "shut", "normal"]
    assert states(story, array, 3) == "PEND PEND PEND"


def test_a_change_of_the_whole_array_is_one_of_each_part(story: Story) -> None:
    """Elements changed before are changed, too, each from what it was."""
    array = story.submit(a_job(array="1-4"))
    switch(story, array, "2")
    switch(story, array, "2-3", "shut")
    assert queues(story, array, 4) == ["normal", "shut", "shut", "normal"]
    switch(story, array, "", "night")
    assert queues(story, array, 4) == ["night"] * 4


def test_naming_all_that_are_left_is_naming_the_array(story: Story) -> None:
    """One that was changed by itself before is changed, too."""
    array = story.submit(a_job(array="1-4"))
    switch(story, array, "2")
    switch(story, array, "1-4", "shut")
    assert queues(story, array, 4) == ["shut"] * 4
    assert story.cluster.counters.slots_by_queue["shut", S.PEND] == 4


def test_conditions_stay_those_of_the_array(story: Story) -> None:
    """An element waits for its dependency, changed by itself or not; counts of elements include it."""
    first = story.submit(a_job(array="1-2"))
    array = story.submit(a_job(array="1-2", dependency=f"done({first}[*])"))
    switch(story, array, "2")
    switch(story, first, "1", "shut")
    pending = story.submit(a_job(dependency=f"numpend({first}, 2)"))
    assert story.job(pending).may_start
    story.plan()
    assert (states(story, first, 2), states(story, array, 2)) == ("PEND STAGING", "PEND PEND")
    story.started("n1", story.key(first, 2))
    story.finished("n1", story.key(first, 2))
    assert story.array(array).may_start(story.job(array, 2))
    story.kill(first)
    story.kill(pending)
    story.plan()
    assert states(story, array, 2) == "PEND STAGING"


def test_a_running_element_takes_what_a_running_job_takes(story: Story) -> None:
    """Its run limit, which it keeps as it is requeued; not its size."""
    array = story.submit(a_job(array="1-3"))
    story.plan()
    key = story.key(array, 1)
    story.started("n1", key)

    def change(field: str) -> None:
        job = a_job(2, array="1-3", run_limit_s=600)
        story.do(c.ModifyJob(story.target(array, "1"), job, ANN, "", frozenset({field})))

    with pytest.raises(Refused, match="already started"):
        change("roles.tasks")
    change("run_limit_s")
    assert (story.job(array, 1).shared.run_limit_s, story.array(array).shared.run_limit_s) == (600, 0)
    assert story.cluster.attempts[key].limits_version == 1
    story.do(c.RequeueJob(story.target(array, "1"), ANN, frozenset({S.RUN})))
    story.finished("n1", key)
    assert story.array(array).shared_of(1).run_limit_s == 600


@pytest.mark.parametrize(
    ("field", "option"), [("name", "-J"), ("dependency", "-w"), ("job_group", "-g"), ("begin_time", "-b")]
)
def test_what_all_elements_have_in_common_is_refused(story: Story, field: str, option: str) -> None:
    """The sentence names the option."""
    array = story.submit(a_job(array="1-3"))
    with pytest.raises(Refused, match=f"{option} is the same for all elements"):
        story.do(c.ModifyJob(story.target(array, "2"), a_job(), ANN, "", frozenset({field})))
    assert not story.array(array).changed


def test_so_many_at_once(story: Story) -> None:
    """More than the most are refused, and nothing is changed; a million others cost nothing."""
    array = story.submit(a_job(array="1-1000000"))
    with pytest.raises(Refused, match=f"the most is {ELEMENTS_MAX}"):
        switch(story, array, f"1-{ELEMENTS_MAX + 1}")
    switch(story, array, f"5-{ELEMENTS_MAX + 4}")
    assert len(story.array(array).apart) == ELEMENTS_MAX
    story.plan()
    assert story.where(array, 5) == story.where(array, 6) == ["n1"]


def test_its_deadline_and_its_end_count_with_the_others(story: Story) -> None:
    """An array that must have started by a time ends as a whole, and is forgotten as a whole."""
    array = story.submit(a_job(array="1-3", terminate_at=story.now + 60))
    switch(story, array, "2", "shut", terminate_at=story.now + 60)
    story.wait(61)
    assert states(story, array, 3) == "EXIT EXIT EXIT"
    counted = story.cluster.counters
    story.wait(story.cluster.policy.clean_period_s + 1)
    assert array not in story.cluster.jobs
    assert not any(counted.jobs_by_group.values())


def test_limits_and_queues_that_are_changed_sort_it_anew(story: Story) -> None:
    """It goes where its own request belongs when the buckets are made again."""
    array = story.submit(a_job(array="1-3"))
    switch(story, array, "2", "shut")
    shut = replace(story.cluster.policy.by_name["shut"], active=True, users=ALL, backfill_depth=1)
    queues_now = (*[one for one in story.cluster.policy.queues if one.name != "shut"], shut)
    story.do(c.Reconfigure(replace(story.cluster.policy, queues=queues_now)))
    story.kill(array, "1,3", caller=ROOT)
    story.plan()
    assert story.where(array, 2) == ["n1"]
