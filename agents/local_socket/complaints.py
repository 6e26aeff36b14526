"""Log lines about what users send wrongly: one for each user and minute, with the number of those left out."""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable

LOG = logging.getLogger("lava.gateway")

AGAIN_S = 60.0
USERS_MAX = 1000  # an earlier one is logged again


class Complaints:
    """Lines about connections that break the protocol."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told: OrderedDict[int, tuple[float, int]] = OrderedDict()  # when, and how many since

    def note(self, uid: int, user: str, pid: int, reason: str) -> None:
        """Log it, or count it."""
        now = self._clock()
        told_at, more = self._told.get(uid, (now - AGAIN_S, 0))
        if now - told_at < AGAIN_S:
            self._told[uid] = told_at, more + 1
            return
        self._told[uid] = now, 0
        self._told.move_to_end(uid)
        if len(self._told) > USERS_MAX:
            self._told.popitem(last=False)
        LOG.warning("connection refused user=%s pid=%d not_logged=%d reason=%r", user, pid, more, reason[:200])
