"""Hearing many shepherds at once: their sockets in one epoll of our own, looked at again and again while the host is
busy.

A turn of the event loop for each of a hundred short jobs a second costs more than what the turns do, and so does waking
this process for each. So when much runs, an end may wait for others, but so briefly that the places of the host stand
empty for a small part of their time only; what comes to an idle host is heard at once.
"""

import asyncio
import select
import socket
from collections.abc import Callable

BUSY = 8  # attempts on this host: up to so many, everything is heard at once
GATHER_S = 0.003  # on a busy host the first to tell something waits so long for others at least
PAUSE_MAX_S = 0.02
# Of a busy host's places, so many may have something to tell before they are heard. The mean wait is half the pause,
# so half of this part of their time is lost, at most.
TOLD_SHARE = 0.15
SMOOTHING = 0.2  # weight of the newest pause in the mean rate
EVENTS_MAX = 1024


class Ears:
    """Calls what was registered for each socket that is readable. ``busy`` tells how many attempts are held."""

    def __init__(self, busy: Callable[[], int]) -> None:
        self._busy = busy
        self._epoll = select.epoll()
        self._hear: dict[int, Callable[[], None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._heard_at = 0.0
        self._per_s = 0.0  # messages, smoothed
        self._later: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Begin; on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._epoll.fileno(), self._on_something)

    def close(self) -> None:
        """Hear nothing more."""
        if self._later is not None:
            self._later.cancel()
        if self._loop is not None:
            self._loop.remove_reader(self._epoll.fileno())
            self._loop = None
        self._epoll.close()

    def add(self, sock: socket.socket, hear: Callable[[], None]) -> None:
        """``hear`` is called whenever the socket is readable, once for each look."""
        self._hear[sock.fileno()] = hear
        self._epoll.register(sock.fileno(), select.EPOLLIN)

    def remove(self, sock: socket.socket) -> None:
        """Before the socket is closed; one that is not there is no error."""
        if self._hear.pop(sock.fileno(), None) is not None:
            self._epoll.unregister(sock.fileno())

    def pause_s(self) -> float:
        """How long after the last look the next one should be."""
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
        else:  # deaf meanwhile: nobody wakes this process
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
            if hear is not None:  # else closed by what an earlier one said
                hear()
