#!/usr/bin/env python3
"""A plain program that is elastic: its first task is the trainer, the others work for it, and their number changes.

It needs no framework. The trainer (task 0) reads the list of hosts before each step and says when it has changed. Every
worker does a piece of work again and again, and finishes the piece at hand when it is told to end, so that no step is
lost when a host is given back. Where the trainer stands is kept in a file: started again, it goes on from there.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

STEP_S = 0.2


class Told:
    """Request of the scheduler that this task ends."""

    def __init__(self) -> None:
        self.to_end = False
        signal.signal(signal.SIGTERM, self._note)

    def _note(self, _number: int, _frame: object) -> None:
        self.to_end = True


def hosts() -> list[str]:
    """The hosts of the job now, as host:slots."""
    return subprocess.run(
        [os.environ["LAVA_DISCOVER_HOSTS"]], capture_output=True, text=True, check=True
    ).stdout.split()


def train(folder: Path, steps: int, told: Told) -> None:
    """Take the steps; the list of hosts is read before each."""
    checkpoint, known = folder / "checkpoint", list[str]()
    first = int(checkpoint.read_text()) if checkpoint.exists() else 0
    for step in range(first, steps):
        now = hosts()
        if now != known:
            print(f"step {step}: {' '.join(now)}", flush=True)
            known = now
        time.sleep(STEP_S)
        checkpoint.with_suffix(".new").write_text(str(step + 1))
        checkpoint.with_suffix(".new").replace(checkpoint)
        if told.to_end:
            return
    print(f"done after {steps} steps", flush=True)


def work(folder: Path, index: str, told: Told) -> None:
    """Work piece by piece until told to end; each is begun and finished in the worker's log."""
    with (folder / f"worker-{index}.log").open("a") as log:
        while not told.to_end:
            print(f"begin {os.getpid()}", file=log, flush=True)
            time.sleep(STEP_S)
            print(f"end {os.getpid()}", file=log, flush=True)


def main() -> None:
    """Run as the trainer, or as a worker."""
    folder, steps = Path(sys.argv[1]), int(sys.argv[2])
    told, index = Told(), os.environ["LAVA_ROLE_INDEX"]
    folder.mkdir(parents=True, exist_ok=True)
    if index == "0":
        train(folder, steps, told)
    else:
        work(folder, index, told)


if __name__ == "__main__":
    main()
