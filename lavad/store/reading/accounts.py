"""Ended attempts of jobs for bacct, in the order of their ends. Read-only, a page at a time.

There is one for each attempt that ran or whose end was its job's, and one for each job or element that ended before it
was ever dispatched, or before it was dispatched again. They come from three places: the accounting rows, the rows of
jobs that ended while they waited, and the sets of elements of arrays that ended while pending.
"""

import heapq
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, and_, exists, func, literal, or_, select, tuple_

from lavad.core.language.job_names import NamePattern, name_shown
from lavad.core.model import FINAL, JobState
from lavad.core.model.ranges import Ranges
from lavad.core.model.rules.names import Names
from lavad.store import schema
from lavad.store.reading.history import ENDS_IN_QUEUE, JobRange, Read
from lavad.store.rows import values as v

PAGE = 2000
_KEYS_AT_ONCE = 200
accounting, specs, jobs, arrays = schema.accounting.c, schema.specs.c, schema.jobs.c, schema.arrays.c
parts = schema.parts.c
events = schema.job_events.c
_FINAL = sorted(int(state) for state in FINAL)
_EXIT = int(JobState.EXIT)
_ANY_TIME = (0.0, 0.0)
_UNUSED = (0.0, 0.0, 0.0, 0, 0.0, 0, "", "", 0.0, 0.0)  # figures, hosts and slot seconds of what never ran


class AccountFilter(NamedTuple):
    """Selection of ended attempts; an empty field selects any.

    ``users`` and ``hosts`` None select any; times are first and last moment, both included, 0 for open.
    """

    jobs: tuple[JobRange, ...] = ()
    users: Names | None = None
    queues: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    hosts: Names | None = None
    name: NamePattern | None = None
    states: frozenset[JobState] = frozenset()
    submitted: tuple[float, float] = _ANY_TIME
    dispatched: tuple[float, float] = _ANY_TIME
    completed: tuple[float, float] = _ANY_TIME
    hung: bool = False


class Ended(NamedTuple):
    """Ended attempt. ``attempt`` and ``dispatched_at`` are 0 for a job that ended before it was dispatched.

    ``hosts`` is the text of the allocation, ``shared`` and ``words`` are the columns of the submission. ``state`` is
    that of the job after it: pending again if the attempt was requeued.
    """

    ended_at: float
    job: int
    index: int  # type: ignore[assignment]  # hides tuple.index, unused here
    attempt: int
    state: int
    submitted_at: float
    dispatched_at: float
    status: int
    reason: str
    cpu_s: float
    user_s: float
    system_s: float
    memory_mib_max: int
    memory_mib_mean: float
    slots: int
    hosts: str
    gpus: str
    slot_s: float
    revocable_slot_s: float
    name: str
    shared: str
    words: bytes
    part: int  # of an element that was changed by itself

    @property
    def is_done(self) -> bool:
        """True if the job is DONE."""
        return self.state == JobState.DONE


def _has_parts(connection: Connection) -> bool:
    """Return True if elements of some array were changed by themselves."""
    return connection.execute(select(parts.job).limit(1)).first() is not None


def _submission_of(has_parts: bool) -> tuple[ColumnElement[Any], ...]:
    """Return the columns with name, shared fields, texts and part of an attempt's job.

    Where there are elements that were changed by themselves theirs are looked for in each row: half as much again.
    """
    whole = (specs.name, specs.shared, specs.words, literal(0))
    if not has_parts:
        return whole
    is_its = and_(jobs.job == parts.job, jobs.idx == accounting.idx, jobs.part == parts.part)
    own = [
        select(column).join_from(schema.parts, schema.jobs, is_its).where(parts.job == accounting.job).scalar_subquery()
        for column in (parts.name, parts.shared, parts.words, parts.part)
    ]
    return tuple(map(func.coalesce, own, whole))


_PLACE = itemgetter(0, 1, 2, 3)
_COLUMNS = (
    accounting.ended_at, accounting.job, accounting.idx, accounting.attempt, accounting.state, accounting.submitted_at,
    accounting.dispatched_at, accounting.status, accounting.reason, accounting.cpu_s, accounting.user_s,
    accounting.system_s, accounting.memory_mib_max, accounting.memory_mib_mean, accounting.slots, accounting.hosts,
    accounting.gpus, accounting.slot_s, accounting.revocable_slot_s,
)  # fmt: skip


def ended(read: Read, wanted: AccountFilter) -> Iterator[Ended | None]:
    """Yield the selected attempts, and None for each page of them that was looked through."""
    sources = [_attempts(read, wanted)]
    if counts_waiting(wanted):
        sources.append(_ended_waiting(read, wanted))
        sources.append(elements_ended_waiting(read, wanted))
    for looked_at, one in enumerate(heapq.merge(*sources, key=_PLACE), 1):
        if _is_selected(one, wanted):
            yield one
        if looked_at % PAGE == 0:
            yield None


def counts_waiting(wanted: AccountFilter) -> bool:
    """Return True if jobs count that ended before they were dispatched: they have no host, no dispatch and no hang."""
    return wanted.dispatched == _ANY_TIME and wanted.hosts is None and not wanted.hung


def _is_selected(one: Ended, wanted: AccountFilter) -> bool:
    """Check what the database does not."""
    if wanted.jobs and not any(part.job == one.job and _has(part.indices, one.index) for part in wanted.jobs):
        return False
    if wanted.name is not None:
        if not wanted.name.admits(one.name or name_shown(one.words)):
            return False
        if wanted.name.elements is not None and one.index not in wanted.name.elements:
            return False
    return wanted.hosts is None or any(share.host in wanted.hosts for share in v.decode_hosts(one.hosts))


def _has(indices: Ranges | None, index: int) -> bool:
    return indices is None or index in indices


def _paged(read: Read, query: Select[Any], place: Sequence[ColumnElement[Any]]) -> Iterator[Ended]:
    """Yield the rows of a query in the order of these columns, each page by a query of its own."""
    query = query.order_by(*place).limit(PAGE)
    part = query
    while True:
        rows = read(lambda connection: connection.execute(part).all())  # noqa: B023 - run at once
        yield from map(Ended._make, rows)
        if len(rows) < PAGE:
            return
        part = query.where(tuple_(*place) > tuple_(*rows[-1][: len(place)]))


def _ended_attempts(has_parts: bool) -> Select[Any]:
    columns = (*_COLUMNS, *_submission_of(has_parts))
    return select(*columns).join_from(schema.accounting, schema.specs, accounting.job == specs.job)


def _attempts(read: Read, wanted: AccountFilter) -> Iterator[Ended]:
    query = _ended_attempts(read(_has_parts))
    query = query.where(*attempts_wanted(wanted))
    return _paged(read, query, (accounting.ended_at, accounting.job, accounting.idx, accounting.attempt))


def attempts_wanted(
    wanted: AccountFilter, ended_at: ColumnElement[float] = accounting.ended_at
) -> list[ColumnElement[bool]]:
    """Return the conditions of the filter on the rows of attempts; those of names and elements are not among them.

    ``ended_at``: the column, or an expression for it that no index has.
    """
    found = [
        *_of_submission(accounting, wanted),
        *_between(accounting.dispatched_at, wanted.dispatched),
        *_between(ended_at, wanted.completed),
    ]
    if wanted.hung:
        of_job = and_(events.job == accounting.job, events.idx == accounting.idx)
        found.append(exists().where(of_job, events.attempt == accounting.attempt, events.kind == "hangs"))
    ran = or_(accounting.started_at > 0, accounting.cpu_s > 0)
    if wanted.states == {JobState.DONE}:
        found.append(accounting.state == int(JobState.DONE))
    elif wanted.states == {JobState.EXIT}:
        found.append(or_(accounting.state == _EXIT, and_(accounting.state.not_in(_FINAL), ran)))
    else:
        found.append(or_(accounting.state.in_(_FINAL), ran))
    return found


def _ended_waiting(read: Read, wanted: AccountFilter) -> Iterator[Ended]:
    """Yield jobs, and elements that were dispatched before, whose end found them pending."""
    columns = (
        jobs.ended_at, jobs.job, jobs.idx, literal(0), jobs.state, jobs.submitted_at, literal(0.0), jobs.status,
        jobs.reason, *map(literal, _UNUSED), func.coalesce(parts.name, specs.name),
        func.coalesce(parts.shared, specs.shared), func.coalesce(parts.words, specs.words), jobs.part,
    )  # fmt: skip
    query = _in_queue(select(*columns), wanted, jobs.ended_at)
    return _paged(read, query, (jobs.ended_at, jobs.job, jobs.idx))


def ended_in_queue(wanted: AccountFilter) -> Select[Any]:
    """Select state and times of jobs, and of elements that were dispatched before, whose end found them pending.

    All rows are gone through in the order of their key: by the index of ends each would be looked up.
    """
    columns = jobs.state, jobs.submitted_at, jobs.ended_at
    return _in_queue(select(*columns), wanted, jobs.ended_at + 0.0)


def _in_queue(query: Select[Any], wanted: AccountFilter, ended_at: ColumnElement[float]) -> Select[Any]:
    states = [int(state) for state in wanted.states] or _FINAL
    last = and_(accounting.job == jobs.job, accounting.idx == jobs.idx, accounting.attempt == jobs.attempts)
    # An attempt that ended earlier had an end of its own: the job was requeued after it.
    of_attempt = exists().where(last, accounting.state.in_(_FINAL), accounting.ended_at == jobs.ended_at)
    query = query.join_from(schema.jobs, schema.specs, jobs.job == specs.job)
    query = query.outerjoin(schema.parts, and_(jobs.job == parts.job, jobs.part == parts.part))
    query = query.where(jobs.state.in_(states), ended_at > 0, jobs.started_at == 0, ~of_attempt)
    return query.where(*_of_submission(specs, wanted, parts), *_between(ended_at, wanted.completed))


def elements_ended_waiting(read: Read, wanted: AccountFilter) -> Iterator[Ended]:
    """Yield elements that ended before they were ever dispatched."""
    query = select(arrays.job, arrays.killed, arrays.submitted_at, specs.name, specs.shared, specs.words)
    query = query.join_from(schema.arrays, schema.specs, arrays.job == specs.job).where(arrays.killed != "")
    query = query.where(*_of_submission(specs, wanted))
    first, last = wanted.completed
    if first:  # the last of its elements ended with the array
        query = query.where(or_(arrays.ended_at == 0, arrays.ended_at >= first))
    found = {row.job: row for row in read(lambda connection: connection.execute(query).all())}
    ends = read(lambda connection: [end for row in found.values() for end in _ends_waiting(connection, row)])
    for at, job, indices, reason, state in sorted(ends, key=itemgetter(0, 1)):
        row = found[job]
        if at >= first and (not last or at <= last) and (not wanted.states or state in wanted.states):
            words = (row.name, row.shared, row.words)
            for index in indices:
                yield ended_waiting(at, job, index, row.submitted_at, reason, words, state)


def ended_waiting(
    at: float,
    job: int,
    index: int,
    submitted_at: float,
    reason: str,
    submission: tuple[str, str, bytes],
    state: JobState,
) -> Ended:
    """Return the end of a job that ended while it waited; ``submission`` is name, shared fields and texts."""
    return Ended._make((at, job, index, 0, int(state), submitted_at, 0.0, 0, reason, *_UNUSED, *submission, 0))


def read_attempts(connection: Connection, keys: Sequence[tuple[int, int, int]]) -> dict[tuple[int, int, int], Ended]:
    """Return those of the named attempts that count as ended."""
    place = tuple_(accounting.job, accounting.idx, accounting.attempt)
    counts = or_(accounting.state.in_(_FINAL), accounting.started_at > 0, accounting.cpu_s > 0)
    found, query = {}, _ended_attempts(_has_parts(connection))
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        for row in connection.execute(query.where(place.in_(keys[start : start + _KEYS_AT_ONCE]), counts)):
            one = Ended._make(row)
            found[one.job, one.index, one.attempt] = one
    return found


def _ends_waiting(connection: Connection, row: Any) -> Iterator[tuple[float, int, Ranges, str, JobState]]:
    """Yield when elements of an array that have no rows last ended: time, array, elements, reason, state."""
    left = Ranges.parse(row.killed)
    with_rows = select(jobs.idx).where(jobs.job == row.job, jobs.state.in_(_FINAL), jobs.started_at == 0)
    left.difference_update(Ranges.from_sorted(connection.scalars(with_rows.order_by(jobs.idx))))
    told = select(events.at, events.detail, events.kind).where(events.job == row.job, events.kind.in_(ENDS_IN_QUEUE))
    for at, text, kind in connection.execute(told.order_by(events.seq.desc())):
        detail = v.decode_detail(text)
        these = left.intersection(Ranges.parse(detail["indices"]) if "indices" in detail else left)
        if these:
            left.difference_update(these)
            yield at, row.job, these, detail.get("reason", ""), ENDS_IN_QUEUE[kind]


def _of_submission(columns: Any, wanted: AccountFilter, own: Any = None) -> Iterator[ColumnElement[bool]]:
    """Yield what the filter says of the columns about the submission, or of ``own`` where there are any."""
    if wanted.jobs:
        yield columns.job.in_(sorted({part.job for part in wanted.jobs}))
    if wanted.users is not None and wanted.users.is_all:
        yield columns.user_name.not_in(sorted(wanted.users.names))
    elif wanted.users is not None:
        yield columns.user_name.in_(sorted(wanted.users.names))
    for name, chosen in (("queue", wanted.queues), ("project", wanted.projects)):
        column = getattr(columns, name)
        if chosen:
            yield (column if own is None else func.coalesce(getattr(own, name), column)).in_(chosen)
    yield from _between(columns.submitted_at, wanted.submitted)


def _between(column: ColumnElement[float], times: tuple[float, float]) -> Iterator[ColumnElement[bool]]:
    """Yield what a time interval says of a column."""
    first, last = times
    if first:
        yield column >= first
    if last:
        yield column <= last
