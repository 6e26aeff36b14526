"""Absolute priority of a pending job as shown to users (bjobs -aps): its value now, and what each factor adds to it."""

from typing import NamedTuple

from lavad.core.cluster_view import ClusterView
from lavad.core.model.priorities.absolute import ADMIN, FACTORS, FS, SYSTEM
from lavad.core.state.jobs.absolute_priorities import given_of
from lavad.core.state.records import ArrayRecord, Job


class AbsoluteValue(NamedTuple):
    """Value of a job; ``factors`` are those with a weight, and ADMIN, with their subfactors behind them."""

    value: float
    is_system: bool = False
    factors: tuple[tuple[str, float], ...] = ()


def absolute_value(cluster: ClusterView, record: Job | ArrayRecord, now: float) -> AbsoluteValue | None:
    """Value of a job; None if its queue has no APS_PRIORITY."""
    absolute, shared = cluster.absolute, record.shared
    rule = absolute.rules.get(shared.queue)
    if rule is None:
        return None
    given = given_of(record)
    if given.kind == SYSTEM:
        return AbsoluteValue(given.value, True)
    share = _share(cluster, record, now) if rule.has_share else None
    factors = {} if share is None else {FS: rule.share(share)}
    factors |= rule.values(absolute.amounts(record, now), now - record.submitted_at)
    if given.value:
        factors[ADMIN] = given.value
    total = sum(value for name, value in factors.items() if name in FACTORS or name == ADMIN)
    return AbsoluteValue(total, False, tuple(factors.items()))


def _share(cluster: ClusterView, record: Job | ArrayRecord, now: float) -> float | None:
    """Dynamic priority of the job's user; None without fairshare."""
    shared = record.shared
    account = cluster.shares.account_of(shared.queue, shared.user, shared.user_group)
    return None if account is None else cluster.shares.trees[shared.queue].priority(account, now)
