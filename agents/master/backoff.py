"""Pauses between attempts to reach the master, and how often their failures are logged.

A master that is away is soon back. An agent that the master turns away, because its certificate is revoked, is so until
an administrator acts: its attempts become rare, and so do their lines in both logs.
"""

import random
import time
from collections.abc import Callable

import grpc
import grpc.aio

FIRST_S = 0.2
MAX_S = 5.0
TURNED_AWAY_MAX_S = 300.0
LOG_AGAIN_S = 3600.0  # between lines about an agent that is turned away, once its pauses are the longest
TURNED_AWAY = frozenset({grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED})


def is_turned_away(error: Exception | None) -> bool:
    """True if the master refused the call for the agent's certificate."""
    return isinstance(error, grpc.aio.AioRpcError) and error.code() in TURNED_AWAY


class Backoff:
    """State of the attempts of one agent."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next_s = FIRST_S
        self._told_at: float | None = None  # when a failure was last logged although pauses are the longest

    def is_news(self, error: Exception) -> bool:
        """True if this failure is to be logged."""
        if not is_turned_away(error) or self._next_s < TURNED_AWAY_MAX_S:
            self._told_at = None
            return True
        if self._told_at is not None and self._clock() - self._told_at < LOG_AGAIN_S:
            return False
        self._told_at = self._clock()
        return True

    def pause_s(self, error: Exception | None, has_succeeded: bool) -> float:
        """Return the time until the next attempt, after this failure and, maybe, a session before it."""
        if has_succeeded:
            self._next_s = FIRST_S
        pause_s = min(self._next_s, TURNED_AWAY_MAX_S if is_turned_away(error) else MAX_S)
        self._next_s = 2 * pause_s
        # Jitter: a thousand agents must not reconnect in the same instant. No pause is longer than MAX_S: an adoption
        # waits a little longer than that for the hosts that can reach the master.
        return pause_s * random.uniform(0.5, 1.0)
