"""Shared helpers of store tests: opening a store, batches, and waiting for results."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import Table, create_engine, select
from sqlalchemy.pool import NullPool

from lavad.core import commands as c
from lavad.core.events import NewJob
from lavad.store.database import url
from lavad.store.store import Store
from lavad.store.writer.batch import Batch
from tests.fakes.world import World

PATIENCE_S = 60.0
_LOOK_EVERY_S = 0.01


class Lost:
    """Remembers the sentence with which a writer was lost."""

    def __init__(self) -> None:
        self.sentence: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def __call__(self, sentence: str) -> None:
        assert not self.sentence.done(), "lost is said once"
        self.sentence.set_result(sentence)

    async def said(self) -> str:
        """The sentence, when it comes."""
        return await asyncio.wait_for(self.sentence, PATIENCE_S)


@asynccontextmanager
async def opened(
    where: str, on_lost: Callable[[str], None] | None = None, lock_wait_s: float = PATIENCE_S
) -> AsyncIterator[Store]:
    """Open store, closed in any case. By default it must never be lost."""

    def never(sentence: str) -> None:
        raise AssertionError(sentence)

    store = await Store.open(where, on_lost or never, lock_wait_s)
    try:
        yield store
    finally:
        await store.close()


def appended(store: Store, batch: Batch) -> asyncio.Future[None]:
    """Append a batch; the future is done when it is durable."""
    done = asyncio.get_running_loop().create_future()
    store.append(batch, lambda: done.set_result(None))
    return done


async def durable(store: Store, batch: Batch) -> None:
    """Append a batch and wait until it is durable."""
    await asyncio.wait_for(appended(store, batch), PATIENCE_S)


class Submitter:
    """A cluster that takes submits, and the rows of each."""

    def __init__(self, store: Store, world: World | None = None) -> None:
        self.store = store
        self.world = world or World(1)

    def submit(self, job: NewJob) -> Batch:
        """The rows of one submit."""
        before = len(self.world.events)
        assert self.world.do(c.SubmitJob(job, c.Caller(job.shared.user, 1000)))
        return self.store.rows.rows_for(self.world.events[before:], self.world.cluster)


def events_batch(job: int, count: int = 1) -> Batch:
    """Rows that need no cluster: a number of events of one job."""
    batch = Batch()
    batch.events = [(job, 0, 0, float(number), "found", "") for number in range(count)]
    return batch


def rows(where: str, table: Table) -> list[Any]:
    """All rows of a table, read by a connection of its own."""
    engine = create_engine(url.parse(where), poolclass=NullPool)
    try:
        with engine.connect() as connection:
            return list(connection.execute(select(table)))
    finally:
        engine.dispose()


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds; polled, for a bounded time."""
    for _ in range(int(PATIENCE_S / _LOOK_EVERY_S)):
        if condition():
            return
        await asyncio.sleep(_LOOK_EVERY_S)
    raise TimeoutError(f"{condition} did not come true")
