"""Acceptor of the local socket: a few connections per iteration of the event loop, so that others are served.

Invariants: a connection whose caller has already left costs no task; without file descriptors accepting pauses, and
nothing else stops.
"""

import asyncio
import logging
import socket
from collections.abc import Callable

LOG = logging.getLogger("lava.gateway")

ACCEPTED_A_TURN = 32
PAUSE_S = 0.1  # while the kernel has no descriptor or memory for another connection
TOLD_EVERY_S = 60.0


class Acceptor:
    """Accepts connections and hands each to ``take``, which owns it from then on.

    Args:
        listener: a listening socket; closed by ``close``.
    """

    def __init__(self, listener: socket.socket, take: Callable[[socket.socket], None]) -> None:
        self._listener = listener
        self._take = take
        self._loop = asyncio.get_running_loop()
        self._resuming: asyncio.TimerHandle | None = None
        self._told_at = float("-inf")
        listener.setblocking(False)
        self._resume()

    def close(self) -> None:
        """Stop accepting."""
        if self._resuming is not None:
            self._resuming.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()

    def _resume(self) -> None:
        self._resuming = None
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_A_TURN):
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause(error)
                return
            if has_left(connection):
                connection.close()
            else:
                self._take(connection)

    def _pause(self, error: OSError) -> None:
        """Wait for free descriptors; the kernel would announce the same connection again at once."""
        now = self._loop.time()
        if now - self._told_at > TOLD_EVERY_S:
            self._told_at = now
            LOG.warning("event=accepting_paused reason=%r", str(error))
        self._loop.remove_reader(self._listener)
        self._resuming = self._loop.call_later(PAUSE_S, self._resume)


def has_left(connection: socket.socket) -> bool:
    """Return True if the peer has closed the connection without sending anything."""
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
