"""Backups: the database as one SQLite file, taken while lavad runs, and put back while it does not.

Of a SQLite database by SQLite's own online backup, of PostgreSQL by copying all rows in one snapshot. A backup is
checked before it gets its name, belongs to its maker alone, and is never written over another file.
"""

import contextlib
import os
import sqlite3
import time
from pathlib import Path

from sqlalchemy import Connection, create_engine, select
from sqlalchemy.engine import URL

from lavad.maintenance import transfer
from lavad.store import migrations, schema
from lavad.store.database import database, files, migrate, url
from lavad.store.errors import StoreRefused

_SIDES = ("-wal", "-shm")
_BUSY_S = 30.0


def make(where_text: str, target: Path) -> list[str]:
    """Write a backup; what was done, line by line.

    Raises:
        StoreRefused: there is a file of that name, or no database, or the copy is not sound.
    """
    where = url.parse(where_text)
    if target.exists():
        raise StoreRefused(f"{target} exists already.")
    if not target.parent.is_dir():
        raise StoreRefused(f"{target.parent} is not a directory.")
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        if database.is_sqlite(where):
            _copy_sqlite(database.path_of(where), temporary)
        else:
            _copy_postgres(where, temporary)
        words = check(temporary)
        _sync(temporary)
        os.link(temporary, target)  # unlike a rename it never replaces a file
        _sync(target.parent)
    finally:
        for path in (temporary, *_beside(temporary)):
            path.unlink(missing_ok=True)
    return [f"{target}: {words}, {target.stat().st_size} bytes."]


def _copy_sqlite(source: Path, target: Path) -> None:
    """One step, in one reading transaction: writers go on beside it."""
    if not source.exists():
        raise StoreRefused(f"{source} does not exist.")
    try:
        with (
            contextlib.closing(sqlite3.connect(f"file:{source}?mode=rw", uri=True, timeout=_BUSY_S)) as live,
            contextlib.closing(sqlite3.connect(target, isolation_level=None)) as copy,
        ):
            live.execute("PRAGMA query_only=ON")
            live.backup(copy, pages=-1)
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
    except sqlite3.Error as error:
        raise StoreRefused(f"{source} can't be copied: {error}.") from error


def _copy_postgres(where: URL, target: Path) -> None:
    reading = database.reading_engine(where).execution_options(isolation_level="REPEATABLE READ")
    copying = database.writing_engine(URL.create("sqlite", database=str(target)))
    try:
        with reading.connect() as source, copying.connect() as copy:
            transfer.migrate_schema(copy)
            _refuse_other_schema(source)
            transfer.migrate_rows(source, copy)
    finally:
        reading.dispose()
        copying.dispose()
    with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as plain:
        plain.execute("PRAGMA journal_mode=DELETE")


def _refuse_other_schema(source: Connection) -> None:
    with source.begin():
        present = migrate.revision(source)
    if present != migrations.HEAD:
        raise StoreRefused(
            f"The database has the schema {present or 'of no cluster'}; start this version's lavad first."
        )


def check(path: Path) -> str:
    """Make sure that a file is a sound backup; what is in it, in words.

    Raises:
        StoreRefused: it is not.
    """
    if not path.exists():
        raise StoreRefused(f"{path} does not exist.")
    try:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as backup:
            (found,) = backup.execute("PRAGMA integrity_check(1)").fetchone()
            if found != "ok":
                raise StoreRefused(f"{path} is damaged: {found}.")
            (revision,) = backup.execute("SELECT version_num FROM alembic_version").fetchone()
            term, batch, next_job = backup.execute("SELECT term, batch, next_job FROM cluster").fetchone()
            (jobs,) = backup.execute("SELECT count(*) FROM specs").fetchone()
    except (sqlite3.Error, TypeError) as error:
        raise StoreRefused(f"{path} is no backup of lava: {error}.") from error
    if revision > migrations.HEAD:
        raise StoreRefused(f"{path} has the schema {revision} of a newer lava.")
    return f"{jobs} jobs and arrays, next job {next_job}, commit {batch} of term {term}"


def restore(where_text: str, backup: Path) -> list[str]:
    """Put a backup in the place of the database, which is kept; what was done, line by line.

    Raises:
        StoreRefused: a lavad runs, or the backup is not sound.
    """
    where, words = url.parse(where_text), check(backup)
    suffix = f"before-restore-{time.strftime('%Y%m%d-%H%M%S')}"
    kept = _into_sqlite(where, backup, suffix) if database.is_sqlite(where) else _into_postgres(where, backup, suffix)
    lines = [f"Restored {backup}: {words}."]
    if kept is not None:
        lines.append(f"What it replaces is kept: {kept}")
    return [*lines, "Start lavad. If it then says that the database is older than the cluster:  lavactl adopt"]


def _into_sqlite(where: URL, backup: Path, suffix: str) -> Path | None:
    path = database.path_of(where)
    files.refuse_network(path)
    lock = Path(f"{path}.lock")
    files.lock(path, 0.0)
    _belong(lock, path.parent)
    temporary = path.with_name(f".{path.name}.restored")
    temporary.unlink(missing_ok=True)
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    _copy_sqlite(backup, temporary)
    _belong(temporary, path.parent)
    _sync(temporary)
    kept = path.with_name(f"{path.name}.{suffix}") if path.exists() else None
    if kept is not None:
        for side in ("", *_SIDES):  # the log belongs to the old file: beside the new one it would be its end
            with contextlib.suppress(FileNotFoundError):
                os.replace(f"{path}{side}", f"{kept}{side}")
    os.replace(temporary, path)
    _sync(path.parent)
    return kept


def _into_postgres(where: URL, backup: Path, suffix: str) -> Path | None:
    """The present rows go to a backup of their own, beside the one that is restored; the rest is one transaction."""
    kept = backup.with_name(f"{backup.name}.{suffix}")
    with transfer.opened(where) as target:
        transfer.migrate_schema(target)
        with target.begin():
            is_filled = target.execute(select(schema.cluster.c.id)).first() is not None
        if is_filled:
            make(where.render_as_string(hide_password=False), kept)
        copy = backup.with_name(f".{backup.name}.{os.getpid()}")
        try:
            _copy_sqlite(backup, copy)
            source_engine = create_engine(URL.create("sqlite", database=str(copy)))
            with source_engine.connect() as source:
                transfer.migrate_schema(source)
                transfer.migrate_rows(source, target, replace=True)
            source_engine.dispose()
        finally:
            for path in (copy, *_beside(copy)):
                path.unlink(missing_ok=True)
    return kept if is_filled else None


def _beside(path: Path) -> list[Path]:
    return [path.with_name(path.name + side) for side in (*_SIDES, "-journal")]


def _belong(path: Path, like: Path) -> None:
    """Root restores for the user whose directory it is."""
    owner = like.stat()
    if os.geteuid() == 0 and owner.st_uid != path.stat().st_uid:
        os.chown(path, owner.st_uid, owner.st_gid)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
