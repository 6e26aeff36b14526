"""Discovery list of an elastic job under many readers while its size changes: wrong reads, and the delay of a change.

10,000 reads a second of the file that ``LAVA_DISCOVER_HOSTS`` names, on the job's first host, during 200 changes of a
role's size by ``lavactl scale``. The delay is from the start of the command to the first read of the new list: the
command's own start is part of it. ``python -m benchmarks.discovery [--changes N] [--reads N]``.
"""

import argparse
import multiprocessing
import subprocess
import time
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.figures import Figures
from benchmarks.personal import Personal, cluster

JOB = """
name: discovery
roles:
  worker: {tasks: 1-6, command: exec sleep 3600}
"""
BATCH = 50  # reads between two looks at the clock
SETTLE_S = 20.0


def _read(path: str, per_s: int, said: Connection) -> None:
    """Read at a rate until told to stop; tell each new text with its time, then the counts."""
    known, reads, wrong, began = b"", 0, 0, time.monotonic()
    while not said.poll():
        for _ in range(BATCH):
            with open(path, "rb") as file:
                text = file.read()
            if text != known:
                lines = text.split(b"\n")
                is_whole = lines[:2] == [b"#!/bin/sh", b"cat <<'.'"] and lines[-2:] == [b".", b""] and len(lines) > 4
                wrong += not is_whole
                known = text
                said.send((time.time(), text))
        reads += BATCH
        time.sleep(max(0.0, reads / per_s - (time.monotonic() - began)))
    said.recv()
    said.send((reads, wrong, time.monotonic() - began))


def _slots(text: bytes) -> int:
    return sum(int(line.rpartition(b":")[2]) for line in text.split(b"\n")[2:-2])


def _await(said: Connection, slots: int, until: float) -> float:
    """Time of the first read of a list with so many slots."""
    while time.time() < until:
        if said.poll(0.1):
            at, text = said.recv()
            if _slots(text) == slots:
                return float(at)
    raise RuntimeError(f"no list of {slots} slots within {SETTLE_S:.0f} s")


def _submit(personal: Personal, top: Path) -> str:
    file = top / "discovery.yaml"
    file.write_text(JOB)
    done = subprocess.run(
        personal.command("lavactl", "run", "-f", str(file)),
        check=True, env=personal.environment, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.split("<")[1].split(">")[0]


def _list_of(personal: Personal) -> Path:
    """The list on the first host, which stays longest, once it says six slots."""
    end = time.time() + 60
    while time.time() < end:
        for path in sorted(personal.directory.rglob("*.discover.sh")):
            if _slots(path.read_bytes()) == 6:
                return path
        time.sleep(0.1)
    raise RuntimeError("the job has no list of six slots")


def measure(figures: Figures, changes: int, per_s: int) -> None:
    """discovery_reads_per_s, discovery_wrong_reads, discovery_delay_ms, discovery_delay_after_answer_ms."""
    with cluster(3, 2) as personal:
        job = _submit(personal, personal.directory.parent)
        path = _list_of(personal)
        context = multiprocessing.get_context("fork")
        here, there = context.Pipe()
        reader = context.Process(target=_read, args=(str(path), per_s, there))
        reader.start()
        delays, after, slots = list[float](), list[float](), 6
        _await(here, slots, time.time() + SETTLE_S)
        for number in range(changes):
            slots = (5, 3, 6, 2, 4)[number % 5]
            began = time.time()
            scale = personal.command("lavactl", "scale", job, f"worker={slots}")
            while subprocess.run(scale, env=personal.environment, capture_output=True, check=False).returncode:
                began = time.time()  # the change before is still under way
            answered = time.time()
            seen = _await(here, slots, began + SETTLE_S)
            delays.append(seen - began)
            after.append(max(0.0, seen - answered))
        here.send("stop")
        while not isinstance((last := here.recv())[1], int):
            pass
        reads, wrong, seconds = last
        reader.join(10)
    figures.put("discovery_changes", changes)
    figures.put("discovery_reads_per_s", reads / seconds)
    figures.put("discovery_wrong_reads", wrong)
    figures.put_percentiles("discovery_delay_ms", delays, 50, 99)
    figures.put_percentiles("discovery_delay_after_answer_ms", after, 50, 99)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--reads", type=int, default=10_000, help="reads a second")
    arguments = parser.parse_args()
    measure(Figures(), arguments.changes, arguments.reads)
