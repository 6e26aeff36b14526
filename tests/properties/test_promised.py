"""No reserved job is delayed by backfilled ones, for any hosts and any requests.

The twin is slow and obvious: the cluster itself without the jobs behind the reserved one. The start of the job there is
its bound; it may start earlier, never later. Jobs end exactly at their run limits.
"""

import copy
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavad.core import commands as c
from lavad.core.model import HostFacts, JobState
from lavad.core.model.policy import Policy
from lavad.core.model.rules.queues import Queue
from lavad.core.model.rules.resources import Resource, ResourceInstance, ResourceKind
from tests.builders import ROOT, Story, a_host, a_job
from tests.properties.examples import examples

MINUTE = 60
Hosts = list[tuple[int, int, int]]  # slots, memory and devices of each
NEVER = float("inf")


@dataclass(frozen=True)
class Wanted:
    """A job as drawn: minutes after the one before, minutes it runs, and its request."""

    gap: int
    minutes: int
    asks: tuple[tuple[str, Any], ...]


def kinds() -> st.SearchStrategy[dict[str, Any]]:
    """All that users may ask for."""
    gangs = {"tasks_min": st.integers(1, 5), "memory_mib": st.sampled_from([0, 0, 1000, 3000])}
    return st.one_of(
        st.fixed_dictionaries({"slots": st.integers(1, 8)}),
        st.fixed_dictionaries({"slots": st.integers(1, 4), "one_host": st.just(True)}),
        st.fixed_dictionaries({"slots": st.integers(1, 3), "gpus": st.integers(1, 4), "one_host": st.just(True)}),
        st.fixed_dictionaries({"slots": st.just(1), "memory_mib": st.sampled_from([1000, 3000, 7000])}),
        st.fixed_dictionaries({"slots": st.integers(1, 4), "hosts": st.sampled_from([("n1",), ("n2", "n3")])}),
        st.fixed_dictionaries({"slots": st.integers(1, 2), "exclusive": st.just(True)}),
        st.fixed_dictionaries({"slots": st.integers(2, 4), "ptile": st.integers(1, 2)}),
        st.fixed_dictionaries({"slots": st.integers(1, 2), "rusage": st.sampled_from(["lic=1", "lic=2"])}),
        st.fixed_dictionaries({"slots": st.integers(1, 2), "select": st.sampled_from(["maxslots > 2", "ngpus > 0"])}),
        st.fixed_dictionaries({**gangs, "tasks_max": st.integers(5, 7)}),
    )


def some(**asks: list[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Each with one of these."""
    return st.fixed_dictionaries({name: st.sampled_from(values) for name, values in asks.items()})


# One resource only, so that all jobs compete for it.
THEMES: dict[str, tuple[Hosts, st.SearchStrategy[dict[str, Any]]]] = {
    "slots": ([(6, 4000, 0)] * 3, some(slots=[1, 1, 2, 5], hosts=[("n1",)])),
    "memory": ([(9, 8000, 0)] * 3, some(memory_mib=[1000, 1000, 3000, 7000], hosts=[("n1",)])),
    "gpus": ([(9, 8000, 6)] * 3, some(gpus=[1, 1, 2, 5], hosts=[("n1",)])),
    "licences": ([(9, 8000, 0)] * 3, some(rusage=["lic=1", "lic=1", "lic=2", "lic=5"])),
}


def jobs(asks: st.SearchStrategy[dict[str, Any]], most: int = 12) -> st.SearchStrategy[list[Wanted]]:
    """Some that ask for that."""
    one = st.builds(
        Wanted,
        st.sampled_from([0, 0, 0, 1, 2, 5]),
        st.integers(1, 12),
        asks.map(lambda asks: tuple(asks.items())),
    )
    return st.lists(one, min_size=3, max_size=most)


hosts = st.lists(
    st.tuples(st.integers(1, 5), st.sampled_from([4000, 8000]), st.sampled_from([0, 0, 2, 4])),
    min_size=3,
    max_size=4,
)


def rules(depth: int) -> Policy:
    """One queue with this backfill depth, and a licence for all hosts together."""
    return Policy(
        queues=(Queue("normal", 30, backfill_depth=depth),),
        resources={"lic": Resource("lic", ResourceKind.NUMERIC)},
        resource_map=(ResourceInstance("lic", "6", is_shared=True),),
    )


def described(sizes: Hosts) -> list[HostFacts]:
    """The hosts."""
    return [a_host(f"n{number}", *size) for number, size in enumerate(sizes, 1)]


class World:
    """A cluster in which time goes from event to event."""

    def __init__(self, story: Story, ends: dict[int, float]) -> None:
        self.story = story
        self.ends = ends  # of jobs that run
        self.started: dict[int, float] = {}

    def plan(self) -> None:
        """Run a pass; started jobs run at once."""
        story = self.story
        story.hear(*story.cluster.hosts)
        story.plan()
        for key in list(story.cluster.staging):
            attempt = story.cluster.attempts[key]
            if not attempt.launched:
                for share in attempt.allocation:
                    story.staged(share.host, key)
            story.started(attempt.lead, key)
            self.started[key.job] = story.now
            self.ends[key.job] = story.now + story.cluster.jobs[key.job].shared.run_limit_s

    def waiting(self) -> list[int]:
        """Jobs in the order in which they were submitted."""
        return [job for job in self.story.cluster.jobs if self.story.state(job) is JobState.PEND]

    def next_end(self) -> float:
        """Time of the next job end."""
        return min(self.ends.values(), default=NEVER)

    def go_to(self, at: float) -> None:
        """Let time pass; jobs end at their limits."""
        story = self.story
        story.now = at
        story.hear(*story.cluster.hosts)
        for job in [job for job, end in self.ends.items() if end <= at]:
            del self.ends[job]
            key = story.key(job)
            attempt = story.cluster.attempts[key]
            for share in attempt.allocation[1:]:
                story.released(share.host, key)
            story.finished(attempt.lead, key)


def promised(world: World, job: int, ahead: list[int]) -> float:
    """Start time of the job without the pending jobs behind it; those ahead of it are present."""
    alone = World(copy.deepcopy(world.story), dict(world.ends))
    for other in alone.waiting():
        if other != job and other not in ahead:
            alone.story.do(c.KillJob(c.Target(other), ROOT))
    while True:
        alone.plan()
        if job in alone.started:
            return alone.started[job]
        if alone.next_end() == NEVER:
            return NEVER
        alone.go_to(alone.next_end())


def first_delayed(sizes: Hosts, wanted: list[Wanted], depth: int) -> tuple[int, float] | None:
    """Submit and run everything: the first job that starts later than its bound, with that bound."""
    story = Story(*described(sizes), policy=rules(depth))
    world, bounds = World(story, {}), dict[int, float]()
    coming, at = [], story.now
    for one in wanted:
        at += one.gap * MINUTE
        coming.append((at, one))
    while coming or world.ends:
        world.go_to(min(world.next_end(), coming[0][0] if coming else NEVER))
        while coming and coming[0][0] <= story.now:
            one = coming.pop(0)[1]
            story.submit(a_job(run_limit_s=one.minutes * MINUTE, **dict(one.asks)))
        world.plan()
        for job, bound in bounds.items():
            if world.started.get(job, story.now) > bound:
                return job, bound
        ahead: list[int] = []
        for job in world.waiting():
            if len(ahead) == depth:
                break
            start = promised(world, job, ahead)
            bounds[job] = min(bounds.get(job, NEVER), start)
            ahead.append(job)
    return None


@examples(40)
@given(hosts, jobs(kinds()))
def test_the_first_that_waits_is_never_delayed(sizes: Hosts, wanted: list[Wanted]) -> None:
    """EASY: one job holds a reservation."""
    assert first_delayed(sizes, wanted, 1) is None


@pytest.mark.parametrize("theme", THEMES)
@examples(20)
@given(st.data())
def test_whatever_all_wait_for(theme: str, data: st.DataObject) -> None:
    """Also with many small jobs at once that fit beside a reservation."""
    sizes, asks = THEMES[theme]
    assert first_delayed(sizes, data.draw(jobs(asks, 16)), 1) is None


@examples(40)
@given(hosts, jobs(kinds()), st.integers(2, 4))
def test_so_it_is_with_several(sizes: Hosts, wanted: list[Wanted], depth: int) -> None:
    """Conservative backfilling: each reservation is bounded by those before it."""
    assert first_delayed(sizes, wanted, depth) is None
