"""Methods that a host's own agent answers on the local socket: start of tasks on a job's hosts, reading of its output.

``/lava.local/Run``: the command sends TaskInput messages, the first with ``start`` (host and job key filled in), and
gets TaskOutput messages. ``/lava.local/Attach``: likewise, from any host, and for the streams of an interactive job.
``/lava.local/Peek``: one PeekRequest, answered with TailChunks. ``/lava.local/Copy``: FileParts, the first with what is
asked for, answered with the master's leave and then as the agent of the submission host answers. Invariants: a task is
started only for the owner of an attempt that this host holds or with the master's ticket for this caller, only on a
host of its allocation, under the attempt that is running now; output is read, and a file copied, only with the master's
ticket for this caller.
"""

import asyncio
import functools
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import grpc
import grpc.aio
from google.protobuf.message import DecodeError, Message

from agents.local_socket.callers import CallFailed
from agents.local_socket.calls import Call
from agents.local_socket.gateway import Gateway, LocalMethod, is_connection_lost, relay
from agents.peers import COPY_METHOD, RUN_METHOD, TAIL_METHOD, PeerChannels, Peers
from agents.ranks.interfaces import Attempts, HeldAttempt, HostPart
from agents.ranks.tasks import converse, window_of
from protos import frames, names
from protos.agents_pb2 import FilePart, TailChunk, TailRequest, TaskInput, TaskOutput, TaskStart
from protos.common_pb2 import AttemptKey, HostShare
from protos.jobs_pb2 import AttachTicketReply, AttachTicketRequest, CopyTicketReply, PeekRequest, PeekTicketReply

LOG = logging.getLogger("lava.gateway")

RUN = "/lava.local/Run"
ATTACH = "/lava.local/Attach"
PEEK = "/lava.local/Peek"
COPY = "/lava.local/Copy"
# Connection number of a caller that has left: above all its earlier ones.
NEWEST = 0xFFFFFFFF
TELLING_MAX = 1024  # of one user at a time: ended commands not yet reported to their tasks' hosts
AGAIN_FIRST_S, AGAIN_MAX_S = 0.2, 5.0
# The other agent has heard it and does not know the job, or not this host: no retry.
ANSWERS = (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.NOT_FOUND)
PEEK_TICKET_METHOD = "/lava.v1.JobService/PeekTicket"
ATTACH_TICKET_METHOD = "/lava.v1.JobService/AttachTicket"
COPY_TICKET_METHOD = "/lava.v1.JobService/CopyTicket"

Reply = TypeVar("Reply", bound=Message)
Renew = Callable[[TaskStart], Awaitable[None]]  # gets a new ticket for the start


class LocalMethods:
    """Methods and their dependencies; ``gateway`` is set once it exists, since each needs the other."""

    def __init__(self, host: str, attempts: Attempts, peers: Peers, channels: PeerChannels) -> None:
        self._host = host
        self._attempts = attempts
        self._peers = peers
        self._channels = channels
        self._telling: set[asyncio.Task[None]] = set()
        self._telling_of: Counter[int] = Counter()  # number of them, by user
        self.gateway: Gateway | None = None

    def table(self) -> dict[str, LocalMethod]:
        """Return the methods by full name, for ``Gateway``."""
        return {RUN: self.run, ATTACH: self.attach, PEEK: self.peek, COPY: self.copy}

    async def run(self, call: Call) -> None:
        """Start a task on a host of the caller's job and relay its streams until it ends."""
        first = await _first_message(call)
        held = self._held_by_caller(call, first.start.key)
        part = find_host(held, first.start.host)
        if part is None:
            text = f"host {first.start.host or '(none)'} is not in the allocation of job <{held.key[0]}>"
            raise CallFailed(frames.PERMISSION_DENIED, text)
        first.start.host = part.host
        first.start.key.CopyFrom(AttemptKey(job=held.key[0], index=held.key[1], attempt=held.key[2]))
        if part.host == self._host:
            await self._run_here(call, held, first)
        else:
            await self._run_there(call, part, first)

    async def attach(self, call: Call) -> None:
        """Run a task within a job of the caller on one of its hosts, or pass on the streams of an interactive job.

        The master's ticket allows it; the owner of a job that runs here needs none, and goes on without a master.
        """
        first = await _first_message(call)
        start = first.start
        held = self._attempts.find(start.key.job, start.key.index, start.key.attempt)
        if held is not None and held.uid == call.caller.uid and self._is_here(held, start.host):
            start.key.CopyFrom(AttemptKey(job=held.key[0], index=held.key[1], attempt=held.key[2]))
            await self._run_here(call, held, first)
            return
        try:
            leave = await self._get_ticket(call, start)
        except CallFailed as failure:
            if failure.status != frames.NOT_FOUND:
                raise
            await call.send(TaskOutput(error=failure.text).SerializeToString())
            return
        held = self._attempts.find(leave.key.job, leave.key.index, leave.key.attempt)
        if leave.host != self._host:
            await self._attach_there(call, HostShare(host=leave.host, address=leave.address), first)
        elif held is not None:
            await self._run_here(call, held, first)
        else:
            text = f"Job <{start.key.job}> does not run on {self._host} (any more)."
            await call.send(TaskOutput(error=text).SerializeToString())

    def _is_here(self, held: HeldAttempt, name: str) -> bool:
        """Return True if this is the attempt's host of this name; without a name the first one is meant."""
        part = find_host(held, name) if name else held.allocation[0]
        return part is not None and part.host == self._host

    async def _attach_there(self, call: Call, part: HostShare, first: TaskInput) -> None:
        try:
            await self._run_there(call, part, first, lambda start: self._renew_ticket(call, start))
        except CallFailed as failure:
            if failure.status != frames.PERMISSION_DENIED:
                raise
            # An agent that has just started, or has not heard from a new master, does not know the key of tickets yet.
            raise CallFailed(frames.UNAVAILABLE, failure.text) from None

    async def _get_ticket(self, call: Call, start: TaskStart) -> AttachTicketReply:
        """Complete the start with the master's ticket.

        Raises:
            CallFailed: NOT_FOUND, the master refuses; another, it cannot be asked.
        """
        request = AttachTicketRequest(key=start.key, host=start.host)
        leave = await self._ask_master(call, ATTACH_TICKET_METHOD, request, AttachTicketReply)
        if leave.error:
            raise CallFailed(frames.NOT_FOUND, leave.error)
        start.key.CopyFrom(leave.key)
        start.host, start.ticket = leave.host, leave.ticket
        return leave

    async def _renew_ticket(self, call: Call, start: TaskStart) -> None:
        await self._get_ticket(call, start)

    def _held_by_caller(self, call: Call, key: AttemptKey) -> HeldAttempt:
        held = self._attempts.find(key.job, key.index, key.attempt)
        if held is None:
            raise CallFailed(frames.NOT_FOUND, f"job <{key.job}> does not run on {self._host}")
        if held.uid != call.caller.uid:
            raise CallFailed(frames.PERMISSION_DENIED, f"job <{key.job}> belongs to another user")
        return held

    async def _run_here(self, call: Call, held: HeldAttempt, first: TaskInput) -> None:
        async def inputs() -> AsyncIterator[TaskInput]:
            while (message := await call.receive()) is not None:
                yield TaskInput.FromString(message)

        async def send(output: TaskOutput) -> None:
            await call.send(output.SerializeToString())

        try:
            await converse(self._attempts, held, first.start, inputs(), send, self._callers_go, window_of(first))
        except DecodeError:
            raise CallFailed(frames.INVALID_ARGUMENT, "a message of the caller cannot be read") from None

    def _callers_go(self) -> bool:
        """Return True if a call is cancelled because its command has ended."""
        return self.gateway is not None and not self.gateway.is_stopping

    async def _run_there(self, call: Call, part: HostPart, first: TaskInput, renew: Renew | None = None) -> None:
        token = first.start.token
        if token:
            call.at_close[token] = lambda: self._tell_gone(call.caller.uid, part, first.start, renew)
        await self._pass_on(call, part, first)
        call.at_close.pop(token, None)

    def _tell_gone(self, uid: int, part: HostPart, start: TaskStart, renew: Renew | None = None) -> None:
        """Tell the task's host that its caller has ended, so that it need not wait for it.

        Beyond a number for each user the other tasks wait as if their caller's host were lost.
        """
        if self._telling_of[uid] >= TELLING_MAX:
            LOG.warning("event=gone_not_told host=%s job=%d reason='too many of its user's'", part.host, start.key.job)
            return
        gone = TaskStart(key=start.key, host=part.host, token=start.token)
        telling = asyncio.create_task(self._say_gone(part, gone, renew))
        self._telling.add(telling)
        self._telling_of[uid] += 1
        telling.add_done_callback(functools.partial(self._told, uid))

    def _told(self, uid: int, telling: "asyncio.Task[None]") -> None:
        self._telling.discard(telling)
        self._telling_of[uid] -= 1
        if not self._telling_of[uid]:
            del self._telling_of[uid]

    async def _say_gone(self, part: HostPart, start: TaskStart, renew: Renew | None) -> None:
        start.gone, start.connection = True, NEWEST
        pause_s = AGAIN_FIRST_S
        give_up_at = asyncio.get_running_loop().time() + self._attempts.patience_s
        while asyncio.get_running_loop().time() < give_up_at:
            try:
                if renew is not None:
                    await renew(start)
                async with self._channels.to(part.host, part.address) as channel:
                    run = channel.stream_stream(
                        RUN_METHOD,
                        request_serializer=TaskInput.SerializeToString,
                        response_deserializer=TaskOutput.FromString,
                    )
                    async for _ in run(iter([TaskInput(start=start)])):
                        continue
            except (CallFailed, grpc.aio.AioRpcError) as error:
                LOG.info("event=gone_not_told host=%s job=%d reason=%r", part.host, start.key.job, str(error))
                if _is_answer(error, is_key_known=renew is None):
                    return
                await asyncio.sleep(pause_s)
                pause_s = min(AGAIN_MAX_S, 2 * pause_s)
            else:
                return

    async def close(self) -> None:
        """End background work."""
        for telling in list(self._telling):
            telling.cancel()
        await asyncio.gather(*self._telling, return_exceptions=True)

    async def _pass_on(self, call: Call, part: HostPart, first: Message, method: str = RUN_METHOD) -> None:
        async with self._channels.to(part.host, part.address) as channel:
            remote = channel.stream_stream(method, request_serializer=None, response_deserializer=None)(None)
            try:
                await remote.write(first.SerializeToString())
                await relay(remote, call)
            except grpc.aio.AioRpcError as error:
                raise _peer_failure(error, part.host) from None
            finally:
                remote.cancel()

    async def copy(self, call: Call) -> None:
        """Copy a file of the caller's job to or from its submission host; one of this host the caller copies itself."""
        try:
            asked = FilePart.FromString(await call.receive() or b"").asked
        except DecodeError:
            raise CallFailed(frames.INVALID_ARGUMENT, "the request cannot be read") from None
        leave = await self._ask_master(call, COPY_TICKET_METHOD, asked, CopyTicketReply)
        if leave.error:
            await call.send(FilePart(error=leave.error).SerializeToString())
            return
        is_here = leave.host == self._host
        told = CopyTicketReply(path=leave.path, mode=leave.mode, ticket=b"" if is_here else leave.ticket)
        await call.send(FilePart(leave=told).SerializeToString())
        if is_here:
            return
        try:
            part = HostShare(host=leave.host, address=leave.address)
            await self._pass_on(call, part, FilePart(leave=leave), COPY_METHOD)
        except CallFailed as failure:
            if failure.status != frames.PERMISSION_DENIED:
                raise
            # As for tickets to attach: the other agent may not know the key of a new master yet.
            raise CallFailed(frames.UNAVAILABLE, failure.text) from None

    async def peek(self, call: Call) -> None:
        """Send the output of a job, from the agent of its lead host, under the master's permission."""
        try:
            request = PeekRequest.FromString(await call.receive() or b"")
        except DecodeError:
            raise CallFailed(frames.INVALID_ARGUMENT, "the request cannot be read") from None
        leave = await self._ask_master(call, PEEK_TICKET_METHOD, request.job, PeekTicketReply)
        if leave.error:
            await call.send(TailChunk(error=leave.error).SerializeToString())
            return
        if leave.has_tasks:
            await call.send(TailChunk(has_tasks=True).SerializeToString())
            return
        files = [False, True] if leave.has_error_file else [False]
        requests = [self._tail_request(request, leave, error_file=error_file) for error_file in files]
        if request.follow:
            await self._follow(call, leave, requests)
        else:
            for tail in requests:
                await self._tail(call, leave, tail)

    async def _follow(self, call: Call, leave: PeekTicketReply, requests: list[TailRequest]) -> None:
        tails = [asyncio.create_task(self._tail(call, leave, request)) for request in requests]
        try:
            await asyncio.gather(*tails)
        finally:
            for tail in tails:
                tail.cancel()
            await asyncio.gather(*tails, return_exceptions=True)

    async def _ask_master(self, call: Call, name: str, request: Message, kind: type[Reply]) -> Reply:
        assert self.gateway is not None, "the assembly sets it before the socket listens"
        channel = await self.gateway.master()
        method = channel.unary_unary(name, request_serializer=None, response_deserializer=kind.FromString)
        try:
            reply: Reply = await method(
                request.SerializeToString(),
                metadata=call.caller.metadata(),
                timeout=self.gateway.limits.first_answer_s,
            )
        except grpc.aio.AioRpcError as error:
            raise self.gateway.failure(error) from None
        return reply

    @staticmethod
    def _tail_request(request: PeekRequest, leave: PeekTicketReply, *, error_file: bool) -> TailRequest:
        return TailRequest(
            key=leave.key,
            ticket=leave.ticket,
            follow=request.follow,
            error_file=error_file,
            last_bytes=request.last_bytes,
            task=leave.task if leave.HasField("task") else None,
        )

    async def _tail(self, call: Call, leave: PeekTicketReply, request: TailRequest) -> None:
        if leave.host == self._host:
            await self._peers.tail(request, lambda chunk: call.send(chunk.SerializeToString()))
            return
        async with self._channels.to(leave.host, leave.address) as channel:
            answers = channel.unary_stream(TAIL_METHOD, request_serializer=None, response_deserializer=None)(
                request.SerializeToString()
            )
            try:
                async for message in answers:
                    await call.send(message)
            except grpc.aio.AioRpcError as error:
                raise _peer_failure(error, leave.host) from None
            finally:
                answers.cancel()


async def _first_message(call: Call) -> TaskInput:
    try:
        return TaskInput.FromString(await call.receive() or b"")
    except DecodeError:
        raise CallFailed(frames.INVALID_ARGUMENT, "the request cannot be read") from None


def _is_answer(error: CallFailed | grpc.aio.AioRpcError, is_key_known: bool) -> bool:
    """Return True for an error after which a repetition is useless: not while the other may lack the key of tickets."""
    if isinstance(error, CallFailed):
        return error.status in (frames.NOT_FOUND, frames.PERMISSION_DENIED, frames.UNAUTHENTICATED)
    return is_key_known and error.code() in ANSWERS


def find_host(held: HeldAttempt, name: str) -> HostPart | None:
    """Return the host of the allocation named ``name``, with or without its domain."""
    parts = {part.host: part for part in held.allocation}
    host = names.host_meant(name, parts)
    return parts[host] if host is not None else None


def _peer_failure(error: grpc.aio.AioRpcError, host: str) -> CallFailed:
    if is_connection_lost(error):
        return CallFailed(frames.UNAVAILABLE, f"the connection to the agent of {host} was lost")
    code = error.code()
    return CallFailed(code.value[0], error.details() or f"the agent of {host} ended the call")
