"""Compaction: the room of purged rows goes back to the file system, a few pages at a time beside a lavad that works.

A SQLite file of an earlier version cannot give pages back one by one; it is written anew once, while no lavad runs.
"""

import contextlib
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from lavad.store.database import database, files, url
from lavad.store.errors import StoreRefused

STEP_PAGES = 200  # in one transaction: some milliseconds, in which lavad's commit waits
PAUSE_S = 0.02
_BUSY_S = 30.0
_INCREMENTAL = 2
_MIB = 2**20


def run(where_text: str) -> Iterator[str]:
    """Compact the database; what was done, line by line.

    Raises:
        StoreRefused: it is PostgreSQL's, or does not exist, or has to be written anew and can't be now.
    """
    where = url.parse(where_text)
    if not database.is_sqlite(where):
        raise StoreRefused(
            "PostgreSQL uses the room of purged rows again by itself. To give it back to the file system run "
            "VACUUM FULL in its psql while lavad is stopped, or pg_repack while it runs."
        )
    path = database.path_of(where)
    if not path.exists():
        raise StoreRefused(f"{path} does not exist.")
    before = path.stat().st_size
    try:
        _compact(path)
    except sqlite3.Error as error:
        raise StoreRefused(f"{path} can't be compacted: {error}.") from error
    yield f"{path}: {before / _MIB:.1f} MiB before, {path.stat().st_size / _MIB:.1f} MiB now."


def _compact(path: Path) -> None:
    with _connected(path) as connection:
        gives_back = _number(connection, "auto_vacuum") == _INCREMENTAL
        if gives_back:
            _give_back(connection)
    if not gives_back:
        _write_anew(path)


@contextlib.contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    address = f"file:{path}?mode=rw"
    with contextlib.closing(sqlite3.connect(address, uri=True, timeout=_BUSY_S, isolation_level=None)) as connection:
        yield connection


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def _give_back(connection: sqlite3.Connection) -> None:
    """Cut free pages off, each step a transaction of its own; the file becomes smaller with the checkpoints."""
    connection.execute("PRAGMA synchronous=NORMAL")  # the next commit of lavad's syncs; until then nothing is lost
    while _number(connection, "freelist_count"):
        connection.executescript(f"PRAGMA incremental_vacuum({STEP_PAGES})")  # execute() would free one page
        time.sleep(PAUSE_S)  # a commit of lavad's goes between
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _write_anew(path: Path) -> None:
    try:
        lock = files.lock(path, 0.0)
    except StoreRefused:
        raise StoreRefused(
            f"{path} was made by an earlier version and has to be written anew once, while lavad is stopped: "
            "systemctl stop lavad; lavactl compact; systemctl start lavad. Jobs run on meanwhile."
        ) from None
    try:
        with _connected(path) as connection:
            used = _number(connection, "page_count") - _number(connection, "freelist_count")
            needed = 2 * used * _number(connection, "page_size")  # the copy, and the log of its way back
            if shutil.disk_usage(path.parent).free < needed:
                raise StoreRefused(f"{path.parent}: {needed / _MIB:.0f} MiB of free room are needed to write it anew.")
            os.environ["SQLITE_TMPDIR"] = str(path.parent)
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        os.close(lock)
