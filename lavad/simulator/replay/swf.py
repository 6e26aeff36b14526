"""Standard Workload Format, version 2.2: a trace's jobs and the figures that are replayed.

Invariants: a limit counts job lines before any is dropped; every dropped job is counted; jobs come in the order of
(submit, line). Times are whole seconds. Unused columns are not parsed: traces have all kinds of text there. The format:
Chapin et al., "Benchmarks and standards for the evaluation of parallel job schedulers", JSSPP 1999, and the Parallel
Workloads Archive.
"""

import gzip
import io
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

STDIN = Path("-")
COLUMNS_MIN = 9  # up to the requested time; missing later ones count as unknown
COLUMNS_READ = (1, 2, 4, 5, 8, 9, 12, 13, 15)  # the number, times, processors; user, group, queue
DIGITS_MAX = 15  # of seconds and processors: larger values would make sums inexact
_LARGEST = 10**DIGITS_MAX
_HEADER = re.compile(r";\s*(MaxProcs|MaxNodes)\s*:\s*(\d{1,3}(?:,\d{3})+|\d+)", re.IGNORECASE)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class TraceError(Exception):
    """Unreadable trace; the message names file and line and says what was expected."""


class TraceJob(NamedTuple):
    """One job to replay. ``number`` is the trace's own; ids of users, groups and queues are -1 where unknown."""

    number: int
    submit_s: int
    run_s: int
    processors: int
    estimate_s: int
    user: int = -1
    group: int = -1
    queue: int = -1


@dataclass(frozen=True, slots=True)
class Trace:
    """Jobs to replay, in order, and the number of dropped lines by reason."""

    jobs: tuple[TraceJob, ...]
    lines: int
    processors: int
    dropped: Counter[str] = field(default_factory=Counter)


def read_trace(path: Path, processors: int | None = None, limit: int | None = None) -> Trace:
    """Read a trace, plain or gzipped; ``-`` is standard input.

    Args:
        processors: of the machine; wider jobs are dropped. None: as in the header, or else the widest job.
        limit: number of job lines to read.

    Raises:
        TraceError: it can't be read, or a line is no job.
    """
    source, path = path, shown(path)
    try:
        with _opened(source) as lines:
            return _trace(path, lines, processors, limit)
    except FileNotFoundError:
        raise TraceError(f"{path}: there is no such file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceError(f"{path}: the file is damaged: {error}") from error
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from error


def shown(path: Path) -> Path:
    """Return the name of a trace in messages."""
    return Path("standard input") if path == STDIN else path


@contextmanager
def _opened(path: Path) -> Iterator[Iterable[bytes]]:
    """Open the trace and yield its lines; it is opened once, so that it may be a pipe."""
    with nullcontext(sys.stdin.buffer) if path == STDIN else path.open("rb") as opened:
        file = opened if isinstance(opened, io.BufferedReader) else io.BufferedReader(io.BytesIO(opened.read()))
        if file.peek(2)[:2] != b"\x1f\x8b":
            yield file
            return
        with gzip.GzipFile(fileobj=file) as packed:
            yield packed


def _trace(path: Path, lines: Iterable[bytes], processors: int | None, limit: int | None) -> Trace:
    header: dict[str, int] = {}
    found = list(islice(_job_lines(path, lines, header), limit))
    if not found:
        raise TraceError(f"{path}: expected lines of 18 columns, one for each job, there are none")
    machine = processors or _of_header(path, header) or max(1, max(job.processors for job in found))
    dropped: Counter[str] = Counter()
    kept = [job for job in found if not _is_dropped(job, machine, dropped)]
    kept.sort(key=lambda job: job.submit_s)  # stable: lines of one second stay in their order
    return Trace(tuple(kept), len(found), machine, dropped)


def _of_header(path: Path, header: dict[str, int]) -> int:
    said = header.get("maxprocs") or header.get("maxnodes") or 0
    if said > _LARGEST:
        raise TraceError(f"{path}: the number of processors in its header is larger than {_LARGEST:.0e}")
    return said


def _is_dropped(job: TraceJob, machine: int, dropped: Counter[str]) -> bool:
    if job.run_s <= 0:
        dropped["never ran"] += 1
    elif job.processors <= 0:
        dropped["without processors"] += 1
    elif job.processors > machine:
        dropped["wider than the machine"] += 1
    else:
        return False
    return True


def _job_lines(path: Path, lines: Iterable[bytes], header: dict[str, int]) -> Iterator[TraceJob]:
    for number, raw in enumerate(lines, 1):
        line = (raw if number > 1 else raw.removeprefix(_BYTE_ORDER_MARK)).decode("latin-1").strip()
        if line.startswith(";"):
            said = _HEADER.match(line)
            if said:
                header.setdefault(said[1].lower(), int(said[2].replace(",", "")[: DIGITS_MAX + 2]))
        elif line:
            yield _job(path, number, line.split())


def _job(path: Path, line: int, words: list[str]) -> TraceJob:
    if len(words) < COLUMNS_MIN:
        raise TraceError(
            f"{path}:{line}: a job has 18 columns, the first {COLUMNS_MIN} are needed, here are {len(words)}"
        )
    columns = len(words)
    number, submit, run, allocated, requested, estimate, user, group, queue = (
        _whole(path, line, column, words[column - 1]) if column <= columns else -1 for column in COLUMNS_READ
    )
    processors = requested if requested > 0 else allocated
    return TraceJob(number, submit, run, processors, estimate if estimate > 0 else run, user, group, queue)


def _whole(path: Path, line: int, column: int, word: str) -> int:
    try:
        number = float(word)
        whole = int(word) if word.lstrip("+-").isdecimal() else int(number)
    except (ValueError, OverflowError):
        raise TraceError(f"{path}:{line}: column {column} is {word[:20]!r}, expected a number") from None
    if abs(number) > _LARGEST:
        raise TraceError(f"{path}:{line}: column {column} is {word[:20]}, expected at most {_LARGEST:.0e}")
    return whole
