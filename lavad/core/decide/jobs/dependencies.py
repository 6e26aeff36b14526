"""Dependency conditions (bsub -w): resolve names to jobs, evaluate, find conditions that can never hold.

An evaluation is a pair: true now, and final. Once its condition is true a job is released for good, so a condition is
evaluated only until then. For a dependent array it is evaluated for all elements at once, as columns over their
indices. Parents that are forgotten stay in ``cluster.remembered`` while a job waits for them.
"""

import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lavad.core import events as e
from lavad.core.commands import Command, Tick
from lavad.core.language.dependency import And, Clause, ConditionKind, Expression, Not, Or, Ref
from lavad.core.language.job_groups import checked
from lavad.core.model import FINAL, HOLDING, JobState, PostState, Shared
from lavad.core.model import reasons as r
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import Refused
from lavad.core.state.attempts import exit_code
from lavad.core.state.dependencies import Budget
from lavad.core.state.records import ArrayRecord, Job

if TYPE_CHECKING:
    from lavad.core.cluster import Cluster
    from lavad.core.cluster_view import ClusterView

S = JobState
MATCHES_MAX = 10_000  # jobs that one name, and a whole condition, may refer to
REFERENCES_MAX = 100_000  # jobs that the conditions of all waiting jobs of one user may refer to
EVALUATIONS_MAX = 2000  # conditions in one step, and references in them; the rest is left to the next one
TICK_EVALUATIONS_MAX = 10_000  # references in a step of the clock, which alone evaluates larger conditions
_OPERATORS: dict[str, Callable[[int, int], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
_STARTED = (HOLDING | FINAL) - {S.STAGING}


class Evaluation(NamedTuple):
    """Value of a condition: ``holds`` now; ``is_final``: whatever its parents still do."""

    holds: bool
    is_final: bool


_NEVER = Evaluation(False, True)
Column = NDArray[np.bool_]


# -- references to jobs ----------------------------------------------------------------------------------------------


class _Room:
    """Number of jobs that a condition may still refer to: by itself, and with the user's other pending jobs."""

    def __init__(self, of_user: int, user: str) -> None:
        self.of_condition = MATCHES_MAX
        self.of_user = of_user
        self.user = user

    @property
    def left(self) -> int:
        return max(0, min(self.of_condition, self.of_user))

    def take(self, ref: Ref, jobs: int) -> None:
        """Count references to that number of jobs.

        Raises:
            Refused: one of the bounds would be exceeded.
        """
        if jobs > self.of_user and self.of_user < self.of_condition:
            raise Refused(
                f"Dependency conditions of waiting jobs of user <{self.user}> would refer to more than "
                f"{REFERENCES_MAX} jobs"
            )
        if jobs > MATCHES_MAX:
            raise Refused(f"{ref.name}: more than {MATCHES_MAX} jobs have that name")
        if jobs > self.of_condition:
            raise Refused(f"The dependency condition speaks of more than {MATCHES_MAX} jobs")
        self.of_condition -= jobs
        self.of_user -= jobs


def resolve(
    cluster: "Cluster", expression: Expression, shared: Shared, own: Ranges | None, replaced: int = 0
) -> Expression:
    """The condition with ids for names, among the submitter's jobs.

    Args:
        own: indices of the dependent array.
        replaced: job whose condition it replaces.

    Raises:
        Refused: a job does not exist, or is no array where one is needed; or too many are referred to.
    """
    return resolve_for(cluster, expression, shared.uid, shared.user, own, replaced)


def resolve_for(
    cluster: "Cluster", expression: Expression, uid: int, user: str, own: Ranges | None = None, replaced: int = 0
) -> Expression:
    """``resolve`` for a user, who need have no job.

    Raises:
        Refused: as of ``resolve``.
    """
    known = cluster.dependants
    room = _Room(REFERENCES_MAX - known.references(uid) + known.size(replaced), user)
    return _resolve(cluster, expression, uid, own, room)


def _resolve(cluster: "Cluster", expression: Expression, uid: int, own: Ranges | None, room: _Room) -> Expression:
    match expression:
        case Clause():
            return _resolved(cluster, expression, uid, own, room)
        case Not(part):
            return Not(_resolve(cluster, part, uid, own, room))
        case And(parts):
            return And(tuple(_resolve(cluster, part, uid, own, room) for part in parts))
        case Or(parts):
            return Or(tuple(_resolve(cluster, part, uid, own, room) for part in parts))


def _resolved(cluster: "Cluster", clause: Clause, uid: int, own: Ranges | None, room: _Room) -> Expression:
    ref = clause.ref
    if ref.group and (group := _group_of(cluster, clause)) is not None:
        room.take(ref, 1)
        return group
    ref = Ref(name=ref.group) if ref.group else ref
    jobs = [ref.job] if ref.job else _jobs_named(cluster, ref, uid, room.left)
    room.take(ref, len(jobs))
    for job in jobs:
        _check(cluster.jobs.get(job), clause, job, own)
    compared = (clause.operator, clause.number, clause.every, clause.word)
    found = tuple(  # by hand: replace() takes three times as long, and there may be thousands
        Clause(clause.kind, Ref(job, "", False, ref.index, ref.each), *compared) for job in jobs
    )
    return found[0] if len(found) == 1 else And(found)


def _group_of(cluster: "Cluster", clause: Clause) -> Clause | None:
    """The condition with the path of its job group; None if no group has it, so that it may be an array's name."""
    try:
        path = checked(clause.ref.group)
    except Refused:
        return None
    return replace(clause, ref=Ref(group=path)) if path in cluster.job_groups else None


def _jobs_named(cluster: "Cluster", ref: Ref, uid: int, most: int) -> list[int]:
    """The user's jobs of that name; where there are more than ``most``, only some, but more than that."""
    is_last = cluster.policy.requires_last_dependency
    jobs = cluster.names.find(uid, ref.name, ref.is_prefix, cluster.jobs.values(), None if is_last else most)
    if is_last:
        jobs = jobs[-1:]
    if not jobs and ref.name.isdecimal() and int(ref.name) in cluster.jobs:
        jobs = [int(ref.name)]  # an id in quotes, and no job has that name
    if not jobs:
        raise Refused(f"{ref.name}{'*' if ref.is_prefix else ''}: No matching job found")
    return jobs


def _check(record: Job | ArrayRecord | None, clause: Clause, job: int, own: Ranges | None) -> None:
    ref = clause.ref
    if record is None:
        raise Refused(f"Job <{job}>: No matching job found")
    if not isinstance(record, ArrayRecord):
        if ref.index or ref.each or clause.kind.is_count:
            raise Refused(f"Job <{job}> is not a job array")
        return
    if ref.index and record.state_of(ref.index) is None:
        raise Refused(f"Job <{job}[{ref.index}]>: No matching job found")
    if not ref.each:
        return
    if own is None:
        raise Refused(f"Job array index error: {job}[*] pairs elements, and the job is no array")
    if len(own) != len(record.indices):
        raise Refused("Dependent arrays do not have the same size")
    if own != record.indices:
        raise Refused("Dependent arrays do not have the same indices")


# -- one job or element --------------------------------------------------------------------------------------------


def verdict(cluster: "ClusterView", expression: Expression, index: int) -> Evaluation:
    """Evaluate a condition for a plain job (index 0) or this element of an array."""
    match expression:
        case Clause():
            return _clause(cluster, expression, index)
        case Not(part):
            inner = verdict(cluster, part, index)
            return Evaluation(not inner.holds, inner.is_final)
        case And(parts):
            return _all_of([verdict(cluster, part, index) for part in parts])
        case Or(parts):
            return _any_of([verdict(cluster, part, index) for part in parts])


def _all_of(found: list[Evaluation]) -> Evaluation:
    is_lost = any(one.is_final and not one.holds for one in found)
    return Evaluation(all(one.holds for one in found), is_lost or all(one.is_final for one in found))


def _any_of(found: list[Evaluation]) -> Evaluation:
    is_won = any(one.is_final and one.holds for one in found)
    return Evaluation(any(one.holds for one in found), is_won or all(one.is_final for one in found))


def _clause(cluster: "ClusterView", clause: Clause, index: int) -> Evaluation:
    if clause.ref.group:
        return _of_group(cluster, clause)
    record = parent(cluster, clause.ref)
    if record is None:
        return _NEVER
    if clause.kind is ConditionKind.EXTERNAL:
        return _of_status(cluster, clause, record, index if clause.ref.each else clause.ref.index)
    if isinstance(record, Job):
        post = record.end.post if record.end is not None else PostState.NONE
        return _of_one(clause, record.state, exit_code(record.end.status) if record.end is not None else 0, post)
    place = index if clause.ref.each else clause.ref.index
    if place:
        return _of_one(clause, record.state_of(place) or S.PEND, record.code_of(place), record.post_of(place))
    return _of_counts(clause, record) if clause.kind.is_count else _of_all(clause, record)


def parent(cluster: "ClusterView", ref: Ref) -> Job | ArrayRecord | None:
    """The parent job, also one that is kept only for its dependants."""
    return cluster.jobs.get(ref.job) or cluster.remembered.get(ref.job)


def _of_one(clause: Clause, state: JobState, code: int, post: PostState) -> Evaluation:
    is_over = state in FINAL
    is_all_over = is_over and post is not PostState.AWAITED
    match clause.kind:
        case ConditionKind.DONE:
            return Evaluation(state is S.DONE, is_over)
        case ConditionKind.EXIT:
            return Evaluation(state is S.EXIT and _compares(clause, code), is_over)
        case ConditionKind.STARTED:
            holds = state in _STARTED
            return Evaluation(holds, holds)
        case ConditionKind.POST_ERR:
            return Evaluation(is_over and post is PostState.ERR, is_all_over)
        case ConditionKind.POST_DONE:  # of a job without such commands: its end
            return Evaluation(is_all_over and post is not PostState.ERR, is_all_over)
        case _:
            return Evaluation(is_over, is_over)


def _of_status(cluster: "ClusterView", clause: Clause, record: Job | ArrayRecord, index: int) -> Evaluation:
    """Evaluate a condition on the external status; none is expected any more when the job is over."""
    if isinstance(record, ArrayRecord):
        is_over = record.state_of(index) in FINAL if index else record.is_over
    else:
        is_over = record.state in FINAL
    return Evaluation(cluster.external_statuses.word(record.id, index) == clause.word, is_over)


def _compares(clause: Clause, value: int) -> bool:
    return not clause.operator or _OPERATORS[clause.operator](value, clause.number)


def _of_all(clause: Clause, array: ArrayRecord) -> Evaluation:
    """Evaluate a condition that every element has to meet."""
    total, ended = len(array.indices), array.done + array.exited
    match clause.kind:
        case ConditionKind.DONE:
            return Evaluation(array.done == total, array.exited > 0 or ended == total)
        case ConditionKind.EXIT:
            holds = array.exited == total and bool(_exits(clause, array)[list(array.indices)].all())
            return Evaluation(holds, array.done > 0 or ended == total)
        case ConditionKind.STARTED:
            waiting = array.count_waiting(S.PEND) + array.count_waiting(S.PSUSP) + array.counts[S.STAGING]
            return Evaluation(not waiting, not waiting)
        case ConditionKind.POST_ERR:
            is_known = ended == total and not array.post_awaited
            return Evaluation(is_known and len(array.post_failed) == total, is_known)
        case ConditionKind.POST_DONE:
            is_known = ended == total and not array.post_awaited
            return Evaluation(is_known and not array.post_failed, is_known or bool(array.post_failed))
        case _:
            return Evaluation(ended == total, ended == total)


def _of_group(cluster: "ClusterView", clause: Clause) -> Evaluation:
    """Evaluate a condition on the jobs of a group: never final, as others may join it."""
    found = cluster.counters.jobs_below(cluster.job_groups, clause.ref.group)
    count = sum(found[state] for state in _STATES_COUNTED[clause.kind])
    if clause.every:
        return Evaluation(0 < count == found.total(), False)
    return Evaluation(_OPERATORS[clause.operator](count, clause.number), False)


_STATES_COUNTED: dict[ConditionKind, tuple[JobState, ...]] = {
    ConditionKind.NUMPEND: (S.PEND,),
    ConditionKind.NUMHOLD: (S.PSUSP,),
    ConditionKind.NUMRUN: (S.RUN, S.STAGING),
    ConditionKind.NUMSTART: (S.RUN, S.USUSP, S.SSUSP),
    ConditionKind.NUMDONE: (S.DONE,),
    ConditionKind.NUMEXIT: (S.EXIT,),
    ConditionKind.NUMENDED: (S.DONE, S.EXIT),
}


def _of_counts(clause: Clause, array: ArrayRecord) -> Evaluation:
    number = len(array.indices) if clause.every else clause.number
    return Evaluation(_OPERATORS[clause.operator](_COUNTS[clause.kind](array), number), array.is_over)


_COUNTS: dict[ConditionKind, Callable[[ArrayRecord], int]] = {
    ConditionKind.NUMPEND: lambda array: array.count_waiting(S.PEND),
    ConditionKind.NUMHOLD: lambda array: array.count_waiting(S.PSUSP),
    ConditionKind.NUMRUN: lambda array: array.counts[S.RUN] + array.counts[S.STAGING],
    ConditionKind.NUMSTART: lambda array: array.counts[S.RUN] + array.counts[S.USUSP] + array.counts[S.SSUSP],
    ConditionKind.NUMDONE: lambda array: array.done,
    ConditionKind.NUMEXIT: lambda array: array.exited,
    ConditionKind.NUMENDED: lambda array: array.done + array.exited,
}


# -- all elements of an array at once ------------------------------------------------------------------------------


def evaluated(cluster: "Cluster", expression: Expression, indices: Ranges) -> tuple[Ranges, Ranges]:
    """Those of these elements for which the condition is true, and those for which it never will be."""
    size = max((part[-1] for part in indices.parts()), default=0) + 1
    found = _columns(cluster, expression, size)
    if isinstance(found, Evaluation):
        is_lost = found.is_final and not found.holds
        return indices.copy() if found.holds else Ranges(), indices.copy() if is_lost else Ranges()
    lost = Ranges.from_column(found.is_final & ~found.holds)
    return indices.intersection(Ranges.from_column(found.holds)), indices.intersection(lost)


class _Columns(NamedTuple):
    """Evaluation of all elements, by index."""

    holds: Column
    is_final: Column


def _columns(cluster: "Cluster", expression: Expression, size: int) -> _Columns | Evaluation:
    """Evaluate all elements; one value stands for all where the condition pairs no elements."""
    match expression:
        case Clause():
            return _clause_columns(cluster, expression, size)
        case Not(part):
            inner = _columns(cluster, part, size)
            if isinstance(inner, Evaluation):
                return Evaluation(not inner.holds, inner.is_final)
            return _Columns(~inner.holds, inner.is_final)
        case And(parts):
            return _joined([_columns(cluster, part, size) for part in parts], size, _all_of, _all_columns)
        case Or(parts):
            return _joined([_columns(cluster, part, size) for part in parts], size, _any_of, _any_column)


def _joined(
    found: list[_Columns | Evaluation],
    size: int,
    of_values: Callable[[list[Evaluation]], Evaluation],
    of_columns: Callable[[list[_Columns]], _Columns],
) -> _Columns | Evaluation:
    values = [one for one in found if isinstance(one, Evaluation)]
    columns = [one for one in found if isinstance(one, _Columns)]
    if not columns:
        return of_values(values)
    if values:
        value = of_values(values)
        columns.append(_Columns(np.full(size, value.holds), np.full(size, value.is_final)))
    return of_columns(columns)


def _all_columns(found: list[_Columns]) -> _Columns:
    is_lost = reduce(operator.or_, (one.is_final & ~one.holds for one in found))
    is_final = reduce(operator.and_, (one.is_final for one in found))
    return _Columns(reduce(operator.and_, (one.holds for one in found)), is_lost | is_final)


def _any_column(found: list[_Columns]) -> _Columns:
    is_won = reduce(operator.or_, (one.is_final & one.holds for one in found))
    is_final = reduce(operator.and_, (one.is_final for one in found))
    return _Columns(reduce(operator.or_, (one.holds for one in found)), is_won | is_final)


def _clause_columns(cluster: "Cluster", clause: Clause, size: int) -> _Columns | Evaluation:
    record = parent(cluster, clause.ref)
    if not clause.ref.each or not isinstance(record, ArrayRecord):
        return _clause(cluster, clause, 0)
    is_over, holds = np.zeros(size, bool), np.zeros(size, bool)
    states = np.frombuffer(record.ended, np.uint8)[:size]
    is_over[: len(states)] = states != 0
    match clause.kind:
        case ConditionKind.DONE:
            holds[: len(states)] = states == S.DONE
        case ConditionKind.EXIT:
            holds[: len(states)] = _exits(clause, record)[:size]
        case ConditionKind.STARTED:
            live = record.live.items()
            is_over[[index for index, job in live if job.state in _STARTED and index < size]] = True
            return _Columns(is_over, is_over)
        case ConditionKind.EXTERNAL:
            words = cluster.external_statuses.elements(record.id).items()
            holds[[index for index, word in words if word == clause.word and index < size]] = True
        case ConditionKind.POST_ERR | ConditionKind.POST_DONE:
            failed, awaited = (_column_of(one, size) for one in (record.post_failed, record.post_awaited))
            holds = failed if clause.kind is ConditionKind.POST_ERR else is_over & ~failed & ~awaited
            return _Columns(holds, is_over & ~awaited)
        case _:
            return _Columns(is_over, is_over)
    return _Columns(holds, is_over)


def _column_of(indices: Ranges, size: int) -> Column:
    """True, by index, for these elements."""
    column = np.zeros(size, bool)
    for part in indices.parts():
        column[part.start : part.stop : part.step] = True
    return column


def _exits(clause: Clause, array: ArrayRecord) -> Column:
    """True, by index, for elements that ended in EXIT with an exit code that the condition accepts."""
    states, codes = np.frombuffer(array.ended, np.uint8), np.frombuffer(array.codes, np.uint8)
    exited: Column = states == S.EXIT
    if clause.operator:
        compared: Column = _OPERATORS[clause.operator](codes, clause.number)  # type: ignore[arg-type, assignment]
        exited &= compared
    return exited


# -- after a step ------------------------------------------------------------------------------------------------------


def step_budget() -> Budget:
    """Evaluations in a step, or in all those of a batch, which follow each other at once."""
    return Budget(EVALUATIONS_MAX, EVALUATIONS_MAX, EVALUATIONS_MAX)


def budget_of(command: Command, of_batch: Budget | None) -> Budget:
    """Evaluations in the step of this command."""
    if isinstance(command, Tick):
        return Budget(EVALUATIONS_MAX, TICK_EVALUATIONS_MAX, math.inf)
    return of_batch or step_budget()


def follow_ups(cluster: "Cluster", budget: Budget, now: float) -> Iterator[e.Event]:
    """Events for jobs whose condition has become true by the events of this step, and for orphans to be ended.

    Those events must have been applied before.
    """
    for job, indices in cluster.dependants.take(budget):
        record = cluster.jobs[job]
        condition = cluster.dependants.conditions[job]
        if isinstance(record, ArrayRecord):
            yield from _array_follow_up(cluster, record, condition, indices, now)
        else:
            found = verdict(cluster, condition, 0)
            if found.holds:
                yield e.DependencyMet(now, job, Ranges([range(1)]))
            elif found.is_final and record.start_conditions is not None and record.start_conditions.ends_orphan:
                yield e.PendingEnded(now, job, Ranges([range(1)]), "lavad", r.TERM_ORPHAN_SYSTEM)


def _array_follow_up(
    cluster: "Cluster", array: ArrayRecord, condition: Expression, indices: set[int] | None, now: float
) -> Iterator[e.Event]:
    if indices is not None and len(indices) * cluster.dependants.size(array.id) <= EVALUATIONS_MAX:
        met, lost = _evaluated_singly(cluster, condition, array.unmet, indices)
    else:
        met, lost = evaluated(cluster, condition, array.unmet)
    if met:
        yield e.DependencyMet(now, array.id, met)
    if lost and array.start_conditions is not None and array.start_conditions.ends_orphan:
        yield e.PendingEnded(now, array.id, lost, "lavad", r.TERM_ORPHAN_SYSTEM)


def _evaluated_singly(
    cluster: "Cluster", condition: Expression, unmet: Ranges, indices: set[int]
) -> tuple[Ranges, Ranges]:
    """``evaluated``, for few elements."""
    found = {index: verdict(cluster, condition, index) for index in sorted(indices) if index in unmet}
    met = Ranges.from_sorted(index for index, one in found.items() if one.holds)
    return met, Ranges.from_sorted(index for index, one in found.items() if one.is_final and not one.holds)


def is_never(cluster: "ClusterView", condition: Expression, index: int) -> bool:
    """True if the condition does not hold and never will."""
    found = verdict(cluster, condition, index)
    return found.is_final and not found.holds


def missing_parents(cluster: "Cluster") -> list[int]:
    """Parents that are not in memory: after a restart, for the store to look up."""
    return [job for job in cluster.dependants.parents() if job not in cluster.jobs and job not in cluster.remembered]
