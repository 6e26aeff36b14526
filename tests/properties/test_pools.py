"""Resource pools under random loads: each pool can reclaim its own share, and none exceeds its maximum."""

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavad.core import commands as c
from lavad.core.events import AttemptResized, JobDoomed
from lavad.core.model import Allocation, JobState, Key
from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.resources import Pool
from lavad.core.scheduling.preemption.lent_resources import shares_of
from tests.builders import ANN, BOB, ROOT, Story, a_host, a_job
from tests.properties.examples import examples
from tests.properties.test_preemption import clear_away, elastic, one_thing_happens

USERS = (ANN, BOB, ROOT)


def some_pools(rng: Random, slots: int) -> tuple[Pool, ...]:
    """Pools of two or three users, with shares that fit the cluster together; one may have none."""
    left, pools = slots, []
    for caller in USERS[: rng.choice((2, 3))]:
        own = rng.choice((0, rng.randint(0, left)))
        left -= own
        gpus = {"gpus": 1.0} if rng.random() < 0.3 else {}
        most = {"slots": float(own + rng.randint(1, 4))} if rng.random() < 0.3 else {}
        users, guaranteed = Names(False, frozenset((caller.user,))), {"slots": float(own), **gpus}
        lends = rng.random() < 0.8
        pools.append(Pool(caller.user, users, guaranteed=guaranteed, largest=most, lends=lends))
    return tuple(pools)


def taken(story: Story, events: int) -> Iterator[tuple[Key, Allocation]]:
    """Jobs ordered to end, or to shrink, with the resources they release."""
    cluster = story.cluster
    for event in story.events[events:]:
        if isinstance(event, JobDoomed) and event.again:
            yield event.key, shares_of(cluster, event.key)
        elif isinstance(event, AttemptResized) and event.reason.startswith("reclaimed"):
            yield event.key, cluster.attempts[event.key].resizing.leaving


def check(story: Story, events: int) -> None:
    """After a pass: reclaiming left each pool its own share, and no pool is above its maximum."""
    cluster = story.cluster
    pools = cluster.pools
    for number, pool in enumerate(pools.pools):
        kept = dict.fromkeys(pools.used[number], 0.0)
        for key, attempt in cluster.attempts.items():
            if pools.pool_of(key) == number and not attempt.is_ending:
                for name, amount in pools.amounts(number, attempt.allocation).items():
                    kept[name] += amount
        for key, gives in taken(story, events):
            for name, amount in pools.amounts(number, gives).items() if pools.pool_of(key) == number else ():
                assert not amount or kept[name] >= pools.entitled(number, name), f"{pool.name} lost some of its {name}"
        for name, most in pool.largest.items():
            assert pools.used[number][name] <= most, f"{pool.name} has more {name} than its maximum"


@pytest.mark.slow
@examples(50)
@given(st.integers(0, 10**9))
def test_every_pool_keeps_its_own(seed: int) -> None:
    """For any submissions and any ends of jobs."""
    rng = Random(seed)
    hosts = [a_host(f"n{n}", rng.choice((2, 4)), 4000, rng.choice((0, 2))) for n in range(1, rng.randint(2, 5))]
    pools = some_pools(rng, sum(host.slots for host in hosts))
    story = Story(*hosts, policy=Policy(pools=pools))
    for _ in range(40):
        story.now += 1.0
        before = len(story.events)
        if rng.random() < 0.6:
            tasks = rng.choice((1, 1, 2, 3, 4))
            ptile, gpus = rng.choice((0, 0, 1)), rng.choice((0, 0, 0, 1))
            role = {"ptile": ptile, "gpus": gpus, **elastic(tasks, rng)}
            story.submit(a_job(tasks, rng.choice(USERS), rng.choice(("normal", "short")), **role))
            story.plan()
        else:
            one_thing_happens(story, rng)
        check(story, before)
    clear_away(story)


@pytest.mark.slow
@examples(30)
@given(st.integers(0, 10**9))
def test_an_owner_gets_what_others_have_borrowed(seed: int) -> None:
    """One user fills the cluster with small jobs; the owner of a share then gets all of it, and no more is ended."""
    rng = Random(seed)
    hosts = [a_host(f"n{n}", 4) for n in range(1, rng.randint(2, 5))]
    own = rng.randint(1, 4 * len(hosts))
    pool = Pool("red", Names(False, frozenset((ANN.user,))), guaranteed={"slots": float(own)})
    story = Story(*hosts, policy=Policy(pools=(pool,)))
    bobs = [story.submit(a_job(1, BOB)) for _ in range(4 * len(hosts))]
    story.plan()
    for job in bobs:
        story.started(story.where(job)[0], story.key(job))
    anns = [story.submit(a_job(1, ANN)) for _ in range(own + 3)]
    story.plan()
    clear_away(story)
    story.plan()
    assert sum(story.state(job) is JobState.STAGING for job in anns) == own
    assert sum(story.state(job) is JobState.RUN for job in bobs) == 4 * len(hosts) - own
    story.do(c.Tick())
    assert not story.cluster.claims
