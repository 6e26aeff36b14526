"""Writer process: opens the database as its only writer, then commits batch after batch until the master is gone.

Started as a program by ``writer.Writer``, with its end of a socket pair; the end of that stream ends it, after the
commit in progress. A batch whose commit fails for a passing reason is retried without limit; the outcome of a commit
that was cut off is read from the batch number in the database. Damage, a lost term and a refused row end it with a
sentence.
"""

import gc
import marshal
import os
import select
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, update
from sqlalchemy import select as select_from
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from lavad import commit_mark
from lavad.commit_mark import Mark, MarkFile, is_behind
from lavad.store import child_process, schema
from lavad.store.database import database, files, migrate, url
from lavad.store.database.database import Fault
from lavad.store.errors import StoreRefused
from lavad.store.writer import batch, protocol
from lavad.store.writer.statements import Statements

RETRY_S = (0.1, 2.0)  # first and longest pause between retries
ADVISORY_LOCK = int.from_bytes(b"lavad", "big")
_POLL_LOCK_S = 0.1


class TermLost(Exception):
    """Takeover by another master; the message says so in one sentence."""


class LockHeld(Exception):
    """Lock on the database not yet free; the message says why."""


class MasterGone(Exception):
    """End of the master, so that the batch needs no reply."""


class Database:
    """The single writing connection, reopened after any failure, so that no half-done transaction stays."""

    def __init__(self, where: URL, mark_path: str = "") -> None:
        self._url = where
        self._mark_path = mark_path
        self._mark_file: MarkFile | None = None
        self._mark = Mark()
        self.witness: Mark | None = None
        self.is_behind = False
        self._engine = database.writing_engine(where)
        self._statements = Statements(self._engine.dialect)
        self._connection: Connection | None = None
        self.term = 0

    def open(self, lock_wait_s: float) -> migrate.Opened:
        """Lock the database, upgrade its schema and take the next term.

        Wait up to ``lock_wait_s`` for a predecessor's writer, which may still be busy with its last commit.

        Raises:
            StoreRefused: it is another master's, or can't be used.
            DBAPIError: it can't be reached.
        """
        if database.is_sqlite(self._url):
            path = database.path_of(self._url)
            files.refuse_network(path)
            files.make_private(path)
            files.lock(path, lock_wait_s)  # held until this process ends
        connection = self._connect(lock_wait_s)
        with connection.begin():
            migrate.upgrade(connection)
            opened = migrate.take_term(connection)
        self.term = opened.term
        self._mark = Mark(opened.cluster_id, opened.term, opened.batch, opened.next_job)
        self._compare_with_witness()
        return opened

    def _compare_with_witness(self) -> None:
        """Compare the database with the mark file, and update the file unless it is ahead of the database."""
        if not self._mark_path:
            return
        self.witness = commit_mark.read(Path(self._mark_path))
        if self.witness is not None:
            before = self._mark._replace(term=self.term - 1)
            self.is_behind = is_behind(before, self.witness)
        if not self.is_behind:
            self._write_mark()

    def _write_mark(self) -> None:
        try:
            if self._mark_file is None:
                self._mark_file = MarkFile(Path(self._mark_path))
            self._mark_file.write(self._mark)
        except OSError as error:  # the database is authoritative, and agents keep the mark, too
            sys.stderr.write(f"lavad: {self._mark_path} can't be written: {error.strerror}.\n")
            self._mark_path = ""

    def raise_mark(self, term: int, number: int, next_job: int) -> None:
        """Set a higher term, commit number and next job, in one transaction.

        Raises:
            TermLost: the database belongs to another master now.
            DBAPIError: it failed, or its outcome is unknown.
        """
        connection = self._connection or self._reconnect()
        row = schema.cluster
        with connection.begin():
            changed = connection.execute(
                update(row).where(row.c.term.in_([self.term, term])).values(term=term, batch=number, next_job=next_job)
            )
        if changed.rowcount != 1:
            raise TermLost(_taken_over(None, self.term))
        self.term, self.is_behind = term, False
        self._mark = self._mark._replace(term=term, batch=number, next_job=next_job)
        if self._mark_path:
            self._write_mark()

    def warnings(self) -> list[str]:
        """Return warnings for the administrator about the database's settings."""
        if database.is_sqlite(self._url) or self._connection is None:
            return []
        with self._connection.begin():
            fsync = self._connection.exec_driver_sql("SHOW fsync").scalar()
        return [] if fsync == "on" else ["PostgreSQL runs with fsync off: a power failure can lose acknowledged jobs."]

    def _connect(self, lock_wait_s: float) -> Connection:
        connection = self._engine.connect()
        if not self._is_locked_by(connection, lock_wait_s):
            connection.close()
            raise StoreRefused(f"Another lavad is using {url.shown(self._url)}.")
        self._connection = connection
        return connection

    def _is_locked_by(self, connection: Connection, wait_s: float) -> bool:
        return database.is_sqlite(self._url) or lock_connection(connection, wait_s)

    def commit(self, packed: batch.Packed) -> None:
        """Write one batch in one transaction; return when it is durable, also if it already was.

        Raises:
            TermLost: the database belongs to another master now.
            LockHeld: another connection holds the lock, but the term is unchanged.
            DBAPIError: the transaction failed, or its outcome is unknown.
        """
        number, next_job, tables, gone = packed
        connection = self._connection or self._reconnect()
        with connection.begin() as transaction:
            if self._statements.claim(connection, self.term, number, next_job):
                self._statements.write(connection, tables, gone)
                self._mark = self._mark._replace(batch=number, next_job=max(next_job, self._mark.next_job))
                return
            row = connection.execute(select_from(schema.cluster.c.term, schema.cluster.c.batch)).one()
            transaction.rollback()
        if row.term != self.term or row.batch != number:
            raise TermLost(_taken_over(row.term, self.term))

    def note_commit(self) -> None:
        """Write the mark file before the commit is acknowledged, unless the file is ahead of the database."""
        if self._mark_path and not self.is_behind:
            self._write_mark()

    def _reconnect(self) -> Connection:
        """Open a new connection with the lock, after the one before failed.

        A server notices late that a connection has broken: the lock may still be held by our own. Only a higher term
        proves another master.
        """
        connection = self._engine.connect()
        if self._is_locked_by(connection, 0.0):
            self._connection = connection
            return connection
        with connection.begin():
            term = connection.scalar(select_from(schema.cluster.c.term))
        connection.close()
        if term != self.term:
            raise TermLost(_taken_over(term, self.term))
        raise LockHeld("the server has not yet noticed that the connection before is gone")

    def drop(self) -> None:
        """Close the connection in any state."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()


def _taken_over(term: int | None, mine: int) -> str:
    return f"Another lavad has taken over the database (term {term}, mine is {mine})."


def lock_connection(connection: Connection, wait_s: float) -> bool:
    """Take the advisory lock of the writer; it lasts as long as the connection."""
    for _ in range(int(wait_s / _POLL_LOCK_S) + 1):
        with connection.begin():
            if connection.scalar(select_from(func.pg_try_advisory_lock(ADVISORY_LOCK))):
                return True
        if wait_s:
            select.select([], [], [], _POLL_LOCK_S)
    return False


class Service:
    """Server of the master's requests over the socket."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._unframer = protocol.Unframer()

    def run(self) -> None:
        """Serve until the master is gone or no batch can be committed any more."""
        payloads = self._payloads()
        settings = next(payloads, None)
        if settings is None:
            return
        where, lock_wait_s, mark_path = marshal.loads(settings)
        store = Database(url.parse(where), mark_path)
        if self._open(store, lock_wait_s):
            self._serve_all(store, payloads)
        store.drop()  # the last to close a SQLite database empties its log

    def _serve_all(self, store: Database, payloads: Iterator[bytes]) -> None:
        for payload in payloads:
            word: Any = marshal.loads(payload)
            if word[0] == protocol.RAISE:
                self._raise(store, *word[1:])
            elif not self._serve(store, word):
                return

    def _payloads(self) -> Iterator[bytes]:
        while data := self._link.recv(1 << 20):
            yield from self._unframer.feed(data)

    def _open(self, store: Database, lock_wait_s: float) -> bool:
        try:
            opened = store.open(lock_wait_s)
            words = store.warnings()
        except StoreRefused as error:
            self._say(protocol.REFUSED, str(error))
            return False
        except DBAPIError as error:
            self._say(protocol.REFUSED, f"The database can't be opened: {database.sentence_of(error)}.")
            return False
        except Exception as error:
            self._say(protocol.REFUSED, f"The database can't be opened: {type(error).__name__}: {error}.")
            raise  # a defect: the traceback belongs into the log
        gc.freeze()  # imported objects live as long as the process: collections can skip them
        witness = None if store.witness is None else tuple(store.witness)
        numbers = (opened.term, opened.batch, opened.next_job)
        self._say(protocol.READY, opened.cluster_id, *numbers, words, witness, store.is_behind)
        return True

    def _raise(self, store: Database, term: int, number: int, next_job: int) -> None:
        try:
            store.raise_mark(term, number, next_job)
        except (TermLost, LockHeld) as error:
            self._say(protocol.RAISED, str(error))
        except DBAPIError as error:
            store.drop()
            self._say(protocol.RAISED, f"The database can't commit now: {database.sentence_of(error)}.")
        else:
            self._say(protocol.RAISED, "")

    def _serve(self, store: Database, packed: batch.Packed) -> bool:
        """Commit one batch with any number of retries; return False if it can never be committed."""
        pause_s, longest_s = RETRY_S
        while True:
            try:
                store.commit(packed)
            except TermLost as error:
                self._say(protocol.LOST, str(error))
                return False
            except LockHeld as error:
                self._say(protocol.STUCK, f"The database can't commit now: {error}.")
            except DBAPIError as error:
                store.drop()
                if not self._explain(error):
                    return False
            except Exception as error:
                self._say(protocol.LOST, f"The database refused a row: {type(error).__name__}: {error}.")
                raise  # a defect: the traceback belongs into the log
            else:
                store.note_commit()
                self._say(protocol.DONE, packed[0])
                return True
            self._pause(pause_s)
            pause_s = min(2 * pause_s, longest_s)

    def _explain(self, error: DBAPIError) -> bool:
        """Report the error to the master; return True if the batch may be retried."""
        fault, words = database.fault_of(error), database.sentence_of(error)
        if fault is Fault.PASSING:
            self._say(protocol.STUCK, f"The database can't commit now: {words}.")
            return True
        what = "is damaged or can't be synced" if fault is Fault.DAMAGE else "refused a row"
        self._say(protocol.LOST, f"The database {what}: {words}.")
        return False

    def _pause(self, seconds: float) -> None:
        """Wait before the next retry; the master sends nothing meanwhile, so readable data means its end."""
        readable, _, _ = select.select([self._link], [], [], seconds)
        if readable and not self._link.recv(1, socket.MSG_PEEK):
            raise MasterGone

    def _say(self, *values: object) -> None:
        self._link.sendall(protocol.message(*values))


def main(descriptor: int) -> None:
    """Serve the master at the other end of this socket."""
    child_process.take_name("lavad-writer")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # it ends when the master does, never before
    with socket.socket(fileno=descriptor) as link:
        try:
            Service(link).run()
        except (MasterGone, ConnectionError):
            os._exit(0)  # a lost connection to the database could block an orderly end


if __name__ == "__main__":
    main(int(sys.argv[1]))
