"""Gateway of the local socket: commands of local users reach the master through the agent, which vouches for them.

Calls of the master's services are passed on unparsed; methods under ``/lava.local/`` are answered here. Invariants: the
caller's identity comes from the kernel; only the services listed in ``MASTER_SERVICES`` reach the master; connections,
calls and waiting bytes are bounded in total and for each user; a frame that stops half-way closes its connection; a
slow reader delays only itself; if the master cannot be reached every call ends within seconds, with one sentence that
says so.
"""

import asyncio
import contextlib
import logging
import os
import resource
import socket
import stat
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.aio

from agents.local_socket.acceptor import Acceptor
from agents.local_socket.callers import Caller, CallFailed, UserNames, peer_credentials
from agents.local_socket.calls import NO_CALLER, ByteBudget, Call, Worker
from agents.local_socket.complaints import Complaints
from agents.local_socket.frame_socket import FrameSocket
from agents.local_socket.submit_streams import METHOD as SUBMIT
from agents.local_socket.submit_streams import SubmitStreams
from protos import frames, served
from protos.wire import WRITE_FAILED

LOG = logging.getLogger("lava.gateway")

MASTER_SERVICES = ("/lava.v1.JobService/", "/lava.v1.ClusterService/")
LOCAL_PREFIX = "/lava.local/"

# A connection, the pipes of a task it starts, and as much again for all other files of the agent.
DESCRIPTORS_EACH = 10
DESCRIPTORS_WANTED = 65536
# Commands that connect at once wait here; beyond that connecting fails. The kernel may allow fewer.
BACKLOG = 4096

# Error texts of gRPC's library for connections that cannot be made or have broken.
_LIBRARY_PHRASES = (
    *("failed to connect", "Failed to connect", "Socket closed", "Cancelling all calls", "keepalive", "ping timeout"),
    *("Connection reset", "Connection refused", "Broken pipe", "timed out", "No route to host", "unreachable"),
    *("GOAWAY", "Stream removed", "recvmsg", "sendmsg", "End of TCP stream", "andshake", "Endpoint", "transport"),
    *("ipv4:", "ipv6:", "http2"),
)

# Local methods for the process that serves commands, on a connection that it was given for one.
FOR_SERVED = (served.SERVE, "/lava.local/Peek")

LocalMethod = Callable[[Call], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the local socket; in the hundreds, since one launch agent of an MPI is one connection and one call."""

    connections: int = 4096
    connections_per_user: int = 1024
    refusals: int = 64  # connections being refused with a sentence; further ones are closed at once
    calls_per_connection: int = 2048
    calls_per_user: int = 4096
    waiting_bytes: int = 512 << 20
    waiting_bytes_per_user: int = 64 << 20
    first_frame_s: float = 10.0  # wait for the first frame of a new connection
    half_frame_s: float = 30.0  # wait for the rest of a frame after its header
    idle_s: float = 600.0  # between calls
    master_s: float = 4.0  # time to reach the master
    first_answer_s: float = 60.0  # time for the master's answer to a plain call


class Gateway:
    """Server of the local socket.

    ``channel()`` is the gRPC channel to the present master, best one of its own: bulk answers must not delay the
    agent's session. ``address()`` names that master in messages. ``methods`` are the local methods under
    ``/lava.local/``, by full name.
    """

    def __init__(
        self,
        path: str,
        channel: Callable[[], grpc.aio.Channel],
        address: Callable[[], str],
        methods: Mapping[str, LocalMethod],
        names: UserNames | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.path = path
        self.limits = limits or Limits()
        self.budget = ByteBudget(self.limits.waiting_bytes, self.limits.waiting_bytes_per_user)
        self.complaints = Complaints()
        self._channel = channel
        self._address = address
        self._methods = methods
        self._names = names or UserNames()
        self._submit_streams = SubmitStreams()
        self.is_stopping = False  # calls are cancelled because this agent ends, not because commands have left
        self._connections: dict[asyncio.Task[None], int] = {}
        self._by_user: defaultdict[int, int] = defaultdict(int)
        self._calls_by_user: defaultdict[int, int] = defaultdict(int)
        self._refusals: set[asyncio.Task[None]] = set()
        self._acceptor: Acceptor | None = None
        self._inode = 0
        self._connections_max = self.limits.connections

    async def start(self) -> None:
        """Listen. The socket file of a killed agent is replaced in one step.

        Raises:
            OSError: the path cannot be used.
        """
        self._connections_max = min(self.limits.connections, descriptors() // DESCRIPTORS_EACH)
        listener = listen(self.path)
        self._inode = os.stat(self.path).st_ino
        self._acceptor = Acceptor(listener, self._arrived)

    async def stop(self) -> None:
        """Close the socket and every connection; running calls are cancelled."""
        self.is_stopping = True
        if self._acceptor is not None:
            self._acceptor.close()
            self._acceptor = None
        tasks = [*self._connections, *self._refusals]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._submit_streams.close()
        self._names.close()
        with contextlib.suppress(FileNotFoundError):
            if os.stat(self.path).st_ino == self._inode:
                os.unlink(self.path)

    def _arrived(self, connection: socket.socket) -> None:
        """Serve a new connection, or refuse it: with a sentence unless too many are being refused."""
        try:
            pid, uid, gid = peer_credentials(connection)
            self._check_room(uid)
        except CallFailed as failure:
            if len(self._refusals) >= self.limits.refusals:
                connection.close()
                return
            refusal = asyncio.create_task(self._refuse(connection, failure))
            self._refusals.add(refusal)
            refusal.add_done_callback(self._refusals.discard)
            return
        task = asyncio.create_task(self._serve(connection, pid, uid, gid))
        self._connections[task] = uid
        self._by_user[uid] += 1
        task.add_done_callback(self._left)

    def _check_room(self, uid: int) -> None:
        if len(self._connections) >= self._connections_max:
            raise CallFailed(frames.RESOURCE_EXHAUSTED, "this host's agent has too many connections; try again later")
        # With a low descriptor limit one user does not get them all.
        if self._by_user.get(uid, 0) >= min(self.limits.connections_per_user, (self._connections_max + 1) // 2):
            text = f"uid {uid} has {self._by_user[uid]} connections to this host's agent, which is the limit"
            raise CallFailed(frames.RESOURCE_EXHAUSTED, text)

    def _left(self, task: asyncio.Task[None]) -> None:
        uid = self._connections.pop(task)
        self._by_user[uid] -= 1
        if not self._by_user[uid]:
            del self._by_user[uid]
        if not task.cancelled() and (error := task.exception()) is not None:
            LOG.error("connection broke uid=%d", uid, exc_info=error)

    async def _serve(self, connection: socket.socket, pid: int, uid: int, gid: int) -> None:
        try:
            caller = Caller(await self._names.name(uid), uid, gid, pid)
        except CallFailed as failure:
            await self._refuse(connection, failure)
            return
        except asyncio.CancelledError:
            connection.close()
            raise
        await Connection(self, caller).serve(connection)

    async def _refuse(self, connection: socket.socket, failure: CallFailed) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=connection)
        try:
            await self._say(reader, writer, failure)
        finally:
            writer.close()

    def count_call(self, uid: int) -> None:
        """Count a call of this user: each costs memory here and in the master.

        Raises:
            FrameError: the user has too many.
        """
        if self._calls_by_user[uid] >= self.limits.calls_per_user:
            raise frames.FrameError(f"uid {uid} has {self.limits.calls_per_user} calls under way, which is the limit")
        self._calls_by_user[uid] += 1

    def call_ended(self, uid: int) -> None:
        """Uncount a call."""
        self._calls_by_user[uid] -= 1
        if not self._calls_by_user[uid]:
            del self._calls_by_user[uid]

    async def _say(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, failure: CallFailed) -> None:
        """Answer the first call of a refused connection, so that the command can say why."""
        with contextlib.suppress(TimeoutError, OSError, EOFError, frames.FrameError):
            async with asyncio.timeout(1.0):
                call, _, _ = frames.unpack_header(await reader.readexactly(frames.HEADER.size))
                writer.write(frames.pack(call, frames.END, frames.pack_end(failure.status, failure.text)))
                await writer.drain()

    async def answer(self, call: Call, plain: bool) -> None:
        """Run one call to its END. ``plain``: it has one request, so the master's answer is due soon."""
        status, text = frames.OK, ""
        try:
            await _permitted(call)
            if call.method.startswith(LOCAL_PREFIX):
                await self._local(call)
            else:
                await self._forward(call, plain)
        except CallFailed as failure:
            status, text = failure.status, failure.text
        except ConnectionError:
            LOG.debug("caller gone method=%s user=%s", call.method, call.caller.user)
            return
        except Exception:
            LOG.exception("call failed method=%s user=%s", call.method, call.caller.user)
            status, text = frames.INTERNAL, "this host's agent met an error of its own; its log has the details"
        await call.end(status, text)

    async def _local(self, call: Call) -> None:
        method = self._methods.get(call.method)
        if method is None:
            raise CallFailed(frames.UNIMPLEMENTED, f"this host's agent knows no method {call.method}")
        await method(call)

    async def _forward(self, call: Call, plain: bool) -> None:
        if not call.method.startswith(MASTER_SERVICES):
            raise CallFailed(frames.PERMISSION_DENIED, f"{call.method} is not for users")
        channel = await self.master()
        try:
            if plain and call.method == SUBMIT:
                await self._submit(channel, call)
            else:
                await (self._forward_plain if plain else self._forward_stream)(channel, call)
        except grpc.aio.AioRpcError as error:
            raise self.failure(error) from None

    async def master(self) -> grpc.aio.Channel:
        """Return the channel to the master once it is connected.

        Raises:
            CallFailed: UNAVAILABLE, the master cannot be reached.
        """
        channel = self._channel()
        if channel.get_state(try_to_connect=True) is grpc.ChannelConnectivity.READY:
            return channel
        try:
            async with asyncio.timeout(self.limits.master_s):
                state = channel.get_state(try_to_connect=True)
                while state is not grpc.ChannelConnectivity.READY:
                    await channel.wait_for_state_change(state)
                    state = channel.get_state(try_to_connect=True)
        except TimeoutError:
            raise CallFailed(frames.UNAVAILABLE, f"the master at {self._address()} cannot be reached") from None
        return channel

    def failure(self, error: grpc.aio.AioRpcError) -> CallFailed:
        """Convert an error of the master or the network to a sentence for users."""
        if is_connection_lost(error):
            return CallFailed(frames.UNAVAILABLE, f"the connection to the master at {self._address()} was lost")
        code = error.code()
        return CallFailed(code.value[0], error.details() or code.name.lower().replace("_", " "))

    async def _forward_plain(self, channel: grpc.aio.Channel, call: Call) -> None:
        request = await call.receive() or b""
        method = channel.unary_stream(call.method, request_serializer=None, response_deserializer=None)
        answers = method(request, metadata=call.caller.metadata())
        try:
            replies = aiter(answers)
            async with asyncio.timeout(self.limits.first_answer_s):
                message = await anext(replies, None)
            while message is not None:
                await call.send(message)
                message = await anext(replies, None)
        except TimeoutError:
            raise self._silence() from None
        finally:
            answers.cancel()

    async def _submit(self, channel: grpc.aio.Channel, call: Call) -> None:
        try:
            async with asyncio.timeout(self.limits.first_answer_s):
                answer = await self._submit_streams.submit(channel, call.caller, await call.receive() or b"")
        except TimeoutError:
            raise self._silence() from None
        await call.send_last(answer)

    def _silence(self) -> CallFailed:
        text = f"the master at {self._address()} did not answer within {self.limits.first_answer_s:.0f} seconds"
        return CallFailed(frames.DEADLINE_EXCEEDED, text)

    async def _forward_stream(self, channel: grpc.aio.Channel, call: Call) -> None:
        method = channel.stream_stream(call.method, request_serializer=None, response_deserializer=None)
        await relay(method(None, metadata=call.caller.metadata()), call)


async def _permitted(call: Call) -> None:
    """Let a call of the serving process be made only for a command that it has, and after its stub has said GO.

    Raises:
        CallFailed: PERMISSION_DENIED.
    """
    if call.worker is None or call.method == served.SERVE:
        return
    if call.method.startswith(LOCAL_PREFIX) and call.method not in FOR_SERVED:
        raise CallFailed(frames.PERMISSION_DENIED, f"{call.method} is not for served commands")
    if call.served is None:
        raise CallFailed(frames.PERMISSION_DENIED, f"{call.method} is called for no command")
    await call.served.gone.wait()


class Connection(FrameSocket):
    """One connected command and its calls; or one of the serving process, of which ``worker`` has the command."""

    def __init__(self, gateway: Gateway, caller: Caller, worker: Worker | None = None) -> None:
        super().__init__(gateway.budget, gateway.limits.half_frame_s)
        self._worker = worker
        if worker is not None:
            worker.end_others = self._end_others
        self._gateway = gateway
        self._own_caller = caller
        self._calls: dict[int, tuple[Call, asyncio.Task[None]]] = {}
        self._seen = False
        self._at_close: dict[bytes, Callable[[], None]] = {}

    async def serve(self, connection: socket.socket) -> None:
        """Handle frames until the command leaves or breaks the protocol."""
        try:
            await self.run(connection)
        except (EOFError, ConnectionError, TimeoutError):
            LOG.debug("connection ended user=%s", self._caller.user)
        except frames.FrameError as error:
            caller = self._own_caller
            self._gateway.complaints.note(caller.uid, caller.user, caller.pid, str(error))
        finally:
            await self._abandon()

    @property
    def _caller(self) -> Caller:
        """The one that calls are made for: on a connection of the serving process the caller of its command."""
        if self._worker is None:
            return self._own_caller
        return self._worker.command.stub.caller if self._worker.command is not None else NO_CALLER

    @property
    def payer(self) -> int:
        """Uid of the caller."""
        return self._caller.uid

    def patience_s(self) -> float | None:
        """Return the time within which the next frame must begin; None, without a bound, while a call is open."""
        if self._calls:
            return None
        return self._gateway.limits.idle_s if self._seen else self._gateway.limits.first_frame_s

    def begun(self) -> None:
        """Note that something has come."""
        self._seen = True
        if self._worker is not None and self._worker.command is not None:
            self._worker.command.begin()

    async def _end_others(self, call: Call) -> None:
        """End all calls but one."""
        await _end_all([task for one, task in self._calls.values() if one is not call])

    def handle(self, number: int, kind: int, payload: bytes, uid: int) -> bool:
        """Handle a frame, whose bytes are counted for a user; return True if they stay so."""
        if kind in (frames.CALL, frames.OPEN):
            return self._open(number, kind == frames.CALL, payload, uid)
        entry = self._calls.get(number)
        if entry is None:
            return False  # of a call that has ended meanwhile
        call, task = entry
        match kind:
            case frames.MESSAGE:
                call.deliver(payload, len(payload), uid)
                return True
            case frames.HALF_CLOSE:
                call.half_close()
            case frames.CANCEL:
                task.cancel()
            case frames.CREDIT:
                call.credit(int.from_bytes(payload[:4], "little"))
            case _:
                raise frames.FrameError(f"a command may not send frames of kind {kind}")
        return False

    def _open(self, number: int, plain: bool, payload: bytes, uid: int) -> bool:
        method, message = frames.unpack_open(payload)
        if number in self._calls:
            raise frames.FrameError(f"call {number} is open already")
        if len(self._calls) >= self._gateway.limits.calls_per_connection:
            raise frames.FrameError("too many calls on one connection")
        self._gateway.count_call(uid)
        call = Call(number, method, self._caller, self.write, self._gateway.budget)
        call.at_close = self._at_close
        call.worker = self._worker
        call.served = self._worker.command if self._worker is not None else None
        call.deliver(message, len(payload), uid)
        if plain:
            call.half_close()
        task = asyncio.create_task(self._gateway.answer(call, plain))
        self._calls[number] = (call, task)
        task.add_done_callback(lambda done: self._ended(call, uid, done))
        return True

    def _ended(self, call: Call, uid: int, task: asyncio.Task[None]) -> None:
        """End every call, also one cancelled before its first step."""
        del self._calls[call.number]
        self._gateway.call_ended(uid)
        call.drop()
        if task.cancelled():
            self.put(frames.pack(call.number, frames.END, frames.pack_end(frames.CANCELLED, "cancelled")))
        elif (error := task.exception()) is not None and not isinstance(error, ConnectionError):
            LOG.error("call broke method=%s user=%s", call.method, self._caller.user, exc_info=error)

    async def _abandon(self) -> None:
        """Cancel the calls of a command that has left, and with them what they started."""
        self.abort()
        await _end_all([task for _, task in self._calls.values()])
        for act in [] if self._gateway.is_stopping else self._at_close.values():
            act()


async def _end_all(tasks: list[asyncio.Task[None]]) -> None:
    """End calls, if there are any."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.gather(*tasks, return_exceptions=True)


async def relay(remote: "grpc.aio.StreamStreamCall[bytes, bytes]", call: Call) -> None:
    """Relay messages between a command and a remote stream, both ways, until the remote ends it.

    Raises:
        AioRpcError: the remote, or the network, ended it with an error.
    """

    async def upward() -> None:
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):  # the reader reports it
            while (message := await call.receive()) is not None:
                await remote.write(message)
            await remote.done_writing()

    sender = asyncio.create_task(upward())
    try:
        async for message in remote:
            await call.send(message)
    finally:
        remote.cancel()
        sender.cancel()
        await asyncio.gather(sender, return_exceptions=True)


def is_connection_lost(error: grpc.aio.AioRpcError) -> bool:
    """Return True if the library made this error for a broken connection, False if the peer sent it.

    The library gives no better sign than its text. A phrase missing here costs a user a clumsy sentence, no more.
    """
    text = error.details() or ""
    if error.code() is grpc.StatusCode.INTERNAL:
        return text == WRITE_FAILED
    is_of_library = not text or any(phrase in text for phrase in _LIBRARY_PHRASES)
    return error.code() is grpc.StatusCode.UNAVAILABLE and is_of_library


def descriptors() -> int:
    """Raise the soft limit of descriptors as far as it goes, and return it.

    Jobs do not inherit it: the launcher, their ancestor, was started before.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS_WANTED if hard == resource.RLIM_INFINITY else min(DESCRIPTORS_WANTED, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def listen(path: str) -> socket.socket:
    """Return a listening Unix socket at ``path``, open to every user, in a directory that every user may enter.

    Raises:
        OSError: the path is too long, taken by something else than a socket, or not writable.
    """
    parent = Path(path).parent
    parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    if os.path.lexists(path) and not stat.S_ISSOCK(os.lstat(path).st_mode):
        raise OSError(f"{path} exists and is not a socket")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    temporary = f"{path}.new"
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        listener.bind(temporary)
        os.chmod(temporary, 0o666)
        listener.listen(BACKLOG)
        os.rename(temporary, path)
    except OSError as error:
        listener.close()
        raise OSError(f"cannot listen on {path}: {error}") from error
    return listener
