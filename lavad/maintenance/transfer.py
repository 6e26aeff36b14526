"""All rows of one database into another, empty one, of either kind: as they are, with the term and the commit number,
so that hosts see no other database.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, Engine, Table, delete, func, insert, select
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from lavad.store import schema
from lavad.store.database import database, files, migrate, url
from lavad.store.errors import StoreRefused
from lavad.store.writer.batch import INSERTS, UPSERTS
from lavad.store.writer.statements import Statements
from lavad.store.writer_process import lock_connection
from protos.trust.private import PrivateFileError, read_private

_TABLES = (*UPSERTS, *INSERTS)  # in the order that ``Statements.write`` takes them
_SEEN = (
    "The password was seen by all who list processes: name a file of mode 0600 with the URL, @FILE, or use ~/.pgpass."
)
_ROWS = 5000  # written at a time


@contextlib.contextmanager
def opened(where: URL) -> Iterator[Connection]:
    """A writing connection to a database that no lavad uses, and none can use until it is closed.

    Raises:
        StoreRefused: a lavad runs on it, or it can't be opened.
    """
    if database.is_sqlite(where):
        path = database.path_of(where)
        files.refuse_network(path)
        files.make_private(path)
        files.lock(path, 0.0)  # until this program ends
    engine = database.writing_engine(where)
    try:
        with _connected(engine, where) as connection:
            if not database.is_sqlite(where) and not lock_connection(connection, 0.0):
                raise StoreRefused(f"A lavad is using {url.shown(where)}: stop it first.")
            yield connection
    finally:
        engine.dispose()


def _connected(engine: Engine, where: URL) -> Connection:
    try:
        return engine.connect()
    except DBAPIError as error:
        raise StoreRefused(f"{url.shown(where)} can't be opened: {database.sentence_of(error)}.") from error


def migrate_schema(connection: Connection) -> None:
    """Bring a database to this program's schema."""
    with connection.begin():
        migrate.upgrade(connection)


def migrate_rows(source: Connection, target: Connection, replace: bool = False) -> dict[str, int]:
    """Copy all rows in one transaction of each database; how many of each table. With ``replace`` others go first.

    Raises:
        StoreRefused: the target has rows, or has not got all of them.
    """
    copied = {}
    with source.begin(), target.begin():
        if replace:
            for table in schema.metadata.sorted_tables:
                target.execute(delete(table))
        _refuse_filled(target)
        for table in schema.metadata.sorted_tables:
            copied[table.name] = _copy(source, target, table)
        for table in schema.metadata.sorted_tables:
            there = target.scalar(select(func.count()).select_from(table))
            if there != copied[table.name]:
                raise StoreRefused(f"{table.name}: {copied[table.name]} rows were copied and {there} are there.")
    return copied


def _refuse_filled(target: Connection) -> None:
    for table in schema.metadata.sorted_tables:
        if target.execute(select(table).limit(1)).first() is not None:
            raise StoreRefused("The database to copy to is not empty; name an empty one.")


def _copy(source: Connection, target: Connection, table: Table) -> int:
    writer = Statements(target.dialect)
    count = 0
    rows = source.execution_options(yield_per=_ROWS, stream_results=True).execute(select(table))
    for part in rows.partitions():
        values = [tuple(row) for row in part]
        if table.name in _TABLES:
            writer.write(target, [values if name == table.name else [] for name in _TABLES])
        else:
            target.execute(insert(table), [dict(row._mapping) for row in part])
        count += len(values)
    return count


def move(source_text: str, target_text: str) -> list[str]:
    """Copy a cluster from one database to another; what was done, line by line.

    Raises:
        StoreRefused: a lavad runs on one of them, the target is not empty, or they are the same.
    """
    source_url, target_url = _named(source_text, "FROM"), _named(target_text, "TO")
    if source_url == target_url:
        raise StoreRefused("FROM and TO are the same database.")
    if database.is_sqlite(source_url) and not database.path_of(source_url).exists():
        raise StoreRefused(f"{database.path_of(source_url)} does not exist.")
    with opened(source_url) as source, opened(target_url) as target:
        migrate_schema(source)
        migrate_schema(target)
        copied = migrate_rows(source, target)
    if not copied["cluster"]:
        raise StoreRefused(f"{url.shown(source_url)} holds no cluster.")
    return [
        f"Copied to {url.shown(target_url)}: " + ", ".join(f"{count} {name}" for name, count in copied.items()) + ".",
        f"Set {setting_of(target_text, target_url)} in lava.conf, and start lavad.",
        f"{url.shown(source_url)} is as it was.",
        *(_SEEN for text, where in ((source_text, source_url), (target_text, target_url)) if is_seen(text, where)),
    ]


def _named(text: str, name: str) -> URL:
    """Return the URL of an argument, or of the private file that ``@FILE`` names.

    Raises:
        StoreRefused: it is no URL, or the file can't be used.
    """
    if not text.startswith("@"):
        return url.parse(text, name)
    try:
        return url.parse(read_private(Path(text[1:]).absolute()).decode("utf-8", "replace").strip(), name)
    except PrivateFileError as error:
        raise StoreRefused(str(error)) from error


def setting_of(text: str, where: URL) -> str:
    """Return the line of lava.conf that names a database, given as an argument was."""
    if text.startswith("@"):
        return f"LAVA_DATABASE_FILE={Path(text[1:]).absolute()}"
    if where.password is not None:
        return "LAVA_DATABASE_FILE to a file of mode 0600 with that URL"
    return f"LAVA_DATABASE={url.shown(where)}"


def is_seen(text: str, where: URL) -> bool:
    """Return True if an argument had a password, which all who list processes could read."""
    return where.password is not None and not text.startswith("@")
