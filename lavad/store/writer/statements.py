"""Statements of the writer, compiled once: rows go to the driver as they are, without a look at each value.

SQLite takes a row at a time, which is its fastest way. PostgreSQL takes all rows of a table in one statement, as one
array for each column: a row at a time would be a message each.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from sqlalchemy import (
    Connection,
    Dialect,
    Float,
    Table,
    bindparam,
    cast,
    delete,
    func,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.expression import ClauseElement

from lavad.store import schema
from lavad.store.database.database import run_on_sqlite
from lavad.store.writer.batch import FORGOTTEN, INSERTS, PURGED, PURGED_AT_ONCE, UPSERTS, Row

Write = Callable[[Connection, Sequence[Row]], None]

_ORDER = [
    (schema.metadata.tables[name], replace) for names, replace in ((UPSERTS, True), (INSERTS, False)) for name in names
]


class Statements:
    """Statements of the writer for one kind of database."""

    def __init__(self, dialect: Dialect) -> None:
        make = _sqlite_write if dialect.name == "sqlite" else _postgres_write
        self._writes = [make(dialect, table, replace) for table, replace in _ORDER]
        self._forget = [_by_key(dialect, schema.metadata.tables[name]) for name in FORGOTTEN] + [_purge(dialect)]
        self._claim = _claim(dialect).compile(dialect=dialect)
        self._run: Callable[[Connection, str, Any], Any] = (
            run_on_sqlite if dialect.name == "sqlite" else Connection.exec_driver_sql
        )

    def claim(self, connection: Connection, term: int, number: int, next_job: int) -> bool:
        """Enter a batch's number in the term's row; return False if the row's term or last batch differs."""
        values = {"mine": term, "before": number - 1, "number": number, "first_free": next_job}
        names = self._claim.positiontup  # the order of the values where the driver knows no names
        given = values if names is None else tuple(values[name] for name in names)
        claimed: int = self._run(connection, str(self._claim), given).rowcount
        return claimed == 1

    def write(
        self, connection: Connection, tables: Iterable[Sequence[Row]], gone: Iterable[Sequence[Row]] = ()
    ) -> None:
        """Write a batch's rows in the open transaction; without ``gone`` nothing is deleted."""
        for write, rows in zip(self._writes, tables, strict=True):
            if rows:
                write(connection, rows)
        for forget, keys in zip(self._forget, gone or [()] * len(self._forget), strict=True):
            if keys:
                forget(connection, keys)


def _claim(dialect: Dialect) -> Any:
    row, bound = schema.cluster.c, bindparam
    larger = func.max if dialect.name == "sqlite" else func.greatest
    return (
        update(schema.cluster)
        .where(row.id == literal_column("1"), row.term == bound("mine"), row.batch == bound("before"))
        .values(batch=bound("number"), next_job=larger(row.next_job, bound("first_free")))
    )


def _text(dialect: Dialect, statement: ClauseElement) -> str:
    return str(statement.compile(dialect=dialect))


def _on_conflict(table: Table, statement: Any, replace: bool) -> Any:
    """Return the insert with its conflict clause: an existing row is replaced, or stays."""
    key = [column.name for column in table.primary_key.columns]
    if not replace:
        return statement.on_conflict_do_nothing(index_elements=key)
    changed = {column.name: statement.excluded[column.name] for column in table.columns if column.name not in key}
    return statement.on_conflict_do_update(index_elements=key, set_=changed)


def _executemany(text: str) -> Write:
    """Run a statement on the driver directly: for a few rows SQLAlchemy's own part would take longer."""

    def write(connection: Connection, rows: Sequence[Row]) -> None:
        try:
            connection.connection.cursor().executemany(text, rows)
        except sqlite3.Error as error:
            raise DBAPIError(text, None, error) from error

    return write


def _sqlite_write(dialect: Dialect, table: Table, replace: bool) -> Write:
    return _executemany(_text(dialect, _on_conflict(table, sqlite.insert(table), replace)))


def _postgres_write(dialect: Dialect, table: Table, replace: bool) -> Write:
    from sqlalchemy.dialects import postgresql  # costs a master with SQLite 20 ms and is of no use to it

    names = [column.name for column in table.columns]
    rows = select(*_unnested(table, names).columns)
    return _columnwise(
        dialect, table, names, _on_conflict(table, postgresql.insert(table).from_select(names, rows), replace)
    )


def _unnested(table: Table, names: Sequence[str]) -> Any:
    """Select the rows as a table made of one array for each column."""
    from sqlalchemy.dialects import postgresql

    arrays = [cast(bindparam(name), postgresql.ARRAY(table.columns[name].type)) for name in names]
    return func.unnest(*arrays).table_valued(*names).render_derived()


def _columnwise(dialect: Dialect, table: Table, names: Sequence[str], statement: ClauseElement) -> Write:
    text = _text(dialect, statement)
    kinds = [float if isinstance(table.columns[name].type, Float) else None for name in names]

    def write(connection: Connection, rows: Sequence[Row]) -> None:
        columns: dict[str, list[Any]] = {}
        for name, kind, column in zip(names, kinds, zip(*rows, strict=True), strict=True):
            columns[name] = list(map(kind, column)) if kind else list(column)  # all values of an array have one type
        connection.exec_driver_sql(text, columns)

    return write


def _by_key(dialect: Dialect, table: Table) -> Write:
    """Delete the rows of these keys."""
    names = [column.name for column in table.primary_key.columns]
    if dialect.name == "sqlite":
        conditions = [table.columns[name] == bindparam(name) for name in names]
        return _executemany(_text(dialect, delete(table).where(*conditions)))
    keys = _unnested(table, names)
    conditions = [table.columns[name] == keys.columns[name] for name in names]
    return _columnwise(dialect, table, names, delete(table).where(*conditions))


def _purge(dialect: Dialect) -> Write:
    """Delete the next rows of some jobs; what rows refer to goes after them."""
    mark = "?" if dialect.name == "sqlite" else "%s"
    before = [tuple(chain.from_iterable(PURGED[:place])) for place in range(len(PURGED))]
    texts = [_purge_text(name, left, mark) for names, left in zip(PURGED, before, strict=True) for name in names]

    def write(connection: Connection, rows: Sequence[Row]) -> None:
        for text in texts:
            for (job,) in rows:
                connection.exec_driver_sql(text, (job,) * text.count(mark))

    return write


def _purge_text(name: str, before: Sequence[str], mark: str) -> str:
    """Return the statement that deletes some rows of a job from a table, if those before have none of it left.

    SQLAlchemy writes no limit into a subquery without a parameter of its own.
    """
    key = ", ".join(column.name for column in schema.metadata.tables[name].primary_key.columns)
    some = f"SELECT {key} FROM {name} WHERE job = {mark} LIMIT {PURGED_AT_ONCE}"
    left = "".join(f" AND NOT EXISTS (SELECT 1 FROM {other} WHERE job = {mark})" for other in before)
    return f"DELETE FROM {name} WHERE ({key}) IN ({some}){left}"
