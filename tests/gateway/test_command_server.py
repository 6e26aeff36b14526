"""Served commands at the gateway: a hostile serving process, and hostile stubs, can do nothing in another's name."""

import asyncio
import os
import signal
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.local_socket import command_server
from agents.local_socket.command_server import CommandServer
from lavactl.served.caller import Caller
from lavactl.served.stubs import COMPILED, write_stub
from lavactl.wire.connection import CallError, Connection, LostError
from protos import frames, served
from protos.wire import CALLER_UID
from tests.acceptance.personal import wait_for
from tests.fakes.site import Site

LIST = "/lava.v1.JobService/List"
TIMEOUT_S = 60.0


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

    def __init__(self, site: Site, commands: CommandServer, processes: list[Process]) -> None:
        self.site = site
        self.commands = commands
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

    def wait_for_go(self) -> None:
        """Wait until all stubs have said GO."""
        wait_for(lambda: all(one.gone.is_set() for one in self.commands._commands), TIMEOUT_S, "the stubs' GO")


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

    def start(control: int, _path: str) -> Process:
        processes.append(Process(control))
        processes[-1].control.send(b"ready")
        return processes[-1]

    monkeypatch.setattr(command_server, "_start", start)
    monkeypatch.setattr(command_server, "BEGIN_S", TIMEOUT_S)
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
        made = Server(site, commands, processes)
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
    assert can_call(caller)
    second.close()
    wait_for(lambda: not can_call(caller), TIMEOUT_S, "the connection to end")
    assert not can_call(caller)


def test_a_connection_is_kept_for_the_next_command(server: Server) -> None:
    """In between, and before GO, nothing is called on it; calls of the last command have ended with that."""
    first, _ = server.stub(served.packed([b"one"]))
    caller = Caller(server.taken())
    left = caller.connection.open(LIST)  # a call that the command has not ended
    assert caller.done(0)
    assert first.receive(TIMEOUT_S)[2] == served.DONE + b"\0"
    while caller.connection.frame_of(left, TIMEOUT_S)[0] != frames.END:
        continue
    before = len(server.site.master.seen)
    with pytest.raises(CallError, match="for no command") as error:
        list(caller.connection.answers(LIST, b"late", TIMEOUT_S))
    assert error.value.status == frames.PERMISSION_DENIED
    waiting = caller.connection.open(served.SERVE)
    second = server.site.dial()
    wait_for(lambda: server.commands._idle, TIMEOUT_S, "the connection to wait for a command")
    call = second.start(served.COMMAND, served.packed([b"two"]), more=True)
    assert served.unpacked(caller.connection.frame_of(waiting, TIMEOUT_S)[1])[2:] == [b"two"]
    caller.connection.send(waiting, served.OUTPUT + b"early")
    early = caller.connection.start(LIST, b"early")
    assert second.receive(TIMEOUT_S)[1:] == (frames.MESSAGE, served.ACCEPTED)
    assert not second.wait(0.2)
    assert len(server.site.master.seen) == before
    second.send(call, served.GO)
    assert second.receive(TIMEOUT_S)[2] == served.OUTPUT + b"early"
    assert caller.connection.receive(TIMEOUT_S) == (early, frames.MESSAGE, b"early")


def test_a_process_that_ends_with_an_idle_connection(server: Server) -> None:
    """A command that is given to it is its caller's to run, at once."""
    first, _ = server.stub()
    caller = Caller(server.taken())
    assert caller.done(0)
    assert first.receive(TIMEOUT_S)
    caller.connection.open(served.SERVE)
    wait_for(lambda: server.commands._idle, TIMEOUT_S, "the connection to wait for a command")
    second, _ = server.stub()
    caller.connection.close()
    assert second.receive(TIMEOUT_S)[2] == served.BECOME
    wait_for(lambda: not server.commands._workers, TIMEOUT_S, "the connection to end")


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


def test_a_command_that_is_not_taken_up_is_the_caller_s(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection is closed first, so that it cannot be run twice."""
    monkeypatch.setattr(command_server, "BEGIN_S", 0.3)
    stub, _ = server.stub()
    connection = server.taken()
    assert stub.receive(TIMEOUT_S)[2] == served.BECOME
    with pytest.raises(LostError):
        Caller(connection)


def test_a_process_that_ends_leaves_the_command_unknown(server: Server) -> None:
    """Once it was taken up, the stub hears that its end is not known."""
    stub, _ = server.stub()
    caller = Caller(server.taken())
    server.wait_for_go()
    caller.connection.close()
    assert stub.receive(TIMEOUT_S)[2] == served.LOST


def test_a_process_that_ends_before_go_has_done_nothing(server: Server) -> None:
    """Its output and calls have waited for GO: the command is the caller's to run."""
    stub = server.site.dial()
    call = stub.start(served.COMMAND, served.packed([b"words"]), more=True)
    caller = Caller(server.taken())
    caller.write(b"early")
    caller.flush()
    caller.connection.start(LIST, b"early")
    assert stub.receive(TIMEOUT_S) == (call, frames.MESSAGE, served.ACCEPTED)
    caller.connection.close()
    wait_for(lambda: not server.commands._workers, TIMEOUT_S, "the connection to end")
    stub.send(call, served.GO)
    assert stub.receive(TIMEOUT_S)[2] == served.BECOME
    assert not server.site.master.seen


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


def test_a_request_is_kept_only_until_it_is_passed_on(server: Server) -> None:
    """Environments are large, and a command may wait long for its answer."""
    kept = server.stub(served.packed([b"words"]))
    assert Caller(server.taken()).request[2:] == [b"words"]
    requests = server.commands._commands
    wait_for(lambda: [one.request for one in requests] == [b""], TIMEOUT_S, "the request to be dropped")
    assert kept


def test_a_process_that_ends_before_it_is_ready_serves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its log line says so, and none says that it was ready."""

    class Ended(Process):
        """It ends with its start."""

        def __init__(self, control: int, _path: str) -> None:
            super().__init__(control)
            self.control.close()

    monkeypatch.setattr(command_server, "_start", Ended)
    monkeypatch.setattr(command_server, "AGAIN_S", (0.01, 0.01))
    caplog.set_level("INFO", "lava.commands")
    with Site(tmp_path, "n1") as site:
        commands = CommandServer()
        commands.gateway = site.agents["n1"].gateway
        site.call(_started(commands))
        wait_for(lambda: "command_server_ended" in caplog.text, TIMEOUT_S, "the end of a process")
        assert "command_server_ready" not in caplog.text
        assert "command_server_not_ready" in caplog.text
        site.call(commands.close())


async def _started(commands: CommandServer) -> None:
    commands.start()


class Stub:
    """A stub on disk, and the whole command behind it: a script that shows what it was given."""

    def __init__(self, place: Path, socket: str, compiled: Path | None) -> None:
        for name in ("bin", "whole"):
            (place / name).mkdir()
        file = write_stub(place, place / "whole", socket, compiled)
        for name in ("bjobs", "bkill", "bsub"):
            (place / "bin" / name).symlink_to(file)
            (place / "whole" / name).write_text("#!/bin/sh\necho whole $LAVA_REQUEST_ID $LAVA_SOCKET\nexec cat\n")
            (place / "whole" / name).chmod(0o755)
        self.place = place
        self.socket = socket

    def start(self, *words: str, env: dict[str, str] | None = None) -> "subprocess.Popen[bytes]":
        """A command, its input and output pipes."""
        return subprocess.Popen(
            [self.place / "bin" / words[0], *words[1:]],
            env=env or {},
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


@pytest.fixture(params=["python", "c"])
def stub(request: pytest.FixtureRequest, server: Server, tmp_path: Path) -> Stub:
    """The stub in Python, and that in C."""
    compiled = COMPILED if request.param == "c" else None
    if compiled is not None and not compiled.exists():
        pytest.skip("no C compiler has built the stub of commands")
    return Stub(tmp_path, server.site.agents["n1"].gateway.path, compiled)


def test_a_stub_sends_what_it_was_started_with(server: Server, stub: Stub) -> None:
    """In the order of the protocol, with the path of the agent's socket."""
    env = {"A": "1", "B": "x=y", "LSF_CONFDIR": "/nowhere"}
    with stub.start("bjobs", "-J", "a b", "", env=env) as process:
        _, uid, version, flags, _, width, name, *rest = Caller(server.taken()).request
        process.kill()
    assert (uid, version, flags, width, len(name)) == (b"%d" % os.getuid(), served.VERSION, b"0", b"80", 16)
    socket = server.site.agents["n1"].gateway.path.encode()
    settings = [b"/nowhere/lsf.conf", served.UNREADABLE]
    words = [b"4", b"bjobs", b"-J", b"a b", b"", b"A=1", b"B=x=y", b"LSF_CONFDIR=/nowhere"]
    assert rest == [b"/", socket, *settings, b"", *words]


def test_a_submission_tells_what_its_words_name(server: Server, stub: Stub, tmp_path: Path) -> None:
    """Each kind of file, of the first words that are no options: their command would ask for it."""
    (tmp_path / "script").write_text("#!/bin/sh\n")
    (tmp_path / "script").chmod(0o755)
    (tmp_path / "data").write_text("#!/bin/sh\n")
    (tmp_path / "unmarked").write_text("#BSUB -n 2\n")
    (tmp_path / "unmarked").chmod(0o755)
    files = [f"{tmp_path}/script", f"{tmp_path}/unmarked", "/bin/sh", f"{tmp_path}/data"]
    words = ["-o", "tmp", "/nowhere", *files, "", *["/"] * 80]
    with stub.start("bsub", *words, env={}) as process:
        kinds = Caller(server.taken()).request[11]
        process.kill()
    assert kinds == b"?d-xxbf-" + b"d" * 56


def test_settings_are_sent_with_the_request(server: Server, stub: Stub, tmp_path: Path) -> None:
    """Those that the environment names first; a long file of them is left to a question."""
    (tmp_path / "lsf").mkdir()
    for content in (b"LSB_NTRIES=2\n", b"", bytes(served.SETTINGS_MAX), bytes(served.SETTINGS_MAX + 1)):
        (tmp_path / "lsf" / "lsf.conf").write_bytes(content)
        with stub.start(
            "bjobs", env={"LAVA_ENVDIR": "/x", "LSF_ENVDIR": f"{tmp_path}/lsf", "LAVA_SOCKET": stub.socket}
        ):
            caller = Caller(server.taken())
            caller.done(0)
        sent = [f"{tmp_path}/lsf/lsf.conf".encode(), served.READ + content]
        assert caller.request[9:11] == (sent if len(content) <= served.SETTINGS_MAX else [b"", b""])


def test_output_and_exit_code_are_passed_on(server: Server, stub: Stub) -> None:
    """In their order, far more than a window of messages."""
    with stub.start("bjobs") as process:
        caller = Caller(server.taken())
        for _ in range(200):
            caller.write(b"x" * 100)
            caller.flush()
        caller.error(b"wrong")
        caller.done(7)
        assert process.communicate(timeout=TIMEOUT_S) == (b"x" * 20000, b"wrong")
    assert process.returncode == 7


def test_input_that_was_read_is_the_whole_command_s(server: Server, stub: Stub) -> None:
    """A script on a pipe can be read once; the whole command begins where the stub began, with the stub's socket."""
    script = b"#!/bin/sh\n#BSUB -K\n" + b"# long\n" * 30000
    with stub.start("bsub") as process:
        caller = Caller(server.taken())
        feeding = threading.Thread(target=_feed, args=(process, script))
        feeding.start()
        assert caller.read_input(1000) == script[:1000]
        assert caller.read_input(1 << 20) == script[1000:]
        caller.become()
        feeding.join(TIMEOUT_S)
        first, _, rest = process.stdout.read().partition(b"\n") if process.stdout else (b"", b"", b"")
    socket = server.site.agents["n1"].gateway.path
    assert first.decode() == f"whole {caller.request[6].hex()} {socket}"
    assert rest == script


def _feed(process: "subprocess.Popen[bytes]", data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.close()


def test_files_are_looked_at_by_the_stub(server: Server, stub: Stub) -> None:
    """Kinds and beginnings; a file that cannot be read is named so."""
    (stub.place / "file").write_bytes(b"0123456789")
    with stub.start("bjobs") as process:
        caller = Caller(server.taken())
        kinds = [caller.look_at(str(path), 4) for path in (stub.place, stub.place / "file", "/bin/sh", "/nowhere", "")]
        assert kinds == [("directory", None), ("file", b"0123"), ("program", b"\x7fELF"), ("", None), ("", None)]
        assert caller.read_file(str(stub.place / "file"), 4) == b"0123"
        assert caller.read_file("/nowhere", 4) is None
        assert caller.read_file(str(stub.place), 4) is None
        process.kill()


def test_a_hundred_questions_are_answered(server: Server, stub: Stub) -> None:
    """More than a window of messages each way."""
    with stub.start("bjobs") as process:
        caller = Caller(server.taken())
        assert {caller.look_at("/bin", 0)[0] for _ in range(200)} == {"directory"}
        process.kill()


@pytest.mark.parametrize(
    ("command", "output", "is_begun_anew"),
    [("bjobs", b"", True), ("bjobs", b"line\n", False), ("bkill", b"", False), ("bsub", b"line\n", True)],
)
def test_a_lost_command_is_begun_anew_where_that_is_the_same(
    server: Server, stub: Stub, command: str, output: bytes, is_begun_anew: bool
) -> None:
    """Not where its output would be there twice, or its work; a submission is known by its request."""
    with stub.start(command) as process:
        caller = Caller(server.taken())
        caller.write(output)
        caller.flush()
        if output:
            assert process.stdout is not None
            assert process.stdout.readline() == output
        server.wait_for_go()
        caller.connection.close()
        shown, told = process.communicate(timeout=TIMEOUT_S)
    assert shown.startswith(b"whole") == is_begun_anew
    assert (b"it is not known what was done" in told) == (not is_begun_anew)
    assert process.returncode == (0 if is_begun_anew else 255)


def test_a_socket_that_is_named_stays(stub: Stub) -> None:
    """The environment's own socket is the whole command's, too."""
    for env in ({"LAVA_SOCKET": "/nowhere"}, {"LAVA_ENVDIR": "/nowhere"}):
        with stub.start("bjobs", env=env) as process:
            shown = process.communicate(timeout=TIMEOUT_S)[0].split()
        assert shown == [b"whole", *[value.encode() for name, value in env.items() if name == "LAVA_SOCKET"]]


def test_an_interrupted_stub_ends_quietly(stub: Stub, tmp_path: Path) -> None:
    """Also before its agent has answered: a shell loop around it stops, and there is no traceback."""
    path = str(tmp_path / "silent.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        with stub.start("bjobs", env={"LAVA_SOCKET": path}) as process:
            connection = listener.accept()[0]
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=TIMEOUT_S) == (b"", b"")
            connection.close()
    assert process.returncode == -signal.SIGINT


def test_a_start_that_is_cancelled_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent may end while a thread starts the process: that ends, too, and the socket is closed."""
    processes: list[Process] = []
    begun, may_end = threading.Event(), threading.Event()

    def start(control: int, _path: str) -> Process:
        begun.set()
        assert may_end.wait(TIMEOUT_S)
        processes.append(Process(control))
        return processes[-1]

    async def story() -> None:
        starting = asyncio.create_task(command_server._started(theirs.fileno(), ""))
        assert await asyncio.to_thread(begun.wait, TIMEOUT_S)
        starting.cancel()
        asyncio.get_running_loop().call_later(0.05, may_end.set)
        with pytest.raises(asyncio.CancelledError):
            await starting

    monkeypatch.setattr(command_server, "_start", start)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        asyncio.run(story())
    assert [process.control.fileno() for process in processes] == [-1]
