"""Batched polling of shepherd sockets: one epoll instance, read at intervals while the host is busy.

An iteration of the event loop for each of a hundred short jobs a second costs more than its work, and so does waking
this process for each. On a busy host an end may therefore wait for others, but so briefly that its slots stay empty for
a small part of the time only; messages to an idle host are read at once.
"""

import asyncio
import select
import socket
from collections.abc import Callable

BUSY = 8  # attempts on this host up to which messages are read at once
GATHER_S = 0.003  # least wait of the first message for others, on a busy host
PAUSE_MAX_S = 0.02
# Largest part of a busy host's attempts with unread messages. The mean wait is half the pause, so at most half of this
# part of their time is lost.
TOLD_SHARE = 0.15
SMOOTHING = 0.2  # weight of the newest pause in the mean rate
EVENTS_MAX = 1024


class Ears:
    """Calls a callback for each readable socket. ``busy`` returns the number of attempts held."""

    def __init__(self, busy: Callable[[], int]) -> None:
        self._busy = busy
        self._epoll = select.epoll()
        self._hear: dict[int, Callable[[], None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._heard_at = 0.0
        self._per_s = 0.0  # messages, smoothed
        self._later: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Start polling on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._epoll.fileno(), self._on_something)

    def close(self) -> None:
        """Stop polling."""
        if self._later is not None:
            self._later.cancel()
        if self._loop is not None:
            self._loop.remove_reader(self._epoll.fileno())
            self._loop = None
        self._epoll.close()

    def add(self, sock: socket.socket, hear: Callable[[], None]) -> None:
        """Call ``hear`` whenever the socket is readable, once for each poll."""
        self._hear[sock.fileno()] = hear
        self._epoll.register(sock.fileno(), select.EPOLLIN)

    def remove(self, sock: socket.socket) -> None:
        """Remove a socket before it is closed; an unknown one is no error."""
        if self._hear.pop(sock.fileno(), None) is not None:
            self._epoll.unregister(sock.fileno())

    def pause_s(self) -> float:
        """Return the seconds between the last poll and the next."""
        busy = self._busy()
        if busy <= BUSY:
            return 0.0
        return min(PAUSE_MAX_S, TOLD_SHARE * busy / self._per_s) if self._per_s else PAUSE_MAX_S

    def _on_something(self) -> None:
        assert self._loop is not None
        pause_s = self.pause_s()
        wait_s = max(GATHER_S, self._heard_at + pause_s - self._loop.time())
        if not pause_s:
            self._listen()
        else:  # not woken meanwhile
            self._loop.remove_reader(self._epoll.fileno())
            self._later = self._loop.call_later(wait_s, self._listen_again)

    def _listen_again(self) -> None:
        assert self._loop is not None
        self._later = None
        self._loop.add_reader(self._epoll.fileno(), self._on_something)
        self._listen()

    def _listen(self) -> None:
        assert self._loop is not None
        ready = self._epoll.poll(0, EVENTS_MAX)
        now = self._loop.time()
        rate = len(ready) / max(now - self._heard_at, 1e-4)
        self._per_s += SMOOTHING * (rate - self._per_s)
        self._heard_at = now
        for descriptor, _ in ready:
            hear = self._hear.get(descriptor)
            if hear is not None:  # else closed by an earlier callback
                hear()
