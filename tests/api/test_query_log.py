"""Log of queries: which calls are written, for how long, and in which files."""

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from lavad.api.cluster import query_log
from lavad.api.cluster.query_log import QueryLog
from lavad.core.model.reasons import Refused
from protos.wire import CALLER_USER


async def _answer(request: Any, context: Any) -> str:
    return f"answer to {request}"


async def _handler(details: Any) -> Any:
    return grpc.unary_unary_rpc_method_handler(_answer)


async def _call(log: QueryLog, method: str, user: str) -> str:
    details: Any = SimpleNamespace(method=f"/lava.v1.{method}")
    handler = await log.intercept_service(_handler, details)
    context = SimpleNamespace(auth_context=dict, invocation_metadata=lambda: ((CALLER_USER, user),))
    answer: str = await handler.unary_unary("it", context)
    return answer


def test_queries_are_written_while_it_is_on(tmp_path: Path) -> None:
    """With user, host and call; other calls and times are not, and the answers are the same."""
    asyncio.run(_write(tmp_path))


async def _write(directory: Path) -> None:
    now = 1_795_253_400.0
    log = QueryLog(directory, lambda: now)
    assert log.stop() is None
    assert await _call(log, "JobService/List", "ann") == "answer to it"
    path = log.start("", 120.0)
    assert path == directory / "query.log"
    assert path.stat().st_mode & 0o777 == 0o600
    assert await _call(log, "JobService/List", "ann%2C%0A") == "answer to it"
    await _call(log, "JobService/Signal", "bob")
    now += 121
    await _call(log, "ClusterService/Hosts", "bob")  # the time is over: the last one
    await _call(log, "ClusterService/Hosts", "eve")
    lines = path.read_text().splitlines()
    assert lines[0] == "time,user,host,call"
    assert [line.split(",")[1:] for line in lines[1:]] == [["ann??", "-", "List"], ["bob", "-", "Hosts"]]
    log.start("", 0.0)  # it goes on in the same file
    await _call(log, "ClusterService/Queues", "ann")
    assert log.stop() == path
    assert len(path.read_text().splitlines()) == 4


def test_a_file_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log ends at the largest size."""
    monkeypatch.setattr(query_log, "BYTES_MAX", 60)

    async def write() -> None:
        log = QueryLog(tmp_path)
        log.start("small", 0.0)
        for _ in range(5):
            await _call(log, "JobService/List", "ann")
        assert log.stop() is None

    asyncio.run(write())
    assert len((tmp_path / "small").read_text().splitlines()) == 3


@pytest.mark.parametrize("name", ["../it", "/etc/passwd", "..", "a\nb", "lava.db", "link"])
def test_files_that_are_refused(tmp_path: Path, name: str) -> None:
    """No file elsewhere, and none of another kind, is written to."""
    (tmp_path / "lava.db").write_text("data\n")
    os.symlink("lava.db", tmp_path / "link")
    log = QueryLog(tmp_path)
    with pytest.raises(Refused):
        log.start(name, 0.0)
    assert (tmp_path / "lava.db").read_text() == "data\n"
