"""Brief histories: the seconds in each state only, as bhist lists them without -l.

The database finds the times of an ordinary life, so that a hundred thousand jobs are listed in the time that their rows
take. They are the seconds that ``history_text`` finds in the events one by one, which it does for any other life.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, bindparam, case, func, select

from lavad.core.model import JobState
from lavad.core.model.reasons import FOUND_ON_HOST
from lavad.core.state.records import Job, JobEnd
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


def read_brief(connection: Connection, ids: Sequence[int], texts: SharedTexts) -> Iterator[tuple[Job, Life | None]]:
    """Yield plain jobs, of their end the times only, with the lives of those that had an ordinary one."""
    for row in connection.execute(_QUERY, {"ids": ids}).all():
        number, state, submitted_at, ended_at, started_at, pid, shared, words, told, *times = row
        job = Job(number, 0, texts.decode(shared), words, submitted_at, _STATES[state])
        if ended_at:
            job.end = JobEnd(ended_at, 0, started_at=started_at, pid=pid)
        is_ordinary = ended_at and told == 4 - times.count(None)
        yield job, Life._make(times) if is_ordinary and None not in (times[0], times[1], times[3]) else None


def _at(kind: str, but: str = "") -> ColumnElement[Any]:
    """Select the time of the last event of a kind, unless its detail has this text."""
    wanted = (events.kind == kind) & ~events.detail.contains(but) if but else events.kind == kind
    return func.max(case((wanted, events.at)))


_IDS: Any = bindparam("ids", expanding=True)
_LIVES = (
    select(
        events.job,
        func.count().label("told"),
        _at("submitted", but=_HELD).label("submitted"),
        _at("dispatched", but=FOUND_ON_HOST).label("dispatched"),
        _at("started").label("started"),
        _at("finished").label("finished"),
    )
    .where(events.job.in_(_IDS))
    .group_by(events.job)
    .subquery()
    .c
)
_QUERY = (
    select(
        jobs.job, jobs.state, jobs.submitted_at, jobs.ended_at, jobs.started_at, jobs.pid, specs.shared, specs.words,
        _LIVES.told, _LIVES.submitted, _LIVES.dispatched, _LIVES.started, _LIVES.finished,
    )
    .join_from(schema.jobs, schema.specs, jobs.job == specs.job)
    .outerjoin(_LIVES.job.table, jobs.job == _LIVES.job)
    .where(jobs.job.in_(_IDS), jobs.idx == 0)
)  # fmt: skip
