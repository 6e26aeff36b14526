"""Markers that jobs append to a shared file with O_APPEND, and checks of them."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Marker:
    """One line: job and element, event (start or end), host, time."""

    job: int
    index: int
    what: str
    host: str
    at: float
    attempt: str


def script(markers: Path, seconds: str, code: str) -> str:
    """Shell text of a job that marks its start and its end; ``seconds`` and ``code`` are shell arithmetic."""
    mark = (
        'printf "%s %s %s %s %s %s\\n" "$LSB_JOBID" "$LSB_JOBINDEX" WHAT "$(hostname)" "$(date +%s.%N)" "$LAVA_JOB_KEY"'
    )
    start, end = (f"{mark.replace('WHAT', what)} >> {markers}" for what in ("start", "end"))
    return f"i=$LSB_JOBINDEX; {start}; sleep $(({seconds})); {end}; exit $(({code}))"


def read(path: Path) -> list[Marker]:
    """All markers, in the order they were written."""
    found = []
    for line in path.read_text().splitlines():
        job, index, what, host, at, *rest = line.split()
        found.append(Marker(int(job), int(index), what, host, float(at), rest[0] if rest else ""))
    return found


def starts(markers: list[Marker]) -> dict[tuple[int, int], int]:
    """Number of starts of each job or element."""
    counted: dict[tuple[int, int], int] = {}
    for marker in markers:
        if marker.what == "start":
            counted[marker.job, marker.index] = counted.get((marker.job, marker.index), 0) + 1
    return counted
