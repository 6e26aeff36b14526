"""A world whose every step is saved in this process, without a writer process: fast, with the same rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import Connection

from lavad.core.cluster import Cluster
from lavad.core.events import Event
from lavad.store.database import database, url
from lavad.store.reading.restore import restore
from lavad.store.rows.rows import RowMaker
from lavad.store.writer import batch
from lavad.store.writer_process import Database
from tests.fakes.world import World

T = TypeVar("T")


class Saved:
    """Steps pile up until ``commit`` or, with ``commits_at_random``, until chance has it."""

    def __init__(self, where: str, seed: int, commits_at_random: bool = False) -> None:
        self._database = Database(url.parse(where))
        self._database.open(0.0)
        self._engine = database.reading_engine(url.parse(where))
        self._at_random = commits_at_random
        self._piled = batch.Batch()
        self._number = 0
        self.rows = RowMaker()
        self.world = World(seed, on_events=self._save)

    def _save(self, events: list[Event]) -> None:
        self._piled.merge(self.rows.rows_for(events, self.world.cluster))
        if self._at_random and self.world.random.random() < 0.5:
            self.commit()

    def commit(self) -> None:
        """Write the pending rows."""
        if self._piled:
            self._number += 1
            self._database.commit(batch.unpack(self._piled.pack(self._number)))
            self._piled = batch.Batch()

    def read(self, query: Callable[[Connection], T]) -> T:
        """Run a query after everything is written."""
        self.commit()
        with self._engine.begin() as connection:
            return query(connection)

    def restored(self) -> Cluster:
        """The cluster as a new master would find it."""
        cluster = Cluster(self.world.cluster.policy)
        self.read(lambda connection: restore(connection, cluster, self.world.now))
        return cluster

    def close(self) -> None:
        """Close the connections."""
        self._database.drop()
        self._engine.dispose()


@contextmanager
def saving(where: str, seed: int = 7, commits_at_random: bool = False) -> Iterator[Saved]:
    """A world that begins with all hosts joined."""
    saved = Saved(where, seed, commits_at_random)
    try:
        saved.world.begin()
        yield saved
    finally:
        saved.close()
