"""Pending reasons that named the wrong cause, or none."""

from dataclasses import replace

import pytest

from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.resources import Limit
from lavad.core.queries.pending_reasons import explain
from tests.builders import Story, a_host, a_job
from tests.transcripts import rules, site


def reasons(story: Story, job: int) -> list[str]:
    """The sentences that bjobs -p prints."""
    return [one.text for one in explain(story.cluster, story.cluster.jobs[job], 0, story.now)]


def limited(limit: Limit, *words: str) -> Story:
    """Two hosts, and one Limit section."""
    policy = site.policy(words, replace(Policy(), limits=(limit,)))
    return Story(a_host("n1"), a_host("n2"), policy=policy)


@pytest.mark.parametrize("rusage", ["lic=1", "lic=1/task", "lic=1/job"])
def test_a_limit_on_a_licence_is_named_when_it_is_reached(rusage: str) -> None:
    """Not "New job is waiting for scheduling": the limit, its resource, and its value."""
    limit = Limit("cfd", users=Names(False, frozenset({"ann"})), resources=(("lic", 2.0),))
    story = limited(limit, "lic=4@all")
    story.run(a_job(rusage="lic=2"))
    waiting = story.submit(a_job(rusage=rusage))
    story.plan()
    said = "Resource limit defined on user(s) has been reached (Resource: lic, Limit Name: cfd, Limit Value: 2)"
    assert reasons(story, waiting) == [said]


def test_a_licence_limit_is_not_blamed_for_a_job_that_fits_within_it() -> None:
    """The reason of a job that waits for slots is slots."""
    limit = Limit("cfd", resources=(("lic", 3.0),))
    story = limited(limit, "lic=4@all")
    for _ in range(2):
        story.run(a_job(4, rusage="lic=1"))
    waiting = story.submit(a_job(rusage="lic=1"))
    story.plan()
    assert reasons(story, waiting) == ["Not enough job slot(s)"]


@pytest.mark.parametrize("memory", [{"memory_mib": 5000}, {"rusage": "mem=5000/task"}], ids=["mem", "mem/task"])
def test_a_limit_on_memory_of_each_host_is_named(memory: dict[str, object]) -> None:
    """Not "Not enough hosts to meet the job's spanning requirement" for a serial job."""
    limit = Limit("m", per_host=Names(True), memory_mib=4000)
    story = limited(limit)
    waiting = story.submit(a_job(**memory))  # type: ignore[arg-type]
    story.plan()
    said = "Resource limit defined on host(s) has been reached (Resource: mem, Limit Name: m, Limit Value: 4000)"
    assert reasons(story, waiting) == [said]


def test_a_limit_on_slots_of_a_host_is_not_blamed_on_its_memory() -> None:
    """A limit of several hosts together counts in its own unit: one MiB left is not one slot left."""
    limit = Limit("m", hosts=Names(False, frozenset({"n1", "n2"})), memory_mib=3)
    story = limited(limit)
    story.run(a_job(4, memory_mib=3, hosts=("n1",)))
    waiting = story.submit(a_job(6))
    story.plan()
    assert reasons(story, waiting) == ["Not enough job slot(s)"]


def test_a_load_threshold_of_the_queue_is_named() -> None:
    """Not "Job's resource requirements not satisfied" for a job without requirements."""
    story = Story(a_host("n1"), policy=rules.policy(["load.normal=r1m:1"]))
    story.cluster.observe_load("n1", site.load(["r1m=2"])[0])
    waiting = story.submit(a_job(select="r1m<=1"))  # as a submission to this queue is understood
    story.plan()
    assert reasons(story, waiting) == ["Load threshold of the queue reached (r1m)"]
