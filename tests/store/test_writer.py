"""The one writer: durable in order, one commit for pending batches, and clear errors when a commit fails."""

import asyncio
import contextlib
import os
import signal
import sqlite3
import time
from pathlib import Path

import pytest
from sqlalchemy import create_engine, update

from lavad.store import schema
from lavad.store.database import url
from lavad.store.errors import StoreRefused
from lavad.store.store import Store
from lavad.store.writer import batch as batches
from lavad.store.writer.batch import Batch
from lavad.store.writer_process import Database, LockHeld, TermLost
from tests.fakes.postgres import PostgresServer
from tests.fakes.world import new_job
from tests.store.saving import Lost, Submitter, appended, durable, events_batch, eventually, opened, rows


def test_callbacks_come_in_order_and_their_rows_are_there(database_url: str) -> None:
    """Each callback runs after its rows are committed, in the order of the appends; an empty batch keeps its order."""

    async def run() -> None:
        order: list[int] = []
        async with opened(database_url) as store:
            for number in range(1, 41):
                batch = events_batch(number) if number % 3 else Batch()
                store.append(batch, lambda number=number: order.append(number))
            await store.flush()
            assert order == list(range(1, 41))
            assert len(rows(database_url, schema.job_events)) == 27

    asyncio.run(run())


def test_an_empty_batch_on_an_idle_store_needs_no_commit(database_url: str) -> None:
    """Without rows there is no commit, and the callback still comes by the loop."""

    async def run() -> None:
        async with opened(database_url) as store:
            await durable(store, Batch())
            assert rows(database_url, schema.cluster)[0].batch == 0

    asyncio.run(run())


def test_what_piles_up_during_a_commit_becomes_one(database_url: str) -> None:
    """Five hundred appends take two commits: the first alone, then all that came during it."""

    async def run() -> None:
        async with opened(database_url) as store:
            store.append(events_batch(0), lambda: None)
            await asyncio.sleep(0)  # the end of a turn: the first commit is under way
            for number in range(1, 500):
                store.append(events_batch(number), lambda: None)
            await store.flush()
            assert rows(database_url, schema.cluster)[0].batch == 2
            assert len(rows(database_url, schema.job_events)) == 500

    asyncio.run(run())


def test_the_newest_row_of_a_key_wins(database_url: str) -> None:
    """Whole rows of one key replace each other, in a batch and between commits; a deleted allocation stays away."""

    def host(comment: str) -> Batch:
        batch = Batch()
        batch.hosts["n1"] = ("n1", "{}", "", comment, 0.0, 0.0)
        return batch

    def allocation(row: batches.Row | None) -> Batch:
        batch = Batch()
        batch.allocations[1, 0, 1] = row
        return batch

    async def run() -> None:
        async with opened(database_url) as store:
            written: batches.Row = (1, 0, 1, 1, 1.0, 0, 1.0, 0.0, 0, "[]", "[]", "[]", "{}")
            for batch in (host("a"), host("b"), host("c"), allocation(written)):
                store.append(batch, lambda: None)
            await store.flush()
            assert [row.comment for row in rows(database_url, schema.hosts)] == ["c"]
            assert len(rows(database_url, schema.allocations)) == 1
            await durable(store, allocation(None))
            assert rows(database_url, schema.allocations) == []

    asyncio.run(run())


def test_terms_grow_and_the_cluster_keeps_its_id(database_url: str) -> None:
    """Every master that opens the database leads under a higher term, with the same cluster."""

    async def run() -> None:
        async with opened(database_url) as first:
            term, cluster_id = first.term, first.cluster_id
            await durable(first, events_batch(1))
        async with opened(database_url) as second:
            assert second.term == term + 1
            assert second.cluster_id == cluster_id
            await durable(second, events_batch(2))
        assert [row.job for row in rows(database_url, schema.job_events)] == [1, 2]

    asyncio.run(run())


def test_a_second_master_is_refused_in_one_sentence(database_url: str) -> None:
    """While one master has the database another cannot open it, and the first is undisturbed."""

    async def run() -> None:
        async with opened(database_url) as store:
            with pytest.raises(StoreRefused, match=r"^Another lavad is using .*\.$") as refused:
                await Store.open(database_url, pytest.fail, lock_wait_s=0.2)
            assert "\n" not in str(refused.value)
            await durable(store, events_batch(1))

    asyncio.run(run())


def test_a_master_that_waits_for_the_lock_gets_it(database_url: str) -> None:
    """A successor waits for its predecessor's writer to end, and then leads."""

    async def run() -> None:
        first = await Store.open(database_url, pytest.fail)
        second = asyncio.create_task(Store.open(database_url, pytest.fail))
        await durable(first, events_batch(1))
        await first.close()
        store = await second
        assert store.term == first.term + 1
        await store.close()

    asyncio.run(run())


def test_a_lost_term_stops_the_master(database_url: str) -> None:
    """After another master has raised the term, no row is written any more and this master is notified once."""

    async def run() -> None:
        lost = Lost()
        async with opened(database_url, lost) as store:
            await durable(store, events_batch(1))
            engine = create_engine(url.parse(database_url))
            with engine.begin() as connection:
                connection.execute(update(schema.cluster).values(term=schema.cluster.c.term + 1))
            engine.dispose()
            never = appended(store, events_batch(2))
            assert await lost.said() == "Another lavad has taken over the database (term 2, mine is 1)."
            assert store.is_stuck
            store.append(events_batch(3), lambda: pytest.fail("never durable"))
            assert not never.done()
        assert [row.job for row in rows(database_url, schema.job_events)] == [1]

    asyncio.run(run())


def _commit(database: Database, packed: batches.Packed) -> None:
    """As soon as the server has noticed that the connection before is gone."""
    for _ in range(100):
        with contextlib.suppress(LockHeld):
            return database.commit(packed)
        time.sleep(0.05)
    raise AssertionError("the lock is never free")


def test_a_batch_whose_outcome_was_unknown_is_not_written_twice(database_url: str) -> None:
    """The batch number in the database says that a commit happened, so a repeated batch changes nothing."""
    database = Database(url.parse(database_url))
    database.open(0.0)
    packed = batches.unpack(events_batch(7, 3).pack(1))
    database.commit(packed)
    database.drop()
    _commit(database, packed)
    database.commit(batches.unpack(events_batch(8).pack(2)))
    database.drop()
    assert [row.job for row in rows(database_url, schema.job_events)] == [7, 7, 7, 8]


@pytest.mark.postgres
def test_a_lock_that_the_lost_connection_still_holds_is_waited_for(postgres_url: str) -> None:
    """Until the server has noticed that the connection is gone; only a higher term is another master's."""
    before, after = Database(url.parse(postgres_url)), Database(url.parse(postgres_url))
    before.open(0.0)
    after.term = before.term
    with pytest.raises(LockHeld):
        after.commit(batches.unpack(events_batch(7).pack(1)))
    after.term -= 1
    with pytest.raises(TermLost, match=r"Another lavad has taken over the database \(term 1, mine is 0\)."):
        after.commit(batches.unpack(events_batch(7).pack(1)))
    after.term += 1
    before.drop()
    _commit(after, batches.unpack(events_batch(7).pack(1)))
    assert [row.job for row in rows(postgres_url, schema.job_events)] == [7]


def test_a_killed_writer_stops_the_master_and_loses_nothing_that_was_durable(database_url: str) -> None:
    """SIGKILL of the writer during a commit: the master is notified, and each batch is present as a whole or not at
    all.
    """

    async def run() -> None:
        lost = Lost()
        spoken: list[int] = []
        async with opened(database_url, lost) as store:
            for number in range(1, 20):
                store.append(events_batch(number, 2000), lambda number=number: spoken.append(number))
                if number == 10:
                    await eventually(lambda: bool(spoken))
            os.kill(store.writer_pid, signal.SIGKILL)
            assert await lost.said() == "The store's writer process has ended."
        async with opened(database_url) as store:
            found = [row.job for row in rows(database_url, schema.job_events)]
            assert set(spoken) <= set(found)
            assert all(found.count(number) == 2000 for number in set(found))
            await durable(store, events_batch(99))

    asyncio.run(run())


def test_the_writer_ends_with_its_master(tmp_path: Path) -> None:
    """The end of the socket ends the process, and SIGTERM or SIGINT before that do not."""

    async def run() -> None:
        store = await Store.open(str(tmp_path / "lava.db"), pytest.fail)
        os.kill(store.writer_pid, signal.SIGTERM)
        os.kill(store.writer_pid, signal.SIGINT)
        await durable(store, events_batch(1))
        process = store._writer.process
        store._writer._transport.abort()
        store._writer._closing = True
        assert await asyncio.to_thread(process.wait, 60) == 0
        store._reading.close()

    asyncio.run(run())


@pytest.mark.slow
def test_a_locked_file_makes_the_store_stuck_until_it_is_free(tmp_path: Path) -> None:
    """An administrator's open transaction: "not now" meanwhile, nothing lost, and afterwards it continues."""
    path = tmp_path / "lava.db"

    async def run() -> None:
        async with opened(str(path)) as store:
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            done = appended(store, events_batch(1))
            later = appended(store, events_batch(2))
            await eventually(lambda: store.is_stuck)
            assert store.stuck_reason == "The database can't commit now: database is locked."
            assert not done.done()
            other.execute("COMMIT")
            other.close()
            await asyncio.gather(done, later)
            assert not store.is_stuck
            assert store.stuck_reason == ""
        assert len(rows(str(path), schema.job_events)) == 2

    asyncio.run(run())


@pytest.mark.slow
@pytest.mark.postgres
def test_a_postgres_that_goes_away_makes_the_store_stuck_until_it_is_back() -> None:
    """A crash of the server in between: "not now", then every batch is present exactly once."""

    async def run(server: PostgresServer) -> None:
        async with opened(server.url) as store:
            for number in range(1, 11):
                await durable(store, events_batch(number, 5))
            waiting = [appended(store, events_batch(number, 500)) for number in range(11, 21)]
            await asyncio.to_thread(server.stop, "immediate")
            last = appended(store, events_batch(21))
            await eventually(lambda: store.is_stuck)
            assert store.stuck_reason.startswith("The database can't commit now: ")
            await asyncio.to_thread(server.start)
            await asyncio.gather(*waiting, last)
            assert not store.is_stuck
        found = [row.job for row in rows(server.url, schema.job_events)]
        assert [found.count(number) for number in range(1, 22)] == [5] * 10 + [500] * 10 + [1]

    with PostgresServer() as server:
        asyncio.run(run(server))


@pytest.mark.postgres
def test_a_postgres_without_fsync_is_warned_about(postgres_url: str) -> None:
    """A server that may lose acknowledged data is reported when the store opens."""

    async def run() -> None:
        async with opened(postgres_url) as store:
            assert store.warnings == ("PostgreSQL runs with fsync off: a power failure can lose acknowledged jobs.",)

    asyncio.run(run())


def test_a_row_the_database_refuses_stops_the_master(database_url: str) -> None:
    """A defect of ours is not tried again for ever: the master stops with one sentence."""

    async def run() -> None:
        lost = Lost()
        async with opened(database_url, lost) as store:
            broken = Batch()
            broken.events = [(1, 0, 0, None, "found", "")]  # type: ignore[list-item]
            appended(store, broken)
            sentence = await lost.said()
            assert sentence.startswith("The database refused a row: ")
            assert "\n" not in sentence

    asyncio.run(run())


def test_a_callback_that_fails_does_not_hold_back_the_others(tmp_path: Path) -> None:
    """An error in one callback goes to the loop's handler, and the next callbacks still run."""

    async def run() -> None:
        complaints: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context["exception"]))

        def broken() -> None:
            raise LookupError

        async with opened(str(tmp_path / "lava.db")) as store:
            store.append(events_batch(1), lambda: None)
            store.append(events_batch(2), broken)
            await durable(store, events_batch(3))
        assert [type(complaint) for complaint in complaints] == [LookupError]

    asyncio.run(run())


def test_a_request_id_finds_the_first_job_it_made(database_url: str) -> None:
    """Also if a client sets the retry flag wrongly, the same user's id keeps its first job, and the master runs on."""

    async def run() -> None:
        async with opened(database_url) as store:
            submitter = Submitter(store)
            first = submitter.submit(new_job(request_id=b"r" * 16))
            submitter.world.cluster.request_ids.clear()  # as after a restart
            second = submitter.submit(new_job(request_id=b"r" * 16))
            await durable(store, first)
            await durable(store, second)
            assert await store.find_request(b"r" * 16, "alice") == [1]
            assert await store.find_request(b"r" * 16, "bob") == []
            assert await store.find_request(b"s" * 16, "alice") == []
            assert rows(database_url, schema.cluster)[0].next_job == 3

    asyncio.run(run())


def test_words_no_database_likes_are_stored(database_url: str) -> None:
    """NULs and lone surrogates in a user's text do not stop the master, and stored text is exact."""

    async def run() -> None:
        async with opened(database_url) as store:
            job = new_job(name="a\udcffb", user="al\0ice", spec=b"\0\xff")
            await durable(store, Submitter(store).submit(job))
            row = rows(database_url, schema.specs)[0]
            assert (row.user_name, row.name) == ("alice", "a\ufffdb")
            assert bytes(row.words) == job.text
            assert await store.spec(1) == b"\0\xff"

    asyncio.run(run())
