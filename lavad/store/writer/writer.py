"""Master's side of the writer process: group commit without a timer.

While a commit is in progress, new rows accumulate, merged by key; when it is done they become the next batch, and only
then are the callbacks of the finished one called, in the order of ``append``. Rows are durable when their callback
runs, and not before. Everything runs on the master's event loop and never blocks it. A first batch waits for the end of
the loop's iteration, so that the consequences of a command share its commit.
"""

import asyncio
import marshal
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from lavad.commit_mark import Mark
from lavad.store import child_process
from lavad.store.errors import StoreRefused
from lavad.store.writer import protocol
from lavad.store.writer.batch import Batch

OPEN_TIMEOUT_S = 60.0  # a migration of a large database takes its time
CLOSE_TIMEOUT_S = 10.0
LOCK_WAIT_S = 10.0  # for a predecessor's writer to end its last commit
STALLED_AFTER_S = 20.0  # a commit that takes longer counts as stuck

Durable = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Ready:
    """State of the database when the writer process opened it."""

    cluster_id: str
    term: int
    batch: int
    next_job: int
    warnings: tuple[str, ...]
    witness: Mark | None = None  # mark of the mark file
    is_behind: bool = False  # True if the database is behind the witness


class Writer(asyncio.Protocol):
    """Connection to the writer process, which it hands batches.

    ``on_lost`` is called once, with a sentence, when nothing can be committed any more.
    """

    def __init__(
        self, url: str, on_lost: Callable[[str], None], lock_wait_s: float = LOCK_WAIT_S, mark_path: str = ""
    ) -> None:
        self._settings = (url, lock_wait_s, mark_path)
        self._on_lost = on_lost
        self.on_stuck: Callable[[], None] = lambda: None  # called when commits begin to fail or succeed again
        self._unframer = protocol.Unframer()
        self._piled = Batch()
        self._piled_callbacks: list[Durable] = []
        self._flying: list[Durable] | None = None  # callbacks of the batch in progress
        self._about_to_send = False
        self._sent_at = 0.0
        self._number = 0
        self._stuck = ""
        self._closing = False
        self._lost = ""

    # -- start and end ---------------------------------------------------------------------------------------------

    async def start(self) -> Ready:
        """Start the process and let it open the database.

        Raises:
            StoreRefused: it can't be opened; the message is for the administrator.
        """
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._opened: asyncio.Future[Ready] = loop.create_future()
        self._ended: asyncio.Future[None] = loop.create_future()
        self.process, ours = child_process.start("lavad.store.writer_process")
        self._transport, _ = await loop.create_connection(lambda: self, sock=ours)
        self._transport.write(protocol.frame(marshal.dumps(self._settings)))
        try:
            ready = await asyncio.wait_for(self._opened, OPEN_TIMEOUT_S)
        except BaseException as error:
            await self._end()
            if isinstance(error, TimeoutError):
                raise StoreRefused(f"The database did not open within {OPEN_TIMEOUT_S:.0f} s.") from error
            raise
        self._number = ready.batch
        return ready

    async def flush(self) -> None:
        """Wait until everything appended so far is durable; return early if the writer is lost."""
        if (self._flying is None and not self._about_to_send) or self._lost:
            return
        done = self._loop.create_future()
        self.append(Batch(), lambda: done.set_result(None))
        await asyncio.wait({done, self._ended}, return_when=asyncio.FIRST_COMPLETED)

    async def close(self) -> None:
        """Commit appended rows as far as a bounded time allows, and end the process."""
        try:
            await asyncio.wait_for(self.flush(), CLOSE_TIMEOUT_S)
        except TimeoutError:
            self._stuck = self._stuck or "The last batch could not be committed before the end."
        await self._end()

    async def _end(self) -> None:
        self._closing = True
        self._transport.close()
        await child_process.end(self.process, CLOSE_TIMEOUT_S)

    async def raise_mark(self, mark: Mark) -> None:
        """Raise term, commit number and next job of the database, durably.

        Raises:
            StoreRefused: the database can't do it now.
        """
        while self._flying is not None or self._about_to_send:
            await self.flush()
            if self._lost:
                raise StoreRefused(self._lost)
        self._flying, self._sent_at, before = [], monotonic(), self._number
        self._raised = self._loop.create_future()
        self._transport.write(protocol.frame(marshal.dumps((protocol.RAISE, mark.term, mark.batch, mark.next_job))))
        self._number = mark.batch
        await asyncio.wait({self._raised, self._ended}, return_when=asyncio.FIRST_COMPLETED)
        why = self._raised.result() if self._raised.done() else self._lost or "The store's writer process has ended."
        if why:
            self._number = before
        self._flying = None
        if self._piled_callbacks:
            self._send()
        if why:
            raise StoreRefused(why)

    # -- use ---------------------------------------------------------------------------------------------------------

    @property
    def committed(self) -> int:
        """Number of the last durable batch."""
        return self._number - (self._flying is not None)

    @property
    def is_stuck(self) -> bool:
        """True if batches can't be committed at the moment, so that new commands are answered "not now"."""
        return bool(self._stuck or self._lost) or self._stalled

    @property
    def stuck_reason(self) -> str:
        """Reason in one sentence; empty if commits succeed."""
        stalled = "The database has not answered for a while." if self._stalled else ""
        return self._lost or self._stuck or stalled

    @property
    def stuck_for_s(self) -> float:
        """Seconds since the batch in progress was sent."""
        return monotonic() - self._sent_at if self._flying is not None else 0.0

    @property
    def _stalled(self) -> bool:
        return self._flying is not None and monotonic() - self._sent_at > STALLED_AFTER_S

    def append(self, batch: Batch, durable: Durable) -> None:
        """Hand over rows; ``durable`` is called on the loop when they and all before them are on disk."""
        if self._lost:
            return  # effects of uncommitted rows are never sent
        if not batch and not self._piled:  # nothing to write: only earlier rows matter
            if self._flying is None:
                self._loop.call_soon(durable)
            else:
                self._flying.append(durable)
            return
        self._piled.merge(batch)
        self._piled_callbacks.append(durable)
        if self._flying is None and not self._about_to_send:
            self._about_to_send = True
            self._loop.call_soon(self._send)

    def _send(self) -> None:
        self._about_to_send = False
        batch, self._piled = self._piled, Batch()
        self._flying, self._piled_callbacks = self._piled_callbacks, []
        self._number += 1
        self._sent_at = monotonic()
        self._transport.write(protocol.frame(batch.pack(self._number)))

    # -- messages from the process ---------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ignore the event: ``start`` keeps the transport."""

    def data_received(self, data: bytes) -> None:
        for payload in self._unframer.feed(data):
            word, *values = marshal.loads(payload)
            _WORDS[word](self, *values)

    def connection_lost(self, exc: Exception | None) -> None:
        self._be_lost("The store's writer process has ended.")
        if not self._ended.done():
            self._ended.set_result(None)

    def _on_ready(
        self,
        cluster_id: str,
        term: int,
        batch: int,
        next_job: int,
        warnings: list[str],
        witness: tuple[str, int, int, int] | None,
        is_behind: bool,
    ) -> None:
        seen = None if witness is None else Mark._make(witness)
        self._opened.set_result(Ready(cluster_id, term, batch, next_job, tuple(warnings), seen, is_behind))

    def _on_raised(self, sentence: str) -> None:
        self._raised.set_result(sentence)

    def _on_refused(self, sentence: str) -> None:
        self._closing = True
        self._opened.set_exception(StoreRefused(sentence))

    def _on_done(self, number: int) -> None:
        assert number == self._number, f"batch {number} was committed, {self._number} was sent"
        callbacks, self._flying = self._flying or [], None
        was_stuck, self._stuck = self._stuck, ""
        if was_stuck:
            self.on_stuck()
        if self._piled_callbacks:
            self._send()  # the next commit begins before the master works on this one
        for durable in callbacks:
            try:
                durable()
            except Exception as error:  # one failing callback must not delay the others' replies
                self._loop.call_exception_handler({"message": "store callback failed", "exception": error})

    def _on_stuck(self, sentence: str) -> None:
        self._stuck = sentence
        self.on_stuck()

    def _be_lost(self, sentence: str) -> None:
        if self._lost or self._closing:
            return
        self._lost = sentence
        if not self._opened.done():
            self._opened.set_exception(StoreRefused(sentence))
        else:
            self._on_lost(sentence)


_WORDS: dict[str, Callable[..., None]] = {
    protocol.READY: Writer._on_ready,
    protocol.REFUSED: Writer._on_refused,
    protocol.DONE: Writer._on_done,
    protocol.STUCK: Writer._on_stuck,
    protocol.LOST: Writer._be_lost,
    protocol.RAISED: Writer._on_raised,
}
