"""Cost of the store: rows made for each job, rows written a second, the latency of one commit, and a restart.

Prints key=value lines. The database is a new SQLite file unless one is named:

    python -m benchmarks.store --jobs 100000
    python -m benchmarks.store --database postgresql://lava@/bench?host=/run/postgresql
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from lavad.core import events as e
from lavad.core.apply.events import apply_event
from lavad.core.cluster import Cluster
from lavad.core.events import Event, NewJob
from lavad.core.model import HostFacts, HostShare, Key, Request, RoleRequest, Shared, pack_text
from lavad.core.model.policy import Policy
from lavad.store.store import Store
from lavad.store.writer.batch import Batch

HOST = "n001"
IN_FLIGHT = 64  # elements running at once, and submits in one message
SPEC_BYTES = 600


class Work:
    """A cluster with synthetic events, and the rows they produce."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.cluster = Cluster(Policy(), "bench", store.term)
        self.rows_s = 0.0
        self.apply([e.HostJoined(1.0, HostFacts(HOST, IN_FLIGHT, 100_000), 1)])

    def apply(self, events: list[Event]) -> Batch:
        """Apply events; the time to make their rows is summed up."""
        for event in events:
            apply_event(self.cluster, event)
        begun = time.perf_counter()
        batch = self.store.rows.rows_for(events, self.cluster)
        self.rows_s += time.perf_counter() - begun
        return batch


def new_job(job: int, indices: tuple[range, ...] = ()) -> NewJob:
    """Submission with texts of its own."""
    shared = Shared("alice", 1000, 1000, "normal", "default", Request((RoleRequest(),)), "login1")
    text = pack_text(f"job{job}", f"./solve --case {job}", f"/home/alice/case{job}", "/home/alice", output=f"out.{job}")
    return NewJob(job, shared, text, os.urandom(SPEC_BYTES), os.urandom(16), indices=indices)


async def submits(work: Work, count: int) -> float:
    """Submissions a second, streamed in messages, each message waiting for its commit, two messages in flight."""
    begun, room = time.perf_counter(), asyncio.Semaphore(2)
    for first in range(work.cluster.next_job, work.cluster.next_job + count, IN_FLIGHT):
        await room.acquire()
        events: list[Event] = [e.JobSubmitted(2.0, new_job(job)) for job in range(first, first + IN_FLIGHT)]
        work.store.append(work.apply(events), room.release)
    await work.store.flush()
    return count / (time.perf_counter() - begun)


def element_turns(job: int, count: int) -> Iterator[list[Event]]:
    """Events of an array's elements as the master sees them: a turn of starts, then one of ends, and so on."""
    allocation = (HostShare(HOST, 1, 0, (), (1,)),)
    for first in range(1, count + 1, IN_FLIGHT):
        keys = [Key(job, index, 1) for index in range(first, min(first + IN_FLIGHT, count + 1))]
        yield [e.AttemptDispatched(3.0, key, allocation, True, "there was room") for key in keys]
        ends: list[Event] = []
        for key in keys:
            ends.append(e.JobStarted(3.5, key, 4711, "/home/alice", "/home/alice/run"))
            ends.append(e.JobFinished(4.0, key, 0, "", 0.01, 3, 4711, 3.5))
            ends.append(e.HostReleased(4.0, key, HOST))
        yield ends


async def elements(work: Work, count: int) -> tuple[float, float]:
    """Elements a second from dispatch to release, and microseconds to make the rows of one."""
    job = work.cluster.next_job
    work.store.append(work.apply([e.JobSubmitted(2.5, new_job(job, (range(1, count + 1),)))]), _nothing)
    work.rows_s = 0.0
    begun, room = time.perf_counter(), asyncio.Semaphore(8)
    for events in element_turns(job, count):
        await room.acquire()
        work.store.append(work.apply(events), room.release)
    await work.store.flush()
    return count / (time.perf_counter() - begun), work.rows_s / count * 1e6


async def idle_commits(work: Work, count: int) -> list[float]:
    """Milliseconds from append to callback, one submit at a time."""
    waits = []
    for _ in range(count):
        done = asyncio.get_running_loop().create_future()
        batch = work.apply([e.JobSubmitted(5.0, new_job(work.cluster.next_job))])
        begun = time.perf_counter()
        work.store.append(batch, lambda done=done: done.set_result(None))
        await done
        waits.append((time.perf_counter() - begun) * 1e3)
    return sorted(waits)


def _nothing() -> None:
    return None


def say(key: str, value: float) -> None:
    """Print one figure."""
    print(f"{key}={value:.3f}", flush=True)


async def bench(database: str, jobs: int) -> None:
    """All figures, on one database."""
    store = await Store.open(database, sys.exit)
    work = Work(store)
    waits = await idle_commits(work, 300)
    say("store_commit_ms_p50", statistics.median(waits))
    say("store_commit_ms_p99", waits[int(len(waits) * 0.99)])
    say("store_submits_per_s", await submits(work, jobs))
    per_s, rows_us = await elements(work, jobs)
    say("store_elements_per_s", per_s)
    say("store_rows_us_per_element", rows_us)
    await store.close()
    begun = time.perf_counter()
    store = await Store.open(database, sys.exit)
    say("store_open_s", time.perf_counter() - begun)
    begun = time.perf_counter()
    cluster = Cluster(Policy(), "bench", store.term)
    store.restore(cluster, 10.0)
    say("store_restore_s", time.perf_counter() - begun)
    say("store_restored_jobs", len(cluster.jobs))
    await store.close()


def main() -> None:
    """Read the options, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--database", help="a URL; an empty database")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "lava.db"
        asyncio.run(bench(options.database or str(path), options.jobs))
        if path.exists():
            say("store_bytes_per_job", path.stat().st_size / (2 * options.jobs))


if __name__ == "__main__":
    main()
