"""Kept tasks under real shepherds: attached to by successive agents, many at once, and across versions."""

import asyncio
import os
import resource
import socket
from collections.abc import Coroutine
from typing import Any

import pytest

from agents.ranks.interfaces import KeptRequest
from agents.shepherd import messages
from agents.shepherd.messages import FINISHED, Finish, Message, Status, fields_of, pack, unpack
from agents.shepherd.tasks.streams import STDIN, STDOUT
from tests.agents.hosts import Host, Place, blob, until

pytestmark = pytest.mark.slow

KEY = (1, 0, 1)


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run one test in an event loop of its own."""
    asyncio.run(coroutine)


def request(script: str, connection: int = 1, got: int = 0, token: bytes = b"t", umask: int = -1) -> KeptRequest:
    """Request to start a task, or to resume it from the second connection on."""
    argv = (b"/bin/sh", b"-c", script.encode())
    return KeptRequest(token, connection, connection > 1, False, (got, 0, 0), argv, "", (), False, False, umask, 0)


def connect(host: Host, wanted: KeptRequest) -> socket.socket:
    """A connection to the task."""
    channel = host.local.attempts.open_task(KEY, wanted)
    assert channel is not None
    return channel


async def hear(channel: socket.socket, until_kind: int) -> list[Message]:
    """Messages received, up to the first of this kind."""
    heard: list[Message] = []
    async with asyncio.timeout(60):
        while not heard or heard[-1][0] != until_kind:
            data = await asyncio.get_running_loop().sock_recv(channel, messages.INLINE_MAX + 1)
            assert data, f"closed after {heard}"
            heard.append(unpack(data))
    return heard


def output(heard: list[Message]) -> bytes:
    """Standard output of those messages."""
    return b"".join(message[3] for message in heard if message[:2] == (messages.DATA, STDOUT))


def test_the_next_agent_goes_on_with_a_task(place: Place) -> None:
    """Unacknowledged output is sent again, input is accepted once, and the exit status is kept."""

    async def story() -> None:
        async with Host(place) as host:
            await host.run(blob(place, 1, "sleep 1000"))
            await host.report(KEY, "started")
            with connect(host, request("echo one; read word; echo $word; umask; exit 3", umask=0o27)) as channel:
                heard = await hear(channel, messages.DATA)
                assert output(heard) == b"one\n"
                channel.send(pack(messages.DATA, STDIN, 0, b"two\n"))
                await hear(channel, messages.TAKEN)
                await host.replace()
            with connect(host, request("", connection=2, got=2)) as channel:
                heard = await hear(channel, messages.TASK_OVER)
                assert output(heard) == b"e\ntwo\n0027\n"
                assert heard[-1] == (messages.TASK_OVER, 3 << 8)
                channel.send(pack(messages.DONE))
                assert await asyncio.get_running_loop().sock_recv(channel, 100) == b""
            with connect(host, request("", connection=3)) as channel:
                assert (await hear(channel, messages.NOT_THERE))[-1][1] == "The task is over."

    run(story())


def test_a_shepherd_of_an_earlier_agent_gets_no_other_job(place: Place) -> None:
    """It may be of another version: it keeps its attempt, and ends with it."""

    async def story() -> None:
        async with Host(place) as host:
            go = place.root / "go"
            await host.run(blob(place, 1, f"while [ ! -e {go} ]; do sleep 0.05; done"))
            await host.report(KEY, "started")
            shepherd = host.shepherd_of(KEY)
            await host.replace()
            assert host.shepherd_of(KEY) == shepherd
            go.touch()
            await host.report(KEY, "finished")
            await until(lambda: shepherd not in [handle.pid for handle in host.local.pool.handles()])

    run(story())


def test_many_tasks_find_descriptors_and_are_not_given_more(place: Place) -> None:
    """Each takes four; the processes have the limit that jobs have."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]

    async def story() -> None:
        async with Host(place) as host:
            await host.run(blob(place, 1, "sleep 1000"))
            await host.report(KEY, "started")
            channels = []
            for number in range(60):
                channels.append(connect(host, request("ulimit -n; read end", token=b"%d" % number)))
                assert output(await hear(channels[-1], messages.DATA)) == b"%d\n" % soft
            assert len(os.listdir(f"/proc/{host.shepherd_of(KEY)}/fd")) > 60 * 4
            for channel in channels:
                channel.close()

    run(story())


def test_messages_of_other_versions_are_read() -> None:
    """Missing fields have their defaults, unknown ones are ignored."""
    status = Status((1, 0, 1), 1, 4711)
    assert fields_of(Status, tuple(status)[:3]) == status
    finish = Finish(1, 0, 1, 0, 1.0, 2.0, 3, 4.0, 5, "", "", 6, 7.0, True)
    _, *fields = unpack(pack(FINISHED, *finish, "of a later version"))
    assert fields_of(Finish, tuple(fields)[: len(Finish._fields)]) == finish
    assert fields_of(Finish, tuple(fields)) == finish
