"""Performance monitoring of the master: calls, jobs and passes in each sample period."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from lavad.api.cluster.performance import (
    BUCKETS,
    DISPATCHED,
    INTERVAL,
    QUERIES,
    REQUESTS,
    SUBMITTED,
    PerformanceMonitor,
)
from lavad.core.cluster import Cluster
from lavad.core.events import AttemptDispatched, Event, JobSubmitted, NewJob
from lavad.core.model import Key
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused


async def _handled(details: Any) -> str:
    return f"handler of {details.method}"


def test_samples_of_calls_and_jobs() -> None:
    """Each sample counts what was since the one before; nothing is counted while it is off."""
    asyncio.run(_sample())


async def _sample() -> None:
    engine: Any = SimpleNamespace(cluster=Cluster(Policy()), clock=lambda: 1000.0, listeners=[])
    passes = 0
    monitor = PerformanceMonitor(engine, lambda: passes)
    listing: Any = SimpleNamespace(method="/lava.v1.JobService/List")
    assert await monitor.intercept_service(_handled, listing) == "handler of /lava.v1.JobService/List"
    assert not monitor.reply().is_on
    with pytest.raises(Refused, match="badmin perfmon start begins it"):
        monitor.stop()
    monitor.start(20)
    with pytest.raises(Refused, match="is on already"):
        monitor.start(20)
    for method in ("JobService/List", "ClusterService/Info", "JobService/Signal"):
        details: Any = SimpleNamespace(method=f"/lava.v1.{method}")
        await monitor.intercept_service(_handled, details)
    job: Any = NewJob(1, None, b"", b"", b"", indices=(range(1, 6), range(8, 9)))  # type: ignore[arg-type]
    plain: Any = NewJob(2, None, b"", b"", b"")  # type: ignore[arg-type]
    events: list[Event] = [JobSubmitted(1.0, job), JobSubmitted(1.0, plain)]
    engine.listeners[0]([*events, AttemptDispatched(1.0, Key(2, 0, 1), (), True)])
    passes = 4
    monitor._sample()
    monitor._sample()
    reply = monitor.reply()
    figures = {one.name: one for one in (*reply.counts, *reply.scheduler)}
    found = {name: (one.last, one.max, one.min, one.mean, one.total) for name, one in figures.items()}
    assert found[QUERIES] == (0, 2, 0, 1, 2)
    assert found[REQUESTS] == (0, 2, 0, 1, 2)
    assert found[SUBMITTED] == (0, 7, 0, 3.5, 7)
    assert found[DISPATCHED][-1] == 1
    assert found[INTERVAL] == (5, 5, 5, 5, 5)  # the second sample had no pass
    assert found[BUCKETS] == (0, 0, 0, 0, 0)
    assert 0 < reply.files_used < reply.files_max
    monitor.set_period(30)
    assert monitor.reply().period_s == 30
    with pytest.raises(Refused, match="from 1 to 86400 seconds"):
        monitor.set_period(0)
    monitor.stop()
    assert engine.listeners == []
