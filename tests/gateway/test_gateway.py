"""The local socket: caller identification, methods passed to the master, and protection from misbehaving commands."""

import asyncio
import os
import pwd
import resource
import select
import socket
import struct
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import grpc
import pytest

from agents.local_socket.complaints import Complaints
from agents.local_socket.gateway import Limits
from lavactl.wire.connection import CallError, Connection, LostError
from protos import frames
from protos.wire import CALLER_GID, CALLER_UID, CALLER_USER
from tests.fakes.site import Site

LIST = "/lava.v1.JobService/List"
SUBMIT = "/lava.v1.JobService/Submit"
TIMEOUT_S = 60.0

Context = grpc.aio.ServicerContext


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path, "n1") as site:
        yield site


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[Site]:
    """One whose times are short, for what is to run out of them: a call that is served may be slow."""
    with Site(tmp_path, "n1", limits=Limits(master_s=1.5, first_frame_s=0.5, half_frame_s=0.5)) as site:
        yield site


async def echo(requests: AsyncIterator[bytes], context: Context) -> None:
    """Answer each request with itself."""
    async for request in requests:
        await context.write(b"<" + request + b">")


def test_a_call_reaches_the_master_with_the_identity_the_kernel_vouches_for(site: Site) -> None:
    """User, uid and gid come from SO_PEERCRED."""
    site.master.methods[LIST] = echo
    assert list(site.dial().answers(LIST, b"hello", TIMEOUT_S)) == [b"<hello>"]
    [(method, metadata)] = site.master.seen
    assert method == LIST
    assert metadata[CALLER_UID] == str(os.getuid())
    assert metadata[CALLER_GID] == str(os.getgid())
    assert metadata[CALLER_USER] == pwd.getpwuid(os.getuid()).pw_name


def test_anyone_may_connect_to_the_socket(site: Site) -> None:
    """The socket is open to all and its directory can be entered by all."""
    path = site.agents["n1"].socket
    assert os.stat(path).st_mode & 0o777 == 0o666
    assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o755


@pytest.mark.parametrize("method", ["/lava.v1.AgentService/Session", "/lava.v1.PeerService/Run", "/x/y", "nonsense"])
def test_only_the_services_for_users_reach_the_master(site: Site, method: str) -> None:
    """All other services are refused at the socket."""
    site.master.methods[method] = echo
    with pytest.raises(CallError) as error:
        list(site.dial().answers(method, b"", TIMEOUT_S))
    assert error.value.status == frames.PERMISSION_DENIED
    assert site.master.seen == []


def test_an_unknown_local_method_is_refused(site: Site) -> None:
    """Methods under /lava.local/ never reach the master."""
    with pytest.raises(CallError, match=r"knows no method /lava\.local/Nothing") as error:
        list(site.dial().answers("/lava.local/Nothing", b"", TIMEOUT_S))
    assert error.value.status == frames.UNIMPLEMENTED


def test_a_long_answer_moves_at_the_pace_of_its_reader(site: Site) -> None:
    """A command that does not read blocks the master's stream, and all of it arrives once it reads."""
    sent = 0

    async def pour(requests: AsyncIterator[bytes], context: Context) -> None:
        nonlocal sent
        for number in range(800):
            await context.write(number.to_bytes(4, "big") * 25_000)
            sent = number

    site.master.methods[LIST] = pour
    connection = site.dial()
    call = connection.start(LIST, b"")
    slow = connection.receive(TIMEOUT_S)
    wait_until_still(lambda: sent)
    assert sent < 400, "the window of 64 messages and the buffers of one connection are all that may be on its way"
    answers = [slow[2]]
    while True:
        _, kind, payload = connection.receive(TIMEOUT_S)
        if kind == frames.END:
            break
        answers.append(payload)
        connection.credit(call, 1)
    assert [int.from_bytes(answer[:4], "big") for answer in answers] == list(range(800))


def wait_until_still(value: "object") -> None:
    """Until a figure has not changed for a while."""
    assert callable(value)
    before, deadline = None, time.monotonic() + TIMEOUT_S
    while (now := value()) != before or not now:
        before = now
        assert time.monotonic() < deadline, "it never settles"
        time.sleep(0.2)


def test_a_slow_reader_delays_nobody_else(site: Site) -> None:
    """While one command does not read, another is served at once."""

    async def pour(requests: AsyncIterator[bytes], context: Context) -> None:
        request = await anext(requests)
        while request == b"all":
            await context.write(bytes(1 << 20))
        await context.write(b"done")

    site.master.methods[LIST] = pour
    slow_one = site.dial()
    slow_one.start(LIST, b"all")
    assert slow_one.receive(TIMEOUT_S)[1] == frames.MESSAGE
    start = time.monotonic()
    for _ in range(5):
        assert list(site.dial().answers(LIST, b"", TIMEOUT_S)) == [b"done"]
    assert time.monotonic() - start < 60
    slow_one.close()


def test_requests_stream_both_ways_and_are_credited(site: Site) -> None:
    """A stream of more requests than the window gets through on the credit the agent gives."""
    site.master.methods[SUBMIT] = echo
    connection = site.dial()
    call = connection.start(SUBMIT, b"0", more=True)
    window, sent, answers = frames.WINDOW - 1, 1, []
    while True:
        while window and sent < 300:
            connection.send(call, b"%d" % sent)
            window, sent = window - 1, sent + 1
            if sent == 300:
                connection.half_close(call)
        _, kind, payload = connection.receive(TIMEOUT_S)
        if kind == frames.CREDIT:
            window += int.from_bytes(payload, "little")
        elif kind == frames.MESSAGE:
            answers.append(payload)
            connection.credit(call, 1)
        else:
            assert frames.unpack_end(payload) == (frames.OK, "")
            break
    assert answers == [b"<%d>" % number for number in range(300)]


def test_a_command_that_ignores_the_window_is_cut_off(site: Site) -> None:
    """More than 64 unconsumed messages break the protocol."""
    reached = asyncio.Event()

    async def deaf(requests: AsyncIterator[bytes], context: Context) -> None:
        await reached.wait()

    site.master.methods[SUBMIT] = deaf
    connection = site.dial()
    call = connection.start(SUBMIT, b"", more=True)
    with pytest.raises(LostError):
        flood(connection, call, messages=5000, size=60_000)


def flood(connection: Connection, call: int, messages: int, size: int) -> None:
    """Send without regard to the window, then read."""
    for _ in range(messages):
        connection.send(call, bytes(size))
    connection.receive(TIMEOUT_S)


def test_cancelling_a_call_reaches_the_master(site: Site) -> None:
    """CANCEL ends the call on both sides."""
    gone = asyncio.Event()

    async def endless(requests: AsyncIterator[bytes], context: Context) -> None:
        await context.write(b"begun")
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()

    site.master.methods[LIST] = endless
    connection = site.dial()
    call = connection.start(LIST, b"")
    assert connection.receive(TIMEOUT_S) == (call, frames.MESSAGE, b"begun")
    connection.cancel(call)
    number, kind, payload = connection.receive(TIMEOUT_S)
    assert (number, kind, frames.unpack_end(payload)[0]) == (call, frames.END, frames.CANCELLED)
    assert site.call(asyncio.wait_for(gone.wait(), TIMEOUT_S))


def test_a_call_cancelled_before_its_first_step_still_ends(site: Site) -> None:
    """CALL and CANCEL in one write: exactly one END comes back and the connection lives on."""
    site.master.methods[LIST] = echo
    raw = socket.socket(socket.AF_UNIX)
    raw.settimeout(TIMEOUT_S)
    raw.connect(site.agents["n1"].socket)
    open_list = frames.pack_open(LIST, b"x")
    raw.sendall(frames.pack(1, frames.CALL, open_list) + frames.pack(1, frames.CANCEL))
    raw.sendall(frames.pack(2, frames.CALL, open_list))
    seen = [read_frame(raw) for _ in range(3)]
    assert [(number, kind) for number, kind, _ in seen] == [(1, frames.END), (2, frames.MESSAGE), (2, frames.END)]
    raw.close()


def read_frame(raw: socket.socket) -> tuple[int, int, bytes]:
    """One frame from a plain socket."""
    header = raw.recv(frames.HEADER.size, socket.MSG_WAITALL)
    number, kind, length = frames.unpack_header(header)
    return number, kind, raw.recv(length, socket.MSG_WAITALL) if length else b""


def test_a_vanished_command_cancels_its_calls(site: Site) -> None:
    """Closing the connection cancels the call at the master."""
    gone = asyncio.Event()

    async def endless(requests: AsyncIterator[bytes], context: Context) -> None:
        await context.write(b"begun")
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()

    site.master.methods[LIST] = endless
    connection = site.dial()
    connection.start(LIST, b"")
    connection.receive(TIMEOUT_S)
    connection.close()
    assert site.call(asyncio.wait_for(gone.wait(), TIMEOUT_S))


def test_an_error_of_the_master_comes_as_it_said_it(site: Site) -> None:
    """Status and text pass unchanged, also when the status is UNAVAILABLE."""

    async def refuse(requests: AsyncIterator[bytes], context: Context) -> None:
        await context.abort(grpc.StatusCode.UNAVAILABLE, "the store is not writable for the moment")

    site.master.methods[LIST] = refuse
    with pytest.raises(CallError, match=r"^the store is not writable for the moment$") as error:
        list(site.dial().answers(LIST, b"", TIMEOUT_S))
    assert error.value.status == frames.UNAVAILABLE


def test_an_unreachable_master_is_told_within_seconds(hasty: Site) -> None:
    """One sentence that names the master's address."""
    hasty.call(hasty.master.stop())
    start = time.monotonic()
    with pytest.raises(CallError, match=rf"^the master at {hasty.master_target()} cannot be reached$") as error:
        list(hasty.dial().answers(LIST, b"", TIMEOUT_S))
    assert error.value.status == frames.UNAVAILABLE
    assert time.monotonic() - start < 60


def test_a_master_that_goes_away_in_the_middle_ends_the_call(site: Site) -> None:
    """The stream breaks off with UNAVAILABLE and the master's address, and a returned master is used again."""

    async def endless(requests: AsyncIterator[bytes], context: Context) -> None:
        await context.write(b"begun")
        await asyncio.Event().wait()

    site.master.methods[LIST] = endless
    connection = site.dial()
    answers = connection.answers(LIST, b"", TIMEOUT_S)
    assert next(answers) == b"begun"
    site.call(site.master.stop())
    with pytest.raises(CallError, match=site.master_target()) as error:
        next(answers)
    assert error.value.status == frames.UNAVAILABLE
    site.master.methods[LIST] = echo
    site.call(site.master.start())
    assert list(connection.answers(LIST, b"again", TIMEOUT_S)) == [b"<again>"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "half", [b"", b"\1", frames.pack(1, frames.CALL, bytes(100))[:50], frames.HEADER.pack(1, frames.CALL, 8 << 20)]
)
def test_a_frame_that_stops_half_way_closes_the_connection(hasty: Site, half: bytes) -> None:
    """A silent command cannot keep its connection."""
    raw = socket.socket(socket.AF_UNIX)
    raw.settimeout(TIMEOUT_S)
    raw.connect(hasty.agents["n1"].socket)
    raw.sendall(half)
    assert raw.recv(100) == b""
    raw.close()


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        frames.HEADER.pack(1, 99, 0),
        frames.HEADER.pack(1, frames.CALL, frames.MAX_PAYLOAD + 1),
        frames.pack(1, frames.CALL, b"\xff"),
        frames.pack(1, frames.CALL, b"\5\0\xff\xff\xff\xff\xff"),
        frames.pack(1, frames.OPEN, frames.pack_open("/lava.local/Run", b"")) * 2,
        bytes(range(256)) * 10,
    ],
)
def test_garbage_closes_the_connection_and_nothing_else(hasty: Site, garbage: bytes) -> None:
    """The next command is served normally."""
    hasty.master.methods[LIST] = echo
    raw = socket.socket(socket.AF_UNIX)
    raw.settimeout(TIMEOUT_S)
    raw.connect(hasty.agents["n1"].socket)
    raw.sendall(garbage)
    try:
        while raw.recv(4096):
            pass
    except ConnectionResetError:
        pass
    raw.close()
    assert list(hasty.dial().answers(LIST, b"x", TIMEOUT_S)) == [b"<x>"]


def test_garbage_of_one_user_is_one_line_of_the_log(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """However many connections break the protocol; others of the minute are counted, and no line is long."""
    for _ in range(30):
        with socket.socket(socket.AF_UNIX) as raw:
            raw.settimeout(TIMEOUT_S)
            raw.connect(site.agents["n1"].socket)
            raw.sendall(frames.HEADER.pack(1, 99, 0))
            assert raw.recv(100) == b""
    lines = [one.getMessage() for one in caplog.records if "connection refused" in one.getMessage()]
    assert len(lines) == 1
    assert len(lines[0]) < 300


def test_lines_left_out_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """The next minute's line has their number; each user has lines of his own."""
    at = [0.0]
    complaints = Complaints(lambda: at[0])
    for uid, moment in ((7, 0.0), (7, 1.0), (7, 2.0), (8, 2.0), (7, 61.0)):
        at[0] = moment
        complaints.note(uid, f"u{uid}", 1, "bad")
    told = [one.getMessage().split() for one in caplog.records]
    assert [[line[2], line[4]] for line in told] == [
        ["user=u7", "not_logged=0"], ["user=u8", "not_logged=0"], ["user=u7", "not_logged=2"],
    ]  # fmt: skip


def test_frames_of_calls_that_have_ended_are_read_over(site: Site) -> None:
    """Late credit is no offence."""
    site.master.methods[LIST] = echo
    connection = site.dial()
    assert list(connection.answers(LIST, b"a", TIMEOUT_S)) == [b"<a>"]
    connection.credit(1, 5)
    connection.cancel(1)
    assert list(connection.answers(LIST, b"b", TIMEOUT_S)) == [b"<b>"]


def test_a_user_may_not_take_all_connections(tmp_path: Path) -> None:
    """Beyond the user's share a command is refused with a sentence; closed connections count no more."""
    with Site(tmp_path, "n1", limits=Limits(connections_per_user=3)) as site:
        site.master.methods[LIST] = echo
        held = [site.dial() for _ in range(3)]
        for connection in held:
            assert list(connection.answers(LIST, b"x", TIMEOUT_S)) == [b"<x>"]
        with pytest.raises(CallError, match="which is the limit") as error:
            list(site.dial().answers(LIST, b"x", TIMEOUT_S))
        assert error.value.status == frames.RESOURCE_EXHAUSTED
        held.pop().close()
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                assert list(site.dial().answers(LIST, b"x", TIMEOUT_S)) == [b"<x>"]
                return
            except CallError:
                assert time.monotonic() < deadline, "the place never came free"


def test_connections_leave_descriptors_for_everything_else(tmp_path: Path) -> None:
    """The limit of connections follows RLIMIT_NOFILE, which the agent raises where it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, hard), hard))
    try:
        with Site(tmp_path, "n1"):
            raised = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            assert raised == min(65536, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_waiting_bytes_of_a_user_are_bounded(tmp_path: Path) -> None:
    """Requests that the master does not read fill the user's share and no more."""
    limits = Limits(waiting_bytes_per_user=1 << 20, half_frame_s=0.5)
    with Site(tmp_path, "n1", limits=limits) as site:
        blocked = asyncio.Event()

        async def deaf(requests: AsyncIterator[bytes], context: Context) -> None:
            await blocked.wait()

        site.master.methods[SUBMIT] = deaf
        connection = site.dial()
        call = connection.start(SUBMIT, b"", more=True)
        with pytest.raises(LostError):
            flood(connection, call, messages=60, size=200_000)


def test_a_user_without_a_name_is_refused(tmp_path: Path) -> None:
    """A uid without an account is refused."""

    def nobody(uid: int) -> str:
        raise KeyError(uid)

    with Site(tmp_path, "n1", names=nobody) as site:
        with pytest.raises(CallError, match=f"uid {os.getuid()} has no user name on this host") as error:
            list(site.dial().answers(LIST, b"x", TIMEOUT_S))
        assert error.value.status == frames.UNAUTHENTICATED


def test_a_name_that_metadata_cannot_carry_is_percent_encoded(tmp_path: Path) -> None:
    """Names are sent in ASCII."""
    with Site(tmp_path, "n1", names=lambda uid: "Zoë 100%") as site:
        site.master.methods[LIST] = echo
        assert list(site.dial().answers(LIST, b"x", TIMEOUT_S)) == [b"<x>"]
        assert site.master.seen[0][1][CALLER_USER] == "Zo%C3%AB%20100%25"


@pytest.mark.parametrize("uid", [65534, 0xFFFFFFFF])
def test_ids_that_stand_for_nobody_are_refused(uid: int) -> None:
    """The overflow uid of a user namespace identifies no user."""
    from agents.local_socket.callers import CallFailed, peer_credentials

    class Socket(socket.socket):
        def getsockopt(self, *_: object) -> bytes:  # type: ignore[override]
            return struct.pack("iII", 1, uid, uid)

    with Socket() as fake, pytest.raises(CallFailed, match="stands for no user"):
        peer_credentials(fake)


def test_a_socket_file_left_by_a_killed_agent_is_replaced(tmp_path: Path) -> None:
    """Starting again works; stopping removes only one's own socket."""
    path = tmp_path / "n1" / "agent.sock"
    path.parent.mkdir()
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    with Site(tmp_path, "n1") as site:
        site.master.methods[LIST] = echo
        assert list(site.dial().answers(LIST, b"x", TIMEOUT_S)) == [b"<x>"]
    assert not path.exists()


def test_a_file_in_the_place_of_the_socket_is_left_alone(tmp_path: Path) -> None:
    """Only sockets are replaced."""
    (tmp_path / "n1").mkdir()
    (tmp_path / "n1" / "agent.sock").write_text("precious")
    with pytest.raises(OSError, match="exists and is not a socket"), Site(tmp_path, "n1"):
        pass
    assert (tmp_path / "n1" / "agent.sock").read_text() == "precious"


async def never(requests: AsyncIterator[bytes], context: Context) -> None:
    """A master that thinks for ever."""
    await asyncio.Event().wait()


def test_the_calls_of_one_user_are_bounded_over_all_connections(tmp_path: Path) -> None:
    """Each costs memory in the agent and in the master; the connection that goes too far is closed."""
    with Site(tmp_path, "n1", limits=Limits(calls_per_user=3)) as site:
        site.master.methods[LIST] = never
        path = site.agents["n1"].socket
        with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as second:
            for connection, calls in ((first, 2), (second, 2)):
                connection.settimeout(TIMEOUT_S)
                connection.connect(path)
                for number in range(calls):
                    connection.sendall(frames.pack(number, frames.CALL, frames.pack_open(LIST, b"")))
            closed, _, _ = select.select((first, second), (), (), TIMEOUT_S)  # whose calls came last
            assert [one.recv(1) for one in closed] == [b""]
            site.master.methods[LIST] = echo
            first.close()
            deadline = time.monotonic() + TIMEOUT_S
            while not _answers(site):
                assert time.monotonic() < deadline


def _answers(site: Site) -> bool:
    try:
        return list(site.dial().answers(LIST, b"again", TIMEOUT_S)) == [b"<again>"]
    except LostError:
        return False
