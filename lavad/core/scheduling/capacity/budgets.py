"""Budgets at the start of jobs: a job starts if what is left of each budget is enough for all of its run limit."""

from collections.abc import Hashable
from math import floor

from lavad.core.cluster_view import ClusterView
from lavad.core.language.numbers import number_text
from lavad.core.model import Allocation
from lavad.core.model.allocation import slots_of
from lavad.core.model.demand import Demand
from lavad.core.model.reasons import BUDGET
from lavad.core.model.rules.budgets import HOUR_S, UNITS, Amounts
from lavad.core.scheduling.capacity.constraint import NO_LIMIT, Constraint, Limit, Obstacle, Refusal
from lavad.core.state.budgets import BudgetAccount
from lavad.core.state.pools import GPUS, least

_TINY = 1e-6


class BudgetsLeft(Constraint):
    """The rest of the budgets at one moment, less what the slice has started."""

    def __init__(self, cluster: ClusterView, now: float) -> None:
        self._budgets = cluster.budgets
        self._now = now
        self._left: dict[BudgetAccount, Amounts] = {}

    def _accounts(self, demand: Demand) -> tuple[BudgetAccount, ...]:
        return self._budgets.of(demand.user, demand.project, demand.queue)

    def _left_of(self, account: BudgetAccount) -> Amounts:
        found = self._left.get(account)
        if found is None:
            found = self._left[account] = account.left(self._now)
        return found

    def move_to(self, now: float) -> None:
        """Set the present time: running jobs have used more of their budgets."""
        if now != self._now:
            self._now = now
            self._left.clear()

    def concerns(self, demand: Demand) -> bool:
        """True if the job is charged to a budget."""
        return bool(self._accounts(demand))

    def kind_of(self, demand: Demand) -> Hashable:
        """Return user and project, by which budgets tell jobs apart; the queue is part of the key."""
        return (demand.user, demand.project) if self._accounts(demand) else ()

    def limit(self, demand: Demand) -> Limit:
        """Return the slots for which the budgets are enough over the whole run limit."""
        accounts = self._accounts(demand)
        if not accounts:
            return NO_LIMIT
        left = min(min(one.slot_s, one.cpu_s) for one in map(self._left_of, accounts))
        if demand.run_limit_s and left != float("inf"):
            return Limit(max(0, floor(left / demand.run_limit_s + _TINY)))
        return NO_LIMIT if left > _TINY else Limit(0)

    def is_checked(self, demand: Demand) -> bool:
        """True if GPUs have a budget: slots are limited before."""
        return any(account.rule.gpu_s is not None for account in self._accounts(demand))

    def why(self, demand: Demand, allocation: Allocation | None = None) -> Obstacle | None:
        """Return an obstacle at the first budget that is not enough for the job."""
        wanted = _wanted(demand, allocation)
        for account in self._accounts(demand):
            left = self._left_of(account)
            for unit, amount, have, bound in zip(UNITS, wanted, left, account.rule.amounts, strict=True):
                is_over = amount > have + _TINY if demand.run_limit_s else amount > 0 and have <= _TINY
                if is_over and bound != float("inf"):
                    told = f"Budget: {account.name}, {unit} hours: {number_text(bound / HOUR_S)}"
                    return Obstacle(Refusal.FORBIDDEN, BUDGET.with_details(told))
        return None

    def take(self, demand: Demand, allocation: Allocation, sign: int = 1) -> None:
        """Deduct what a job that starts may use or, with ``sign`` -1, give it back."""
        accounts = self._accounts(demand)
        if accounts and demand.run_limit_s:
            wanted = _wanted(demand, allocation)
            for account in accounts:
                self._left[account] = self._left_of(account).plus(wanted, -sign)


def _wanted(demand: Demand, allocation: Allocation | None) -> Amounts:
    """Return what the job may use: seconds by its run limit or, without one, its slots and GPUs themselves."""
    if allocation:
        slots = slots_of(allocation) - slots_of(demand.given)
        gpus = sum([len(share.gpus) for share in allocation]) - sum([len(share.gpus) for share in demand.given])
    else:
        slots, gpus = demand.request.slots_min, int(least(demand.request)[GPUS])
    limit_s = demand.run_limit_s or 1
    return Amounts(slots * limit_s, slots * limit_s, gpus * limit_s)


def budgets_left_of(cluster: ClusterView, now: float) -> BudgetsLeft | None:
    """The rest of the cluster's budgets; None if it has none."""
    return BudgetsLeft(cluster, now) if cluster.budgets else None
