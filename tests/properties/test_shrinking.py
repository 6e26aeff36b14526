"""Elastic jobs shrink before others are suspended or ended: never by too much, and no more than needed."""

from collections.abc import Iterator
from itertools import combinations, product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lavad.core.model import Allocation, JobState, Key
from lavad.core.model.allocation import is_divisible, part_of, shrunk, tasks_of
from lavad.core.model.policy import Policy
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.placement.place import place
from lavad.core.scheduling.preemption.preempt import candidates, to_be_shrunk
from lavad.core.scheduling.preemption.shrink import spare
from lavad.core.scheduling.preemption.victim import PreemptionMode, Victim
from lavad.core.scheduling.preemption.victim_search import VictimSet, clear
from tests.builders import Story, a_host, a_job
from tests.properties.test_preemption import HIGH, IDLE, LOW, QUEUES, start


def an_elastic_cluster(rng: Random, requeue: bool) -> Story:
    """Few hosts, mostly taken by jobs of the lower queues, most of them elastic."""
    hosts = [a_host(f"n{n}", rng.choice((1, 2, 4)), 4000, rng.choice((0, 2))) for n in range(1, rng.randint(3, 5))]
    story = Story(*hosts, policy=Policy(QUEUES, default_queue=LOW, preempts_by_requeue=requeue))
    for _ in range(rng.randint(1, 4)):
        story.now += rng.choice((0.0, 1.0))
        least, more = rng.choice((1, 1, 2)), rng.choice((0, 1, 2, 4))
        role = {"ptile": rng.choice((0, 0, 0, 2)), "gpus": rng.choice((0, 0, 0, 1)), "resizable": more > 0}
        job = a_job(queue=rng.choice((LOW, LOW, IDLE)), tasks_min=least, tasks_max=least + more, **role)
        number = story.submit(job)
        story.plan()
        if story.state(number) is JobState.STAGING:
            start(story, number)
    return story


def ways_to_shrink(story: Story, key: Key) -> Iterator[Allocation]:
    """Every shrink of an elastic job: any number of tasks on each host, the lead host and its minimum kept."""
    allocation = story.cluster.attempts[key].allocation
    role = story.cluster.jobs[key.job].shared.request.roles[0]
    each = []
    for number, share in enumerate(allocation):
        here = tasks_of((share,))
        steps = range(here if number == 0 else here + 1)
        each.append([tasks for tasks in steps if is_divisible(role) or tasks in (0, here)])
    for tasks in product(*each):
        if 0 < sum(tasks) <= tasks_of(allocation) - role.tasks_min:
            yield tuple(part_of(share, one, role) for share, one in zip(allocation, tasks, strict=True) if one)


def fits(story: Story, job: int, gives: Allocation) -> bool:
    """True if the job would start with this freed."""
    table = story.cluster.table.copy()
    for share in gives:
        table.give_back(table.rows[share.host], share, False)
    return place(FreeResources(table), story.cluster.jobs[job].shared.request) is not None


Ways = dict[Key, list[Allocation]]


def fewest_whole(story: Story, job: int, whole: list[Victim], ways: Ways) -> int | None:
    """Least number of jobs to suspend or end, by exhaustive search."""
    for victims in range(len(whole) + 1):
        for taken in combinations(whole, victims):
            rest = [share for one in taken for share in one.gives]
            others = [[(), *gives] for key, gives in ways.items() if all(one.key != key for one in taken)]
            for gives in product(*others):
                if fits(story, job, (*rest, *(share for one in gives for share in one))):
                    return victims
    return None


def look_at(story: Story, job: int, found: VictimSet) -> None:
    """Check that no shrink is too large, and that the job would not fit without any part of it."""
    every = [share for one in found.victims for share in one.gives]
    assert fits(story, job, tuple(every))
    for one in found.victims:
        others = [share for other in found.victims if other is not one for share in other.gives]
        assert not fits(story, job, tuple(others)), f"{one.key} need not have been asked"
        if one.way is not PreemptionMode.SHRINK:
            continue
        attempt, role = story.cluster.attempts[one.key], story.cluster.jobs[one.key.job].shared.request.roles[0]
        left = shrunk(attempt.allocation, one.gives)
        assert tasks_of(left) >= role.tasks_min
        assert left[0].host == attempt.lead
        for share in one.gives:
            here = tasks_of((share,))
            assert is_divisible(role) or attempt.share_on(share.host) == share, "a host was to be given up in part"
            less = here - 1 if is_divisible(role) else 0
            rest = [other for other in one.gives if other is not share] + ([part_of(share, less, role)] if less else [])
            assert not fits(story, job, (*others, *rest)), f"{one.key} gives too much of {share.host}"


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9), st.booleans())
def test_nobody_is_ended_where_shrinking_is_enough(seed: int, requeue: bool) -> None:
    """No more than if each released its newest tasks first; no needless release; and the preemption is carried out."""
    rng = Random(seed)
    story = an_elastic_cluster(rng, requeue)
    role = {"ptile": rng.choice((0, 0, 1, 2)), "gpus": rng.choice((0, 0, 0, 1))}
    job = story.submit(a_job(rng.choice((1, 2, 3, 4)), queue=HIGH, **role))
    cluster = story.cluster
    sources = cluster.preemption_rules.sources(HIGH)
    whole, elastic = list(candidates(cluster, sources, story.now)), to_be_shrunk(cluster, sources, story.now)
    found = clear(cluster, cluster.jobs[job].shared.request, (), whole, elastic=elastic)
    least = fewest_whole(story, job, whole, {key: list(ways_to_shrink(story, key)) for key in elastic})
    if found is None:
        assert least is None
        return
    look_at(story, job, found)
    taken = sum(one.way is not PreemptionMode.SHRINK for one in found.victims)
    by_newest_hosts = fewest_whole(story, job, whole, {key: [spare(cluster, key)] for key in elastic})
    assert least is not None
    assert least <= taken <= (by_newest_hosts if by_newest_hosts is not None else taken)
    story.plan()
    is_growing = any(attempt.booked != attempt.allocation for attempt in cluster.attempts.values())
    assert is_growing or (job, 0) in cluster.claims or story.state(job) is JobState.STAGING
