"""History of jobs from the store: bhist, and ended jobs that memory has forgotten. Read-only, a page at a time.

A page looks at no more than ``limit`` jobs or elements and says where the next one begins, so an array of a million
elements or ten years of one user's jobs cost no more at once than any other query.
"""

import heapq
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple, Protocol, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, case, or_, select, union

from lavad.core.language.job_names import name_pattern, name_shown
from lavad.core.model import FINAL, JobState, Shared
from lavad.core.model.ranges import Ranges
from lavad.core.model.rules.names import NONE, Names
from lavad.core.state.attempts import JobEnd
from lavad.core.state.records import ArrayRecord, Job
from lavad.store import schema
from lavad.store.reading import history_text
from lavad.store.reading.brief import Told, among, ordinary_seconds, read_brief, read_brief_elements
from lavad.store.reading.history_text import Moment, Note
from lavad.store.reading.restore import SharedTexts, array_of, job_of, jobs, select_arrays, select_jobs, specs
from lavad.store.rows import values as v

T = TypeVar("T")
ANY_TIME = (0.0, 0.0)
PAGE = 500
BLOCK = 20_000  # submissions of a time range that are found at once
ENDS_IN_QUEUE = {"killed": JobState.EXIT, "completed": JobState.DONE}  # of pending jobs, by kind of event
events, arrays, parts_ = schema.job_events.c, schema.arrays.c, schema.parts.c


class Read(Protocol):
    """Runner of a query in a transaction of its own."""

    def __call__(self, query: Callable[[Connection], T], /) -> T:
        """Return what the query returns."""


class JobRange(NamedTuple):
    """A job, or some elements of an array; ``indices`` None for all of it."""

    job: int
    indices: Ranges | None = None


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """Selection of jobs; an empty field selects any.

    ``group`` are users selected beside ``user``; ``name`` is a pattern of names; ``after`` the last job and index of
    the page before; ``is_brief`` asks for brief histories. Jobs are selected that were there between ``since`` and
    ``until``: submitted by its end, and not ended before its beginning; and that were ``submitted``, ``dispatched`` and
    ``completed`` between these times. 0 is open. CPU times are multiplied by ``factors``, if there are any.
    """

    now: float
    jobs: tuple[JobRange, ...] = ()
    user: str = ""
    group: Names = NONE
    queue: str = ""
    project: str = ""
    name: str = ""
    host: str = ""
    states: frozenset[JobState] = frozenset()
    after: tuple[int, int] = (0, 0)
    limit: int = PAGE
    is_brief: bool = False
    since: float = 0.0
    until: float = 0.0
    submitted: tuple[float, float] = ANY_TIME
    dispatched: tuple[float, float] = ANY_TIME
    completed: tuple[float, float] = ANY_TIME
    application: str = ""
    factors: history_text.CpuFactors | None = None

    @property
    def ended_from(self) -> float:
        """Time before which no selected job ended; 0 for none."""
        return max(self.since, self.dispatched[0], self.completed[0])


class JobHistory(NamedTuple):
    """History of one job or element: its record, its event lines, and the seconds in each column of LSF's summary.

    A brief one has no event lines, and the job's end may be missing.
    """

    job: Job
    notes: tuple[Note, ...]
    seconds_by_state: dict[str, float]


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """One page of histories; ``after`` goes into the filter for the next page, None on the last."""

    jobs: tuple[JobHistory, ...]
    after: tuple[int, int] | None


def read_page(connection: Connection, wanted: HistoryFilter, texts: SharedTexts | None = None) -> HistoryPage:
    """Read the next page of selected jobs, in the order of their ids; ``texts`` may be those of the page before."""
    rows = connection.execute(_candidates(wanted)).all()
    pattern = name_pattern(wanted.name or "*")
    page = _Page(connection, wanted, pattern.elements, SharedTexts() if texts is None else texts)
    ids = [
        row.job for row in rows[: wanted.limit] if not wanted.name or pattern.admits(row.name or name_shown(row.text))
    ]
    found = _arrays_among(connection, ids)
    if not found and pattern.elements is None:
        page.plain = ids
    else:
        page.add(ids, found)
    if not page.is_full:
        page.after = (rows[wanted.limit - 1].job, _LAST) if len(rows) > wanted.limit else None
    return page.finish()


def parts(read: Read, wanted: HistoryFilter) -> Iterator[HistoryFilter]:
    """Yield filters that select the same together, in the order of the ids, each for a bounded number of named jobs.

    So the jobs that ended in a time range are found once for many pages, not by each page.
    """
    if wanted.jobs or not wanted.ended_from:
        yield from _named_parts(wanted)
        return
    while ids := read(lambda connection: _submissions(connection, wanted)):  # noqa: B023 - run at once
        yield from _named_parts(replace(wanted, jobs=tuple(map(JobRange, ids))))
        wanted = replace(wanted, after=(ids[-1], _LAST))


def _named_parts(wanted: HistoryFilter) -> Iterator[HistoryFilter]:
    """Yield a filter for each page of named jobs; the filter itself if it names none."""
    ranges: dict[int, list[JobRange]] = {}
    for one in wanted.jobs:
        ranges.setdefault(one.job, []).append(one)
    ids = sorted(ranges)
    for start in range(0, len(ids), wanted.limit):
        some = ids[start : start + wanted.limit]
        yield replace(wanted, jobs=tuple([one for job in some for one in ranges[job]]))
    if not ids:
        yield wanted


def _submissions(connection: Connection, wanted: HistoryFilter) -> list[int]:
    query = _candidates(replace(wanted, limit=BLOCK - 1)).with_only_columns(specs.job)
    return list(connection.scalars(query))


_LAST = 2**62  # after every index of a job
_PLACE = attrgetter("job.id", "job.index")


def _candidates(wanted: HistoryFilter) -> Select[Any]:
    """Select submissions that may match, from the start of the page; one more than the page holds."""
    first = wanted.after[0] + (wanted.after[1] == _LAST)
    query = select(specs.job).where(specs.job >= first)
    if wanted.name:  # texts only of jobs without a name, which have that of their command
        query = query.add_columns(specs.name, case((specs.name == "", specs.words)).label("text"))
    for column, own, text in (
        (specs.queue, parts_.queue, wanted.queue),
        (specs.project, parts_.project, wanted.project),
    ):
        if text:  # also of elements that were changed by themselves
            query = query.where(or_(column == text, specs.job.in_(select(parts_.job).where(own == text))))
    if wanted.application:  # names of profiles have neither quotes nor escapes
        query = query.where(specs.shared.contains(f'"application":{v.quote(wanted.application)}', autoescape=True))
    if wanted.user:
        is_own = specs.user_name == wanted.user
        query = query.where(or_(is_own, _is_of(wanted.group)) if wanted.group else is_own)
    if wanted.jobs:
        query = query.where(specs.job.in_(sorted({part.job for part in wanted.jobs if part.job >= first})))
    if wanted.states and not wanted.states & FINAL:
        query = query.where(specs.job.in_(union(_unended(schema.jobs), _unended(schema.arrays))))
    query = query.where(specs.submitted_at >= wanted.submitted[0])
    if last := [moment for moment in (wanted.until, wanted.submitted[1]) if moment]:
        query = query.where(specs.submitted_at <= min(last))
    if wanted.ended_from and not wanted.jobs:
        tables = (schema.jobs, schema.arrays)
        there = [part for table in tables for part in (_unended(table), _ended_since(table, wanted.ended_from))]
        query = query.where(specs.job.in_(union(*there)))
    return query.order_by(specs.job).limit(wanted.limit + 1)


def _is_of(group: Names) -> ColumnElement[bool]:
    """Match submissions of these users."""
    users = sorted(group.names)
    return specs.user_name.not_in(users) if group.is_all else specs.user_name.in_(users)


def _unended(table: Any) -> Select[Any]:
    return select(table.c.job).where(table.c.ended_at == 0)


def _ended_since(table: Any, moment: float) -> Select[Any]:
    return select(table.c.job).where(table.c.ended_at >= moment)


def _arrays_among(connection: Connection, ids: Sequence[int]) -> set[int]:
    """Return the arrays among these jobs, and perhaps others."""
    return set(connection.scalars(select(arrays.job).where(among(arrays.job, ids))))


class _Page:
    """One page in progress: plain jobs are collected and read together, an array's elements window by window."""

    def __init__(
        self, connection: Connection, wanted: HistoryFilter, elements: Ranges | None, texts: SharedTexts
    ) -> None:
        self._connection = connection
        self._wanted = wanted
        self._elements = elements  # selected elements of arrays; None for all
        self._texts = texts
        self._is_brief = wanted.is_brief and not wanted.host and wanted.dispatched == wanted.completed == ANY_TIME
        self._stories: list[JobHistory] = []
        self._looked_at = 0
        self.plain: list[int] = []
        self.after: tuple[int, int] | None = None

    @property
    def is_full(self) -> bool:
        return self._looked_at + len(self.plain) >= self._wanted.limit

    def add(self, ids: Sequence[int], found: Collection[int]) -> None:
        """Add jobs, of which those found are arrays, up to the page's limit."""
        for job in ids:
            if job in found:
                self._add_array(job)
            elif self._elements is None:
                self.plain.append(job)
            if self.is_full:
                break

    def finish(self) -> HistoryPage:
        """Return the page, in the order of the ids."""
        others = self._add_brief() if self._is_brief else self.plain
        if others:
            self._add_told(others)
        if self.is_full and self.after is None and self.plain:
            self.after = (self.plain[-1], _LAST)
        return HistoryPage(tuple(sorted(self._stories, key=_PLACE)), self.after)

    def _add_brief(self) -> list[int]:
        """Add the plain jobs with an ordinary life; return the others."""
        added = set()
        for job, seconds in read_brief(self._connection, self.plain, self._texts):
            added.add(job.id)
            if self._is_wanted(job):
                self._stories.append(JobHistory(job, (), seconds))
        return [job for job in self.plain if job not in added]

    def _add_told(self, ids: Sequence[int]) -> None:
        """Add plain jobs event by event."""
        told = _told(self._connection, ids)
        for row in self._connection.execute(select_jobs().where(jobs.job.in_(ids), jobs.idx == 0)).all():
            self._add(job_of(row, self._texts), told.get(row.job, []))

    def _add_array(self, job_id: int) -> None:
        """Add the array's next elements, up to the page's limit."""
        row = self._connection.execute(select_arrays().where(arrays.job == job_id)).one()
        array = array_of(row, self._texts)
        first = self._wanted.after[1] + 1 if self._wanted.after[0] == job_id else 1
        room = self._wanted.limit - self._looked_at - len(self.plain)
        meant = _indices(self._connection, array, self._wanted, first)
        if self._elements is not None:
            named = array.indices.intersection(self._elements)
            meant = (index for index in named if index >= first and _is_named(array, self._wanted, index))
        indices = list(islice(meant, room))
        self._looked_at += len(indices)
        if len(indices) == room:
            self.after = (job_id, indices[-1])
        if indices:
            self._add_elements(array, indices)

    def _add_elements(self, array: ArrayRecord, indices: Sequence[int]) -> None:
        between = jobs.idx.between(indices[0], indices[-1])
        if self._is_brief:
            found = read_brief_elements(self._connection, array, indices[0], indices[-1], self._texts)
        else:
            rows = self._connection.execute(select_jobs().where(jobs.job == array.id, between))
            found = {row.idx: job_of(row, self._texts) for row in rows}
        told = _told(self._connection, [array.id], indices[0], indices[-1]).get(array.id, [])
        of_all = [(one, *_indices_of(one)) for one in told if not one.about]
        of_one: dict[int, list[Told]] = {}
        for one in told:
            of_one.setdefault(one.about, []).append(one)
        for index in indices:
            about = [one for one, meant, but in of_all if index not in but and (meant is None or index in meant)]
            events_of = sorted([*about, *of_one.get(index, ())])
            self._add(found.get(index) or _element_without_row(array, index, events_of), events_of)

    def _is_wanted(self, job: Job) -> bool:
        wanted = self._wanted
        if job.index and not _is_of_queue(job.shared, wanted):
            return False
        if job.end is not None and 0 < job.end.at < wanted.ended_from:
            return False
        if wanted.completed != ANY_TIME and (job.end is None or not _is_within(job.end.at, wanted.completed)):
            return False
        return not wanted.states or job.state in wanted.states

    def _add(self, job: Job, told: list[Told]) -> None:
        wanted = self._wanted
        if not self._is_wanted(job):
            return
        if wanted.host and not any(_was_on(one, wanted.host) for one in told):
            return
        if wanted.dispatched != ANY_TIME and not any(_was_dispatched(one, wanted.dispatched) for one in told):
            return
        seconds = ordinary_seconds(told) if wanted.is_brief and job.end is not None else None
        if seconds is not None:
            self._stories.append(JobHistory(job, (), seconds))
            return
        moments = history_text.with_start(history_text.in_order(list(map(_moment, told))), job.end)
        moments = history_text.with_figures(moments, job.end)
        if wanted.factors is not None:
            moments = history_text.normalized(moments, wanted.factors)
        steps = history_text.walk(moments)
        written = () if wanted.is_brief else history_text.notes(steps, job.shared, job.text)
        until = job.end.at if job.end else wanted.now
        self._stories.append(JobHistory(job, written, history_text.seconds_by_state(steps, until)))


def _is_of_queue(shared: Shared, wanted: HistoryFilter) -> bool:
    """Return True if an element, which may have been changed by itself, has the queue and the project of the filter."""
    is_in_queue = not wanted.queue or shared.queue == wanted.queue
    return is_in_queue and (not wanted.project or shared.project == wanted.project)


def _is_within(moment: float, times: tuple[float, float]) -> bool:
    return moment >= times[0] and (not times[1] or moment <= times[1])


def _was_dispatched(told: Told, times: tuple[float, float]) -> bool:
    return told.kind == "dispatched" and _is_within(told.at, times)


def _was_on(told: Told, host: str) -> bool:
    return told.kind == "dispatched" and any(share[0] == host for share in v.decode_detail(told.detail)["hosts"])


# -- events ----------------------------------------------------------------------------------------------------------


def _told(connection: Connection, ids: Collection[int], first: int = 0, last: int = 0) -> dict[int, list[Told]]:
    """Read the events of these jobs in order; of arrays those of the whole array and of a window of elements."""
    about = or_(events.idx == 0, events.idx.between(first, last))
    columns = (events.job, events.seq, events.idx, events.at, events.kind, events.detail)
    query = select(*columns).where(events.job.in_(ids), about).order_by(events.job, events.seq)
    rows = map(Told._make, connection.execute(query).all())
    return {job: list(told) for job, told in groupby(rows, key=_job)}


_job = attrgetter("job")


def _moment(told: Told) -> Moment:
    return Moment(told.at, told.kind, v.decode_detail(told.detail))


def _indices_of(told: Told) -> tuple[Ranges | None, Ranges]:
    """Return the elements that an event of a whole array is about, None for all, and those that it is not about."""
    detail = v.decode_detail(told.detail)
    return Ranges.parse(detail["indices"]) if "indices" in detail else None, Ranges.parse(detail.get("but", ""))


# -- elements --------------------------------------------------------------------------------------------------------


def _indices(connection: Connection, array: ArrayRecord, wanted: HistoryFilter, first: int) -> Iterator[int]:
    """Yield the elements that may match, ascending from ``first``."""
    named = [part.indices for part in wanted.jobs if part.job == array.id]
    if named and None not in named:
        chosen = sorted({index for indices in named if indices for index in indices.intersection(array.indices)})
        return (index for index in chosen if index >= first)
    is_unended = bool(wanted.states) and not wanted.states & FINAL
    if is_unended or wanted.ended_from:
        is_there = jobs.ended_at == 0 if is_unended else or_(jobs.ended_at == 0, jobs.ended_at >= wanted.ended_from)
        live = connection.scalars(
            select(jobs.idx).where(jobs.job == array.id, is_there, jobs.idx >= first).order_by(jobs.idx)
        )
        unstarted = [array.pending, array.held] + ([] if is_unended else [array.killed])
        return _distinct(heapq.merge(*(_from(indices, first) for indices in unstarted), live.all()))
    return _from(array.indices, first)


def _is_named(array: ArrayRecord, wanted: HistoryFilter, index: int) -> bool:
    """Return True if the array has the element and the filter names it or no element."""
    named = [part.indices for part in wanted.jobs if part.job == array.id]
    return index in array.indices and (not named or any(some is None or index in some for some in named))


def _from(indices: Ranges, first: int) -> Iterator[int]:
    """Yield the set's indices from ``first`` on, without iterating over those before."""
    for part in indices.parts():
        if part[-1] >= first:
            skipped = max(0, -(-(first - part.start) // part.step))
            yield from part[skipped:]


def _distinct(ascending: Iterator[int]) -> Iterator[int]:
    last = 0
    for index in ascending:
        if index != last:
            yield index
        last = index


def _element_without_row(array: ArrayRecord, index: int, told: Sequence[Told]) -> Job:
    """Build an element that was never dispatched: it is pending, or ended while pending."""
    state = JobState.PEND if index in array.pending else JobState.PSUSP
    end = None
    if index in array.killed:
        state, end = _end_in_queue(told)
    job = Job(array.id, index, array.shared, array.text, array.submitted_at, state)
    job.priority, job.position, job.end = array.priority, array.position, end
    return job


def _end_in_queue(told: Sequence[Told]) -> tuple[JobState, JobEnd]:
    last = next((one for one in reversed(told) if one.kind in ENDS_IN_QUEUE), None)
    if last is None:
        return JobState.EXIT, JobEnd(0.0, 0)
    return ENDS_IN_QUEUE[last.kind], JobEnd(last.at, 0, v.decode_detail(last.detail).get("reason", ""))
