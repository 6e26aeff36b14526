"""Reads beside the writer: a few threads with connections of their own and short transactions, off the event loop."""

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, select, true, tuple_
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from lavad.core.model.reasons import NotNow
from lavad.core.state.records import numbered, place_of
from lavad.store import schema
from lavad.store.database import database

T = TypeVar("T")
IN_ONE_QUERY = 500  # keys in one statement


class Reader:
    """Pool of reader threads."""

    def __init__(self, url: URL) -> None:
        self._engine = database.reading_engine(url)
        self._threads = ThreadPoolExecutor(database.READERS, thread_name_prefix="store-reader")

    def read(self, query: Callable[[Connection], T]) -> T:
        """Run a query in the calling thread, in a transaction of its own; only before the event loop runs."""
        with self._engine.begin() as connection:
            return query(connection)

    async def run(self, query: Callable[[Connection], T]) -> T:
        """Run a query on a reader thread.

        Raises:
            NotNow: the database can't be read at the moment.
        """
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self.read, query)
        except SQLAlchemyError as error:
            raise NotNow("The database can't be read at the moment.") from error

    def close(self) -> None:
        """Wait for running queries and close the connections."""
        self._threads.shutdown()
        self._engine.dispose()


def read_specs(connection: Connection, numbers: Collection[int]) -> dict[int, bytes]:
    """Return the specs of these numbers that exist: of jobs, and of elements that were changed by themselves."""
    jobs = sorted(number for number in numbers if not place_of(number)[1])
    table, found = schema.specs.c, {}
    for start in range(0, len(jobs), IN_ONE_QUERY):
        query = select(table.job, table.spec).where(table.job.in_(jobs[start : start + IN_ONE_QUERY]))
        found.update({row.job: row.spec for row in connection.execute(query)})
    own = sorted({*numbers}.difference(jobs))
    of = schema.parts.c
    for start in range(0, len(own), IN_ONE_QUERY):
        keys = list(map(place_of, own[start : start + IN_ONE_QUERY]))
        query = select(of.job, of.part, of.spec).where(tuple_(of.job, of.part).in_(keys))
        found.update({numbered(row.job, row.part): row.spec for row in connection.execute(query)})
    return found


def read_messages(connection: Connection, jobs: Collection[int]) -> list[Row[Any]]:
    """Return the messages of jobs, without their data, by job, element and number."""
    table, found, wanted = schema.job_messages.c, list[Row[Any]](), sorted(jobs)
    query = select(*[column for column in table if column.name != "data"]).order_by(table.job, table.idx, table.number)
    for start in range(0, len(wanted), IN_ONE_QUERY):
        found += connection.execute(query.where(table.job.in_(wanted[start : start + IN_ONE_QUERY]))).all()
    return found


def read_message(connection: Connection, job: int, index: int, number: int) -> Row[Any] | None:
    """Return a message of a job or element with its data; None if it has none of that number."""
    table = schema.job_messages.c
    query = select(schema.job_messages).where(table.job == job, table.idx == index, table.number == number)
    return connection.execute(query).one_or_none()


def read_request(connection: Connection, request_id: bytes, user: str) -> list[int]:
    """Return the jobs made by a user's submission with this request id."""
    table = schema.requests.c
    query = select(table.job).where(table.request_id == request_id, table.user_name == user)
    return list(connection.scalars(query))


def read_environment(connection: Connection, key: bytes) -> bytes | None:
    """Return a shared environment by its hash, or None."""
    table = schema.environments.c
    return connection.scalar(select(table.content).where(table.hash == key))


def read_environment_keys(connection: Connection, after: bytes, limit: int) -> list[bytes]:
    """Return hashes of environments in ascending order, after ``after``."""
    key = schema.environments.c.hash
    return list(connection.scalars(select(key).where(key > after).order_by(key).limit(limit)))


def read_expired(
    connection: Connection, before: float, after: tuple[float, int], limit: int
) -> list[tuple[float, int]]:
    """Return end and id of jobs and arrays that ended before that time, in this order, after the one named."""
    found: list[tuple[float, int]] = []
    for table, is_whole in ((schema.jobs, schema.jobs.c.idx == 0), (schema.arrays, true())):
        place = tuple_(table.c.ended_at, table.c.job)
        ended = (table.c.ended_at > 0, table.c.ended_at < before, place > tuple_(*after), is_whole)
        query = select(table.c.ended_at, table.c.job).where(*ended).order_by(table.c.ended_at, table.c.job).limit(limit)
        found += [(at, job) for at, job in connection.execute(query)]
    return sorted(found)[:limit]


def read_present(connection: Connection, jobs: Collection[int]) -> list[int]:
    """Return those jobs that the database has."""
    return list(connection.scalars(select(schema.specs.c.job).where(schema.specs.c.job.in_(jobs))))
