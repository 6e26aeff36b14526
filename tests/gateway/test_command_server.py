"""Served commands at the gateway: a hostile serving process, and hostile stubs, can do nothing in another's name."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.local_socket import command_server
from agents.local_socket.command_server import CommandServer
from lavactl.served.caller import Caller
from lavactl.served.stubs import SOURCE
from lavactl.wire.connection import CallError, Connection, LostError
from protos import frames, served
from protos.wire import CALLER_UID
from tests.acceptance.personal import wait_for
from tests.fakes.site import Site

LIST = "/lava.v1.JobService/List"
TIMEOUT_S = 10.0


class Process:
    """Stand-in for the serving process: this test is it."""

    pid = 1

    def __init__(self, control: int) -> None:
        self.control = socket.socket(fileno=os.dup(control))

    def kill(self) -> None:
        """End it."""
        self.control.close()

    def wait(self) -> None:
        """It has ended."""


class Server:
    """A gateway that serves commands, and the test's ends of it."""

    def __init__(self, site: Site, processes: list[Process]) -> None:
        self.site = site
        self._processes = processes
        self._taken: list[Connection] = []

    def close(self) -> None:
        """Close what the serving process has."""
        for connection in self._taken:
            connection.close()
        for process in self._processes:
            process.control.close()

    def taken(self) -> Connection:
        """The connection of the next command, as the serving process gets it."""
        control = self._processes[-1].control
        control.settimeout(TIMEOUT_S)
        _, descriptors, _, _ = socket.recv_fds(control, 16, 1)
        self._taken.append(Connection("", socket.socket(fileno=descriptors[0])))
        return self._taken[-1]

    def stub(self, request: bytes = b"") -> tuple[Connection, int]:
        """A stub that has said GO."""
        connection = self.site.dial()
        call = connection.start(served.COMMAND, request, more=True)
        assert connection.receive(TIMEOUT_S) == (call, frames.MESSAGE, served.ACCEPTED)
        connection.send(call, served.GO)
        return connection, call


async def echo(requests: AsyncIterator[bytes], context: Any) -> None:
    """Answer each request with itself."""
    async for request in requests:
        await context.write(request)


def can_call(caller: Caller) -> bool:
    """True if the master still answers on a command's connection."""
    try:
        return list(caller.connection.answers(LIST, b"late", TIMEOUT_S)) == [b"late"]
    except (LostError, CallError):
        return False


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A gateway with a serving process that the test plays."""
    processes: list[Process] = []

    def start(control: int) -> Process:
        processes.append(Process(control))
        processes[-1].control.send(b"ready")
        return processes[-1]

    monkeypatch.setattr(command_server, "_start", start)
    monkeypatch.setattr(command_server, "BEGIN_S", 0.3)
    with Site(tmp_path, "n1") as site:
        commands, gateway = CommandServer(), site.agents["n1"].gateway
        commands.gateway = gateway
        gateway._methods = {**gateway._methods, **commands.table()}
        site.master.methods[LIST] = echo

        async def begin() -> None:
            commands.start()
            async with asyncio.timeout(TIMEOUT_S):
                while commands._control is None:  # noqa: ASYNC110 - it is the server's own
                    await asyncio.sleep(0.01)

        site.call(begin())
        made = Server(site, processes)
        yield made
        site.call(commands.close())
        made.close()


def test_calls_are_made_in_the_caller_s_name(server: Server) -> None:
    """The master hears of the stub's user; the serving process reads and answers on a connection of this command."""
    stub, call = server.stub(served.packed([b"words"]))
    caller = Caller(server.taken())
    assert caller.request[1:] == [str(os.getuid()).encode(), b"words"]
    assert list(caller.connection.answers(LIST, b"hello", TIMEOUT_S)) == [b"hello"]
    assert [metadata[CALLER_UID] for _, metadata in server.site.master.seen] == [str(os.getuid())]
    caller.write(b"output")
    caller.done(3)
    assert [stub.receive(TIMEOUT_S)[1:] for _ in range(3)] == [
        (frames.MESSAGE, served.OUTPUT + b"output"),
        (frames.MESSAGE, served.DONE + b"\3"),
        (frames.END, frames.pack_end(frames.OK)),
    ]
    assert call


def test_the_connection_ends_with_the_command(server: Server) -> None:
    """After the stub has its last message, or is gone, nothing more is done in its name."""
    _, _ = stub = server.stub()
    caller = Caller(server.taken())
    caller.done(0)
    stub[0].receive(TIMEOUT_S)
    wait_for(lambda: not can_call(caller), TIMEOUT_S, "the connection to end")
    second, _ = server.stub()
    caller = Caller(server.taken())
    second.close()
    wait_for(lambda: not can_call(caller), TIMEOUT_S, "the connection to end")


@pytest.mark.parametrize("method", ["/lava.local/Run", served.COMMAND, "/lava.v1.AgentService/Session"])
def test_a_served_command_starts_nothing_on_hosts(server: Server, method: str) -> None:
    """Only calls to the master, and reading of output, are for served commands."""
    kept = server.stub()
    caller = Caller(server.taken())
    with pytest.raises(CallError) as error:
        list(caller.connection.answers(method, b"", TIMEOUT_S))
    assert error.value.status == frames.PERMISSION_DENIED
    assert kept


def test_users_cannot_play_the_serving_process(server: Server) -> None:
    """The method that carries messages is refused on a connection of a user's own."""
    with pytest.raises(CallError, match="is not for users") as error:
        list(server.site.dial().answers(served.SERVE, b"", TIMEOUT_S))
    assert error.value.status == frames.PERMISSION_DENIED


def test_a_command_that_is_not_taken_up_is_the_caller_s(server: Server) -> None:
    """Its connection is closed first, so that it cannot be run twice."""
    stub, _ = server.stub()
    connection = server.taken()
    assert stub.receive(TIMEOUT_S)[2] == served.BECOME
    with pytest.raises(LostError):
        Caller(connection)


def test_a_process_that_ends_leaves_the_command_unknown(server: Server) -> None:
    """Once it was taken up, the stub hears that its end is not known."""
    stub, _ = server.stub()
    caller = Caller(server.taken())
    caller.connection.close()
    assert stub.receive(TIMEOUT_S)[2] == served.LOST


def test_one_user_does_not_get_all(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number of commands at a time the stub is refused before GO."""
    monkeypatch.setattr(command_server, "COMMANDS_OF_USER", 2)
    kept = [server.stub() for _ in range(2)]
    callers = [Caller(server.taken()) for _ in range(2)]
    connection = server.site.dial()
    call = connection.start(served.COMMAND, b"", more=True)
    number, kind, payload = connection.receive(TIMEOUT_S)
    assert (number, kind) == (call, frames.END)
    assert frames.unpack_end(payload)[0] == frames.RESOURCE_EXHAUSTED
    assert (len(kept), len(callers)) == (2, 2)


def test_the_stub_speaks_this_protocol() -> None:
    """It imports nothing of lava's, so its constants are copies."""
    text = SOURCE.read_text()
    assert f"VERSION = {served.VERSION!r}".replace("'", '"') in text
    assert f"MESSAGE, CREDIT, END = {frames.MESSAGE}, {frames.CREDIT}, {frames.END}" in text
    assert f'b"{served.COMMAND}"' in text
    assert f"agent.frame({frames.OPEN}," in text
    for kind in (
        served.OUTPUT,
        served.ERROR,
        served.DONE,
        served.BECOME,
        served.LOST,
        served.ASK_KIND,
        served.ASK_FILE,
    ):
        assert f'b"{kind.decode()}"' in text
