"""Output of jobs without an output file."""

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from agents.attempts.kept_outputs import remove_old
from agents.job_setup.preparation import Bounds
from agents.peers import Peers
from agents.ranks.output import CHUNK
from protos.agents_pb2 import TailChunk, TailRequest
from tests.acceptance.personal import Cluster
from tests.agents.conftest import place, somebody
from tests.agents.hosts import NAME, Host, Key, Place, blob, key_message

__all__ = ["place", "somebody"]

pytestmark = pytest.mark.slow

HUGE = 1 << 42


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run one test in an event loop of its own."""
    asyncio.run(coroutine)


async def _peek(host: Host, key: Key) -> list[TailChunk]:
    said: list[TailChunk] = []

    async def send(chunk: TailChunk) -> None:
        said.append(chunk)

    peers = Peers(NAME, host.local.attempts, host.local.counting, lambda: b"")
    peers.kept = str(host.local.outputs)
    await peers.tail(TailRequest(key=key_message(key)), send)
    return said


def test_output_without_a_file_is_there_after_the_end(place: Place) -> None:
    """Kept for each attempt, readable by its owner only, also by the next agent; a silent job leaves no file."""

    async def story() -> None:
        async with Host(place, slots=1) as host:
            await host.finish(blob(place, 1, "echo one", output=""))
            await host.finish(blob(place, 2, "echo two >&2", output=""))
            await host.finish(blob(place, 3, "true", output=""))
            await host.replace()
            assert [chunk.data for chunk in await _peek(host, (1, 0, 1))] == [b"one\n"]
            assert [chunk.data for chunk in await _peek(host, (2, 0, 1))] == [b"two\n"]
            assert [chunk.error for chunk in await _peek(host, (3, 0, 1))] == [
                "The job has ended, and no output of it is kept here."
            ]
            assert host.local.outputs.stat().st_mode & 0o777 == 0o700

    run(story())


def test_a_job_that_writes_for_ever_keeps_its_beginning_and_end(place: Place) -> None:
    """The middle is released on disk while it runs, and a line reports the gap."""

    async def story() -> None:
        async with Host(place, slots=1) as host:
            host.local.preparation.bounds = Bounds(kept_output_mib=1)
            command = "echo first; head -c 20000000 /dev/zero | tr '\\0' x; sleep 1; echo; echo last"
            key = await host.run(blob(place, 1, command, output=""))
            await host.report(key, "finished")
            text = b"".join([chunk.data for chunk in await _peek(host, key)])
            assert text.startswith(b"first\nx")
            assert text.endswith(b"x\nlast\n")
            assert b" bytes of output are left out here]\n" in text
            assert len(text) < (1 << 20) + 100

    run(story())


def test_a_kept_output_that_its_user_makes_huge_is_read_in_pieces(place: Place) -> None:
    """A process that still holds the descriptor may extend the file: the agent must not read that into memory."""

    async def story() -> None:
        async with Host(place, slots=1) as host:
            await host.finish(blob(place, 1, "echo said", output=""))
            kept = host.local.outputs / "1.0.1"
            os.truncate(kept, HUGE)
            (chunk,) = await _peek(host, (1, 0, 1))
            assert chunk.data.startswith(b"said\n")
            assert len(chunk.data) <= CHUNK
            with kept.open("r+b") as file:
                file.seek(HUGE)
                file.write(b"more")
            assert [chunk.data for chunk in await _peek(host, (1, 0, 1))][-1] == b"more"

    run(story())


def test_kept_output_is_removed_in_time(tmp_path: Path) -> None:
    """After its time, and the oldest above its user's quota; a slot's own file stays."""
    for number, age_s in enumerate((5000, 300, 200, 100)):
        path = tmp_path / f"{number}.0.1"
        path.write_bytes(bytes(40_000))
        os.utime(path, (1e9 - age_s, 1e9 - age_s))
    (tmp_path / "0").touch()
    os.utime(tmp_path / "0", (1, 1))
    remove_old(tmp_path, 3600, 12_000, 1e9)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "2.0.1", "3.0.1"]


@pytest.mark.acceptance
def test_bpeek_shows_the_output_of_a_job_that_has_ended(cluster: Cluster, account: str) -> None:
    """To its owner, with a hint in its history; other users are refused."""
    job = cluster.submit("echo kept; exit 3")
    cluster.becomes(job, "EXIT")
    assert f"bpeek {job} shows its output" in cluster.says("bhist", "-l", str(job))
    assert cluster.says("bpeek", str(job)) == "<< output from stdout >>\nkept"
    refused = cluster.as_seen_by(account).run("bpeek", str(job))
    assert refused.returncode != 0
    assert "permission denied" in refused.stderr
