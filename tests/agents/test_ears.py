"""Batched polling of shepherd sockets on a busy host, immediate reads on an idle one."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

from agents.shepherd_pool.poll import BUSY, PAUSE_MAX_S, Ears


class Talkers:
    """Sockets polled by one poller; ``heard`` holds their messages with the time of the loop."""

    def __init__(self, count: int, busy: int) -> None:
        self.busy = busy
        self.ears = Ears(lambda: self.busy)
        self.pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(count)]
        self.heard: list[tuple[int, float]] = []
        self.news = asyncio.Event()
        self.ears.open()
        for number, (ours, _) in enumerate(self.pairs):
            self.ears.add(ours, lambda number=number: self.hear(number))  # type: ignore[misc]

    def hear(self, number: int) -> None:
        """One message of a socket."""
        self.pairs[number][0].recv(10)
        self.heard.append((number, asyncio.get_running_loop().time()))
        self.news.set()

    def say(self, *numbers: int) -> None:
        """Send a message on these sockets."""
        for number in numbers:
            self.pairs[number][1].send(b"x")

    async def until(self, count: int) -> None:
        """Wait for this number of messages."""
        async with asyncio.timeout(60):
            while len(self.heard) < count:
                self.news.clear()
                await self.news.wait()

    def close(self) -> None:
        """No descriptor stays."""
        self.ears.close()
        for pair in self.pairs:
            for one in pair:
                one.close()


def talking(count: int, busy: int, story: Callable[[Talkers], Awaitable[None]]) -> None:
    """Sockets want a running loop."""

    async def run() -> None:
        talkers = Talkers(count, busy)
        try:
            await story(talkers)
        finally:
            talkers.close()

    asyncio.run(run())


def test_an_idle_host_waits_for_nothing() -> None:
    """No delay, however recent the last message."""

    async def story(talkers: Talkers) -> None:
        talkers.say(0)
        await talkers.until(1)
        assert talkers.ears.pause_s() == 0.0

    talking(1, 1, story)


def test_what_comes_to_a_busy_host_is_heard_together_and_soon() -> None:
    """Messages in quick succession are read together, after a short delay."""

    turns: list[int] = []

    async def story(talkers: Talkers) -> None:
        turns.clear()
        for number in range(9):
            talkers.say(number)
            await asyncio.sleep(0)
            turns.append(len(talkers.heard))
        await talkers.until(9)
        assert talkers.ears.pause_s() <= PAUSE_MAX_S

    for _ in range(20):  # a machine that does something else for longer than the pause hears each for itself
        talking(9, 10 * BUSY, story)
        if turns[:3] == [0, 0, 0]:
            break
    assert turns[:3] == [0, 0, 0], "each was heard for itself"


def test_the_busier_the_places_the_shorter_the_pause() -> None:
    """A message that comes often means jobs are short: they would lose the more of their time."""

    async def story(talkers: Talkers) -> None:
        talkers.ears._per_s = 100.0
        slow = talkers.ears.pause_s()
        talkers.ears._per_s = 10_000.0
        assert talkers.ears.pause_s() < slow == PAUSE_MAX_S

    talking(1, 2 * BUSY, story)


def test_a_socket_that_has_gone_is_not_heard() -> None:
    """A socket removed by the handler of another one in the same poll is skipped."""

    async def story(talkers: Talkers) -> None:
        gone = talkers.pairs[1][0]
        hear = talkers.hear

        def hear_and_close(number: int) -> None:
            hear(number)
            talkers.ears.remove(gone)
            talkers.ears.remove(gone)

        talkers.hear = hear_and_close  # type: ignore[method-assign]
        talkers.say(0, 1)
        await talkers.until(1)
        talkers.say(2)
        await talkers.until(2)
        assert [number for number, _ in talkers.heard] == [0, 2]

    talking(3, 1, story)
