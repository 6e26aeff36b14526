"""Brief histories: the seconds in each state only, as bhist lists them without -l.

The database finds the times of an ordinary life, so that a hundred thousand jobs are listed in the time that their rows
take. They are the seconds that ``history_text`` finds in the events one by one, which it does for any other life.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, bindparam, case, func, select

from lavad.core.model import JobState, Shared
from lavad.core.model.reasons import FOUND_ON_HOST
from lavad.core.state.records import ArrayRecord, Job, JobEnd
from lavad.store import schema
from lavad.store.reading.restore import SharedTexts, jobs, specs

events = schema.job_events.c
_HELD = '"hold":true'
_STATES = {int(state): state for state in JobState}


class Told(NamedTuple):
    """A row of ``job_events``; ``about`` is the element's index, 0 for a plain job or a whole array."""

    job: int
    seq: int
    about: int
    at: float
    kind: str
    detail: str


class Life(NamedTuple):
    """Times of a job that was submitted, dispatched and ended once, and did nothing else but start.

    The start of a short job is told with its end: ``started_at`` is None then.
    """

    submitted_at: float
    dispatched_at: float
    started_at: float | None
    ended_at: float

    def seconds(self, end: JobEnd) -> dict[str, float]:
        """Return the seconds in each column of LSF's summary, but for those without any."""
        since, until, started_at = self.dispatched_at, self.ended_at, self.started_at
        if started_at is None:
            started_at = min(max(end.started_at or since, since), until)
        starting, running = started_at - since, until - started_at
        return {"PEND": max(0.0, since - self.submitted_at), "RUN": max(0.0, starting) + max(0.0, running)}


def life_in(told: Sequence[Told]) -> Life | None:
    """Return the life in these events, or None if it is not an ordinary one."""
    kinds = [one.kind for one in told]
    has_start = kinds[2:-1] == ["started"]
    if kinds[:2] != ["submitted", "dispatched"] or kinds[2 + has_start :] != ["finished"]:
        return None
    if _HELD in told[0].detail or FOUND_ON_HOST in told[1].detail:
        return None
    return Life(told[0].at, told[1].at, told[2].at if has_start else None, told[-1].at)


def among(column: ColumnElement[int], ids: Sequence[int]) -> ColumnElement[bool]:
    """Match ascending ids, and perhaps a few that lie between them: a list of hundreds costs more than their rows."""
    return column.between(ids[0], ids[-1]) if _are_close(ids) else column.in_(ids)


def _are_close(ids: Sequence[int]) -> bool:
    return bool(ids) and ids[-1] - ids[0] < 2 * len(ids)


def read_brief(connection: Connection, ids: Sequence[int], texts: SharedTexts) -> Iterator[tuple[Job, Life | None]]:
    """Yield plain jobs, of their end the times only, with the lives of those that had an ordinary one.

    Args:
        ids: ascending.
    """
    if _are_close(ids):
        rows = connection.execute(_QUERY_BETWEEN, {"first": ids[0], "last": ids[-1]}).all()
    else:
        rows = connection.execute(_QUERY, {"ids": ids}).all()
    wanted = set(ids)
    for number, shared, words, told, submitted, dispatched, started, finished, *rest in rows:
        if number in wanted:
            job = _brief_job(number, 0, texts.decode(shared), words, *rest)
            life = Life(submitted, dispatched, started, finished)
            is_ordinary = job.end is not None and told == 3 + (started is not None)
            yield job, life if is_ordinary and None not in (submitted, dispatched, finished) else None


def read_brief_elements(connection: Connection, array: ArrayRecord, first: int, last: int) -> dict[int, Job]:
    """Return those elements of a window that were ever dispatched, of their end the times only."""
    query = select(jobs.idx, *_TIMES).where(jobs.job == array.id, jobs.idx.between(first, last))
    rows = connection.execute(query).all()
    return {index: _brief_job(array.id, index, array.shared, array.text, *rest) for index, *rest in rows}


def _brief_job(number: int, index: int, shared: Shared, words: bytes, *times: Any) -> Job:
    state, submitted_at, ended_at, started_at, pid = times
    job = Job(number, index, shared, words, submitted_at, _STATES[state])
    if ended_at:
        job.end = JobEnd(ended_at, 0, started_at=started_at, pid=pid)
    return job


_TIMES = (jobs.state, jobs.submitted_at, jobs.ended_at, jobs.started_at, jobs.pid)


def _at(kind: str, but: str = "") -> ColumnElement[Any]:
    """Select the time of the last event of a kind, unless its detail has this text."""
    wanted = (events.kind == kind) & ~events.detail.contains(but) if but else events.kind == kind
    return func.max(case((wanted, events.at)))


def _query(is_event: ColumnElement[bool], is_job: ColumnElement[bool]) -> Select[Any]:
    """Select plain jobs with the times of their lives, one row each."""
    lives = select(
        events.job,
        func.count().label("told"),
        _at("submitted", but=_HELD).label("submitted"),
        _at("dispatched", but=FOUND_ON_HOST).label("dispatched"),
        _at("started").label("started"),
        _at("finished").label("finished"),
    )
    life = lives.where(is_event).group_by(events.job).subquery()
    told = (life.c.told, life.c.submitted, life.c.dispatched, life.c.started, life.c.finished)
    return (
        select(jobs.job, specs.shared, specs.words, *told, *_TIMES)
        .join_from(schema.jobs, schema.specs, jobs.job == specs.job)
        .outerjoin(life, jobs.job == life.c.job)
        .where(is_job, jobs.idx == 0)
    )


_IDS: Any = bindparam("ids", expanding=True)
_FIRST: Any = bindparam("first")
_LAST: Any = bindparam("last")
_QUERY = _query(events.job.in_(_IDS), jobs.job.in_(_IDS))
_QUERY_BETWEEN = _query(events.job.between(_FIRST, _LAST), jobs.job.between(_FIRST, _LAST))
