"""Sums over ended attempts, made by the database: the rows of busage, and bacct's summary of everything.

The bounds of periods are the caller's, whose calendar the database does not know.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, case, func, literal, select

from lavad.core.model import FINAL, JobState
from lavad.core.model.rules.names import Names
from lavad.store import schema
from lavad.store.reading.accounts import AccountFilter, attempts_wanted, counts_waiting, ended_in_queue
from protos.accounts import FIGURES, Figure, Tally

accounting = schema.accounting.c
_FINAL = sorted(int(state) for state in FINAL)
_PART = 0.25  # of the time that the database knows: for more of it the index of ends only costs
_DONE, _EXIT = int(JobState.DONE), int(JobState.EXIT)
KEYS = ("user", "user_group", "project", "queue", "period")
_COLUMNS = (accounting.user_name, accounting.user_group, accounting.project, accounting.queue)


@dataclass(frozen=True, slots=True)
class UsageFilter:
    """Selection of ended attempts by who they were charged to and when they ended; an empty field selects any.

    ``bounds`` ascend: attempts count that ended from the first to before the last; those between part the periods.
    """

    bounds: tuple[float, ...]
    users: Names | None = None
    projects: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()


class Used(NamedTuple):
    """Sums over some ended attempts; what is not told apart is empty, or period 0."""

    user: str
    user_group: str
    project: str
    queue: str
    period: int
    done: int
    exited: int
    cpu_s: float
    slot_s: float
    gpu_s: float
    wait_s: float
    memory_mib_max: int

    def joined(self, other: "Used") -> "Used":
        """Return the sums over both."""
        sums = (mine + more for mine, more in zip(self[5:-1], other[5:-1], strict=True))
        return Used._make((*self[:5], *sums, max(self.memory_mib_max, other.memory_mib_max)))


def read_usage(connection: Connection, wanted: UsageFilter, keys: frozenset[str]) -> list[Used]:
    """Return the sums over the selected attempts, told apart by some of KEYS."""
    kept = [column if name in keys else literal("") for name, column in zip(KEYS, _COLUMNS, strict=False)]
    grouped: list[ColumnElement[Any]] = [column for name, column in zip(KEYS, _COLUMNS, strict=False) if name in keys]
    period: ColumnElement[Any] = literal(0)
    if "period" in keys and len(wanted.bounds) > 2:
        period = _period(wanted.bounds[1:-1], 0).label("period")
        grouped.append(period)
    ended_at = _ended_at(connection, wanted.bounds[0], wanted.bounds[-1])
    query = select(*kept, period, *_sums()).where(*_selected(wanted, ended_at)).group_by(*grouped)
    rows = connection.execute(query).all()
    return [_used(row) for row in rows if row[-1] is not None]  # without a key there is a row for nothing


def _used(row: Sequence[Any]) -> Used:
    done, exited, *figures, memory = row[5:]
    return Used._make((*row[:4], int(row[4]), int(done), int(exited), *map(float, figures), int(memory)))


def _sums() -> tuple[ColumnElement[Any], ...]:
    is_final = accounting.state.in_(_FINAL)
    waited = _positive(accounting.dispatched_at - accounting.submitted_at)
    return (
        _count(accounting.state == _DONE),
        _count(accounting.state == _EXIT),
        func.sum(accounting.cpu_s),
        func.sum(accounting.slot_s),
        func.sum(accounting.gpu_s),
        func.sum(case((and_(is_final, accounting.dispatched_at > 0), waited), else_=0.0)),
        func.max(accounting.memory_mib_max),
    )


def _ended_at(connection: Connection, first: float, last: float) -> ColumnElement[float]:
    """Return the column of ends or, if much of all that has ended lies between, an expression that no index has.

    A row that is looked up by the index costs as much as three that are gone through in the order of their key.
    """
    begin = connection.scalar(select(func.min(accounting.ended_at))) or 0.0
    end = connection.scalar(select(func.max(accounting.ended_at))) or 0.0
    between = min(last or end, end) - max(first, begin)
    return accounting.ended_at + 0.0 if between > _PART * (end - begin) else accounting.ended_at


def _selected(wanted: UsageFilter, ended_at: ColumnElement[float]) -> list[ColumnElement[bool]]:
    conditions = [ended_at >= wanted.bounds[0], ended_at < wanted.bounds[-1]]
    if wanted.users is not None:
        names = sorted(wanted.users.names)
        is_in = accounting.user_name.not_in(names) if wanted.users.is_all else accounting.user_name.in_(names)
        conditions.append(is_in)
    for column, chosen in ((accounting.project, wanted.projects), (accounting.queue, wanted.queues)):
        if chosen:
            conditions.append(column.in_(chosen))
    return conditions


def _period(bounds: Sequence[float], first: int) -> ColumnElement[Any]:
    """Return the number of the period between these bounds, found by halves: each row asks for few of them."""
    if not bounds:
        return literal(first)
    middle = len(bounds) // 2
    earlier, later = _period(bounds[:middle], first), _period(bounds[middle + 1 :], first + middle + 1)
    return case((accounting.ended_at < bounds[middle], earlier), else_=later)


def _count(condition: ColumnElement[bool]) -> ColumnElement[Any]:
    return func.sum(case((condition, 1), else_=0))


def _positive(value: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((value > 0, value), else_=0.0)


# -- bacct -------------------------------------------------------------------------------------------------------------


def can_sum(wanted: AccountFilter) -> bool:
    """Return True if the database alone can select these attempts: no name, host or element is asked for."""
    return wanted.name is None and wanted.hosts is None and all(part.indices is None for part in wanted.jobs)


def read_tallies(connection: Connection, wanted: AccountFilter) -> Iterator[Tally]:
    """Yield the sums over the attempts that ``accounts.ended`` takes from rows: those that ran, those that waited.

    Elements of arrays that ended before they were ever dispatched have no rows: ``accounts.elements_ended_waiting``.
    """
    c = accounting
    figures = _figures(c.submitted_at, c.dispatched_at, c.ended_at, c.cpu_s)
    slots = (func.sum(c.slot_s), func.sum(c.revocable_slot_s))
    query = select(*_ends(c), *figures, *slots).where(
        *attempts_wanted(wanted, _ended_at(connection, *wanted.completed))
    )
    yield _tally(connection.execute(query).one())
    if counts_waiting(wanted):
        w = ended_in_queue(wanted).subquery().c
        figures = _figures(w.submitted_at, literal(0.0), w.ended_at, literal(0.0))
        yield _tally(connection.execute(select(*_ends(w), *figures, literal(0.0), literal(0.0))).one())


def _ends(columns: Any) -> tuple[ColumnElement[Any], ...]:
    return (
        func.count(),
        _count(columns.state == _DONE),
        func.min(columns.ended_at),
        func.max(columns.ended_at),
    )


def _figures(
    submitted_at: ColumnElement[Any], dispatched_at: ColumnElement[Any], ended_at: ColumnElement[Any], cpu_s: Any
) -> list[ColumnElement[Any]]:
    """Return count, total, least and most of each of the figures of a Tally, in its order."""
    turnaround, ran = _positive(ended_at - submitted_at), _positive(ended_at - dispatched_at)
    run = case((dispatched_at > 0, ran), else_=0.0)
    wait = case((dispatched_at > 0, _positive(dispatched_at - submitted_at)), else_=turnaround)
    hog = case((turnaround > 0, cpu_s / turnaround), else_=0.0)
    expansion = case((run > 0, turnaround / run))  # none of what never ran
    return [
        aggregate(figure)
        for figure in (cpu_s, wait, turnaround, hog, expansion, run)
        for aggregate in (func.count, func.sum, func.min, func.max)
    ]


def _tally(row: Sequence[Any]) -> Tally:
    tally = Tally()
    count, done, first_end, last_end, *figures, slot_s, revocable_slot_s = row
    if not count:
        return tally
    tally.done, tally.exited = int(done), int(count) - int(done)
    tally.first_end, tally.last_end = float(first_end), float(last_end)
    for at, name in enumerate(FIGURES):
        number, *rest = figures[4 * at : 4 * at + 4]
        setattr(tally, name, Figure.of(int(number), *(float(one or 0.0) for one in rest)))
    tally.add_slots(float(slot_s), float(revocable_slot_s))
    return tally
