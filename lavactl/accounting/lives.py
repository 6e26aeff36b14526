"""Lives of jobs and of elements of arrays, as the records of an lsb.events file tell them, one after the other.

An array is one submission; an element has a life of its own from the first record that is about it alone.
"""

from lavactl.text.units import ELEMENTS_MAX, read_index_list
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from protos import common_pb2, jobs_pb2

COLUMNS = {
    messages.PEND: "PEND",
    messages.PSUSP: "PSUSP",
    messages.RUN: "RUN",
    messages.USUSP: "USUSP",
    messages.SSUSP: "SSUSP",
    messages.UNKWN: "UNKWN",
}
ENDED = (messages.DONE, messages.EXIT)


class Life:
    """Life of a job or element so far: its state, the seconds in those before, its lines, and its last attempt."""

    def __init__(self, at: float, queue: str) -> None:
        self.state: common_pb2.JobState = messages.PEND
        self.since = at
        self.queue = queue
        self.group = ""
        self.seconds: dict[str, float] = {}
        self.notes: list[tuple[float, str]] = []
        self.places: set[str] = set()
        self.hosts: list[tuple[str, int]] = []
        self.start_time = self.end_time = self.cpu_s = 0.0
        self.exit_status = 0
        self.exit_reason = self.home = self.cwd = ""

    def copy(self) -> "Life":
        """An equal life that goes on by itself."""
        twin = Life(self.since, self.queue)
        twin.__dict__.update(self.__dict__)
        twin.seconds, twin.notes, twin.places = dict(self.seconds), list(self.notes), set(self.places)
        return twin

    def tell(self, at: float, text: str) -> None:
        """Add a line; a new file of LSF repeats what happened to unfinished jobs, and that is told once."""
        if (at, text) not in self.notes[-20:]:
            self.notes.append((at, text))

    def enter(self, at: float, state: "common_pb2.JobState") -> None:
        """Go over to a state."""
        self._count(at)
        self.state, self.since = state, max(at, self.since)
        if state in ENDED:
            self.end_time = at

    def wait_again(self, at: float, state: "common_pb2.JobState") -> None:
        """Go back into the queue."""
        self.enter(at, state)
        self.hosts, self.start_time, self.end_time, self.cpu_s = [], 0.0, 0.0, 0.0
        self.exit_status, self.exit_reason = 0, ""

    def spent(self, now: float) -> dict[str, float]:
        """Seconds in each column of the summary, up to now for a job that has not ended."""
        twin = self.copy()
        twin._count(now)
        return twin.seconds

    def _count(self, until: float) -> None:
        column = COLUMNS.get(self.state)
        if column is not None:
            self.seconds[column] = self.seconds.get(column, 0.0) + max(0.0, until - self.since)


class Submission:
    """A job or an array with what was asked for, and its lives; ``indices`` are (first, last, step) of an array."""

    def __init__(self, record: "jobs_pb2.JobRecord") -> None:
        self.record = record
        self.base, self.indices = _array(record.name)
        self.life = Life(record.submit_time, record.queue)
        self.elements: dict[int, Life] = {}

    def about(self, index: int) -> list[Life]:
        """Lives that a record with this index is about: with 0 all."""
        if not index or not self.indices:
            return [self.life, *self.elements.values()]
        if index not in self.elements:
            self.elements[index] = self.life.copy()
        return [self.elements[index]]

    def lives(self) -> "Iterator[tuple[int, Life]]":
        """Every element with its index, or the job with index 0."""
        if not self.indices:
            yield 0, self.life
        for first, last, step in self.indices:
            for index in range(first, last + 1, step):
                yield index, self.elements.get(index, self.life)


def _array(name: str) -> tuple[str, list[tuple[int, int, int]]]:
    """(name without its index list, the indices); no indices for a name that has none."""
    base, bracket, rest = name.rpartition("[")
    inner, closing, _ = rest.partition("]")  # a limit of running elements may follow: %5
    if not bracket or not closing:
        return name, []
    try:
        indices = read_index_list(inner)
    except ValueError:
        return name, []
    count = sum((last - first) // step + 1 for first, last, step in indices)
    return (base, indices) if count <= ELEMENTS_MAX else (name, [])  # no array has more
