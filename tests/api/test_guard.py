"""Answers to a malformed request, a refusal and a defect: one sentence, no traceback."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest

from lavad.api import interceptor
from lavad.core.model.reasons import NotNow, Refused
from protos import cluster_pb2, cluster_pb2_grpc

ERRORS = {"refused": Refused("not so"), "not now": NotNow("later"), "defect": ZeroDivisionError("secret")}


class Service(cluster_pb2_grpc.ClusterServiceServicer):
    """Service that fails as its request says."""

    async def Hosts(self, request: cluster_pb2.HostsRequest, context: Any) -> AsyncIterator[cluster_pb2.HostsPage]:
        yield cluster_pb2.HostsPage()
        raise ERRORS[request.names[0]]

    async def Queues(self, request: cluster_pb2.QueuesRequest, context: Any) -> cluster_pb2.QueuesReply:
        raise ERRORS[request.user]


def call(method: str, message: bytes) -> tuple[grpc.StatusCode, str]:
    """Status and text that end a call over raw bytes."""

    async def run() -> tuple[grpc.StatusCode, str]:
        server = grpc.aio.server(interceptors=[interceptor.Guard()])
        cluster_pb2_grpc.add_ClusterServiceServicer_to_server(Service(), server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            try:
                async for _ in channel.unary_stream(f"/lava.v1.ClusterService/{method}", None, None)(message):
                    pass
            except grpc.aio.AioRpcError as error:
                return error.code(), error.details() or ""
            finally:
                await server.stop(None)
        return grpc.StatusCode.OK, ""

    return asyncio.run(run())


HOSTS = {word: cluster_pb2.HostsRequest(names=[word]).SerializeToString() for word in ERRORS}
QUEUES = {word: cluster_pb2.QueuesRequest(user=word).SerializeToString() for word in ERRORS}


@pytest.mark.parametrize(("method", "messages"), [("Hosts", HOSTS), ("Queues", QUEUES)])
def test_each_failure_has_its_status_and_its_sentence(method: str, messages: dict[str, bytes]) -> None:
    """With one answer and with many."""
    assert call(method, b"\xff\xff\xff") == (grpc.StatusCode.INVALID_ARGUMENT, interceptor.UNREADABLE)
    assert call(method, messages["refused"]) == (grpc.StatusCode.INVALID_ARGUMENT, "not so")
    assert call(method, messages["not now"]) == (grpc.StatusCode.UNAVAILABLE, "later")
    assert call(method, messages["defect"]) == (grpc.StatusCode.INTERNAL, interceptor.DEFECT)


def test_an_unknown_method_is_said_to_be_one() -> None:
    """The interceptor passes it through."""
    assert call("Nothing", b"")[0] is grpc.StatusCode.UNIMPLEMENTED


def test_a_reader_who_has_gone_is_no_defect(caplog: pytest.LogCaptureFixture) -> None:
    """Any user can abandon an answer: that logs no traceback."""

    class Context:
        """A call that is over."""

        def done(self) -> bool:
            return True

    async def run() -> None:
        await interceptor._end(ZeroDivisionError(), "List", Context())

    asyncio.run(run())
    assert not [record for record in caplog.records if record.exc_info]
