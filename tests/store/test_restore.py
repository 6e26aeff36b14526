"""A restart loses nothing: what was saved step by step restores to the same cluster."""

from pathlib import Path

import pytest

from lavad.core import invariants
from lavad.core.cluster import Cluster
from lavad.core.events import Event
from lavad.store import batch, database, url
from lavad.store.restore import restore
from lavad.store.rows import RowMaker
from lavad.store.writer_process import Database
from tests.fakes.world import World
from tests.store.fingerprint import fingerprint


class Saved:
    """A world whose every step is committed, several steps to a batch, and that can be read back."""

    def __init__(self, path: Path, seed: int) -> None:
        self.where = url.parse(str(path / "lava.db"))
        self.database = Database(self.where)
        self.database.open(0.0)
        self.rows = RowMaker()
        self.world = World(seed, on_events=self.save)
        self.piled = batch.Batch()
        self.number = 0

    def save(self, events: list[Event]) -> None:
        """What the engine does after a step."""
        self.piled.merge(self.rows.rows_for(events, self.world.cluster))
        if self.world.random.random() < 0.5:
            self.commit()

    def commit(self) -> None:
        """Write what has piled up."""
        self.number += 1
        self.database.commit(batch.unpack(self.piled.pack(self.number)))
        self.piled = batch.Batch()

    def restored(self) -> Cluster:
        """The cluster as a new master would find it."""
        self.commit()
        cluster = Cluster(self.world.cluster.policy)
        engine = database.reading_engine(self.where)
        with engine.begin() as connection:
            restore(connection, cluster, self.world.now)
        engine.dispose()
        return cluster


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_what_was_saved_restores_to_the_same_cluster(tmp_path: Path, seed: int) -> None:
    """restore(save(cluster)) == cluster after any lawful history, and the restored cluster keeps every invariant."""
    saved = Saved(tmp_path, seed)
    saved.world.begin()
    for _ in range(6):
        saved.world.live(60)
        saved.world.tick()
        restored = saved.restored()
        assert fingerprint(restored) == fingerprint(saved.world.cluster)
        invariants.check(restored)
    saved.database.drop()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 106))
def test_life_goes_on_after_each_restart(tmp_path: Path, seed: int) -> None:
    """A master that restarts again and again in mid-life still saves what the next one needs."""
    saved = Saved(tmp_path, seed)
    saved.world.begin()
    for _ in range(8):
        saved.world.live(40)
        saved.world.tick()
        expected, restored = fingerprint(saved.world.cluster), saved.restored()
        assert fingerprint(restored) == expected
        saved.world.cluster = restored
        saved.rows.adopt(restored)
        for number in range(saved.world.hosts):
            saved.world.join(number)
    saved.database.drop()
