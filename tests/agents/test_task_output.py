"""Output of runs of tasks: read and followed from the file kept by the agent, or from the job's own."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from agents.peers import Peers
from protos.agents_pb2 import TailChunk, TailRequest
from tests.agents.hosts import NAME, Host, Place, key_message
from tests.agents.task_jobs import KEY, Run, a_job, message, role

pytestmark = pytest.mark.slow

WRITES = "echo run $LAVA_TASK_RUN; echo oh >&2; while [ ! -e stop ]; do sleep 0.02; done; echo end"


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run one test in an event loop of its own."""
    asyncio.run(coroutine)


class Reader:
    """A user who reads the output of runs."""

    def __init__(self, host: Host) -> None:
        self._peers = Peers(NAME, host.local.attempts, host.local.counting, bytes)
        self._peers.kept = str(host.local.outputs)
        self.chunks: list[TailChunk] = []

    async def read(self, run: Run, follow: bool = False, error_file: bool = False) -> str:
        """The output of a run, followed to its end if wanted."""
        self.chunks.clear()
        request = TailRequest(key=key_message(KEY), task=message(run), follow=follow, error_file=error_file)

        async def keep(chunk: TailChunk) -> None:
            self.chunks.append(chunk)

        async with asyncio.timeout(60):
            await self._peers.tail(request, keep)
        return self.text

    @property
    def text(self) -> str:
        """All that has come."""
        return "".join(chunk.error or chunk.data.decode() for chunk in self.chunks)


@pytest.mark.parametrize("output", ["", "out.%R.%T.%N"])
def test_each_run_is_read_by_itself_and_followed_to_its_end(place: Place, output: str) -> None:
    """The first run's output stays readable while the second is followed; that ends with the run, not with the job."""

    async def story() -> None:
        async with Host(place) as host:
            tasks = await a_job(host, role("w", WRITES), output=output)
            reader = Reader(host)
            await tasks.start((0, 0, 1))
            await tasks.running((0, 0, 1))
            await tasks.stop((0, 0, 1))
            await tasks.ended((0, 0, 1))
            await tasks.start((0, 0, 2))
            await tasks.running((0, 0, 2))
            assert (await reader.read((0, 0, 1))).startswith("run 1\n")
            following = asyncio.create_task(reader.read((0, 0, 2), follow=True))
            await host.until(lambda: "oh\n" in reader.text)
            place.out("stop").touch()
            assert await following == "run 2\noh\nend\n"
            assert await reader.read((0, 0, 2), follow=True) == "run 2\noh\nend\n"

    run(story())


def test_errors_have_a_file_of_their_own_if_the_job_names_one(place: Place) -> None:
    """Else they are part of the output, and there is nothing to read."""

    async def story() -> None:
        async with Host(place) as host:
            place.out("stop").touch()
            tasks = await a_job(host, role("w", WRITES), output="%T.out", error="%T.err")
            await tasks.start((0, 0, 1))
            await tasks.ended((0, 0, 1))
            assert await Reader(host).read((0, 0, 1)) == "run 1\nend\n"
            assert await Reader(host).read((0, 0, 1), error_file=True) == "oh\n"

    run(story())


def test_kept_output_of_runs_outlasts_the_attempt(place: Place) -> None:
    """Of the job's next attempt here it is read by the same run; of a run that was never here a sentence comes."""

    async def story() -> None:
        async with Host(place) as host:
            place.out("stop").touch()
            tasks = await a_job(host, role("w", WRITES))
            await tasks.start((0, 0, 1))
            await tasks.ended((0, 0, 1))
            await host.release(KEY)
            await host.report(KEY, "released")
            reader = Reader(host)
            assert await reader.read((0, 0, 1)) == "run 1\noh\nend\n"
            (host.local.outputs / "1.0.1.0.0.1").rename(host.local.outputs / "1.0.9.0.0.1")
            assert await reader.read((0, 0, 1)) == "run 1\noh\nend\n"
            assert await reader.read((0, 0, 2)) == "No output of this run is kept on its host."

    run(story())


def test_kept_output_of_a_run_is_bounded(place: Place) -> None:
    """Its middle is left out; the beginning and the end stay."""

    async def story() -> None:
        async with Host(place) as host:
            says = role("w", "echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last")
            tasks = await a_job(host, says)
            await tasks.start((0, 0, 1))
            await tasks.ended((0, 0, 1))
            path = host.local.outputs / "1.0.1.0.0.1"
            assert path.stat().st_size < (8 << 20) + 100
            text = await Reader(host).read((0, 0, 1))
            assert text.startswith("first\n")
            assert "bytes of output are left out here" in text
            assert text.endswith("x\nlast\n")

    run(story())
