"""Reconnection after every kind of session end: no exception of a stream ends the agent."""

import asyncio
from typing import Any

import grpc
import grpc.aio
import pytest

from agents.master.session import Session, SessionRefused
from protos.cluster_pb2 import HostFacts
from protos.trust.roles import TrustError


class Nobody:
    """Stand-in for uninvolved parts of an agent."""

    say: Any = None
    use: Any = None


@pytest.mark.parametrize(
    "error",
    [
        asyncio.InvalidStateError("RPC already finished."),
        TrustError("The certificate belongs to another key."),
        OSError("no route"),
        TimeoutError(),
        SessionRefused("another protocol"),
    ],
)
def test_every_end_is_followed_by_another_try(error: Exception) -> None:
    """Also a write into a stream that has ended in that instant."""

    async def body() -> None:
        tries = asyncio.Semaphore(0)

        async def dial() -> grpc.aio.Channel:
            tries.release()
            raise error

        nobody: Any = Nobody()
        session = Session(dial, HostFacts(), 1, nobody, nobody, lambda old, new: False, nobody, nobody)
        connecting = asyncio.create_task(session._stay_connected())
        for _ in range(2):
            await asyncio.wait_for(tries.acquire(), 60)
        assert not connecting.done()
        connecting.cancel()
        await asyncio.gather(connecting, return_exceptions=True)

    asyncio.run(body())
