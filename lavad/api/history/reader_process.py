"""Reader process: answers queries of stored jobs, each in turn a page, until the master is gone.

Started as a program by ``reader.HistoryReader``, with its end of a socket pair; the end of that stream ends it at once.
It only reads the database, at a lower priority than the master's.
"""

import gc
import logging
import marshal
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from lavad.api.history import protocol
from lavad.api.history.answers import Answers
from lavad.api.history.question import Question
from lavad.store import child_process
from lavad.store.database import database, url
from lavad.store.writer.protocol import Unframer, message
from protos import logs

log = logging.getLogger(__name__)
T = TypeVar("T")
NICE = 5
UNREADABLE = "The database can't be read at the moment."


class _Query:
    """One query in progress, with the number of pages that the master still wants."""

    def __init__(self, number: int, pages: Iterator[bytes]) -> None:
        self.number = number
        self.pages = pages
        self.wanted = protocol.PAGES_AHEAD
        self.is_due = True
        self.is_dropped = False


class Service:
    """Server of the master's queries over the socket, with a few threads that each have a connection."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._queries: dict[int, _Query] = {}
        self._due: SimpleQueue[_Query] = SimpleQueue()

    def run(self) -> None:
        """Serve until the master is gone."""
        payloads = self._payloads()
        first = next(payloads, None)
        if first is None:
            return
        (where,) = marshal.loads(first)
        self._engine = database.reading_engine(url.parse(where))
        self._answers = Answers(self._read)
        gc.freeze()  # imported objects live as long as the process: collections can skip them
        for _ in range(database.READERS):
            threading.Thread(target=self._work, daemon=True).start()
        for payload in payloads:
            word, number, *values = marshal.loads(payload)
            with self._lock:
                _WORDS[word](self, number, *values)

    def _payloads(self) -> Iterator[bytes]:
        unframer = Unframer()
        while data := self._link.recv(1 << 16):
            yield from unframer.feed(data)

    def _read(self, query: Callable[[Connection], T]) -> T:
        with self._engine.begin() as connection:
            return query(connection)

    # -- words of the master -----------------------------------------------------------------------------------------

    def _ask(self, number: int, question: tuple[object, ...]) -> None:
        query = _Query(number, self._answers.pages(Question._make(question)))
        self._queries[number] = query
        self._due.put(query)

    def _more(self, number: int) -> None:
        query = self._queries.get(number)
        if query is None:
            return
        query.wanted += 1
        if not query.is_due:
            query.is_due = True
            self._due.put(query)

    def _drop(self, number: int) -> None:
        query = self._queries.pop(number, None)
        if query is not None:
            query.is_dropped = True

    # -- threads -----------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            while True:
                self._turn(self._due.get())
        except ConnectionError:
            os._exit(0)  # the master is gone

    def _turn(self, query: _Query) -> None:
        """Send one page of a query; then it is due again behind the others, as long as pages are wanted."""
        if query.is_dropped:
            return
        try:
            page = next(query.pages, None)
        except SQLAlchemyError as error:
            log.warning("history=unreadable reason=%r", str(error).partition("\n")[0])
            self._finish(query, protocol.END, UNREADABLE)
        except Exception:
            log.exception("history=failed")
            self._finish(query, protocol.DEFECT)
        else:
            if page is None:
                self._finish(query, protocol.END, "")
                return
            self._say(protocol.PAGE, query.number, page)
            with self._lock:
                query.wanted -= 1
                query.is_due = query.wanted > 0
                if query.is_due:
                    self._due.put(query)

    def _finish(self, query: _Query, word: str, *values: str) -> None:
        with self._lock:
            self._queries.pop(query.number, None)
        self._say(word, query.number, *values)

    def _say(self, *values: object) -> None:
        framed = message(*values)
        with self._sending:
            self._link.sendall(framed)


_WORDS: dict[str, Callable[..., None]] = {
    protocol.ASK: Service._ask,
    protocol.MORE: Service._more,
    protocol.DROP: Service._drop,
}


def main(descriptor: int) -> None:
    """Serve the master at the other end of this socket."""
    child_process.take_name("lavad-reader")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # it ends when the master does, never before
    logs.start_logging()
    child_process.give_way(NICE)
    with socket.socket(fileno=descriptor) as link:
        try:
            Service(link).run()
        finally:
            os._exit(0)  # a thread in a query would delay the end


if __name__ == "__main__":
    main(int(sys.argv[1]))
