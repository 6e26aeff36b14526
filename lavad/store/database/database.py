"""Database connections: their settings, and the classes of their errors.

Every commit of a writing connection is on disk when it returns. A reading connection can't write.
"""

import re
import sqlite3
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool, QueuePool

BUSY_TIMEOUT_MS = 2000  # a backup or an administrator's sqlite3 may lock the file that long
CHECKPOINT_PAGES = 4000  # 16 MiB of log, after which a commit includes a checkpoint
CONNECT_TIMEOUT_S = 10
READ_LIMIT_MS = 60_000  # a reading query on PostgreSQL
READERS = 2

_KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000}


class Fault(Enum):
    """Classes of database errors, by the master's reaction."""

    PASSING = "passing"  # retry: locked, disk full, connection lost
    DAMAGE = "damage"  # stop: corruption or a failed sync, so that the state on disk is unknown
    DEFECT = "defect"  # stop: the database refuses a row or a statement, and a retry can't help


def is_sqlite(url: URL) -> bool:
    """Return True for SQLite, False for PostgreSQL."""
    return url.get_backend_name() == "sqlite"


def writing_engine(url: URL) -> Engine:
    """Create an engine with durable commits."""
    if is_sqlite(url):
        return _sqlite_engine(url, ("synchronous=FULL", f"wal_autocheckpoint={CHECKPOINT_PAGES}"), NullPool)
    return _postgres_engine(url, "-c synchronous_commit=on", NullPool)


def reading_engine(url: URL) -> Engine:
    """Create a read-only engine with a connection for each reader thread."""
    if is_sqlite(url):
        return _sqlite_engine(url, ("query_only=ON",), QueuePool)
    options = f"-c default_transaction_read_only=on -c statement_timeout={READ_LIMIT_MS}"
    return _postgres_engine(url, options, QueuePool)


def _pool_options(pool: type[NullPool | QueuePool]) -> dict[str, Any]:
    return {"poolclass": pool} | ({"pool_size": READERS, "max_overflow": 0} if pool is QueuePool else {})


def _sqlite_engine(url: URL, pragmas: tuple[str, ...], pool: type[NullPool | QueuePool]) -> Engine:
    engine = create_engine(
        url, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000, "check_same_thread": False}, **_pool_options(pool)
    )
    begin = "BEGIN IMMEDIATE" if pool is NullPool else "BEGIN"

    @event.listens_for(engine, "connect")
    def connected(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # transactions are begun below, not by the driver
        # Before the log: a new file can give pages back (lavactl compact); an older one stays as it is.
        for pragma in ("auto_vacuum=INCREMENTAL", "journal_mode=WAL", *pragmas) if pool is NullPool else pragmas:
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begun(connection: Any) -> None:
        run_on_sqlite(connection, begin)

    return engine


def run_on_sqlite(connection: Connection, text: str, values: Sequence[Any] = ()) -> Any:
    """Run a statement on SQLite's driver directly and return its cursor: SQLAlchemy's own part takes 60 us."""
    try:
        return connection.connection.cursor().execute(text, values)
    except sqlite3.Error as error:
        raise DBAPIError(text, None, error) from error


def _postgres_engine(url: URL, options: str, pool: type[NullPool | QueuePool]) -> Engine:
    given = url.query.get("options")
    if given:
        url = url.difference_update_query(["options"])
        options = f"{given if isinstance(given, str) else ' '.join(given)} {options}"
    return create_engine(
        url,
        connect_args={"connect_timeout": CONNECT_TIMEOUT_S, "options": options, **_KEEPALIVE},
        pool_pre_ping=pool is QueuePool,
        **_pool_options(pool),
    )


# -- errors ------------------------------------------------------------------------------------------------------------

_SQLITE_PASSING = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_CANTOPEN,
    }
)
# The index of the log could not grow or be locked: the disk is full, and the database itself is untouched.
_SQLITE_PASSING_IO = frozenset(
    {sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_LOCK, sqlite3.SQLITE_IOERR_NOMEM, sqlite3.SQLITE_IOERR_BLOCKED}
)
_SQLITE_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR})
_POSTGRES_DAMAGE = ("XX", "58")  # internal error or corruption; system error, a failed sync among them
_POSTGRES_PASSING = ("08", "53", "57", "40", "55", "25006")


def fault_of(error: DBAPIError) -> Fault:
    """Return the class of an error of a statement or commit."""
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        return _sqlite_fault(getattr(cause, "sqlite_errorcode", 0))
    code = getattr(cause, "sqlstate", None) or ""
    if code.startswith(_POSTGRES_DAMAGE):
        return Fault.DAMAGE
    if code.startswith(_POSTGRES_PASSING) or error.connection_invalidated or (not code and _is_operational(cause)):
        return Fault.PASSING
    return Fault.DEFECT


def _sqlite_fault(code: int) -> Fault:
    if code in _SQLITE_PASSING_IO or code & 0xFF in _SQLITE_PASSING:
        return Fault.PASSING
    return Fault.DAMAGE if code & 0xFF in _SQLITE_DAMAGE else Fault.DEFECT


def _is_operational(cause: BaseException | None) -> bool:
    return any(kind.__name__ in {"OperationalError", "InterfaceError"} for kind in type(cause).__mro__)


_NUMBER = re.compile(r"\[Errno -?\d+\] ")


def sentence_of(error: DBAPIError) -> str:
    """Return the database's error message on one line, without the statement.

    Hints in the form of a question are left out, and so are error numbers and psycopg's list of further attempts, which
    repeats the message.
    """
    text = str(error.orig or error).partition("\nMultiple connection attempts failed")[0]
    lines = [line.strip() for line in text.removeprefix("connection failed: ").splitlines()]
    said = " ".join(" ".join(line for line in lines if not line.endswith("?")).split())
    return (_NUMBER.sub("", said) or type(error.orig).__name__).rstrip(".")


def path_of(url: URL) -> Path:
    """Return the file of a SQLite database."""
    return Path(url.database or "")
