"""Store as the rest of the master sees it: one object to save to, to restore from and to query."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from sqlalchemy import Connection, Row
from sqlalchemy.exc import DBAPIError

from lavad.commit_mark import Mark
from lavad.core.model.rules.names import MemberChange
from lavad.core.state.records import numbered
from lavad.store.database import database, url
from lavad.store.errors import StoreRefused
from lavad.store.reading import control_history, reader, restore
from lavad.store.rows import cluster_rows
from lavad.store.rows.rows import RowMaker
from lavad.store.writer.batch import Batch
from lavad.store.writer.writer import LOCK_WAIT_S, Ready, Writer

if TYPE_CHECKING:
    from lavad.core.cluster import Cluster

SPECS_KEPT_BYTES = 8 << 20  # of the newest submissions: most are dispatched soon, and then need no read
ENVIRONMENTS_KEPT_BYTES = 64 << 20
RETRY_MAX_S = 30.0

K = TypeVar("K")
Found = TypeVar("Found")


class Store:
    """Access to the database. Open with ``Store.open``; then ``restore`` once, before anything is appended."""

    def __init__(
        self, text: str, on_lost: Callable[[str], None], lock_wait_s: float, mark_path: Path | None = None
    ) -> None:
        self._url = url.parse(text)
        self._writer = Writer(text, on_lost, lock_wait_s, str(mark_path or ""))
        self.rows = RowMaker()
        self._specs: _Recent[int] = _Recent(SPECS_KEPT_BYTES)
        self._environments: _Recent[bytes] = _Recent(ENVIRONMENTS_KEPT_BYTES)
        self._ready: Ready | None = None
        self._term = 0
        self._reader: reader.Reader | None = None

    @classmethod
    async def open(
        cls,
        text: str,
        on_lost: Callable[[str], None],
        lock_wait_s: float = LOCK_WAIT_S,
        mark_path: Path | None = None,
    ) -> "Store":
        """Lock the database, upgrade its schema, take the next term.

        ``text`` is the value of LAVA_DATABASE. ``on_lost`` is called once, with a sentence, when nothing can be made
        durable any more: the master must stop then. ``lock_wait_s`` is the longest wait for another master's lock.
        ``mark_path`` is the file kept beside the database that tells later which commit it had reached.

        Raises:
            StoreRefused: it can't be used, or another master has it.
        """
        store = cls(text, on_lost, lock_wait_s, mark_path)
        store._ready = await store._writer.start()
        store._term = store._ready.term
        store._reader = reader.Reader(store._url)
        return store

    async def close(self) -> None:
        """Commit appended rows and end the writer process."""
        await self._writer.close()
        if self._reader is not None:
            self._reader.close()

    # -- state at opening ------------------------------------------------------------------------------------------

    @property
    def term(self) -> int:
        """Leadership number (term) of this master."""
        return self._term

    @property
    def mark(self) -> Mark:
        """Commit mark of the database, without the next job."""
        return Mark(self._opened.cluster_id, self._term, self._writer.committed)

    @property
    def witness(self) -> Mark | None:
        """Mark of the mark file at start, if it is ahead of the database."""
        return self._opened.witness if self._opened.is_behind else None

    async def raise_mark(self, mark: Mark) -> None:
        """Raise term, commit number and next job of the database, durably; nothing may be appended meanwhile.

        Raises:
            StoreRefused: the database can't do it now.
        """
        await self._writer.raise_mark(mark)
        self._term = mark.term

    @property
    def cluster_id(self) -> str:
        """Random id, the same for as long as the database exists."""
        return self._opened.cluster_id

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the administrator about the database's settings, a sentence each."""
        return self._opened.warnings

    @property
    def address(self) -> str:
        """URL of the database without the password."""
        return url.shown(self._url)

    @property
    def _opened(self) -> Ready:
        assert self._ready is not None, "the store is not open"
        return self._ready

    @property
    def _reading(self) -> reader.Reader:
        assert self._reader is not None, "the store is not open"
        return self._reader

    def restore(self, cluster: "Cluster", now: float) -> None:
        """Fill an empty cluster. Blocks; for the start only.

        Raises:
            StoreRefused: the database can't be read.
        """
        try:
            self._reading.read(lambda connection: restore.restore(connection, cluster, now))
        except DBAPIError as error:
            raise StoreRefused(f"The database can't be read: {database.sentence_of(error)}.") from error
        self.rows.adopt(cluster)

    def adoptions(self) -> list[tuple[int, str]]:
        """Return the past adoptions of the database by an administrator: term and content of the row.

        Raises:
            StoreRefused: the database can't be read.
        """
        return self._read(restore.read_adoptions)

    def group_changes(self) -> dict[str, MemberChange]:
        """Return what badmin has changed of the members of host groups, by group: the configuration is read with it.

        Raises:
            StoreRefused: the database can't be read.
        """
        return self._read(restore.read_group_changes)

    def host_names(self) -> frozenset[str]:
        """Return the hosts of the cluster, for the patterns in the configuration.

        Raises:
            StoreRefused: the database can't be read.
        """
        return self._read(restore.read_host_names)

    def _read(self, question: Callable[[Connection], Found]) -> Found:
        try:
            return self._reading.read(question)
        except DBAPIError as error:
            raise StoreRefused(f"The database can't be read: {database.sentence_of(error)}.") from error

    # -- writing -----------------------------------------------------------------------------------------------------

    @property
    def is_stuck(self) -> bool:
        """True if nothing can be committed at the moment: new commands are answered "not now"."""
        return self._writer.is_stuck

    @property
    def stuck_reason(self) -> str:
        """Reason in one sentence; empty if commits succeed."""
        return self._writer.stuck_reason

    @property
    def retry_s(self) -> int:
        """Seconds after which a command refused while commits fail may be retried: soon, later the longer it lasts."""
        return int(min(max(1.0, self._writer.stuck_for_s), RETRY_MAX_S))

    def tell_stuck(self, told: Callable[[], None]) -> None:
        """Register a callback for the first failed commit and for the first that succeeds again."""
        self._writer.on_stuck = told

    @property
    def writer_pid(self) -> int:
        """Process id of the writer."""
        return self._writer.process.pid

    def append(self, batch: Batch, durable: Callable[[], None]) -> None:
        """Hand over rows; ``durable`` is called on the loop when they and all before them are on disk.

        Callbacks run in the order of the calls. When the writer is lost they never run.
        """
        for job, row in batch.specs.items():
            self._specs.put(job, cast("bytes", row[-1]))
        for (job, part), row in batch.parts.items():
            self._specs.put(numbered(job, part), cast("bytes", row[-1]))
        for key, environment in batch.environments.items():
            if environment is not None:
                self._environments.put(key, cast("bytes", environment[-1]))
        self._writer.append(batch, durable)

    def forget_environments(self, keys: Iterable[bytes]) -> None:
        """Delete these environments; one that is handed over later is kept."""
        batch = Batch()
        for key in keys:
            self._environments.drop(key)
            batch.environments[key] = None
        self._writer.append(batch, lambda: None)

    def purge(self, jobs: Iterable[int]) -> None:
        """Delete the next rows of ended jobs: all of a plain one, some of a large array."""
        batch = Batch()
        batch.purged += jobs
        self._writer.append(batch, lambda: None)

    def tell(self, at: float, kind: str, **detail: str) -> None:
        """Write a row of the history of hosts, queues and the master."""
        batch = Batch()
        cluster_rows.tell(batch, at, kind, **detail)
        self._writer.append(batch, lambda: None)

    async def flush(self) -> None:
        """Wait until everything appended so far is durable, or the writer is lost."""
        await self._writer.flush()

    # -- reading -----------------------------------------------------------------------------------------------------

    async def spec(self, job: int) -> bytes:
        """Return the spec of a job.

        Raises:
            KeyError: there is no such job.
            NotNow: the database can't be read at the moment.
        """
        return (await self.specs([job]))[job]

    async def specs(self, jobs: Collection[int]) -> dict[int, bytes]:
        """Return the specs of those jobs that exist.

        Raises:
            NotNow: the database can't be read at the moment.
        """
        found = {job: spec for job in jobs if (spec := self._specs.get(job)) is not None}
        missing = [job for job in jobs if job not in found]
        if missing:
            read = await self._reading.run(lambda connection: reader.read_specs(connection, missing))
            for job, spec in read.items():
                newer = self._specs.get(job)  # it may have been changed during the read
                found[job] = spec if newer is None else newer
                self._specs.put(job, found[job])
        return found

    async def messages(self, jobs: Collection[int]) -> list[Row[Any]]:
        """Return the messages of jobs, without their data, by job, element and number.

        Raises:
            NotNow: the database can't be read at the moment.
        """
        return await self._reading.run(lambda connection: reader.read_messages(connection, jobs))

    async def message(self, job: int, index: int, number: int) -> Row[Any] | None:
        """Return a message of a job or element with its data; None if it has none of that number.

        Raises:
            NotNow: the database can't be read at the moment.
        """
        return await self._reading.run(lambda connection: reader.read_message(connection, job, index, number))

    async def environment(self, key: bytes) -> bytes:
        """Return a shared environment by its hash.

        Raises:
            KeyError: there is none.
            NotNow: the database can't be read at the moment.
        """
        content = self._environments.get(key)
        if content is None:
            content = await self._reading.run(lambda connection: reader.read_environment(connection, key))
            if content is None:
                raise KeyError(key)
            self._environments.put(key, content)
        return content

    async def environment_keys(self, after: bytes, limit: int) -> list[bytes]:
        """Return hashes of stored environments in ascending order, after ``after``.

        Raises:
            NotNow: the database can't be read at the moment.
        """
        return await self._reading.run(lambda connection: reader.read_environment_keys(connection, after, limit))

    async def expired(self, before: float, after: tuple[float, int], limit: int) -> list[tuple[float, int]]:
        """Return end and id of jobs that ended before that time, in this order, after the one named.

        Raises:
            NotNow: the database can't be read at the moment.
        """
        return await self._reading.run(lambda connection: reader.read_expired(connection, before, after, limit))

    async def controls(
        self, wanted: control_history.Wanted, after: int
    ) -> tuple[list[control_history.Told], int | None]:
        """Return what `control_history.read_controls` reads.

        Raises:
            NotNow: the database can't be read at the moment.
        """
        return await self._reading.run(lambda connection: control_history.read_controls(connection, wanted, after))

    async def present(self, jobs: Collection[int]) -> list[int]:
        """Return those jobs that the database has.

        Raises:
            NotNow: the database can't be read at the moment.
        """
        return await self._reading.run(lambda connection: reader.read_present(connection, jobs))

    async def find_request(self, request_id: bytes, user: str) -> list[int]:
        """Return the jobs made by this user's submission with this request id: none or one.

        Raises:
            NotNow: the database can't be read at the moment.
        """
        return await self._reading.run(lambda connection: reader.read_request(connection, request_id, user))


class _Recent(Generic[K]):
    """Least-recently-used cache of contents by key, bounded in bytes."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._kept: OrderedDict[K, bytes] = OrderedDict()

    def get(self, key: K) -> bytes | None:
        content = self._kept.get(key)
        if content is not None:
            self._kept.move_to_end(key)
        return content

    def put(self, key: K, content: bytes) -> None:
        self.drop(key)
        self._bytes += len(content)
        self._kept[key] = content
        while self._bytes > self._bytes_max:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= len(oldest)

    def drop(self, key: K) -> None:
        self._bytes -= len(self._kept.pop(key, b""))
