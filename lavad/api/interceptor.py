"""Error replies of gRPC calls: unreadable requests, refusals of a whole request, defects.

Each reply is one sentence, never a traceback or the name of an exception; a defect goes to the log with its traceback.
Unreadable requests reach no method.
"""

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from lavad.api.trust import Trust
from lavad.core.model.reasons import NotNow, Refused
from protos.trust.tls import TrustError

log = logging.getLogger(__name__)

Method = Callable[[Any, Any], Any]
Handler = Any  # grpc.RpcMethodHandler, which is generic in its type stubs only

UNREADABLE = "The request can't be read: the program that sent it does not fit this master."
DEFECT = "The master met an error of its own; its log has the details."


class Unreadable:
    """Stand-in for a message that could not be parsed; the reader of a stream takes any foreign type for its end."""


class Guard(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Interceptor around every method of a server; with ``trust``, it ends calls with revoked certificates."""

    def __init__(self, trust: Trust | None = None) -> None:
        self._trust = trust

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
        read = _cautious(handler.request_deserializer)
        if handler.unary_unary:
            one = _guarded_one(handler.unary_unary, name, self._trust)
            return grpc.unary_unary_rpc_method_handler(one, read, handler.response_serializer)
        if handler.unary_stream:
            many = _guarded_many(handler.unary_stream, name, self._trust)
            return grpc.unary_stream_rpc_method_handler(many, read, handler.response_serializer)
        both = _guarded_one(handler.stream_stream, name, self._trust)
        return grpc.stream_stream_rpc_method_handler(both, read, handler.response_serializer)


def _cautious(read: Any) -> Callable[[bytes], Any]:
    def reading(data: bytes) -> Any:
        try:
            return read(data)
        except DecodeError:
            return Unreadable()

    return reading


def _guarded_one(method: Method, name: str, trust: Trust | None) -> Method:
    """Guard a method that returns its answer, or writes its answers itself."""

    @functools.wraps(method)
    async def guarded(request: Any, context: Any) -> Any:
        try:
            await _check_trusted(trust, context)
            check_readable(request)
            return await method(request, context)
        except Exception as error:
            await _end(error, name, context)

    return guarded


def _guarded_many(method: Method, name: str, trust: Trust | None) -> Method:
    """Guard a method that yields its answers; they are written here, so that a reader that has left is noticed here."""

    @functools.wraps(method)
    async def guarded(request: Any, context: Any) -> None:
        try:
            await _check_trusted(trust, context)
            check_readable(request)
            async for answer in method(request, context):
                await context.write(answer)
        except Exception as error:
            await _end(error, name, context)

    return guarded


async def _check_trusted(trust: Trust | None, context: Any) -> None:
    """End the call of an agent whose certificate is revoked."""
    try:
        refusal = trust.why_refused(context) if trust is not None else ""
    except TrustError as error:
        log.error("trust=unreadable reason=%r", str(error))
        raise NotNow(str(error)) from error
    if refusal:
        log.warning("call=refused peer=%s reason=%r", context.peer(), refusal)
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, refusal)


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
