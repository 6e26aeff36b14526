"""Removal of kept job outputs without a file: some time after the job's end, and beyond each user's bound."""

import contextlib
import os
from collections import defaultdict
from pathlib import Path

OF_A_USER = 8  # multiple of the bound of one job


def remove_old(directory: Path, kept_s: float, of_a_job: int, now: float) -> None:
    """Remove files older than ``kept_s``, and of each user the oldest beyond the bound. Blocks."""
    left: defaultdict[int, list[tuple[float, int, str]]] = defaultdict(list)
    for entry in os.scandir(directory):
        about = _about(entry)
        if about is None or "." not in entry.name:  # without a dot: the file of a slot, in use
            continue
        if about.st_mtime < now - kept_s:
            _remove(entry.path)
        else:
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
