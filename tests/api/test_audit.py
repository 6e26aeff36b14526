"""Audit lines of calls that change jobs."""

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from lavad.api import audit
from protos import jobs_pb2 as pb
from protos.wire import CALLER_USER


def test_a_call_that_its_caller_leaves_is_noted(caplog: pytest.LogCaptureFixture) -> None:
    """Some of the jobs of a bkill that is interrupted have been ended."""
    context: Any = SimpleNamespace(
        auth_context=dict[str, list[bytes]], invocation_metadata=lambda: ((CALLER_USER, "ann"),)
    )

    async def method(request: pb.SignalRequest, context: Any) -> pb.SignalReply:
        await asyncio.sleep(60)
        return pb.SignalReply()

    async def body(request: pb.SignalRequest) -> None:
        call = asyncio.ensure_future(audit._audited(method, "Signal")(request, context))
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])
        await asyncio.sleep(0)
        assert call.cancelled()

    with caplog.at_level(logging.INFO, "audit"):
        for request in (pb.SignalRequest(), pb.SignalRequest(action=pb.SEND, signal=2)):
            request.filter.refs.add(job=7)
            asyncio.run(body(request))
    assert [record.getMessage() for record in caplog.records] == [
        "user=ann host='-' action=terminate jobs=7 result=left",
        "user=ann host='-' action=signal_2 jobs=7 result=left",
    ]
