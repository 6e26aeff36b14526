"""Reports of usage over a million ended jobs: `busage` and `bacct -u all`, from a database that is filled here.

The rows of one job of each kind are made by the store's own row maker; those of the others are copies of them with
other numbers, users, projects, queues and times. The figures are of whole commands on a personal cluster.
"""

import argparse
import asyncio
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Figures
from benchmarks.history import life
from benchmarks.personal import BIN, Personal, cluster
from lavad.core.apply.events import apply_event
from lavad.core.cluster import Cluster
from lavad.core.model.policy import Policy
from lavad.store import schema
from lavad.store.store import Store
from lavad.store.writer.batch import Row

JOBS = 1_000_000
USERS, PROJECTS, MONTHS = 200, 40, 12
QUEUES = ("normal", "idle", "gpu", "long")
MONTH_S = 30 * 86400.0
KEPT_PART = 10  # one of so many rows outlives the purge
SUBMITTED = 50
REPORTS = (
    ("user", ["-by", "user"]),
    ("queue_month", ["-by", "queue month"]),
    ("all_keys", ["-by", "user group project queue month", "-csv"]),
)

Rows = dict[str, list[Row]]


async def _templates(database: str) -> tuple[Rows, float]:
    """Rows of a job that ended, by table, and the moment of its submission."""
    store = await Store.open(database, sys.exit)
    known, now = Cluster(Policy(), "", store.term), time.time()
    store.restore(known, now)
    host = next(iter(known.hosts), "localhost")
    events = list(life(known.next_job, host, now))
    for event in events:
        apply_event(known, event)
    batch = store.rows.rows_for(events, known)
    store.append(batch, lambda: None)
    await store.flush()
    await store.close()
    names = ("specs", "jobs", "accounting", "requests")
    return {name: list(getattr(batch, name).values()) for name in names}, now


def _copies(rows: Rows, table: str, jobs: int, at: float, first: int) -> Iterator[Row]:
    """Rows of a table for so many jobs, made from that of one."""
    (template,), columns = rows[table], [column.name for column in schema.metadata.tables[table].columns]
    place = {name: columns.index(name) for name in columns}
    times = [name for name in columns if name.endswith("_at") and template[place[name]]]
    draw = random.Random(7)
    for number in range(jobs):
        row = list(template)
        earlier = draw.random() * MONTHS * MONTH_S
        user, other = draw.randrange(USERS), draw.randrange(2)  # each user has two projects and two queues
        values = {
            "job": first + number,
            "user_name": f"user{user}",
            "project": f"project{(user + other) % PROJECTS}",
            "queue": QUEUES[(user + draw.randrange(2)) % len(QUEUES)],
            "cpu_s": draw.random() * 3600,
            "slot_s": draw.random() * 7200,
            "gpu_s": draw.random() * 600,
            "request_id": number.to_bytes(16, "big"),
        }
        for name, value in values.items():
            if name in place:
                row[place[name]] = value
        for name in times:
            row[place[name]] = float(template[place[name]]) - earlier
        yield tuple(row)


def fill(database: Path, jobs: int) -> None:
    """Write so many ended jobs into the database of a cluster that is down."""
    rows, at = asyncio.run(_templates(str(database)))
    with sqlite3.connect(database) as connection:
        (first,) = connection.execute("SELECT next_job FROM cluster").fetchone()
        for table in rows:
            marks = ",".join("?" * len(schema.metadata.tables[table].columns))
            copies = _copies(rows, table, jobs, at, first)
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", copies)
        connection.execute("UPDATE cluster SET next_job = ?", (first + jobs,))
    connection.close()


def _timed(figures: Figures, key: str, personal: Personal, argv: list[str]) -> None:
    began = time.monotonic()
    done = subprocess.run([BIN / argv[0], *argv[1:]], env=personal.environment, check=True, capture_output=True)
    figures.put(f"usage_{key}_s", time.monotonic() - began)
    figures.put(f"usage_{key}_bytes", len(done.stdout))


def _lavactl(personal: Personal, word: str) -> None:
    subprocess.run([BIN / "lavactl", word, "--dir", personal.directory], check=True, stdout=subprocess.DEVNULL)


def _compact(figures: Figures, personal: Personal, database: Path) -> None:
    """Remove most of the rows, as a purge does, and give their room back while jobs are submitted."""
    _lavactl(personal, "down")
    with sqlite3.connect(database) as connection:
        for table in ("specs", "jobs", "accounting", "requests"):
            connection.execute(f"DELETE FROM {table} WHERE job % {KEPT_PART}")
    connection.close()
    _lavactl(personal, "up")
    alone = [_submit(personal) for _ in range(SUBMITTED)]
    began = time.monotonic()
    compact = subprocess.Popen([BIN / "lavactl", "compact", "--conf", personal.directory], stdout=subprocess.DEVNULL)
    beside = []
    while compact.poll() is None:
        beside.append(_submit(personal))
    figures.put("compact_s", time.monotonic() - began)
    figures.put("compact_database_mib", os.path.getsize(database) / 2**20)
    figures.put_percentiles("compact_bsub_alone_ms", alone, 50, 99)
    figures.put_percentiles("compact_bsub_beside_ms", beside, 50, 99)


def _submit(personal: Personal) -> float:
    began = time.monotonic()
    words = [BIN / "bsub", "-H", "true"]
    subprocess.run(words, env=personal.environment, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def measure(figures: Figures, jobs: int = JOBS) -> None:
    """usage_...: seconds of whole commands; compact_...: those of the compaction, and of bsub beside it."""
    with cluster(2, 4) as personal:
        _lavactl(personal, "down")
        database = next(personal.directory.rglob("lava.db"))
        began = time.monotonic()
        fill(database, jobs)
        figures.put("usage_fill_s", time.monotonic() - began)
        figures.put("usage_database_mib", os.path.getsize(database) / 2**20)
        _lavactl(personal, "up")
        for key, options in REPORTS:
            _timed(figures, key, personal, ["busage", *options])
        _timed(figures, "bacct_all", personal, ["bacct", "-u", "all"])
        _compact(figures, personal, database)


def main() -> None:
    """Measure, and write the figures as JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks.usage", description=__doc__)
    parser.add_argument("--jobs", type=int, default=JOBS)
    options, figures = parser.parse_args(), Figures()
    measure(figures, options.jobs)
    figures.keep()


if __name__ == "__main__":
    main()
