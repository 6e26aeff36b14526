"""Audit lines of calls that change state, made by wrapping their methods.

A method that is not in the table changes nothing or, as Submit does, writes its own audit lines for each item.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any
from urllib.parse import unquote

import grpc
import grpc.aio

from lavad.audit import TRAIL, ranges
from lavad.core.model.reasons import NotNow, Refused
from protos import cluster_pb2, jobs_pb2
from protos.trust.roles import TrustError
from protos.trust.tls import peer_role
from protos.wire import CALLER_USER

Act = tuple[str, str, str]  # action, object, why it was refused
Describe = Callable[[Any, Any], Iterable[Act]]


class Auditor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Interceptor that audits the methods of the table; goes inside the guard, which turns exceptions into statuses."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Return the method's handler, wrapped to audit the call."""
        handler: Any = await continuation(handler_call_details)
        name = str(handler_call_details.method).rpartition("/")[2]
        if handler is None or name not in _ACTS or not handler.unary_unary:
            return handler
        audited = _audited(handler.unary_unary, name)
        return grpc.unary_unary_rpc_method_handler(audited, handler.request_deserializer, handler.response_serializer)


def _audited(method: Callable[[Any, Any], Awaitable[Any]], name: str) -> Callable[[Any, Any], Awaitable[Any]]:
    describe = _ACTS[name]

    @functools.wraps(method)
    async def audited(request: Any, context: Any) -> Any:
        try:
            answer = await method(request, context)
        except (Refused, NotNow, grpc.aio.AbortError) as error:
            why = str(error) or str(context.details() or "the call was refused")
            _note(context, [(name.lower(), _asked(request), why)])
            raise
        except asyncio.CancelledError:  # a part may be done: signals to many jobs are sent in portions
            action = _action(request) if isinstance(request, jobs_pb2.SignalRequest) else name.lower()
            TRAIL.note(*caller_of(context), action, _asked(request), is_left=True)
            raise
        _note(context, describe(request, answer))
        return answer

    return audited


def _note(context: Any, acts: Iterable[Act]) -> None:
    user, host = caller_of(context)
    for action, what, refusal in acts:
        TRAIL.note(user, host, action, what, refusal)


def caller_of(context: Any) -> tuple[str, str]:
    """Return the user and host that a call claims, verified or not."""
    try:
        host = peer_role(context.auth_context()).host or "-"
    except TrustError:
        host = "-"
    metadata = dict(context.invocation_metadata() or ())
    return unquote(str(metadata.get(CALLER_USER, "-"))), host


def _asked(request: Any) -> str:
    """Name the jobs of a request that was refused as a whole, or has no answer."""
    refs = getattr(request, "refs", None) or getattr(getattr(request, "filter", None), "refs", ())
    return f"jobs={ranges(ref.job for ref in refs)}" if refs else "jobs=-"


def _each(action: str, results: Iterable[Any]) -> Iterator[Act]:
    """Yield one line for all jobs that got the same answer."""
    by_answer: dict[str, list[Any]] = {}
    for one in results:
        by_answer.setdefault(_general(one), []).append(one)
    for why, ones in by_answer.items():
        elements = [f"{one.job}[{one.index}]" for one in ones if one.index]
        jobs = ranges(one.job for one in ones if not one.index)
        yield action, f"jobs={','.join(filter(None, [jobs, *elements[:50]]))}", why


def _general(one: Any) -> str:
    """Return the answer without the job's own id, which is in a field of its own."""
    return str(one.error).replace(f"Job <{one.job}>", "Job")


def _action(request: jobs_pb2.SignalRequest) -> str:
    if request.action == jobs_pb2.SEND:
        return f"signal_{request.signal}"
    return jobs_pb2.SignalAction.Name(request.action).lower()


def _signal(request: jobs_pb2.SignalRequest, reply: jobs_pb2.SignalReply) -> Iterator[Act]:
    action = _action(request)
    if reply.error:
        yield action, "jobs=-", reply.error
    yield from _each(action, reply.results)


def _modify(request: jobs_pb2.ModifyRequest, reply: jobs_pb2.ModifyReply) -> Iterator[Act]:
    return _each("switch" if request.is_switch else "modify", reply.results)


def _one(action: str) -> Describe:
    def describe(request: Any, reply: Any) -> Iterator[Act]:
        indices = ",".join(f"{part.first}-{part.last}" for part in request.ref.indices)
        yield action, f"jobs={request.ref.job}{f'[{indices}]' if indices else ''}", reply.error

    return describe


def _control(request: cluster_pb2.ControlRequest, reply: cluster_pb2.ControlReply) -> Iterator[Act]:
    action = cluster_pb2.ControlAction.Name(request.action).lower()
    said = f" lock_ids={','.join(request.lock_ids)!r}" if request.lock_ids else ""
    said += f" group={request.group!r}" if request.group else ""
    said += f" comment={request.comment!r}" if request.comment else ""
    for one in reply.results:
        yield action, f"name={one.name!r}{said}", one.error


def _configure(request: cluster_pb2.ConfigureRequest, reply: cluster_pb2.ConfigureReply) -> Iterator[Act]:
    if request.apply:
        said = f"comment={request.comment!r}" if request.comment else ""
        yield "reconfigure", said, "" if reply.applied else "there are fatal errors"


def _performance(request: cluster_pb2.PerformanceRequest, reply: cluster_pb2.PerformanceReply) -> Iterator[Act]:
    if request.action != cluster_pb2.VIEW_PERFORMANCE:
        yield cluster_pb2.PerformanceAction.Name(request.action).lower(), f"period_s={reply.period_s}", ""


def _diagnose(request: cluster_pb2.DiagnoseRequest, reply: cluster_pb2.DiagnoseReply) -> Iterator[Act]:
    yield "stop_query_log" if request.off else "start_query_log", f"file={reply.path!r}", ""


def _reserve(request: cluster_pb2.ReserveRequest, reply: cluster_pb2.ReserveReply) -> Iterator[Act]:
    yield cluster_pb2.ReservationAction.Name(request.action).lower(), f"name={reply.name or request.name!r}", ""


_ACTS: dict[str, Describe] = {
    "Signal": _signal,
    "Modify": _modify,
    "Move": _one("move"),
    "Force": _one("run"),
    "Resize": _one("resize"),
    "Control": _control,
    "Configure": _configure,
    "Performance": _performance,
    "Diagnose": _diagnose,
    "Reserve": _reserve,
}
