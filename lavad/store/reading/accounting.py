"""Accounting records of ended jobs, for programs that replay them: read beside the master, or without one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import DBAPIError

from lavad.core.model import FINAL, HostFacts, Shared
from lavad.store import schema
from lavad.store.database import database, url
from lavad.store.errors import StoreRefused
from lavad.store.reading.restore import SharedTexts
from lavad.store.rows import values as v

_FETCH = 10_000
_FINAL = [int(state) for state in FINAL]
accounting, specs, jobs, arrays = schema.accounting.c, schema.specs.c, schema.jobs.c, schema.arrays.c
parts = schema.parts.c


class EndedRun(NamedTuple):
    """Last attempt of a job or array element, started and ended. Times are seconds since the epoch."""

    job: int
    index: int  # type: ignore[assignment]  # hides tuple.index, unused here
    shared: Shared
    submitted_at: float
    started_at: float
    ended_at: float
    slots: int
    priority: int
    array_limit: int


@contextmanager
def opened(text: str) -> Iterator[Connection]:
    """Open a read-only connection to the database that a value of LAVA_DATABASE names.

    Raises:
        StoreRefused: it can't be read, or holds no cluster.
    """
    where = url.parse(text)
    if database.is_sqlite(where) and not database.path_of(where).is_file():
        raise StoreRefused(f"{database.path_of(where)}: there is no such database.")
    engine = database.reading_engine(where)
    try:
        with engine.connect() as connection:
            yield connection
    except DBAPIError as error:
        raise StoreRefused(f"The database can't be read: {database.sentence_of(error)}.") from error
    finally:
        engine.dispose()


def ended_runs(connection: Connection) -> Iterator[EndedRun]:
    """Yield every ended run, in the order of submission."""
    texts = SharedTexts()
    query = (
        select(
            accounting.job, accounting.idx, func.coalesce(parts.shared, specs.shared).label("shared"),
            accounting.submitted_at, jobs.started_at,
            accounting.ended_at, accounting.slots, jobs.priority, func.coalesce(arrays.run_limit, 0).label("run_limit"),
        )
        .join_from(schema.accounting, schema.specs, accounting.job == specs.job)
        .join(schema.jobs, (accounting.job == jobs.job) & (accounting.idx == jobs.idx))
        .outerjoin(schema.arrays, accounting.job == arrays.job)
        .outerjoin(schema.parts, (jobs.job == parts.job) & (jobs.part == parts.part))
        .where(accounting.state.in_(_FINAL), jobs.started_at > 0, accounting.attempt == jobs.attempts)
        .order_by(accounting.submitted_at, accounting.job, accounting.idx)
    )  # fmt: skip
    for row in connection.execution_options(yield_per=_FETCH).execute(query):
        yield _run(row, texts)


def _run(row: Any, texts: SharedTexts) -> EndedRun:
    shared, ended_at = texts.decode(row.shared), max(row.ended_at, row.started_at)
    times = (row.submitted_at, row.started_at, ended_at)
    return EndedRun(row.job, row.idx, shared, *times, row.slots, row.priority, row.run_limit)


def known_hosts(connection: Connection) -> list[HostFacts]:
    """Return every host that ever joined and runs jobs."""
    found = [
        v.decode_facts(row.facts) for row in connection.execute(select(schema.hosts).order_by(schema.hosts.c.name))
    ]
    return [facts for facts in found if facts.server]
