"""The events are the whole state: folded over an empty cluster they give the cluster, and a restart loses nothing.

In a simulation the master's cluster runs ahead of a second one built from the durable events alone.
"""

from typing import Any

import pytest

from lavad.core.cluster import Cluster
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import ArrayRecord, Job
from lavad.simulator.cluster.admins import Rulers
from lavad.simulator.cluster.restart import reborn
from lavad.simulator.cluster.scenario import Trouble
from lavad.simulator.cluster.submitters import TROUBLE_S, Users
from lavad.simulator.cluster.world import World


def state_of(cluster: Cluster) -> dict[str, Any]:
    """Job, array, attempt and host state as plain values: all that a restarted master has to know."""
    return {
        "next": cluster.next_job,
        "jobs": {record.id: _record(record) for record in cluster.jobs.values()},
        "attempts": {key: _attempt(attempt) for key, attempt in cluster.attempts.items()},
        "staging": set(cluster.staging),
        "resizable": (set(cluster.resizable), set(cluster.resizing)),
        "remembered": {record.id: _record(record) for record in cluster.remembered.values()},
        "conditions": cluster.dependants.conditions,
        "lenders": set(cluster.lenders),
        "claims": dict(cluster.claims),
        "finished": {key: _fields(job) for key, job in cluster.finished.items()},
        "requests": dict(cluster.request_ids),
        "hosts": {
            name: (host.facts, host.offered, host.closed_by, dict(host.attempts))
            for name, host in cluster.hosts.items()
        },
        "queues": (dict(cluster.queue_states), cluster.policy),
        "used": cluster.shares.used(),
        "limits": limits_of(cluster),
        "shares": shares_of(cluster),
        "buckets": {key.kind: list(bucket) for key, bucket in cluster.pending.buckets.items()},
        "counters": {key: count for key, count in cluster.counters.slots_by_user.items() if count},
    }


def limits_of(cluster: Cluster) -> dict[str, float]:
    """Usage of every limit."""
    counters = [counter for counter in cluster.limits.counters if counter.used or counter.used_on.any()]
    return {f"{one.rule} {one.members}": one.used or float(one.used_on.sum()) for one in counters}


def shares_of(cluster: Cluster) -> dict[str, tuple[int, int, int]]:
    """Resources held by the jobs of every account."""
    trees = set(cluster.shares.trees.values())
    accounts = [account.running for tree in trees for account in tree.accounts()]
    return (
        {
            account.path: (account.running.slots, account.running.gpus, account.running.committed_s)
            for tree in trees
            for account in tree.accounts()
            if account.running.slots
        }
        if accounts
        else {}
    )


_COPIED = ("live", "apart", "ended", "codes", "was_full")


def _record(record: Job | ArrayRecord) -> Any:
    if isinstance(record, Job):
        return _fields(record)
    values = {name: getattr(record, name) for name in ArrayRecord.__slots__ if name not in _COPIED}
    return values | {
        "live": {index: _fields(job) for index, job in record.live.items()},
        "apart": {index: _fields(job) for index, job in record.apart.items()},
        "ended": bytes(record.ended).rstrip(b"\0"),
        "codes": bytes(record.codes).rstrip(b"\0"),
    }


def _fields(job: Job) -> dict[str, Any]:
    values = {name: getattr(job, name) for name in Job.__slots__ if name not in ("array", "attempt")}
    return values | {"array": job.array.id if job.array else 0, "attempt": job.attempt.key if job.attempt else None}


def _attempt(attempt: Attempt) -> dict[str, Any]:
    return {name: getattr(attempt, name) for name in Attempt.__slots__ if name not in ("usage", "booked_at_once")}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_folded_events_are_the_cluster(seed: int) -> None:
    """At many moments of a life with faults: the durable cluster equals the master's as soon as all is written."""
    world = World(seed, check_every=50)
    world.begin()
    Users(world, 14).begin()
    Trouble(world).begin()
    Rulers(world, 6).begin(TROUBLE_S)
    compared = 0
    while world.now < world.began + TROUBLE_S:
        world.run_until(world.now + 5.0)
        if world.master.is_up and world.master.all_is_written:
            compared += 1
            state = state_of(world.master.durable)
            assert state == state_of(world.master.cluster)
            assert state == state_of(reborn(world.master.durable))
    assert compared > 5
