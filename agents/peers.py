"""Agent to agent: tasks of a job on its other hosts, and output of jobs that run elsewhere.

Invariants: mutual TLS; a task is started only for an agent whose certificate names a host of the attempt's allocation,
according to the master's order, never to the peer; output is read only against a ticket that the master signed for this
attempt on this host; user, base environment and directory come from the order. A broken conversation kills its task (a
dead link is noticed within about 8 s).
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import time
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from agents.attempts.usage_exchange import Counting
from agents.local_socket.callers import CallFailed
from agents.ranks.file_copies import FileCopies
from agents.ranks.interfaces import Attempts, HeldAttempt
from agents.ranks.output import NotReadable, OnlyForItsUser, open_kept, open_output
from agents.ranks.tasks import converse, window_of
from agents.shepherd.messages import Key
from agents.shepherd.spool import kept_path
from agents.shepherd.tasks.run_files import kept_path_of_run
from protos import frames
from protos.agents_pb2 import (
    CountReply,
    CountRequest,
    FilePart,
    TailChunk,
    TailRequest,
    TaskInput,
    TaskOutput,
    TaskStart,
)
from protos.agents_pb2_grpc import PeerServiceServicer, add_PeerServiceServicer_to_server
from protos.common_pb2 import HostShare
from protos.trust import peek_tickets
from protos.trust.roles import Identity, Kind, TrustError, agent_server_name
from protos.trust.tls import aio_channel, peer_role, server_credentials
from protos.wire import SERVER_OPTIONS

LOG = logging.getLogger("lava.peers")

RUN_METHOD = "/lava.v1.PeerService/Run"
TAIL_METHOD = "/lava.v1.PeerService/Tail"
COUNT_METHOD = "/lava.v1.PeerService/Count"
COPY_METHOD = "/lava.v1.PeerService/Copy"

# Longest wait for a peer's connection before it is reported; MPI launchers wait longer than that.
CONNECT_S = 10.0
CHANNEL_IDLE_S = 120.0


class Peers(PeerServiceServicer):
    """Server for the agents of other hosts.

    ``ticket_key()`` is the master's present public key, empty before the first session; ``why_refused(host, context)``
    returns why a peer's certificate is refused, or "".
    """

    def __init__(
        self,
        host: str,
        attempts: Attempts,
        counting: Counting,
        ticket_key: Callable[[], bytes],
        why_refused: Callable[[str, Any], str] = lambda host, auth_context: "",
    ) -> None:
        self.host = host
        self._why_refused = why_refused
        self._attempts = attempts
        self._counting = counting
        self._ticket_key = ticket_key
        self._copies = FileCopies()
        self.kept = ""  # directory of kept outputs of ended jobs; empty if none are kept
        self._server: grpc.aio.Server | None = None

    async def serve(self, listen: str, identity: Identity) -> str:
        """Listen on ADDR:PORT (port 0: any) with this agent's certificate; return the address with the port filled in.

        Raises:
            OSError: the address cannot be listened on.
        """
        server = grpc.aio.server(options=SERVER_OPTIONS)
        add_PeerServiceServicer_to_server(self, server)
        try:
            port = server.add_secure_port(listen, server_credentials(identity))
        except RuntimeError as error:
            raise OSError(f"cannot listen on {listen} for peers: {error}") from error
        await server.start()
        self._server = server
        return f"{listen.rpartition(':')[0]}:{port}"

    async def stop(self) -> None:
        """Stop listening and cancel running conversations."""
        if self._server is not None:
            await self._server.stop(grace=None)

    async def Run(
        self, request_iterator: AsyncIterator[TaskInput], context: "grpc.aio.ServicerContext[TaskInput, TaskOutput]"
    ) -> None:
        """Start a task for an agent of the same allocation and relay its streams."""
        try:
            first = await anext(request_iterator, TaskInput())
        except DecodeError:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the request cannot be read")
            raise AssertionError("abort returned") from None
        caller = await self._calling_host(context)
        start = first.start
        held = self._attempts.find(start.key.job, start.key.index, start.key.attempt)
        if held is None or not self._may_run(held, start, caller):
            # One answer for both cases: a host outside the allocation learns nothing about the job.
            LOG.warning("task refused job=%d caller=%s", start.key.job, caller)
            text = f"job <{start.key.job}> does not run on both {caller} and {self.host}"
            if start.ticket:
                text = f"job <{start.key.job}> does not run here, or the ticket to attach to it is not valid here"
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, text)
            raise AssertionError("abort returned")
        LOG.info("task job=%d index=%d attempt=%d caller=%s", *held.key, caller)
        await converse(self._attempts, held, start, request_iterator, context.write, window=window_of(first))

    def _may_run(self, held: HeldAttempt, start: TaskStart, caller: str) -> bool:
        """Return True for a caller on a host of the allocation, or with the master's ticket to attach."""
        if not start.ticket:
            return any(part.host == caller for part in held.allocation)
        key = (start.key.job, start.key.index, start.key.attempt)
        return peek_tickets.check(self._ticket_key(), start.ticket, key, self.host, time(), peek_tickets.ATTACH)

    async def Tail(self, request: TailRequest, context: "grpc.aio.ServicerContext[TailRequest, TailChunk]") -> None:
        """Send a job's output so far, and follow it if asked."""
        caller = await self._calling_host(context)
        key = (request.key.job, request.key.index, request.key.attempt)
        if not peek_tickets.check(self._ticket_key(), request.ticket, key, self.host, time()):
            LOG.warning("tail refused job=%d index=%d attempt=%d caller=%s", *key, caller)
            await context.abort(
                grpc.StatusCode.PERMISSION_DENIED, f"the ticket to read job <{key[0]}> is not valid here"
            )
        await self.tail(request, context.write)

    async def Count(
        self, request: CountRequest, context: "grpc.aio.ServicerContext[CountRequest, CountReply]"
    ) -> CountReply:
        """Send an agent of the same allocation the attempt's usage here."""
        caller = await self._calling_host(context)
        key = (request.key.job, request.key.index, request.key.attempt)
        reply = await self._counting.count(key) if self._counting.is_shared_with(key, caller) else None
        if reply is None:
            text = f"job <{key[0]}> does not run on both {caller} and {self.host}"
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, text)
            raise AssertionError("abort returned")
        return reply

    async def Copy(
        self, request_iterator: AsyncIterator[FilePart], context: "grpc.aio.ServicerContext[FilePart, FilePart]"
    ) -> None:
        """Send or write a file of a job that was submitted here, against the master's ticket for it."""
        try:
            leave = (await anext(request_iterator, FilePart())).leave
        except DecodeError:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the request cannot be read")
            raise AssertionError("abort returned") from None
        caller = await self._calling_host(context)
        key = (leave.key.job, leave.key.index, leave.key.attempt)
        what = peek_tickets.file_of(self.host, leave.user, leave.uid, leave.mode, leave.path)
        if not peek_tickets.check(self._ticket_key(), leave.ticket, key, what, time(), peek_tickets.COPY):
            LOG.warning("copy refused job=%d index=%d attempt=%d caller=%s", *key, caller)
            text = f"the ticket to copy a file of job <{key[0]}> is not valid here"
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, text)
        LOG.info("copy job=%d index=%d attempt=%d caller=%s mode=%s", *key, caller, leave.mode)
        await self._copies.serve(leave, request_iterator, context.write)

    async def tail(self, request: TailRequest, send: Callable[[TailChunk], Awaitable[None]]) -> None:
        """Send a job's output to a caller with a verified ticket; an unreadable file is reported in a chunk."""
        key = (request.key.job, request.key.index, request.key.attempt)
        if request.HasField("task"):
            await self._tail_run(key, request, send)
            return
        held, path = self._attempts.find(*key), self._path(request)
        if held is None and not request.error_file and self.kept:
            await self._tail_kept(key, send)
            return
        if held is not None and request.error_file and held.output_path and path in ("", held.output_path):
            return  # errors join the output: bmod -e has named a file for them that is written at the end
        if held is None or not path:
            await send(TailChunk(error="Not yet started.", is_error_file=request.error_file))
            return
        try:
            reader = await open_output(path, held.uid, held.groups, lambda: self._path(request) == path)
        except NotReadable as error:
            await send(TailChunk(error=str(error), is_error_file=request.error_file))
            return
        except OnlyForItsUser as only:
            await self._tail_as_user(held, str(only), request, send)
            return

        async def pass_on(data: bytes) -> None:
            await send(TailChunk(data=data, is_error_file=request.error_file))

        try:
            await reader.send_all(request.last_bytes, pass_on)
            if request.follow:
                await reader.follow(lambda: self._attempts.find(*key) is None, pass_on)
        finally:
            reader.close()

    async def _tail_run(self, key: Key, request: TailRequest, send: Callable[[TailChunk], Awaitable[None]]) -> None:
        """Send the output of a run of a task: from the file that the job names, or the one kept here."""
        run = (request.task.role, request.task.index, request.task.run)
        held = self._attempts.find(*key)
        output = self._attempts.run_output(key, run, request.error_file) if held is not None else None
        if held is not None and output is not None and output.path:
            await self._tail_as_user(held, output.path, request, send, output.pid)
            return
        if request.error_file:
            return  # it joins the output
        try:
            reader = open_kept(kept_path_of_run(self.kept, key, run), "No output of this run is kept on its host.")
        except NotReadable as error:
            await send(TailChunk(error=str(error)))
            return

        async def pass_on(data: bytes) -> None:
            await send(TailChunk(data=data))

        try:
            await reader.send_all(request.last_bytes, pass_on)
            if request.follow:
                await reader.follow(lambda: not self._attempts.run_output(key, run, False).pid, pass_on)
        finally:
            reader.close()

    async def _tail_kept(self, key: Key, send: Callable[[TailChunk], Awaitable[None]]) -> None:
        """Send the kept output of a job that has ended here."""
        try:
            reader = open_kept(kept_path(self.kept, key))
        except NotReadable as error:
            await send(TailChunk(error=str(error)))
            return
        try:
            await reader.send_all(0, lambda data: send(TailChunk(data=data)))
        finally:
            reader.close()

    def _path(self, request: TailRequest) -> str:
        """Return the path of the requested file, through its shepherd's descriptor, while that holds the attempt."""
        held = self._attempts.find(request.key.job, request.key.index, request.key.attempt)
        if held is None:
            return ""
        return held.error_path if request.error_file else held.output_path

    async def _tail_as_user(
        self,
        held: HeldAttempt,
        path: str,
        request: TailRequest,
        send: Callable[[TailChunk], Awaitable[None]],
        pid: int = 0,
    ) -> None:
        """Read the file by its name in a task beside the job, as the user: only what the user may read.

        ``pid``: the process to whose end a run's output is followed.
        """
        start = TaskStart(argv=_tail_argv(request, path, pid), cwd=b"/", no_input=True)

        async def pass_on(output: TaskOutput) -> None:
            error = output.error or output.err.decode(errors="replace").strip()
            if output.out or error:
                await send(TailChunk(data=output.out, error=error, is_error_file=request.error_file))

        await converse(self._attempts, held, start, _nothing_to_say(), pass_on, in_task=False)

    async def _calling_host(self, context: "grpc.aio.ServicerContext[Any, Any]") -> str:
        try:
            role = peer_role(context.auth_context())
        except TrustError as error:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error))
            raise AssertionError("abort returned") from None
        if role.kind is not Kind.AGENT:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "only agents talk to their peers")
        refusal = self._why_refused(role.host, context.auth_context())
        if refusal:
            LOG.warning("peer refused host=%s reason=%r", role.host, refusal)
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, refusal)
        return role.host


def _tail_argv(request: TailRequest, path: str, pid: int) -> list[bytes]:
    start = b"%d" % request.last_bytes if request.last_bytes else b"+1"
    follow = [b"-f"] if request.follow else []
    if request.HasField("task"):
        follow = [b"-f", b"--pid=%d" % pid, b"-s", b"0.2"] if request.follow and pid else []
    return [b"/usr/bin/env", b"tail", b"-c", start, *follow, b"--", os.fsencode(path)]


async def _nothing_to_say() -> AsyncIterator[TaskInput]:
    await asyncio.get_running_loop().create_future()
    yield TaskInput()


class PeerChannels:
    """Client of other agents: one channel to each, closed some time after its last use."""

    def __init__(self, identity: Callable[[], Identity]) -> None:
        self._identity = identity
        self._known: dict[tuple[str, str], _Known] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def to(self, host: str, address: str) -> AsyncIterator[grpc.aio.Channel]:
        """Return a connected channel to the agent of ``host``, which must prove that name, at HOST:PORT.

        Raises:
            CallFailed: UNAVAILABLE, it cannot be reached.
        """
        known = self._known.setdefault((host, address), _Known())
        known.users += 1
        try:
            async with known.turn:
                channel = await self._connect(known, host, address)
            yield channel
        finally:
            known.users -= 1
            known.used = asyncio.get_running_loop().time()
            asyncio.get_running_loop().call_later(CHANNEL_IDLE_S, self._expire, (host, address))

    async def count(self, share: HostShare, request: CountRequest) -> CountReply:
        """Query an attempt's usage from the agent of another host.

        Raises:
            CallFailed, AioRpcError: it does not answer, or refuses this agent.
        """
        async with self.to(share.host, share.address) as channel:
            method = channel.unary_unary(
                COUNT_METHOD,
                request_serializer=CountRequest.SerializeToString,
                response_deserializer=CountReply.FromString,
            )
            reply: CountReply = await method(request)
            return reply

    async def close(self) -> None:
        """Close every channel."""
        for known in self._known.values():
            if known.channel is not None:
                await known.channel.close(None)
        self._known.clear()

    async def _connect(self, known: "_Known", host: str, address: str) -> grpc.aio.Channel:
        try:
            async with asyncio.timeout(CONNECT_S):
                if known.channel is None:
                    known.channel = await aio_channel(address, self._identity(), agent_server_name(host))
                while (state := known.channel.get_state(try_to_connect=True)) is not grpc.ChannelConnectivity.READY:
                    await known.channel.wait_for_state_change(state)
                return known.channel
        except TimeoutError:
            reason = f"no connection within {CONNECT_S:.0f} seconds"
        except TrustError as error:
            reason = str(error).rstrip(".")
        failed, known.channel = known.channel, None  # the next attempt looks the address up again
        if failed is not None:
            await failed.close(None)
        raise CallFailed(frames.UNAVAILABLE, f"the agent of {host} at {address} cannot be reached: {reason}")

    def _expire(self, place: tuple[str, str]) -> None:
        known = self._known.get(place)
        if known is None or known.users or asyncio.get_running_loop().time() - known.used < CHANNEL_IDLE_S - 1:
            return
        del self._known[place]
        if known.channel is not None:
            closing = asyncio.create_task(known.channel.close(None))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)


@dataclass(slots=True)
class _Known:
    """One peer: its channel, the users of the channel, and the lock for making it."""

    channel: grpc.aio.Channel | None = None
    users: int = 0
    used: float = 0.0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
