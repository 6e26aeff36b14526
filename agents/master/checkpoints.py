"""Checkpoints of this host's attempts: requests go to their shepherds, results to the master.

Nothing is kept here: the shepherd of an attempt knows the newest request and results, and says them again to each
agent and for each session with the master.
"""

import time
from typing import TYPE_CHECKING

from agents.attempts.ledger import Ledger, key_of
from agents.attempts.ledger_entry import State
from agents.shepherd import messages
from agents.shepherd.messages import Key, Message, pack
from agents.shepherd_pool.pool import Pool
from protos.agents_pb2 import CheckpointMade, CheckpointRequest

if TYPE_CHECKING:
    from collections.abc import Callable

TOO_OLD = "the job was started by an older version of lava, which makes no checkpoints"
NOT_HERE = "the job does not run here"


class Checkpoints:
    """Checkpoints of the attempts in a ledger."""

    def __init__(self, ledger: Ledger, pool: Pool) -> None:
        self.notify: Callable[[], None] = lambda: None  # there is news
        self._ledger = ledger
        self._pool = pool
        self._news: list[CheckpointMade] = []

    def make(self, request: CheckpointRequest) -> None:
        """Pass a request on; it is answered at once where no checkpoint can be made."""
        key = key_of(request.key)
        entry, shepherd = self._ledger.entries.get(key), self._pool.holder(key)
        if entry is None or entry.state is not State.HELD or shepherd is None:
            self._refuse(request, NOT_HERE)
        elif shepherd.status.protocol < messages.MAKES_CHECKPOINTS:
            self._refuse(request, TOO_OLD)
        else:
            shepherd.send(pack(messages.CHECKPOINT, *key, request.number, request.force, request.ends))

    def _refuse(self, request: CheckpointRequest, why: str) -> None:
        now = time.time()
        self._tell(CheckpointMade(key=request.key, number=request.number, began=now, ended=now, error=why))

    def made(self, key: Key, fields: Message) -> None:
        """Take a result from a shepherd."""
        number, began, ended, error, ends, *action = fields[:6]  # a shepherd of an earlier version has no action
        made = CheckpointMade(number=number, began=began, ended=ended, error=error, ends=ends)
        made.action = action[0] if action else ""
        made.key.job, made.key.index, made.key.attempt = key
        self._tell(made)

    def _tell(self, made: CheckpointMade) -> None:
        self._news.append(made)
        self.notify()

    def repeat(self) -> None:
        """Ask for the newest results again, for a new session: what the last one has swallowed is among them."""
        for key, entry in self._ledger.entries.items():
            shepherd = self._pool.holder(key)
            is_asked = entry.state is State.HELD and entry.blob.spec.HasField("checkpoint")
            if is_asked and shepherd is not None and shepherd.status.protocol >= messages.MAKES_CHECKPOINTS:
                shepherd.send(pack(messages.CHECKPOINT, *key, 0, False, False))

    def take_news(self) -> list[CheckpointMade]:
        """Return the results since the last call."""
        news, self._news = self._news, []
        return news
