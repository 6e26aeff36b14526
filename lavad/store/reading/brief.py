"""Brief histories: the seconds in each state only, as bhist lists them without -l.

An ordinary life is one in which the job was submitted, dispatched and ended once, in that order of time, and did
nothing else but start. The database finds the seconds of such lives, so that a hundred thousand jobs are listed in the
time that their rows take. They are those that ``history_text`` finds in the events one by one, which it does for any
other life. The start of a short job is told with its end.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, case, func, select

from lavad.core.model import JobState
from lavad.core.model.reasons import FOUND_ON_HOST
from lavad.core.state.attempts import JobEnd
from lavad.core.state.records import ArrayRecord, Job
from lavad.store import schema
from lavad.store.reading.restore import SharedTexts, job_of, jobs, select_jobs, specs

events = schema.job_events.c
_HELD = '"hold":true'
_ORDINARY = (["submitted", "dispatched", "finished"], ["submitted", "dispatched", "started", "finished"])
_STATES = {int(state): state for state in JobState}


class Told(NamedTuple):
    """A row of ``job_events``; ``about`` is the element's index, 0 for a plain job or a whole array."""

    job: int
    seq: int
    about: int
    at: float
    kind: str
    detail: str


def ordinary_seconds(told: Sequence[Told]) -> dict[str, float] | None:
    """Return the seconds in each column of LSF's summary, or None if these events are not those of an ordinary life."""
    kinds, times = [one.kind for one in told], [one.at for one in told]
    if kinds not in _ORDINARY or times != sorted(times):
        return None
    if _HELD in told[0].detail or FOUND_ON_HOST in told[1].detail:
        return None
    return {"PEND": times[1] - times[0], "RUN": times[-1] - times[1]}


def among(column: ColumnElement[int], ids: Sequence[int]) -> ColumnElement[bool]:
    """Match ascending ids, and perhaps a few that lie between them: a list of hundreds costs more than their rows."""
    return column.between(ids[0], ids[-1]) if _are_close(ids) else column.in_(ids)


def _are_close(ids: Sequence[int]) -> bool:
    return bool(ids) and ids[-1] - ids[0] < 2 * len(ids)


def read_brief(
    connection: Connection, ids: Sequence[int], texts: SharedTexts
) -> Iterator[tuple[Job, dict[str, float]]]:
    """Yield those plain jobs that had an ordinary life, without their ends, and the seconds in its columns.

    Args:
        ids: ascending.
    """
    if _are_close(ids):
        rows = connection.execute(_QUERY_BETWEEN, {"first": ids[0], "last": ids[-1]}).all()
    else:
        rows = connection.execute(_QUERY, {"ids": ids}).all()
    wanted = set(ids)
    for number, state, submitted_at, shared, words, waited, ran in rows:
        if number in wanted:
            job = Job(number, 0, texts.decode(shared), words, submitted_at, _STATES[state])
            yield job, {"PEND": waited, "RUN": ran}


def _changed(connection: Connection, array: ArrayRecord, first: int, last: int, texts: SharedTexts) -> Iterator[Job]:
    """Yield those elements of a window that were changed by themselves."""
    query = select_jobs().where(jobs.job == array.id, jobs.idx.between(first, last), jobs.part > 0)
    yield from (job_of(row, texts) for row in connection.execute(query))


def read_brief_elements(
    connection: Connection, array: ArrayRecord, first: int, last: int, texts: SharedTexts
) -> dict[int, Job]:
    """Return those elements of a window that have rows, of their end the times only."""
    own = {job.index: job for job in _changed(connection, array, first, last, texts)}
    times = (jobs.state, jobs.submitted_at, jobs.ended_at, jobs.started_at, jobs.pid)
    query = select(jobs.idx, *times).where(jobs.job == array.id, jobs.idx.between(first, last))
    found = {}
    for index, state, submitted_at, ended_at, started_at, pid in connection.execute(query):
        like = own.get(index, array)
        job = found[index] = Job(array.id, index, like.shared, like.text, submitted_at, _STATES[state])
        if ended_at:
            job.end = JobEnd(ended_at, 0, started_at=started_at, pid=pid)
    return found


def _at(kind: str, but: str = "") -> ColumnElement[Any]:
    """Select the time of the last event of a kind, unless its detail has this text."""
    wanted = (events.kind == kind) & ~events.detail.contains(but) if but else events.kind == kind
    return func.max(case((wanted, events.at)))


def _query(is_event: ColumnElement[bool], is_job: ColumnElement[bool]) -> Select[Any]:
    """Select plain jobs that had an ordinary life, with its times, one row each."""
    lives = select(
        events.job,
        func.count().label("told"),
        _at("submitted", but=_HELD).label("submitted"),
        _at("dispatched", but=FOUND_ON_HOST).label("dispatched"),
        _at("started").label("started"),
        _at("finished").label("finished"),
    )
    found = lives.where(is_event).group_by(events.job).subquery()
    life = found.c
    started = func.coalesce(life.started, life.dispatched)
    is_ordinary = and_(
        life.told == case((life.started.is_(None), 3), else_=4),
        life.submitted <= life.dispatched,
        life.dispatched <= started,
        started <= life.finished,
    )
    waited, ran = life.dispatched - life.submitted, life.finished - life.dispatched
    return (
        select(jobs.job, jobs.state, jobs.submitted_at, specs.shared, specs.words, waited, ran)
        .join_from(schema.jobs, schema.specs, jobs.job == specs.job)
        .join(found, jobs.job == life.job)
        .where(is_job, jobs.idx == 0, jobs.ended_at > 0, is_ordinary)
    )


_IDS: Any = bindparam("ids", expanding=True)
_FIRST: Any = bindparam("first")
_LAST: Any = bindparam("last")
_QUERY = _query(events.job.in_(_IDS), jobs.job.in_(_IDS))
_QUERY_BETWEEN = _query(events.job.between(_FIRST, _LAST), jobs.job.between(_FIRST, _LAST))
