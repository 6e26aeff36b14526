"""Durability on disk: synced before acknowledgement, and no loss when the disk is full or fails."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lavad.store import schema
from lavad.store.store import Store
from lavad.store.writer.batch import Batch
from tests.fakes.world import new_job
from tests.store.saving import Lost, Submitter, appended, durable, events_batch, eventually, opened, rows

_TRACED = "fdatasync,fsync,sendto,write,pwrite64"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four MiB."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", tmp_path], check=True, timeout=60)
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", tmp_path], check=True, timeout=60)


@pytest.mark.root
@pytest.mark.slow
def test_a_full_disk_makes_the_store_stuck_and_loses_nothing(small_disk: Path) -> None:
    """Acknowledged rows are present, pending ones become durable when there is space, and reading works meanwhile."""
    where, ballast = str(small_disk / "lava.db"), small_disk / "ballast"

    def big(number: int) -> Batch:
        batch = Batch()
        batch.events = [(number, 0, 0, 1.0, "found", "x" * 100_000)]
        return batch

    async def run() -> None:
        async with opened(where) as store:
            submitter = Submitter(store)
            await durable(store, submitter.submit(new_job(request_id=b"r" * 16)))
            ballast.write_bytes(bytes(_room(small_disk) - 300_000))
            waiting = [appended(store, big(number)) for number in range(1, 11)]
            await eventually(lambda: store.is_stuck)
            words = r"The database can't commit now: (database or disk is full|disk I/O error)\."
            assert re.fullmatch(words, store.stuck_reason)
            assert await store.find_request(b"r" * 16, "alice") == [1]
            assert not waiting[-1].done()
            ballast.unlink()
            await asyncio.gather(*waiting)
            assert not store.is_stuck
        assert {row.job for row in rows(where, schema.job_events)} == set(range(1, 11))

    asyncio.run(run())


def _room(directory: Path) -> int:
    room = os.statvfs(directory)
    return room.f_bavail * room.f_frsize


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_the_log_is_synced_before_a_reply_leaves(tmp_path: Path) -> None:
    """Seen by strace: each answer of the writer comes after a sync of the log that was written for it."""
    trace = tmp_path / "trace"

    async def run() -> None:
        async with opened(str(tmp_path / "lava.db")) as store:
            tracer = await _attach(store, "-e", f"trace={_TRACED}", "-o", str(trace))
            try:
                for number in range(1, 21):
                    await durable(store, events_batch(number))
            finally:
                tracer.send_signal(signal.SIGINT)
                await tracer.wait()

    asyncio.run(run())
    _check_order(trace.read_text())


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_failed_sync_stops_the_master(tmp_path: Path) -> None:
    """After a failed sync the disk's content is unknown, and a second try might only seem to succeed."""

    async def run() -> None:
        lost = Lost()
        async with opened(str(tmp_path / "lava.db"), lost) as store:
            await durable(store, events_batch(1))
            tracer = await _attach(store, "-e", "inject=fdatasync:error=EIO", "-o", "/dev/null")
            store.append(events_batch(2), lambda: pytest.fail("spoken though it was not synced"))
            assert await lost.said() == "The database is damaged or can't be synced: disk I/O error."
            await tracer.wait()

    asyncio.run(run())


async def _attach(store: Store, *options: str) -> asyncio.subprocess.Process:
    """strace on the store's writer; it ends with it."""
    command = ("strace", "-f", "-y", *options, "-p", str(store.writer_pid))
    tracer = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    assert tracer.stderr is not None
    said = await asyncio.wait_for(tracer.stderr.readline(), 60)
    if b"attached" not in said:
        await tracer.wait()
        pytest.skip(f"strace can't attach here: {said.decode().strip()}")
    return tracer


def _check_order(trace: str) -> None:
    """Check that between two answers there is a write to the log and, after the last such write, a sync of it."""
    answers, is_synced = 0, False
    for line in trace.splitlines():
        if "lava.db-wal" in line:
            is_synced = "fdatasync(" in line or "fsync(" in line
        elif "sendto(" in line or ("write(" in line and "socket:" in line):
            assert is_synced, f"spoken before it was synced: {line}"
            answers, is_synced = answers + 1, False
    assert answers == 20
