"""The reader process: same answers as in one process, slow clients, and its end in the middle of a query."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lavad.api.history import protocol
from lavad.api.history import reader as reading
from lavad.api.history.answers import Answers
from lavad.api.history.question import HISTORIES, Question, question_of
from lavad.api.history.reader import ENDED, HistoryReader
from lavad.api.jobs import history as job_history
from lavad.api.jobs.history import Stored
from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import NotNow
from protos import jobs_pb2 as pb
from tests.fakes.world import new_job
from tests.store.saved import Saved, saving
from tests.store.saving import Submitter, appended, durable, opened

ALICE = c.Caller("alice", 1000)
PATIENCE_S = 60.0


def question(name: str = "") -> Question:
    """Long histories of all of alice's jobs, or of those with such a name."""
    request = pb.HistoryRequest(filter=pb.JobFilter(finished_too=True, name=name), details=True)
    return question_of(HISTORIES, request, 10.0, ALICE, Policy())


def fill(saved: Saved, elements: int = 3) -> None:
    """A single job and an array."""
    assert saved.world.do(c.SubmitJob(new_job("single", spec=b""), ALICE))
    assert saved.world.do(c.SubmitJob(new_job("sweep", spec=b"", indices=(range(1, elements + 1),)), ALICE))
    saved.commit()


@asynccontextmanager
async def started(where: str) -> AsyncIterator[HistoryReader]:
    """A reader, closed in any case, and its process ended."""
    reader = HistoryReader(where)
    try:
        yield reader
    finally:
        pid = reader.pid
        await reader.close()
        assert not pid or not Path(f"/proc/{pid}").exists()


async def first_page(pages: AsyncIterator[bytes]) -> pb.HistoryPage:
    """The next page, which must come."""
    return pb.HistoryPage.FromString(await asyncio.wait_for(anext(pages), PATIENCE_S))


async def whole(reader: HistoryReader, asked: Question) -> list[pb.HistoryPage]:
    """All pages of an answer, parsed: two processes order a map differently."""
    async with asyncio.timeout(PATIENCE_S):
        return [pb.HistoryPage.FromString(page) async for page in reader.pages(asked)]


def made_here(saved: Saved) -> list[pb.HistoryPage]:
    """The pages as they are made in this process."""
    return [pb.HistoryPage.FromString(page) for page in Answers(saved.read).pages(question()) if page]


def test_the_answer_of_the_process_is_the_same(database_url: str) -> None:
    """Page for page, on both databases, also of jobs that come while it runs."""

    async def run() -> None:
        with saving(database_url) as saved:
            fill(saved)
            async with started(database_url) as reader:
                for _ in range(2):
                    assert await whole(reader, question()) == made_here(saved)
                    fill(saved)

    asyncio.run(run())


def test_an_answer_has_what_is_being_committed(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory shows a job before it is on disk; its history must not lack it."""
    monkeypatch.setattr(job_history, "COMMIT_WAIT_S", PATIENCE_S)

    async def run() -> None:
        async with opened(database_url) as store, started(database_url) as reader:
            stored, cluster = Stored(store, reader), Cluster(Policy())
            submitter = Submitter(store)
            request = pb.HistoryRequest(filter=pb.JobFilter(finished_too=True))

            async def jobs() -> list[int]:
                pages = [pb.HistoryPage.FromString(page) async for page in stored.history(request, ALICE, cluster)]
                return [job.job for page in pages for job in page.jobs]

            await durable(store, submitter.submit(new_job("first", spec=b"")))
            assert await jobs() == [1]
            os.kill(store.writer_pid, signal.SIGSTOP)
            try:
                appended(store, submitter.submit(new_job("second", spec=b"")))
                asked = asyncio.create_task(jobs())
                assert not (await asyncio.wait({asked}, timeout=0.5))[0]
            finally:
                os.kill(store.writer_pid, signal.SIGCONT)
            assert sorted(await asked) == [1, 2]

    asyncio.run(run())


def test_a_reader_that_dies_is_replaced(tmp_path: Path) -> None:
    """A query without a page yet is asked again; one that has had some fails with a sentence, and the next succeeds."""

    async def run() -> None:
        with saving(f"{tmp_path}/lava.db") as saved:
            fill(saved, elements=3000)
            async with started(f"{tmp_path}/lava.db") as reader:
                first, pid = await whole(reader, question()), reader.pid
                os.kill(pid, signal.SIGSTOP)
                waiting = asyncio.create_task(whole(reader, question()))
                await asyncio.sleep(0.05)
                os.kill(pid, signal.SIGKILL)
                assert await waiting == first
                assert reader.pid != pid
                async with aclosing(reader.pages(question())) as pages:
                    assert await first_page(pages) == first[0]
                    os.kill(reader.pid, signal.SIGKILL)
                    with pytest.raises(NotNow, match=ENDED):
                        await asyncio.wait_for(_rest(pages), PATIENCE_S)
                assert await whole(reader, question()) == first

    asyncio.run(run())


async def _rest(pages: AsyncIterator[bytes]) -> None:
    async for _ in pages:
        pass


def test_a_reader_that_says_nothing_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The query that waited for it is asked of the next one."""
    start = reading._start

    async def patient(database: str) -> Any:
        monkeypatch.setattr(reading, "SILENCE_S", PATIENCE_S)
        return await start(database)

    async def run() -> None:
        with saving(f"{tmp_path}/lava.db") as saved:
            fill(saved)
            async with started(f"{tmp_path}/lava.db") as reader:
                first, pid = await whole(reader, question()), reader.pid
                os.kill(pid, signal.SIGSTOP)
                monkeypatch.setattr(reading, "SILENCE_S", 0.2)
                monkeypatch.setattr(reading, "_start", patient)
                assert await whole(reader, question()) == first
                assert not Path(f"/proc/{pid}").exists()

    asyncio.run(run())


def test_a_slow_client_holds_a_few_pages_only(tmp_path: Path) -> None:
    """Others are answered meanwhile; one that goes away leaves nothing behind, and one that goes on gets the rest."""

    async def run() -> None:
        with saving(f"{tmp_path}/lava.db") as saved:
            fill(saved, elements=3500)
            async with started(f"{tmp_path}/lava.db") as reader:
                slow, gone = reader.pages(question()), reader.pages(question())
                page = await first_page(slow)
                await first_page(gone)
                assert len(await whole(reader, question("single"))) == 1
                link = reader._link
                assert link is not None
                await asyncio.sleep(0.2)
                assert all(inbox.qsize() < protocol.PAGES_AHEAD for inbox in link._inboxes.values())
                assert len(link._inboxes) == 2
                await gone.aclose()
                assert len(link._inboxes) == 1
                rest = [pb.HistoryPage.FromString(page) async for page in slow]
                assert not link._inboxes
                assert [page, *rest] == made_here(saved)

    asyncio.run(run())


def test_a_database_that_is_gone_is_not_now(tmp_path: Path) -> None:
    """In a sentence; the process stays."""

    async def run() -> None:
        async with started(f"{tmp_path}/none/lava.db") as reader:
            with pytest.raises(NotNow, match=r"^The database can't be read at the moment\.$"):
                await whole(reader, question())
            pid = reader.pid
            with pytest.raises(NotNow):
                await whole(reader, question())
            assert reader.pid == pid

    asyncio.run(run())


def test_an_error_of_the_readers_own_fails_the_query_alone(tmp_path: Path) -> None:
    """The master answers it as it does its own; the process stays."""

    async def run() -> None:
        with saving(f"{tmp_path}/lava.db") as saved:
            fill(saved)
            async with started(f"{tmp_path}/lava.db") as reader:
                with pytest.raises(RuntimeError, match="the log"):
                    await whole(reader, question()._replace(request=b"\xff"))
                pid = reader.pid
                assert await whole(reader, question())
                assert reader.pid == pid

    asyncio.run(run())


MASTER = """
import asyncio, sys
from tests.store.test_history_reader import HistoryReader, first_page, question

async def run() -> None:
    reader = HistoryReader(sys.argv[1])
    pages = reader.pages(question())
    await first_page(pages)
    print(reader.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(run())
"""


def test_it_ends_with_a_master_that_is_killed(tmp_path: Path) -> None:
    """Also with a query under way."""
    with saving(f"{tmp_path}/lava.db") as saved:
        fill(saved, elements=3500)
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", MASTER, f"{tmp_path}/lava.db"]
    master = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(root)})
    try:
        assert master.stdout is not None
        pid = int(master.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
    finally:
        master.kill()
        master.communicate()
    ends_at = time.monotonic() + PATIENCE_S
    while _is_running(pid):
        assert time.monotonic() < ends_at, "the reader has outlived its master"
        time.sleep(0.01)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
