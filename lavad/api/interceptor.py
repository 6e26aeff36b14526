"""Error replies of gRPC calls: unreadable requests, refusals of a whole request, defects.

Each reply is one sentence, never a traceback or the name of an exception; a defect goes to the log with its traceback.
Unreadable requests reach no method.
"""

import asyncio
import contextlib
import functools
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError, Message

from lavad.api import texts
from lavad.api.trust import Trust
from lavad.core.model.reasons import NotNow, Refused
from protos.trust.roles import TrustError

log = logging.getLogger(__name__)

Method = Callable[[Any, Any], Any]
Check = Callable[[Any], Awaitable[None]]
Handler = Any  # grpc.RpcMethodHandler, which is generic in its type stubs only

UNREADABLE = "The request can't be read: the program that sent it does not fit this master."
OF_USERS = ("/lava.v1.JobService/", "/lava.v1.ClusterService/")  # services whose requests users make
REFUSED_AGAIN_S = 3600.0
REFUSALS_KEPT = 1000  # addresses; an older one is logged again
DEFECT = "The master met an error of its own; its log has the details."


class Unreadable:
    """Stand-in for a message that could not be parsed; the reader of a stream takes any foreign type for its end."""


class Guard(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Interceptor around every method of a server; with ``trust``, it ends calls with revoked certificates."""

    def __init__(self, trust: Trust | None = None) -> None:
        self._trust = trust
        self._refusals = Refusals()
        self._guarded: dict[str, tuple[Handler, Handler]] = {}  # handlers of methods, as they are and guarded

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Return the method's handler with a guarded parser and a handler for all exceptions."""
        handler: Any = await continuation(handler_call_details)
        if handler is None:  # no such method: the library answers
            return None
        name = str(handler_call_details.method)
        known = self._guarded.get(name)
        if known is None or known[0] is not handler:
            known = self._guarded[name] = handler, self._guard(handler, name)
        return known[1]

    def _guard(self, handler: Handler, name: str) -> Handler:
        read = _cautious(handler.request_deserializer)
        if handler.unary_unary:
            one = _guarded_one(handler.unary_unary, name, self._check_trusted)
            return grpc.unary_unary_rpc_method_handler(one, read, handler.response_serializer)
        if handler.unary_stream:
            many = _guarded_many(handler.unary_stream, name, self._check_trusted)
            return grpc.unary_stream_rpc_method_handler(many, read, _ready_or(handler.response_serializer))
        both = _guarded_one(handler.stream_stream, name, self._check_trusted)
        return grpc.stream_stream_rpc_method_handler(both, read, handler.response_serializer)

    async def _check_trusted(self, context: Any) -> None:
        """End the call of an agent whose certificate is revoked."""
        try:
            refusal = self._trust.why_refused(context) if self._trust is not None else ""
        except TrustError as error:
            log.error("trust=unreadable reason=%r", str(error))
            raise NotNow(str(error)) from error
        if refusal:
            self._refusals.note(context.peer(), refusal)
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, refusal)


class Refusals:
    """Log of refused calls: the first of each address and reason, and one for all others of an hour."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told: OrderedDict[tuple[str, str], tuple[float, int]] = OrderedDict()  # when, and how many since

    def note(self, peer: str, reason: str) -> None:
        """Log the call, or count it."""
        address = peer.rpartition(":")[0], reason  # each call comes from a port of its own
        told_at, more = self._told.get(address, (-REFUSED_AGAIN_S, 0))
        if self._clock() - told_at < REFUSED_AGAIN_S:
            self._told[address] = told_at, more + 1
            return
        self._told[address] = self._clock(), 0
        self._told.move_to_end(address)
        if len(self._told) > REFUSALS_KEPT:
            self._told.popitem(last=False)
        log.warning("call=refused peer=%s not_logged=%d reason=%r", peer, more, reason)


def _cautious(read: Any) -> Callable[[bytes], Any]:
    def reading(data: bytes) -> Any:
        try:
            return read(data)
        except DecodeError:
            return Unreadable()

    return reading


def _ready_or(write: Any) -> Callable[[Any], bytes]:
    """Return a serialiser that passes on what is serialised already: pages of the reader process."""
    return lambda answer: answer if isinstance(answer, bytes) else write(answer)


def _guarded_one(method: Method, name: str, check: Check) -> Method:
    """Guard a method that returns its answer, or writes its answers itself."""

    @functools.wraps(method)
    async def guarded(request: Any, context: Any) -> Any:
        try:
            await check(context)
            check_request(request, name)
            return await method(request, context)
        except Exception as error:
            await _end(error, name, context)

    return guarded


def _guarded_many(method: Method, name: str, check: Check) -> Method:
    """Guard a method that yields its answers; they are written here, so that a reader that has left is noticed here."""

    @functools.wraps(method)
    async def guarded(request: Any, context: Any) -> None:
        try:
            await check(context)
            check_request(request, name)
            async with contextlib.aclosing(method(request, context)) as answers:
                async for answer in answers:
                    await context.write(answer)
        except Exception as error:
            await _end(error, name, context)

    return guarded


def check_request(request: Any, name: str) -> None:
    """Check a request before its method has it; those of a stream are the method's own to check.

    Raises:
        Refused: it could not be parsed, or is a user's and has a text that no request may have.
    """
    check_readable(request)
    if isinstance(request, Message) and name.startswith(OF_USERS):
        texts.check(request)


def check_readable(message: Any) -> None:
    """Check what a method that reads its stream itself took for the end of the stream.

    Raises:
            Refused: it was a message that could not be parsed.
    """
    if isinstance(message, Unreadable):
        raise Refused(UNREADABLE)


async def _end(error: Exception, name: str, context: Any) -> None:
    """End a call that failed as a whole; deliberate aborts are raised again, and an abandoned call is only logged."""
    if context.done() or isinstance(error, grpc.aio.InternalError):  # the library's sign that the answer cannot be sent
        log.info("call=abandoned method=%s", name)
        return
    if isinstance(error, Refused):
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
    if isinstance(error, NotNow):
        await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
    if isinstance(error, grpc.aio.AbortError | grpc.aio.UsageError | asyncio.InvalidStateError):
        raise error
    log.error("call=failed method=%s", name, exc_info=error)
    await context.abort(grpc.StatusCode.INTERNAL, DEFECT)
