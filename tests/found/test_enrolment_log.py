"""Refused enrolments in the master's log: strangers can call as often as they like."""

import asyncio
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lavactl.personal import directory as files
from lavad.api import enrolment
from lavad.api.trust import Trust
from protos import agents_pb2 as pb

CALLS = 200


def test_strangers_do_not_fill_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each refused call was a line; now an address has some in a minute, and one that counts the others."""
    monkeypatch.setattr(enrolment, "PERIOD_S", 0.05, raising=False)
    files.create(tmp_path / "D", files.Settings("test", "localhost:1", "127.0.0.1:1", "127.0.0.1:2", "root"))

    async def refused(peer: str) -> None:
        context = SimpleNamespace(peer=lambda: peer, auth_context=dict)
        reply = await service.Enrol(pb.EnrolRequest(host="n1", secret="guessed"), cast("Any", context))
        assert reply.error

    async def body() -> None:
        for port in range(CALLS):
            await refused(f"ipv4:192.0.2.1:{port}")
        await refused("ipv6:%5B2001:db8::1%5D:7")
        for number in range(2 * CALLS):
            await refused(f"ipv6:%5B2001:db8::2:{number}%5D:7")
        await asyncio.sleep(0.3)
        await refused("ipv4:192.0.2.1:9")
        await asyncio.sleep(0)

    service = enrolment.Enrolment(Trust(tmp_path / "D"))
    with caplog.at_level(logging.INFO, "audit"):
        asyncio.run(body())
    lines = caplog.text.splitlines()
    of_first = [line for line in lines if "192.0.2.1" in line]
    assert len(of_first) == enrolment.LINES_MAX + 2
    assert f"left_out={CALLS - enrolment.LINES_MAX} result=refused" in of_first[-2]
    assert sum("2001:db8::1%" in line for line in lines) == 1
    assert len(lines) < 2 * enrolment.ADDRESSES_MAX
    assert "left_out=297" in next(line for line in lines if "host=others" in line)
