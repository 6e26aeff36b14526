"""Words and files of jobs, as an agent reads them, bad ones too; and notices that come while another is told."""

import asyncio
import json
import logging
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agents.attempts.ledger_entry import State
from agents.job_socket import news
from agents.job_socket.answers import Answers, Request
from agents.job_socket.members import Member, _run_in
from agents.job_socket.news import Bell, NoticeBoard
from agents.shepherd.messages import Key, Notice, notice_path
from agents.shepherd.notices import NoticeFile

KEY: Key = (7, 0, 1)
GOOD = {"number": 1, "event": "evict", "reason": "for a test", "time": 5.0, "at": None, "seconds_left": None}


def adopted(directory: Path, content: bytes) -> list[Notice]:
    """Notices of an attempt with this file, as a new agent knows them."""
    Path(notice_path(str(directory), KEY)).write_bytes(content)
    board = NoticeBoard(str(directory), Bell())
    board.adopt([KEY])
    return board.of(KEY)


@pytest.mark.parametrize(
    "bad",
    [
        b"[" * 100_000,
        b"[1]",
        b"7",
        b"\xff",
        b"1" * 5000,
        json.dumps({**GOOD, "number": "2"}).encode(),
        json.dumps({**GOOD, "time": 10**400}).encode(),
        json.dumps({**GOOD, "at": "soon"}).encode(),
        json.dumps({**GOOD, "reason": ["x"]}).encode(),
        json.dumps({"number": 2}).encode(),
    ],
)
def test_a_bad_notice_file_costs_a_warning_and_no_more(
    bad: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The lines before the bad one count."""
    with caplog.at_level(logging.WARNING):
        known = adopted(tmp_path, json.dumps(GOOD).encode() + b"\n" + bad + b"\n")
    assert known == [Notice(1, "evict", "for a test", 5.0, 0.0)]
    assert len(caplog.records) == 1


def test_of_a_huge_notice_file_the_newest_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more of it than a bound."""
    monkeypatch.setattr(news, "FILE_BYTES", 1000)
    lines = [json.dumps({**GOOD, "number": number}) for number in range(1, 1000)]
    known = adopted(tmp_path, "".join(f"{line}\n" for line in lines).encode())
    assert known[-1].number == 999
    assert len(known) < 20


@pytest.mark.root
def test_the_notice_file_is_not_the_users_to_write(tmp_path: Path) -> None:
    """It belongs to root; the user reads it by its group. What a new agent reads is what was written."""
    path = tmp_path / "7-0-1.notice"
    told = NoticeFile(str(path), 65533).add("evict", "for a test", 0.0)
    status = path.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (os.geteuid(), 65533, 0o640)
    assert [one._replace(time=0.0) for one in news.read_notices(path)] == [told._replace(time=0.0)]


def test_a_notice_that_comes_while_another_is_told_is_told(tmp_path: Path) -> None:
    """It is told at once, not with the next one."""

    async def story() -> None:
        bell = Bell()
        board = NoticeBoard(str(tmp_path), bell)
        answers = Answers(cast("Any", None), cast("Any", None), board, bell, cast("Any", None))
        entry = SimpleNamespace(key=KEY, state=State.HELD)
        member = Member(cast("Any", entry), 1, None)
        board.add(KEY, Notice(1, "evict", "first", 1.0, 0.0))
        told = await answers.answer(member, Request("GET", "/v1/notices/stream", {}, b""))
        assert not isinstance(told, dict)
        assert (await anext(told))["number"] == 1
        board.add(KEY, Notice(2, "evict", "second", 2.0, 0.0))  # the caller still takes the first
        async with asyncio.timeout(60):
            assert (await anext(told))["number"] == 2

    asyncio.run(story())


@pytest.mark.parametrize("index", ["1" * 5000, "-1", "\u0661" * 4400, ""])
def test_a_wrong_index_in_an_environment_names_no_task(index: str) -> None:
    """The environment is the job's to change."""
    roles = [SimpleNamespace(name="worker")]
    entry = SimpleNamespace(
        tasks=SimpleNamespace(known={}), blob=SimpleNamespace(spec=SimpleNamespace(roles=roles)), key=KEY
    )
    assert _run_in(f"LAVA_ROLE=worker\0LAVA_ROLE_INDEX={index}\0", cast("Any", entry)) is None
