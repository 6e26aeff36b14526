"""History of hosts, queues and the master: told by the master, read in pages."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lavad.api.cluster.control_history import ControlHistory
from lavad.core.cluster import Cluster
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.queues import Queue
from lavad.store.reading import control_history
from lavad.store.store import Store
from protos import cluster_pb2 as pb


async def _seen(history: ControlHistory, **request: Any) -> list[tuple[str, str, str]]:
    pages = history.pages(pb.ControlHistoryRequest(**request))
    return [(one.action, one.by, one.comment) async for page in pages for one in page.records]


def test_the_life_of_a_master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It starts once, takes on files and ends; what is asked for is read in pages, by kind, name and time."""
    monkeypatch.setattr(control_history, "PAGE", 2)
    asyncio.run(_live(str(tmp_path / "lava.db")))


async def _live(path: str) -> None:
    store = await Store.open(f"sqlite:///{path}", lambda why: None)
    engine: Any = SimpleNamespace(cluster=Cluster(Policy(queues=(Queue("normal"),)), "c1", 1), clock=lambda: 1000.0)
    before = ControlHistory(engine, store, "m1", Path(path).parent)
    before.tell_end("")  # it never began: there is nothing to tell
    before.tell_start()
    before.tell_end("The database is gone.")
    await store.flush()
    assert [action for action, *_ in await _seen(before)] == ["started"]  # a backup of now is as new as the cluster
    history = ControlHistory(engine, store, "m1", Path(path).parent)
    history.tell_start()
    history.tell_start()
    store.tell(1001.0, "queue", name="night", to="closed", by="ann", comment="full")
    store.tell(1002.0, "queue", name="day", to="open", by="ann")
    history.tell_reconfiguration("root", "new queue")
    await store.flush()
    try:
        whole = await _seen(history)
        assert whole[:2] == [("started", "", ""), ("ended", "", "The database is gone.")]
        del whole[:2]
        assert whole == [
            ("started", "", ""),
            ("closed", "ann", "full"),
            ("open", "ann", ""),
            ("reconfigured", "root", "new queue"),
        ]
        assert await _seen(history, kinds=["queue"], names=["day"]) == whole[2:3]
        assert await _seen(history, first=1001.0, last=1001.5) == whole[1:2]
        with pytest.raises(Refused, match="Unknown kind of history: job"):
            await _seen(history, kinds=["job"])
        start = await anext(history.pages(pb.ControlHistoryRequest(kinds=["master"])))
        record = start.records[0]
        assert (record.name, record.cluster, record.hosts, record.queues) == ("m1", "c1", 0, 1)
    finally:
        await store.close()
