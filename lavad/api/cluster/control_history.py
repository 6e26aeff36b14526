"""badmin hist, qhist, hhist, mbdhist: what became of hosts, queues and the master, from the store."""

import json
import logging
from collections.abc import AsyncGenerator
from pathlib import Path

from lavad.core.model.reasons import Refused
from lavad.engine import Engine
from lavad.store.reading.control_history import Told, Wanted
from lavad.store.store import Store
from protos import cluster_pb2 as pb

log = logging.getLogger("lavad")

KINDS = ("host", "queue", "master")
END_NAME = "last-end"


class ControlHistory:
    """History of one master's cluster; what the master itself does is told by this object.

    The end of a master is written to a file in its state directory, and into the database by the next: a commit at the
    end would make each backup taken before it older than the cluster.
    """

    def __init__(self, engine: Engine, store: Store, master_host: str, state_dir: Path) -> None:
        self._engine = engine
        self._store = store
        self._host = master_host
        self._end = state_dir / END_NAME
        self._has_started = False

    def tell_start(self) -> None:
        """Tell once that the master has started; only while rows may be written."""
        if not self._has_started:
            self._has_started = True
            self._tell_end_before()
            cluster = self._engine.cluster
            servers = sum(1 for host in cluster.hosts.values() if host.facts.server)
            counts = {"hosts": str(servers), "queues": str(len(cluster.policy.queues))}
            self._tell(self._engine.clock(), "started", cluster=cluster.name, **counts)

    def _tell_end_before(self) -> None:
        """Tell of the end of the master before this one, unless it was killed."""
        try:
            found = json.loads(self._end.read_text(encoding="utf-8"))
            self._end.unlink()
            self._tell(float(found["time"]), "ended", comment=str(found["comment"]))
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, KeyError) as error:
            log.warning("event=end_not_read path=%s error=%r", self._end, error)

    def tell_reconfiguration(self, by: str, comment: str) -> None:
        """Tell that an administrator put other files into force."""
        self._tell(self._engine.clock(), "reconfigured", by=by, comment=comment)

    def tell_end(self, why: str) -> None:
        """Note for the next master that this one ends, unless it has never begun."""
        if not self._has_started:
            return
        try:
            self._end.write_text(json.dumps({"time": self._engine.clock(), "comment": why}), encoding="utf-8")
        except OSError as error:
            log.warning("event=end_not_noted path=%s error=%s", self._end, error.strerror)

    def _tell(self, at: float, to: str, **detail: str) -> None:
        self._store.tell(at, "master", name=self._host, to=to, **detail)

    async def pages(self, request: pb.ControlHistoryRequest) -> AsyncGenerator[pb.ControlHistoryPage, None]:
        """Yield what the request selects, oldest first.

        Raises:
            Refused: the request names a kind that there is not.
            NotNow: the database can't be read at the moment.
        """
        if unknown := [kind for kind in request.kinds if kind not in KINDS]:
            raise Refused(f"Unknown kind of history: {unknown[0]}")
        wanted = Wanted(tuple(request.kinds), frozenset(request.names), request.first, request.last)
        after: int | None = 0
        while after is not None:
            found, after = await self._store.controls(wanted, after)
            yield pb.ControlHistoryPage(records=map(_record, found))


def _record(told: Told) -> pb.ControlRecord:
    detail = told.detail
    words = {name: str(detail.get(name, "")) for name in ("name", "by", "comment", "cluster", "lock_id", "group")}
    return pb.ControlRecord(
        time=told.at,
        kind=told.kind,
        action=str(detail.get("to", "")),
        hosts=int(detail.get("hosts", 0)),
        queues=int(detail.get("queues", 0)),
        **words,
    )
