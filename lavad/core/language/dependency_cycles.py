"""Dependency cycles: jobs that would wait for themselves, directly or through others, for ever."""

from collections.abc import Mapping

from lavad.core.language.dependency import And, Clause, Expression, Not, Or, clauses_of


def waits_for_itself(conditions: Mapping[int, Expression], job: int, condition: Expression) -> bool:
    """True if this condition of a job can hold only after the job itself has started.

    Args:
        conditions: of the other pending jobs, by job. Negations and conditions on elements or groups count as possible.
    """
    before = _ancestors(conditions, condition)
    if job not in before:
        return False
    coming = {one for one in before if one != job and one not in conditions}
    waiting = sorted(before - coming - {job})
    while True:
        more = {one for one in waiting if one not in coming and _may_hold(conditions[one], coming)}
        if not more:
            return not _may_hold(condition, coming)
        coming |= more


def _ancestors(conditions: Mapping[int, Expression], condition: Expression) -> set[int]:
    """All jobs that the condition refers to, and all that those depend on."""
    found: set[int] = set()
    new = {clause.ref.job for clause in clauses_of(condition) if clause.ref.job}
    while new:
        found |= new
        waiting = [conditions[job] for job in new if job in conditions]
        new = {clause.ref.job for one in waiting for clause in clauses_of(one) if clause.ref.job} - found
    return found


def _may_hold(condition: Expression, coming: set[int]) -> bool:
    match condition:
        case Clause():
            return bool(condition.ref.index or condition.ref.group) or condition.ref.job in coming
        case Not():
            return True
        case And(parts):
            return all(_may_hold(part, coming) for part in parts)
        case Or(parts):
            return any(_may_hold(part, coming) for part in parts)
