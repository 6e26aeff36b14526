"""Cost of histories: `bhist -a` of many ended jobs, the master's part of it, and bsub meanwhile.

The jobs are written into the database of a personal cluster while it is down, as ended some hours ago. `bsub` is timed
alone and beside the listing, so that other load of the machine affects both.
"""

import argparse
import asyncio
import getpass
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Figures
from benchmarks.listing import beside_a_computation, cpu_s, list_once
from benchmarks.personal import BIN, Personal, cluster
from lavad.core import events as e
from lavad.core.apply.events import apply_event
from lavad.core.cluster import Cluster
from lavad.core.events import Event, NewJob
from lavad.core.model import HostShare, Key, Request, RoleRequest, Shared, pack_text
from lavad.core.model.policy import Policy
from lavad.store.store import Store

JOBS = 100_000
TURNS = 3
AGO_S = 12 * 3600.0
IN_ONE_BATCH = 500


def life(job: int, host: str, at: float) -> Iterator[Event]:
    """Life of a job; every second one is so short that its start is told with its end."""
    user, uid, gid = getpass.getuser(), os.getuid(), os.getgid()
    shared = Shared(user, uid, gid, "normal", "default", Request((RoleRequest(),)), host)
    text = pack_text(f"job{job}", f"./solve --case {job}", f"/home/case{job}", "/home", output=f"out.{job}")
    yield e.JobSubmitted(at, NewJob(job, shared, text, b"", os.urandom(16)))
    key = Key(job, 0, 1)
    yield e.AttemptDispatched(at + 5.0, key, (HostShare(host, 1, 0, (), (1,)),), True, "there was room")
    if job % 2:
        yield e.JobStarted(at + 5.5, key, 4711, "/home", f"/home/case{job}")
    yield e.JobFinished(at + 65.0, key, 0, "", 0.01, 3, 4711, at + 5.5)
    yield e.HostReleased(at + 65.0, key, host)


async def _fill(database: str, jobs: int) -> None:
    """Write the histories of so many jobs into the database."""
    store = await Store.open(database, sys.exit)
    known, now = Cluster(Policy(), "", store.term), time.time()
    store.restore(known, now)
    host = next(iter(known.hosts))
    while jobs > 0:
        count = min(jobs, IN_ONE_BATCH)
        first = known.next_job
        events = [event for job in range(first, first + count) for event in life(job, host, now - AGO_S)]
        for event in events:
            apply_event(known, event)
        store.append(store.rows.rows_for(events, known), lambda: None)
        await store.flush()
        jobs -= count
    await store.close()


def _seed(personal: Personal, jobs: int) -> None:
    subprocess.run([BIN / "lavactl", "down", "--dir", personal.directory], check=True, stdout=subprocess.DEVNULL)
    database = next(personal.directory.rglob("lava.db"))
    asyncio.run(_fill(str(database), jobs))
    subprocess.run([BIN / "lavactl", "up", "--dir", personal.directory], check=True, stdout=subprocess.DEVNULL)


def _reader_cpu_s(personal: Personal) -> float:
    """CPU time of the reader process so far; 0 before its start."""
    pids = [pid for pid in personal.master_pids() if Path(f"/proc/{pid}/comm").read_text() == "lavad-reader\n"]
    return sum(map(cpu_s, pids))


def measure(figures: Figures, jobs: int = JOBS, turns: int = TURNS) -> None:
    """list_history_TURN_...: seconds in total, microseconds of lavad's CPU for each job."""
    with cluster(2, 4) as personal:
        _seed(personal, jobs)
        beside_a_computation(figures, personal)
        for turn in range(1, turns + 1):
            used = _reader_cpu_s(personal)
            list_once(figures, personal, f"history_{turn}", ["bhist", "-a"], jobs)
            figures.put(f"list_history_{turn}_reader_cpu_s", _reader_cpu_s(personal) - used)


def main() -> None:
    """Measure, and write the figures as JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks.history", description=__doc__)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--turns", type=int, default=TURNS)
    options, figures = parser.parse_args(), Figures()
    measure(figures, options.jobs, options.turns)
    figures.keep()


if __name__ == "__main__":
    main()
