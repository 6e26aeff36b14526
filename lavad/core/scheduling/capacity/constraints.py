"""List of all constraints: the rules that may forbid a start, in the order in which they are asked."""

from collections.abc import Callable

from lavad.core.cluster_view import ClusterView
from lavad.core.scheduling.capacity.advance_reservations import reserved_capacity_of
from lavad.core.scheduling.capacity.allowance import NO_CONSTRAINTS, Allowance
from lavad.core.scheduling.capacity.budgets import budgets_left_of
from lavad.core.scheduling.capacity.constraint import Constraint
from lavad.core.scheduling.capacity.headroom import headroom_of
from lavad.core.scheduling.capacity.pools import pool_users_of

CONSTRAINTS: tuple[Callable[[ClusterView, float], Constraint | None], ...] = (
    pool_users_of,
    headroom_of,
    reserved_capacity_of,
    budgets_left_of,
)


def allowance_of(cluster: ClusterView, now: float) -> Allowance:
    """Allowance under all constraints that the cluster has now."""
    found = [made for make in CONSTRAINTS if (made := make(cluster, now)) is not None]
    return Allowance(found) if found else NO_CONSTRAINTS
