"""History of hosts, queues and the master, in the order in which it happened."""

from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from lavad.store import schema
from lavad.store.rows import values as v
from lavad.store.rows.cluster_rows import NO_JOB

PAGE = 500  # rows read in one transaction

events = schema.job_events.c


class Told(NamedTuple):
    """A row of the history."""

    at: float
    kind: str
    detail: dict[str, Any]


class Wanted(NamedTuple):
    """Rows wanted: all kinds or names for empty ones, no bound for a time of 0."""

    kinds: Collection[str] = ()
    names: Collection[str] = ()
    first: float = 0.0
    last: float = 0.0


def read_controls(connection: Connection, wanted: Wanted, after: int) -> tuple[list[Told], int | None]:
    """Return the wanted ones among the next rows after that number, and the number to go on from; None at the end."""
    query = select(events.seq, events.at, events.kind, events.detail)
    query = query.where(events.job == NO_JOB, events.seq > after)
    if wanted.kinds:
        query = query.where(events.kind.in_(wanted.kinds))
    if wanted.first:
        query = query.where(events.at >= wanted.first)
    if wanted.last:
        query = query.where(events.at <= wanted.last)
    rows = connection.execute(query.order_by(events.seq).limit(PAGE)).all()
    told = [Told(row.at, row.kind, v.decode_detail(row.detail)) for row in rows]
    found = [one for one in told if not wanted.names or one.detail.get("name") in wanted.names]
    return found, rows[-1].seq if len(rows) == PAGE else None
