"""Commit mark of a database, and the file beside it that keeps the newest one.

A mark ahead of the database shows that commits were lost, that a backup was restored, or that another database is in
its place. The file is overwritten in place after each commit and before that commit is acknowledged, so it survives the
death of every process; it is synced every few seconds. A file behind the database shows nothing, and is no fault: a
power failure may leave one.
"""

import json
import os
import time
import zlib
from pathlib import Path
from typing import NamedTuple

FILE_NAME = "commit-mark"
# Beside it: the administrator's decision about a mark ahead of the database, and what became of it.
REQUEST, ANSWER = "adopt.request", "adopt.answer"
SIZE = 256  # constant: the file is overwritten in place, also on a full disk
SYNC_S = 5.0


class Mark(NamedTuple):
    """A database, its term, its last commit, and the id of the next job."""

    database: str = ""
    term: int = 0
    batch: int = 0
    next_job: int = 0

    @property
    def has_jobs(self) -> bool:
        """True if a job was ever submitted, so that there is something to lose."""
        return self.next_job > 1

    def __str__(self) -> str:
        return f"commit {self.batch} of term {self.term}"


def is_behind(mine: Mark, known: Mark, mine_too: frozenset[str] = frozenset()) -> bool:
    """Return True if ``known`` is ahead of this database: a higher term, or jobs of other commits.

    Args:
        mine_too: other databases that this one replaced in an adoption.
    """
    if known.term > mine.term:
        return True
    is_other = known.database not in (mine.database, *mine_too)
    is_newer = known.database == mine.database and known.batch > mine.batch
    return known.has_jobs and (is_other or is_newer)


def encode(mark: Mark) -> bytes:
    """Encode as a line of the file's size."""
    body = json.dumps(mark._asdict(), separators=(",", ":"))
    return f"{zlib.crc32(body.encode()):08x} {body}".ljust(SIZE - 1).encode() + b"\n"


def decode(text: bytes) -> Mark | None:
    """Decode the text of ``encode``; None for anything else."""
    checksum, _, body = text.decode(errors="replace").strip().partition(" ")
    try:
        if int(checksum, 16) != zlib.crc32(body.encode()):
            return None
        return Mark(**json.loads(body))
    except (ValueError, TypeError):
        return None


def read(path: Path) -> Mark | None:
    """Read the file's mark; None if there is no file or none that can be read."""
    try:
        return decode(path.read_bytes())
    except OSError:
        return None


class MarkFile:
    """Mark file, open for writing."""

    def __init__(self, path: Path) -> None:
        """Open the file; OSError if it can't be made."""
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._synced_at = 0.0

    def write(self, mark: Mark) -> None:
        """Overwrite the mark; OSError if it can't be written."""
        os.pwrite(self._fd, encode(mark), 0)
        now = time.monotonic()
        if now - self._synced_at > SYNC_S:
            os.fdatasync(self._fd)
            self._synced_at = now
