"""An agent that the master turns away: its attempts become rare, and its lines in both logs."""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from agents.daemon import Daemon
from agents.master import backoff, session
from agents.master.backoff import FIRST_S, LOG_AGAIN_S, MAX_S, TURNED_AWAY_MAX_S, Backoff
from agents.master.enrolment import FILE_NAME
from lavad.api.interceptor import REFUSALS_KEPT, REFUSED_AGAIN_S, Refusals

DAY_S = 86400.0


def _status(code: grpc.StatusCode) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), "The certificate of n1 is revoked.")


REVOKED, AWAY = _status(grpc.StatusCode.UNAUTHENTICATED), _status(grpc.StatusCode.UNAVAILABLE)


@pytest.fixture
def _no_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff.random, "uniform", lambda low, high: 1.0)


def _day_of(error: Exception) -> tuple[list[float], int]:
    """Pauses of a day in which each attempt fails so, and the number of lines."""
    now, pauses, lines = 0.0, list[float](), 0
    one = Backoff(lambda: now)
    while now < DAY_S:
        lines += one.is_news(error)
        pauses.append(one.pause_s(error, has_succeeded=False))
        now += pauses[-1]
    return pauses, lines


@pytest.mark.usefixtures("_no_jitter")
def test_a_removed_host_tries_rarely_and_says_so_rarely() -> None:
    """It tried every two to six seconds for ever, with a warning in both logs each time."""
    pauses, lines = _day_of(REVOKED)
    assert pauses[:4] == [FIRST_S * 2**n for n in range(4)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == TURNED_AWAY_MAX_S
    assert len(pauses) < DAY_S / TURNED_AWAY_MAX_S + 20
    assert lines < DAY_S / LOG_AGAIN_S + 20


@pytest.mark.usefixtures("_no_jitter")
def test_a_master_that_is_away_is_asked_as_often_as_before() -> None:
    """Also by an agent that had been turned away, and every failure is logged."""
    pauses, lines = _day_of(AWAY)
    assert pauses[-1] == MAX_S
    assert lines == len(pauses)
    one = Backoff(lambda: 0.0)
    for _ in range(20):
        one.pause_s(REVOKED, has_succeeded=False)
    assert one.is_news(AWAY)
    assert one.pause_s(AWAY, has_succeeded=False) == MAX_S
    assert one.pause_s(None, has_succeeded=True) == FIRST_S


def test_a_host_that_gets_a_new_ticket_does_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of its certificate or ticket ends the pause."""
    monkeypatch.setattr(session, "CREDENTIALS_S", 0.01)
    identity, ticket = tmp_path / "identity" / FILE_NAME, tmp_path / "ticket"
    identity.parent.mkdir()
    identity.touch()
    options: Any = type("Options", (), {"state": tmp_path, "ticket": ticket})
    daemon: Any = type("Host", (), {"_options": options})
    agent: Any = type("Agent", (), {"credentials": staticmethod(lambda: Daemon._credentials(daemon))})

    async def story(change: Callable[[], None]) -> float:
        before = time.monotonic()
        asyncio.get_running_loop().call_later(0.1, change)
        await session.Session._pause(agent, 60.0)
        return time.monotonic() - before

    for change in (ticket.touch, identity.unlink):
        assert 0.1 <= asyncio.run(story(change)) < 30.0
    asyncio.run(asyncio.wait_for(session.Session._pause(agent, 0.05), 30.0))


def test_the_master_logs_the_calls_of_a_removed_host_rarely(caplog: pytest.LogCaptureFixture) -> None:
    """The first of each address and reason, and then one each hour, with the number of the others."""
    now = 5.0
    refusals = Refusals(lambda: now)
    with caplog.at_level(logging.WARNING):
        for port in range(10):
            refusals.note(f"ipv4:10.0.0.1:{port}", "revoked")
        refusals.note("ipv4:10.0.0.2:7", "revoked")
        now += REFUSED_AGAIN_S
        refusals.note("ipv4:10.0.0.1:99", "revoked")
    told = [record.getMessage().split(" reason")[0] for record in caplog.records]
    assert told == [
        "call=refused peer=ipv4:10.0.0.1:0 not_logged=0",
        "call=refused peer=ipv4:10.0.0.2:7 not_logged=0",
        "call=refused peer=ipv4:10.0.0.1:99 not_logged=9",
    ]
    for number in range(2 * REFUSALS_KEPT):
        refusals.note(f"ipv4:10.1.{number // 256}.{number % 256}:1", "revoked")
    assert len(refusals._told) == REFUSALS_KEPT
