"""Limits of application profiles (APPS, PER_APP), and those that are parts of each host's space."""

from dataclasses import replace

import pytest

from lavad.core.model import JobState
from lavad.core.model.policy import Policy
from lavad.core.model.rules.applications import Application
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.resources import Limit
from lavad.core.queries.limit_usage import limit_usage
from lavad.core.queries.pending_reasons import explain
from tests.builders import Story, a_cluster, a_host, a_job

EVERY_PROFILE = Names(True, frozenset({""}))
PROFILES = {name: Application(name) for name in ("md", "fe")}


def with_limit(limit: Limit) -> Story:
    """One host of eight slots, two profiles and a limit."""
    return a_cluster(a_host("n1", 8), policy=replace(Policy(), limits=(limit,), applications=PROFILES))


def running(story: Story, *applications: str) -> list[bool]:
    """Submit a job of each of these profiles, and tell which of them start."""
    made = [a_job() for _ in applications]
    jobs = [
        story.submit(job._replace(shared=replace(job.shared, application=name)))
        for job, name in zip(made, applications, strict=True)
    ]
    story.plan()
    return [story.state(job) is not JobState.PEND for job in jobs]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (Limit("each", jobs=1, per_application=EVERY_PROFILE), [True, True, False, True, True, False]),
        (Limit("both", jobs=2, applications=EVERY_PROFILE), [True, True, True, False, True, False]),
        (Limit("one", jobs=1, applications=Names(False, frozenset({"md"}))), [True, True, False, True, True, True]),
    ],
    ids=lambda one: one.name if isinstance(one, Limit) else "",
)
def test_limits_of_profiles(limit: Limit, expected: list[bool]) -> None:
    """They count the jobs of their profiles, each alone or together, and no job without a profile."""
    story = with_limit(limit)
    assert running(story, "md", "", "md", "fe", "", "fe") == expected
    waiting = expected.index(False) + 1
    (reason,) = explain(story.cluster, story.cluster.jobs[waiting], 0, story.now)
    assert reason.text.startswith("Resource limit defined on application(s) has been reached (Resource: jobs, ")
    assert {one.application for one in limit_usage(story.cluster)} <= {"md", "fe", ""}


def test_parts_of_the_space_of_each_host() -> None:
    """TMP = 50% and SWP = 25% with PER_HOST: of what each host has, as MEM."""
    limit = Limit("part", per_host=Names(), memory_share=0.5, resource_shares=(("tmp", 0.5), ("swp", 0.25)))
    facts = replace(a_host("n1", 8), memory_mib=1000, tmp_mib=3000, swap_mib=800)
    story = a_cluster(facts, policy=replace(Policy(), limits=(limit,)))
    limits = story.cluster.limits
    assert {rule.what: limits.ceilings_on(rule).tolist() for rule in limits.rules} == {
        "mem": [500.0], "tmp": [1500.0], "swp": [200.0],
    }  # fmt: skip
