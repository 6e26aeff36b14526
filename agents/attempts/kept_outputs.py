"""Removal of kept job outputs without a file: some time after the job's end, and beyond each user's bound."""

import contextlib
import os
from collections import defaultdict
from collections.abc import Callable
from enum import Enum
from pathlib import Path

OF_A_USER = 8  # multiple of the bound of one job


class Use(Enum):
    """Use of a kept output: its run goes on, its attempt does, or neither."""

    RUNS = "runs"
    HELD = "held"
    OVER = "over"


def numbers_in(name: str) -> tuple[int, ...]:
    """Return the numbers of a file's name: job, index and attempt, and of a run of a task role, index and run."""
    parts = name.split(".")
    return tuple(map(int, parts)) if all(map(str.isdigit, parts)) else ()


def remove_old(
    directory: Path, kept_s: float, of_a_job: int, now: float, use: Callable[[str], Use] = lambda _: Use.OVER
) -> None:
    """Remove files older than ``kept_s``, and of each user the oldest beyond the bound. Blocks.

    ``use`` returns that of a file, by its name: of attempts held here none is too old, and of runs none too much.
    """
    left: defaultdict[int, list[tuple[float, int, str]]] = defaultdict(list)
    for entry in os.scandir(directory):
        about = _about(entry)
        if about is None or "." not in entry.name:  # without a dot: the file of a slot, in use
            continue
        used = use(entry.name)
        if used is Use.OVER and about.st_mtime < now - kept_s:
            _remove(entry.path)
        elif used is not Use.RUNS:
            left[about.st_uid].append((about.st_mtime, about.st_blocks * 512, entry.path))
    for files in left.values():
        room = OF_A_USER * of_a_job
        for _, size, path in sorted(files, reverse=True):
            room -= size
            if room < 0:
                _remove(path)


def _about(entry: "os.DirEntry[str]") -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
