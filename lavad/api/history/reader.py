"""Master's side of the reader process: it asks, and passes on serialised pages as its client takes them.

The process is taken with the first query. When it ends, a query without any page yet is asked again of a new one; any
other fails with a sentence.
"""

import asyncio
import marshal
from collections.abc import AsyncGenerator
from contextlib import aclosing
from time import monotonic

from lavad.api.history import protocol
from lavad.api.history.question import Question
from lavad.core.model.reasons import NotNow
from lavad.store import child_process
from lavad.store.writer.protocol import Unframer, message

SILENCE_S = 100.0  # longer than the database may take for a query
CLOSE_TIMEOUT_S = 5.0
ENDED = "The process that reads histories has ended. Please try again."

Said = tuple[str, bytes | str]
_LOST: Said = ("lost", "")


class ReaderLost(Exception):
    """End of the reader process during a query."""


class HistoryReader:
    """Reader process of a database, as the rest of the master sees it."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._link: _Link | None = None
        self._starting = asyncio.Lock()

    async def pages(self, question: Question) -> AsyncGenerator[bytes, None]:
        """Yield the serialised pages of an answer, none of them empty. Close it when no more of them are wanted.

        Raises:
            NotNow: the database can't be read at the moment, or the process has ended.
        """
        is_begun = False
        for is_last in (False, True):
            link = await self._linked()
            try:
                async with aclosing(link.pages(question)) as pages:
                    async for page in pages:
                        is_begun = True
                        yield page
                return
            except ReaderLost as error:
                if is_begun or is_last:
                    raise NotNow(ENDED) from error

    @property
    def pid(self) -> int:
        """Process id of the reader; 0 if there is none."""
        return self._link.process.pid if self._link is not None and not self._link.is_lost else 0

    async def _linked(self) -> "_Link":
        async with self._starting:
            if self._link is None or self._link.is_lost:
                self._link = await _start(self._database)
            return self._link

    async def close(self) -> None:
        """End the process."""
        if self._link is not None:
            await self._link.close()


async def _start(database: str) -> "_Link":
    """Start the process.

    Raises:
        NotNow: the system can't start one.
    """
    try:
        process, ours = child_process.start("lavad.api.history.reader_process")
    except OSError as error:
        raise NotNow(f"Histories can't be read at the moment: {error.strerror}.") from error
    _, link = await asyncio.get_running_loop().create_connection(lambda: _Link(process), sock=ours)
    link.say(database)
    return link


class _Link(asyncio.Protocol):
    """Connection to one reader process."""

    def __init__(self, process: child_process.Process) -> None:
        self.process = process
        self.is_lost = False
        self._unframer = Unframer()
        self._inboxes: dict[int, asyncio.Queue[Said]] = {}
        self._number = 0
        self._heard_at = monotonic()
        self._reaping: asyncio.Task[int] | None = None

    async def pages(self, question: Question) -> AsyncGenerator[bytes, None]:
        """Yield the pages of an answer; another is asked for when the consumer has taken one.

        Raises:
            ReaderLost: the process has ended, or is killed because it says nothing.
        """
        if self.is_lost:
            raise ReaderLost
        self._number += 1
        number = self._number
        inbox = self._inboxes[number] = asyncio.Queue()
        self._heard_at = monotonic()
        self.say(protocol.ASK, number, tuple(question))
        try:
            while (page := _page_of(await self._next(inbox))) is not None:
                if page:
                    yield page
                self.say(protocol.MORE, number)
        finally:
            del self._inboxes[number]
            self.say(protocol.DROP, number)

    async def _next(self, inbox: "asyncio.Queue[Said]") -> Said:
        while True:
            try:
                return await asyncio.wait_for(inbox.get(), SILENCE_S)
            except TimeoutError:
                if monotonic() - self._heard_at >= SILENCE_S:
                    self.process.kill()
                    self.is_lost = True  # the query is asked again before the end of the stream is seen
                    return _LOST

    def say(self, *values: object) -> None:
        """Send a message, unless the process has ended."""
        if not self.is_lost:
            self._transport.write(message(*values))

    async def close(self) -> None:
        """End the process, at once if it does not end by itself."""
        self._transport.close()
        await child_process.end(self.process, CLOSE_TIMEOUT_S)

    # -- messages from the process -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._heard_at = monotonic()
        for payload in self._unframer.feed(data):
            word, number, *values = marshal.loads(payload)
            inbox = self._inboxes.get(number)
            if inbox is not None:
                inbox.put_nowait((word, values[0] if values else ""))

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        for inbox in self._inboxes.values():
            inbox.put_nowait(_LOST)
        self._reaping = asyncio.get_running_loop().create_task(asyncio.to_thread(self.process.wait))


def _page_of(said: Said) -> bytes | None:
    """Return the page in a message of the reader; None at the end of the answer."""
    word, value = said
    if word == protocol.PAGE and isinstance(value, bytes):
        return value
    if word == protocol.END and not value:
        return None
    if word == protocol.END:
        raise NotNow(str(value))
    if word == _LOST[0]:
        raise ReaderLost
    raise RuntimeError("the reader process met an error of its own; the log has it above")
