"""Blocked buckets that freed hosts might fit are returned in scheduling order, however few of them were sorted."""

from random import Random

import pytest

from lavad.core.cluster import Cluster
from lavad.core.model import Request, RoleRequest
from lavad.core.scheduling.placement.place import smallest_need
from lavad.core.scheduling.queueing import blocked_columns
from lavad.core.scheduling.queueing.blocked import BlockedBuckets
from lavad.core.scheduling.queueing.ordering import Rank
from lavad.core.state.pending import BucketKey, SchedulingClass
from tests.builders import Story, a_host

Expected = dict[int, list[BucketKey]]
BUCKETS = 300


def a_key(rng: Random, number: int) -> BucketKey:
    """A request of one task or a parallel one, with some memory and perhaps a GPU."""
    tasks = rng.choice((1, 1, 1, 2, 9))
    role = RoleRequest(
        tasks_min=tasks,
        tasks_max=tasks,
        ptile=rng.choice((0, 1)),
        memory_mib=rng.choice((0, 500, 2000)),
        gpus=rng.choice((0, 0, 1)),
    )
    return BucketKey(SchedulingClass("normal", "ann", "", Request((role,))), number)


def plainly(
    known: dict[BucketKey, tuple[Rank, int]], cluster: Cluster, rows: set[int], tried: set[BucketKey]
) -> Expected:
    """The same result by testing each bucket."""
    table = cluster.table
    found: Expected = {}
    for key, (_, share_queue) in sorted(known.items(), key=lambda item: item[1][0]):
        need = smallest_need(key.request)
        fits = [
            table.slots_free[row] >= need.slots
            and table.memory_free_mib[row] >= need.memory_mib
            and table.gpus_free[row] >= need.gpus
            for row in rows
        ]
        tasks = sum(min(int(free), need.tasks_per_host) for free in table.slots_free[: len(table)])
        if any(fits) and need.slots_in_all <= table.slots_open and need.tasks <= tasks and key not in tried:
            found.setdefault(share_queue, []).append(key)
    return found


@pytest.mark.parametrize("bits", [1, 4, 10])
@pytest.mark.parametrize("has_share_queues", [False, True])
def test_those_that_fit_come_in_order(bits: int, has_share_queues: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is the same with other queues and job priorities, while buckets come and go."""
    monkeypatch.setattr(blocked_columns, "_BITS", bits)
    monkeypatch.setattr(blocked_columns, "_WIDTH", 1 << bits)
    monkeypatch.setattr(blocked_columns, "_NOTED_MAX", 7)
    for seed in range(10):
        rng = Random(seed)
        hosts = [a_host(f"n{n}", rng.choice((1, 2)), rng.choice((400, 3000)), rng.choice((0, 1))) for n in range(6)]
        cluster = Story(*hosts).cluster
        buckets, known = BlockedBuckets(), dict[BucketKey, tuple[Rank, int]]()
        for number in range(BUCKETS):
            key = a_key(rng, number)
            queue, priority = rng.choice((-30, -1)) * (seed % 2), rng.choice((0.0, -5.0)) * (seed % 3)
            rank = Rank(queue, priority, rng.random(), number)
            known[key] = rank, rng.randrange(4) if has_share_queues else 0
            buckets.add(key, smallest_need(key.request), *known[key])
            if not rng.randrange(4):
                gone = rng.choice(list(known))
                buckets.discard(gone)
                del known[gone]
        rows = set(rng.sample(range(6), rng.choice((1, 2, 6))))
        tried = set(rng.sample(list(known), 20))
        found: Expected = {}
        for share_queue, some in buckets.unblocked_by(cluster.table, rows, tried, has_share_queues).items():
            while some:
                key_there = buckets.key(some.first)
                assert key_there is not None
                assert buckets.key(some.pop()) is key_there
                found.setdefault(share_queue, []).append(key_there)
        assert found == plainly(known, cluster, rows, tried)


def test_nobody_is_thought_to_fit_where_all_were_found_too_large() -> None:
    """A bound that is too low costs one test; a smaller request that comes later is known at once."""
    blocked = BlockedBuckets()
    small, large = (
        BucketKey(
            SchedulingClass("normal", "ann", "", Request((RoleRequest(tasks_min=slots, tasks_max=slots),))), slots
        )
        for slots in (2, 8)
    )
    for number, key in enumerate((small, large)):
        blocked.add(key, smallest_need(key.request), Rank(0, 0, number, number))
    assert blocked.may_fit(2)
    assert not blocked.may_fit(1)
    blocked.discard(small)
    assert blocked.fitting(5) == []
    assert not blocked.may_fit(5)
    assert blocked.may_fit(8)
    blocked.add(small, smallest_need(small.request), Rank(0, 0, 0, 0))
    assert blocked.may_fit(2)
