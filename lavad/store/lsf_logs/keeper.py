"""Master's side of LSF's logs: starts the process that writes them, tells it the rules, and starts it again."""

import asyncio
import json
import logging
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lavad.core.model.policy import Policy
from lavad.store import child_process
from lavad.store.writer.protocol import Unframer, frame

log = logging.getLogger(__name__)

AGAIN_S = 5.0  # from the end of the process to the next
CLOSE_TIMEOUT_S = 10.0
ENDED = "The process that writes the logs for LSF's tools has ended; it is started again."
STOP, RULES = "stop", "rules"
PROBLEM = "problem"


def directory_of(settings: Mapping[str, str], cluster: str) -> Path:
    """Return the directory of the logs: LSB_SHAREDIR/CLUSTER/logdir."""
    return Path(settings["LSB_SHAREDIR"]) / cluster / "logdir"


def rules_of(policy: Policy, settings: Mapping[str, str], kept_s: float) -> dict[str, Any]:
    """Return the rules of the files under a configuration."""
    return {
        "jobs_max": policy.events_jobs_max,
        "switch_s": max(60.0, policy.events_switch_s),
        "acct_bytes": policy.acct_archive_kib << 10,
        "acct_s": policy.acct_archive_s,
        "acct_files": policy.acct_archives_max,
        "kept_s": kept_s,
        "mode": 0o644 if policy.history_access == "N" else 0o600,
        "is_short": "SHORT_EVENTFILE" in settings.get("LSF_HPC_EXTENSIONS", ""),
        "factors": dict(policy.cpu_factors),
    }


class LsfLogs:
    """Logs of one cluster.

    Args:
        begin: number of the last batch in the database, from where on it is told if it never was.
    """

    def __init__(self, database: str, cluster: str, cluster_id: str, master: str, begin: int) -> None:
        self._names = {"database": database, "cluster": cluster, "cluster_id": cluster_id, "master": master}
        self._begin = begin
        self._rules: dict[str, Any] | None = None
        self._link: _Link | None = None
        self._again: asyncio.TimerHandle | None = None
        self.problem = ""

    def take(self, rules: dict[str, Any] | None) -> None:
        """Put rules into force; None: nothing is written."""
        self._rules = rules
        link = self._link
        if rules is None:
            self._drop()
        elif link is None or link.is_lost:
            if self._again is None:
                self._start()
        elif link.is_wanted and link.has_rules:
            link.say(RULES, rules)
        # Else it is told these when it is connected, or it is about to end and another one follows it.

    def _drop(self) -> None:
        if self._again is not None:
            self._again.cancel()
            self._again = None
        self.problem = ""
        if self._link is not None:
            self._link.is_wanted = False
            self._link.say(STOP)

    def _start(self) -> None:
        self._again = None
        if self._rules is None:
            return
        try:
            process, ours = child_process.start("lavad.store.lsf_logs_process")
        except OSError as error:
            self.problem = f"The logs for LSF's tools can't be written: {error.strerror}."
            self._ended()
            return
        link = self._link = _Link(self, process)
        link.task = asyncio.get_running_loop().create_task(self._connect(link, ours))

    async def _connect(self, link: "_Link", ours: socket.socket) -> None:
        await asyncio.get_running_loop().create_connection(lambda: link, sock=ours)
        if self._rules is not None and link.is_wanted:
            link.has_rules = True
            link.say(RULES, {**self._names, "begin": self._begin, **self._rules})

    def ended(self, link: "_Link") -> None:
        """Start the process again if it ended without being told to, or is wanted again since."""
        if link is not self._link:
            return
        if link.is_wanted:
            self.problem = ENDED
            self._ended()
        elif self._again is None:
            self._start()

    def _ended(self) -> None:
        self._again = asyncio.get_running_loop().call_later(AGAIN_S, self._start)

    async def close(self) -> None:
        """Tell the process to write what is durable and to end; kill it if that takes too long."""
        self._rules = None
        self._drop()
        if self._link is not None:
            await child_process.end(self._link.process, CLOSE_TIMEOUT_S)


class _Link(asyncio.Protocol):
    """Connection to one process."""

    def __init__(self, keeper: LsfLogs, process: child_process.Process) -> None:
        self.process = process
        self.is_lost = False
        self.is_wanted = True
        self.has_rules = False
        self.task: asyncio.Task[None] | None = None
        self._keeper = keeper
        self._unframer = Unframer()
        self._transport: asyncio.Transport | None = None
        self._unsaid: list[bytes] = []
        self._reaping: asyncio.Task[int] | None = None

    def say(self, word: str, content: Mapping[str, Any] | None = None) -> None:
        """Send a message, at once or when the connection is made."""
        framed = frame(json.dumps([word, content]).encode())
        if self._transport is None:
            self._unsaid.append(framed)
        elif not self.is_lost:
            self._transport.write(framed)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        for framed in self._unsaid:
            transport.write(framed)

    def data_received(self, data: bytes) -> None:
        for payload in self._unframer.feed(data):
            _, sentence = json.loads(payload)
            if sentence and sentence != self._keeper.problem:
                log.warning("lsf_logs=not_written reason=%r", sentence)
            self._keeper.problem = sentence

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self._reaping = asyncio.get_running_loop().create_task(asyncio.to_thread(self.process.wait))
        self._keeper.ended(self)
