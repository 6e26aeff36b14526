"""Fewest victims: the fast search finds the result of an exhaustive search, and never a partial set."""

from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lavad.core import commands as c
from lavad.core.model import FINAL, JobState
from lavad.core.model.policy import Policy
from lavad.core.model.rules.queues import Queue
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.placement.place import place
from lavad.core.scheduling.preemption.preempt import candidates
from lavad.core.scheduling.preemption.victim import Victim
from lavad.core.scheduling.preemption.victim_search import clear
from tests.builders import ROOT, Story, a_host, a_job

HIGH, LOW, IDLE = "high", "low", "idle"
QUEUES = (Queue(HIGH, 50, preempts=((LOW, 0), (IDLE, 2))), Queue(LOW, 30), Queue(IDLE, 20))


def a_busy_cluster(rng: Random, requeue: bool) -> Story:
    """Few hosts, mostly taken by jobs of the lower queues."""
    policy = Policy(QUEUES, default_queue=LOW, preempts_by_requeue=requeue)
    story = Story(
        *(a_host(f"n{n}", rng.choice((1, 2, 4, 4)), 4000, rng.choice((0, 2))) for n in range(1, rng.randint(2, 5))),
        policy=policy,
    )
    for _ in range(rng.randint(1, 8)):
        story.now += rng.choice((0.0, 1.0))
        tasks = rng.choice((1, 1, 2, 3, 4))
        number = story.submit(
            a_job(
                tasks,
                queue=rng.choice((LOW, LOW, IDLE)),
                ptile=rng.choice((0, 0, 1, 2)),
                memory_mib=rng.choice((0, 0, 1500)),
                gpus=rng.choice((0, 0, 0, 1)),
                **elastic(tasks, rng),
            )
        )
        story.plan()
        if story.state(number) is JobState.STAGING:
            start(story, number)
    return story


def elastic(tasks: int, rng: Random) -> dict[str, int]:
    """Make some jobs elastic, some of them already grown."""
    more = rng.choice((0, 0, 1, 3))
    return {"tasks_min": tasks, "tasks_max": tasks + more, "resizable": True} if more else {}


def start(story: Story, number: int) -> None:
    """All hosts of a dispatched job answer."""
    key = story.key(number)
    attempt = story.cluster.attempts[key]
    if not attempt.launched:
        for share in attempt.allocation:
            story.staged(share.host, key)
    story.started(attempt.lead, key)


def smallest(story: Story, job: int, victims: list[Victim]) -> list[Victim] | None:
    """The first set of the smallest size in the order of the candidates, by trying every one."""
    request = story.cluster.jobs[job].shared.request
    for size in range(len(victims) + 1):
        for chosen in combinations(victims, size):
            table = story.cluster.table.copy()
            for victim in chosen:
                for share in victim.gives:
                    table.give_back(table.rows[share.host], share, False)
            if place(FreeResources(table), request) is not None:
                return list(chosen)
    return None


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9), st.booleans())
def test_the_fewest_victims_are_found(seed: int, requeue: bool) -> None:
    """As many as the slow search finds, and the same ones."""
    rng = Random(seed)
    story = a_busy_cluster(rng, requeue)
    tasks = rng.choice((1, 2, 3, 4, 6))
    role = {"ptile": rng.choice((0, 0, 1, 2)), "memory_mib": rng.choice((0, 1500)), "gpus": rng.choice((0, 0, 1))}
    job = story.submit(a_job(tasks, queue=HIGH, one_host=rng.random() < 0.2 and not role["ptile"], **role))
    cluster = story.cluster
    victims = list(candidates(cluster, cluster.preemption_rules.sources(HIGH), story.now))
    found = clear(cluster, cluster.jobs[job].shared.request, (), victims)
    expected = smallest(story, job, victims)
    assert (None if found is None else list(found.victims)) == expected


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), st.booleans())
def test_whoever_is_suspended_goes_on(seed: int, requeue: bool) -> None:
    """After urgent jobs have come and gone, every other job runs or is pending, and no slot stays reserved."""
    rng = Random(seed)
    story = a_busy_cluster(rng, requeue)
    for _ in range(rng.randint(1, 6)):
        story.now += 1.0
        job = story.submit(a_job(rng.choice((1, 2, 4)), queue=HIGH, ptile=rng.choice((0, 1))))
        story.plan()
        for _ in range(rng.randint(0, 3)):
            one_thing_happens(story, rng)
        if rng.random() < 0.3 and story.state(job) is not JobState.DONE:
            story.kill(job, caller=ROOT, remove=True)
    for _ in range(200):
        if not any(is_urgent(story, number) for number in story.cluster.jobs):
            break
        one_thing_happens(story, rng, only=HIGH)
    clear_away(story)
    story.plan()
    cluster = story.cluster
    assert not cluster.lenders
    assert not cluster.claims
    assert all(story.state(number) is not JobState.SSUSP for number in cluster.jobs)


def is_urgent(story: Story, job: int) -> bool:
    """True for a pending or running job of the high queue."""
    return story.cluster.jobs[job].shared.queue == HIGH and story.state(job) not in FINAL


def one_thing_happens(story: Story, rng: Random, only: str = "") -> None:
    """Start or end some job; jobs ordered to end do so."""
    clear_away(story)
    cluster = story.cluster
    attempts = [
        attempt
        for attempt in cluster.attempts.values()
        if not attempt.over and (not only or cluster.jobs[attempt.key.job].shared.queue == only)
    ]
    if attempts:
        attempt = rng.choice(attempts)
        if story.state(attempt.key.job) is JobState.STAGING:
            start(story, attempt.key.job)
        else:
            for share in attempt.allocation:
                if attempt.key in cluster.attempts and share.host in attempt.unreleased:
                    story.finished(share.host, attempt.key)
    story.plan()


def clear_away(story: Story) -> None:
    """Carry out all ordered ends and releases."""
    for key in list(story.cluster.resizing):
        attempt = story.cluster.attempts[key]
        for share in attempt.resizing.growth:
            if attempt.share_on(share.host) is None and share.host in attempt.unreleased - attempt.staged:
                story.staged(share.host, key)
        story.do(c.ReportResized(attempt.lead, key, attempt.resizing.version))
    for key, attempt in list(story.cluster.resizable.items()):
        for share in attempt.resizing.leaving if attempt.resizing.is_told else ():
            if attempt.share_on(share.host) is None:
                story.released(share.host, key)
    for key, attempt in list(story.cluster.attempts.items()):
        if attempt.is_ending:
            for share in attempt.allocation:
                if key in story.cluster.attempts and share.host in attempt.unreleased:
                    story.do(c.ReportFinished(share.host, key, 15, story.now, also_released=True))
