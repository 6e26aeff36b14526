"""Jobs of a list without details and reasons by columns: the quick way of `listing.record_message`.

What jobs have in common is told once, and no message is made for each. Where the caller shows times in units, jobs
alike that were submitted one after the other within one, as by a loop of a shell, have one entry together: 0.2 us a
job, where an entry of its own takes 0.9, and 2 that of an ended job by `Runs.ENDS`. Invariant: the columns tell what
`listing.record_message` does, whatever the job; of runs only what is asked for.
"""

import math
from collections.abc import Sequence
from enum import Enum
from itertools import chain, islice, pairwise, repeat
from typing import Any

from lavad.api import translate
from lavad.api.jobs import listing
from lavad.api.privacy import Sight
from lavad.core.model import WAITING, JobState, Shared
from lavad.core.state.attempts import JobEnd
from lavad.core.state.records import ArrayRecord, Job
from protos import jobs_pb2 as pb
from protos import names

SHARED_MAX = 4096
SAMPLE = 50  # jobs of which some must be alike before it is looked which of the next ones are
NEVER = math.inf, math.inf  # a unit of time in which no job is submitted


class Runs(Enum):
    """Part of a run that a list tells."""

    WHOLE = 0
    HOSTS = 1  # nothing but their hosts
    ENDS = 2  # that of ended jobs, with start, end and CPU time by columns; all of the others

    @classmethod
    def wanted(cls, request: pb.ListJobsRequest) -> "Runs":
        """Return what a request asks for."""
        if request.hosts_alone:
            return cls.HOSTS
        return cls.ENDS if request.end_columns else cls.WHOLE


def unit_of(time: float, unit_s: int) -> tuple[float, float]:
    """Return begin and end of the unit of time in which a job was submitted; without units that is its time alone."""
    begin = time - time % unit_s if unit_s else time
    return begin, begin + unit_s if unit_s else math.nextafter(time, math.inf)


class PlainColumns:
    """Page of jobs by columns, for one caller.

    Args:
        unit_s: seconds of the units that times are told in, and jobs have entries together; 0: an entry for each.
    """

    def __init__(self, sight: Sight, runs: Runs = Runs.WHOLE, unit_s: int = 0) -> None:
        self._sight, self._runs, self._unit_s = sight, runs, unit_s
        # With what is shared, so that its id stays its own.
        self._shared: dict[tuple[int, JobState, int, int], tuple[Shared, pb.JobRecord]] = {}
        self._begin()

    def _begin(self) -> None:
        self._kinds, self._known = list[pb.JobRecord](), dict[tuple[int, JobState, int, int], int]()
        self._names = dict[bytes, int]()  # by the packed texts of a job, in which the name is the first
        self._jobs, self._indices, self._times = list[int](), list[int](), list[float]()
        self._kind_of, self._name_of, self._counts = list[int](), list[int](), list[int]()
        self._ends, self._ended = list[JobEnd](), list[int]()  # in the order of their jobs; numbers of their kinds
        # Kinds with their hosts alone; with what is shared, as above.
        self._placed = dict[Any, tuple[Shared, int]]()
        self._number = 0
        self.size = 0  # bytes of what is told once, about

    def __len__(self) -> int:
        return self._number

    def extend(self, items: list[listing.Item]) -> None:
        """Add jobs and elements."""
        kind_of, array, states = self._kind_of.append, None, None  # of elements that follow each other
        for record, index, job in items:
            if job is not None:
                kind_of(self._kind_of_job(record, job))
                continue
            assert isinstance(record, ArrayRecord), f"job {record.id} is none and no element"
            if states is None or record is not array:
                array, states = record, listing.ElementStates(record)
            kind_of(self._kind(record, states.of(index) or JobState.EXIT, 0))
        self._indices += [index for _, index, _ in items]
        self._add([record for record, _, _ in items], [1] * len(items))

    def extend_whole(self, jobs: list[Job]) -> None:
        """Add jobs that are no elements."""
        entries, counts = jobs, [1] * len(jobs)
        if self._unit_s and len(self._starts(jobs[:SAMPLE])) < min(len(jobs), SAMPLE):
            starts = self._starts(jobs)
            entries, counts = [jobs[at] for at in starts], [end - at for at, end in pairwise([*starts, len(jobs)])]
        self._kind_of += self._kinds_of(entries)
        self._indices += [0] * len(entries)
        self._add(entries, counts)

    def extend_alike(self, stretch: listing.Stretch) -> None:
        """Add elements that wait in the same state."""
        record, state, indices = stretch
        told, counts = (indices[:1], [len(indices)]) if indices.step == 1 else (indices, [1] * len(indices))
        self._indices += told
        self._kind_of += [self._kind(record, state, 0)] * len(told)
        self._add([record] * len(told), counts)

    def _starts(self, jobs: list[Job]) -> list[int]:
        """Return the places of the first jobs of entries: the next ones follow them by number, and are alike."""
        found, following, (begin, end), unit_s = list[int](), 0, NEVER, self._unit_s
        shared, text, state, priority, attempts = jobs[0].shared, jobs[0].text, jobs[0].state, 0, 0
        for at, job in enumerate(jobs):
            if (
                job.id != following
                or job.text is not text
                or job.state is not state
                or not begin <= job.submitted_at < end
                or job.shared is not shared
                or job.priority != priority
                or job.attempts != attempts
            ):
                found.append(at)
                shared, text, state, priority, attempts = job.shared, job.text, job.state, job.priority, job.attempts
                begin, end = unit_of(job.submitted_at, unit_s) if state in WAITING else NEVER
                following = job.id
            following += 1
        return found

    def _kinds_of(self, jobs: list[Job]) -> list[int]:
        """Return the kinds of jobs that are no elements; those that follow each other are often alike."""
        found = list[int]()
        shared, state, priority, attempts, kind = None, JobState.PEND, 0, 0, 0
        for job in jobs:
            if (
                job.shared is not shared
                or job.attempts != attempts
                or job.state is not state
                or job.priority != priority
                or job.attempt is not None
                or job.end is not None
            ):
                kind = self._kind_of_job(job, job)
                shared = job.shared if job.attempt is None and job.end is None else None
                state, priority, attempts = job.state, job.priority, job.attempts
            found.append(kind)
        return found

    def _add(self, records: Sequence[Job | ArrayRecord], counts: list[int]) -> None:
        """Add what jobs and elements have of their own: the first of each entry."""
        self._jobs += [record.id for record in records]
        self._times += [record.submitted_at for record in records]
        names, known = self._names, len(self._names)
        self._name_of += [names.setdefault(record.text, len(names)) for record in records]
        if len(names) > known:
            self.size += sum(map(len, islice(names, known, None)))
        self._counts += counts
        self._number += sum(counts)

    def taken(self) -> bytes:
        """Return the page, serialised; the next one begins."""
        if self._number > len(self._counts) and not self._unit_s:
            self._part_all()
        columns = pb.JobColumns(
            kinds=self._kinds,
            names=[text[:end].decode() if (end := text.index(0)) else _name_of_command(text) for text in self._names],
            job=self._jobs,
            index=self._indices if any(self._indices) else (),
            submit_time=self._times,
            kind=self._kind_of,
            name=self._name_of,
            count=self._counts if self._number > len(self._counts) else (),
            ended=self._ended,
            start_time=[end.started_at for end in self._ends],
            end_time=[end.at for end in self._ends],
            cpu_s=[end.cpu_s for end in self._ends],
        )
        self._begin()
        return pb.JobPage(columns=columns).SerializeToString() if columns.job else b""

    def _part_all(self) -> None:
        """Give each job an entry of its own."""
        counts, entries = self._counts, list(zip(self._jobs, self._indices, self._counts, strict=True))
        self._jobs = [job if index else job + more for job, index, count in entries for more in range(count)]
        self._indices = [index + more if index else 0 for _, index, count in entries for more in range(count)]
        self._times = list(chain.from_iterable(map(repeat, self._times, counts)))
        self._kind_of = list(chain.from_iterable(map(repeat, self._kind_of, counts)))
        self._name_of = list(chain.from_iterable(map(repeat, self._name_of, counts)))
        self._counts = [1] * self._number

    def _kind_of_job(self, record: Job | ArrayRecord, job: Job) -> int:
        """Return the kind of a job, of its own if it runs or has run."""
        if job.attempt is None and job.end is None:
            return self._kind(record, job.state, job.attempts)
        if self._runs is Runs.HOSTS or (self._runs is Runs.ENDS and job.attempt is None):
            return self._placed_kind(record, job)
        self._tell(self._run(record, job))
        return len(self._kinds) - 1

    def _placed_kind(self, record: Job | ArrayRecord, job: Job) -> int:
        """Return the kind of a job with the hosts of its run alone; note the figures that the caller wants of it."""
        key = id(record.shared), job.state, record.priority, job.attempts, listing.allocation_of(job)
        known = self._placed.get(key)
        if known is None:
            message = _fields_of(record.shared)
            message.state, message.priority, message.attempt = translate.state_message(key[1]), key[2], key[3]
            listing.add_hosts(message, key[4])
            known = self._placed[key] = record.shared, len(self._kinds)
            if self._runs is Runs.ENDS:
                self._ended.append(known[1])
            self._tell(message)
        if self._runs is Runs.ENDS and job.end is not None:
            self._ends.append(job.end)
        return known[1]

    def _kind(self, record: Job | ArrayRecord, state: JobState, attempts: int) -> int:
        """Return the kind of a job that neither runs nor has run."""
        key = id(record.shared), state, record.priority, attempts
        known = self._known.get(key)
        if known is None:
            message = self._common(record.shared, key)
            known = self._known[key] = len(self._kinds)
            self._tell(message)
        return known

    def _common(self, shared: Shared, key: tuple[int, JobState, int, int]) -> pb.JobRecord:
        found = self._shared.get(key)
        if found is None:
            if len(self._shared) >= SHARED_MAX:
                self._shared.clear()
                self._known.clear()
            message = _fields_of(shared)
            message.state, message.priority, message.attempt = translate.state_message(key[1]), key[2], key[3]
            found = self._shared[key] = shared, message
        return found[1]

    def _run(self, record: Job | ArrayRecord, job: Job) -> pb.JobRecord:
        message = _fields_of(record.shared)
        message.state, message.priority = translate.state_message(job.state), record.priority
        listing.add_run(message, job)
        if not self._sight.has_details(record.shared):
            listing.hide_details(message)
        return message

    def _tell(self, kind: pb.JobRecord) -> None:
        self._kinds.append(kind)
        self.size += kind.ByteSize()


def _name_of_command(text: bytes) -> str:
    """Return the name of a job that was given none, by its packed texts: that of its command."""
    return names.of_command(text[1 : text.index(0, 1)].decode())


def _fields_of(shared: Shared) -> pb.JobRecord:
    """Return what a record tells of these."""
    return pb.JobRecord(
        user=shared.user,
        queue=shared.queue,
        from_host=shared.from_host,
        project=shared.project,
        slots_min=shared.request.slots_min,
        slots_max=shared.request.slots_max,
    )
