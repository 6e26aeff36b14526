"""How far the database has come, and a file beside it that says so: what tells that commits were lost, that a backup
was restored, or that another database is in its place.

The file is overwritten in place after each commit and before anything of that commit is spoken, so it survives the
death of every process; it is synced every few seconds. A file that is behind the database says nothing, and is no
fault: a power cut may leave one.
"""

import json
import os
import time
import zlib
from pathlib import Path
from typing import NamedTuple

FILE_NAME = "commit-mark"
SIZE = 256  # always: the file is overwritten in place, also on a full disk
SYNC_S = 5.0


class Mark(NamedTuple):
    """A database, the term that it is in, its last commit, and the number that the next job gets."""

    database: str = ""
    term: int = 0
    batch: int = 0
    next_job: int = 0

    @property
    def has_jobs(self) -> bool:
        """Whether there is anything to lose: a job was submitted once."""
        return self.next_job > 1

    def __str__(self) -> str:
        return f"commit {self.batch} of term {self.term}"


def is_behind(mine: Mark, known: Mark, mine_too: frozenset[str] = frozenset()) -> bool:
    """Whether somewhere more is known of the cluster than this database has: a higher term, or jobs of other commits.

    Args:
        mine_too: other databases whose place this one has taken, with an administrator's word.
    """
    if known.term > mine.term:
        return True
    is_other = known.database not in (mine.database, *mine_too)
    is_newer = known.database == mine.database and known.batch > mine.batch
    return known.has_jobs and (is_other or is_newer)


def encode(mark: Mark) -> bytes:
    """A line of the file's size."""
    body = json.dumps(mark._asdict(), separators=(",", ":"))
    return f"{zlib.crc32(body.encode()):08x} {body}".ljust(SIZE - 1).encode() + b"\n"


def decode(text: bytes) -> Mark | None:
    """The opposite of ``encode``; None for anything else."""
    checksum, _, body = text.decode(errors="replace").strip().partition(" ")
    try:
        if int(checksum, 16) != zlib.crc32(body.encode()):
            return None
        return Mark(**json.loads(body))
    except (ValueError, TypeError):
        return None


def read(path: Path) -> Mark | None:
    """What the file says; None where there is none, or none that can be read."""
    try:
        return decode(path.read_bytes())
    except OSError:
        return None


class MarkFile:
    """The file, open for writing."""

    def __init__(self, path: Path) -> None:
        """Open it; OSError when it can't be made."""
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._synced_at = 0.0

    def write(self, mark: Mark) -> None:
        """Overwrite what it says; OSError when it can't be written."""
        os.pwrite(self._fd, encode(mark), 0)
        now = time.monotonic()
        if now - self._synced_at > SYNC_S:
            os.fdatasync(self._fd)
            self._synced_at = now
