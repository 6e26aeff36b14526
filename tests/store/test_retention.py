"""Removal of old records: whole jobs, large arrays in parts, and what must stay."""

import asyncio
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.model import HostShare
from lavad.core.model.ranges import Ranges
from lavad.core.plan import Start, Starts
from lavad.store import schema
from lavad.store.store import Store
from lavad.sweeps import job_records
from lavad.sweeps.job_records import RecordSweep
from tests.fakes.world import World, new_job
from tests.store.saving import durable, opened, rows
from tests.store.test_history import ALICE

OF_JOBS = (
    schema.specs, schema.jobs, schema.arrays, schema.job_events, schema.accounting, schema.requests, schema.tasks,
    schema.task_jobs, schema.job_messages, schema.parts,
)  # fmt: skip
DAY_S = 86400.0


class Kept:
    """A world whose events are stored by a writer process."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.world = World(1)
        self.world.begin()

    @property
    def cluster(self) -> Cluster:
        return self.world.cluster

    async def do(self, *commands: c.Command) -> None:
        """Carry out commands, durably."""
        before = len(self.world.events)
        for command in commands:
            assert self.world.do(command)
        await durable(self.store, self.store.rows.rows_for(self.world.events[before:], self.cluster))

    async def run(self, job: int, index: int = 0) -> None:
        """A job runs and ends."""
        await self.do(c.ApplyPlan(Starts((Start(job, index, (HostShare("n000", 1),), "free"),))))
        element = self.cluster.element(job, index)
        assert element is not None
        await self.do(c.ReportFinished("n000", element.key, 0, self.world.now, "", 1.5, 77, also_released=True))

    async def sweep(self, after_s: float) -> int:
        """Time passes, memory forgets, and old records are removed."""
        self.world.now += after_s
        await self.do(c.Tick())
        return await RecordSweep(self.cluster, self.store, lambda: self.world.now, 30 * DAY_S, 1.0).sweep()


def told(where: str) -> dict[int, int]:
    """Number of rows by job."""
    found: dict[int, int] = {}
    for table in OF_JOBS:
        for row in rows(where, table):
            found[row.job] = found.get(row.job, 0) + 1
    return found


def kept(where: str, story: Callable[[Kept], Any]) -> None:
    """Run a story over an open store."""

    async def go() -> None:
        async with opened(where) as store:
            await story(Kept(store))

    asyncio.run(go())


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_records, "PAUSE_SHARE", 0.0)


def test_old_jobs_leave_nothing_behind(database_url: str) -> None:
    """Not before the period is over; younger ones stay, and so do pending ones however old they are."""

    async def story(here: Kept) -> None:
        await here.do(c.SubmitJob(new_job(request_id=b"1" * 16), ALICE), c.SubmitJob(new_job(), ALICE))
        await here.run(1)
        before = told(database_url)
        assert await here.sweep(29 * DAY_S) == 0
        assert told(database_url) == before
        await here.do(c.SubmitJob(new_job(), ALICE))
        await here.run(3)
        assert await here.sweep(2 * DAY_S) == 1
        assert set(told(database_url)) == {2, 3}

    kept(database_url, story)


def test_an_array_goes_in_parts(database_url: str) -> None:
    """With its elements that were killed before they ran; rows that need others go when these are gone."""

    async def story(here: Kept) -> None:
        await here.do(c.SubmitJob(new_job(indices=(range(1, 40),)), ALICE))
        for index in range(1, 6):
            await here.run(1, index)
        changed = new_job(queue="idle", user="alice")
        await here.do(c.ModifyJob(c.Target(1, Ranges.of(9)), changed, ALICE, "", frozenset({"project"})))
        assert len(rows(database_url, schema.parts)) == 1
        await here.do(c.KillJob(c.Target(1), ALICE))
        assert await here.sweep(31 * DAY_S) == 1
        assert told(database_url) == {}

    kept(database_url, story)


def test_a_commit_removes_few_rows_and_leaves_the_writer_its_time(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a long array as of any job, with a pause that is several times as long as the commit took."""
    monkeypatch.setattr(job_records, "PAUSE_SHARE", 9.0)

    async def story(here: Kept) -> None:
        await here.do(c.SubmitJob(new_job(indices=(range(1, 251),)), ALICE))
        await here.do(*(c.KillJob(c.Target(1, Ranges.of(index)), ALICE) for index in range(1, 251)))
        left, taken = [len(rows(database_url, schema.job_events))], 0.0
        flush = here.store.flush

        async def flushed() -> None:
            nonlocal taken
            began = time.monotonic()
            await flush()
            taken += time.monotonic() - began
            left.append(len(rows(database_url, schema.job_events)))

        monkeypatch.setattr(here.store, "flush", flushed)
        began = time.monotonic()
        assert await here.sweep(31 * DAY_S) == 1
        assert time.monotonic() - began >= 10.0 * taken
        assert left[0] > 250
        assert max(before - after for before, after in pairwise(left)) <= 100
        assert left[-1] == 0

    kept(database_url, story)


def test_what_another_job_depends_on_stays(database_url: str) -> None:
    """A later start of the master must find how it ended."""

    async def story(here: Kept) -> None:
        await here.do(c.SubmitJob(new_job(), ALICE), c.SubmitJob(new_job(), ALICE))
        await here.do(c.SubmitJob(new_job(dependency="ended(1) && ended(2)"), ALICE))
        await here.run(1)
        assert await here.sweep(31 * DAY_S) == 0
        assert set(told(database_url)) == {1, 2, 3}

    kept(database_url, story)
