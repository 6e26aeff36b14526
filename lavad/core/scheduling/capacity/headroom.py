"""Headroom: what limits still allow, less what this slice has taken, checked before and after a placement."""

from collections.abc import Iterator
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lavad.core.model import Allocation, HostShare, Request
from lavad.core.state.hosts.table import HostTable
from lavad.core.state.limits import (
    DEVICES,
    JOBS,
    MEMORY,
    SLOTS,
    Consumer,
    Counter,
    Limits,
    Rule,
    amount_of,
    least_of,
    shares_on,
)

_TINY = 1e-9  # amounts are sums of floats


class Headroom:
    """Headroom at one moment; starts recorded here do not change the cluster."""

    def __init__(self, limits: Limits, table: HostTable, now: float) -> None:
        self._limits = limits
        self._table = table
        self._now = now
        self._taken: dict[Counter, float] = {}
        self._taken_on: dict[Counter, NDArray[np.float64]] = {}
        self._active: dict[Rule, bool] = {}
        self._started_on: dict[int, float] = {}  # time of the last start by row, where limits need it

    def left(self, counter: Counter) -> float:
        """Amount left of a limit that does not count each host apart."""
        if not self._is_active(counter.rule):
            return float("inf")
        return counter.rule.amount - counter.used - self._taken.get(counter, 0.0)

    def _is_active(self, rule: Rule) -> bool:
        if not rule.windows:
            return True
        if rule not in self._active:
            self._active[rule] = self._limits.is_active(rule, self._now)
        return self._active[rule]

    def left_on(self, counter: Counter) -> NDArray[np.float64]:
        """Amount left of a limit on each host."""
        hosts = len(self._table)
        if not self._is_active(counter.rule):
            return np.full(hosts, np.inf)
        rule = counter.rule
        used = self._resting(rule) if rule.rest_s else counter.on_rows(hosts)
        left: NDArray[np.float64] = self._limits.ceilings_on(rule) - used
        taken = self._taken_on.get(counter)
        return left if taken is None else left - taken

    def _resting(self, rule: Rule) -> NDArray[np.float64]:
        """1 for each host within its dispatch interval (JOB_ACCEPT_INTERVAL), or about to start a job; else 0."""
        found = self._limits.resting(rule, self._now)
        found[[row for row, at in self._started_on.items() if at + rule.rest_s > self._now]] = 1.0
        return found

    # -- before a job is placed -------------------------------------------------------------------------------------

    def blocking(self, consumer: Consumer, request: Request) -> Counter | None:
        """First limit that leaves too little on any hosts."""
        return next(self.all_blocking(consumer, request), None)

    def all_blocking(self, consumer: Consumer, request: Request) -> Iterator[Counter]:
        """Limits that leave too little on any hosts; an exceeded limit binds only jobs that use what it limits."""
        for counter in consumer.overall:
            least = least_of(counter.rule, request)
            if least and least > self.left(counter) + _TINY:
                yield counter

    def slots_max(self, consumer: Consumer) -> float:
        """Most slots that one more job may have, on any hosts."""
        slots = [self.left(counter) for counter in consumer.overall if counter.rule.what == SLOTS]
        return min(slots, default=float("inf"))

    def ceilings(self, consumer: Consumer) -> "Ceilings":
        """Amounts one more job may take on each host; a limit on a group of hosts is applied to each of them."""
        found = Ceilings(np.full(len(self._table), np.inf))
        for counter in consumer.on_hosts:
            found.lower(counter.rule.what, self.left_on(counter))
        for counter in consumer.among_hosts:
            is_in = self.members(counter.rule)
            found.lower(counter.rule.what, np.where(is_in, self.left(counter), np.inf))
        return found

    def members(self, rule: Rule) -> NDArray[np.bool_]:
        """Mask of the hosts to which a rule applies."""
        return self._limits.members_of(rule)

    # -- after ------------------------------------------------------------------------------------------------------

    def refusing(self, consumer: Consumer, allocation: Allocation, is_new: bool = True) -> Counter | None:
        """First limit that the allocation would exceed; limits on jobs are skipped unless the job ``is_new``."""
        for counter in consumer.counters:
            if is_new or counter.rule.what != JOBS:
                shares = shares_on(counter.rule, allocation)
                left = self.left_on(counter) if counter.rule.each_host else None
                if left is None:
                    is_within = _is_within(amount_of(counter.rule, shares), self.left(counter))
                else:
                    is_within = all([self._is_within_on(counter.rule, share, left) for share in shares])
                if not is_within:
                    return counter
        return None

    def _is_within_on(self, rule: Rule, share: HostShare, left: NDArray[np.float64]) -> bool:
        return _is_within(amount_of(rule, (share,)), float(left[self._table.rows[share.host]]))

    def move_to(self, now: float) -> None:
        """Set the present time; time windows of limits are evaluated anew."""
        self._now = now
        self._active.clear()

    def take(self, consumer: Consumer, allocation: Allocation, sign: int = 1) -> None:
        """Deduct an allocation or, with ``sign`` -1, return it."""
        for counter in consumer.overall:
            self._taken[counter] = self._taken.get(counter, 0.0) + sign * amount_of(counter.rule, allocation)
        for counter in consumer.among_hosts:
            more = sign * amount_of(counter.rule, shares_on(counter.rule, allocation))
            self._taken[counter] = self._taken.get(counter, 0.0) + more
        if sign > 0 and self._limits.has_rests:
            self._started_on.update(dict.fromkeys([self._table.rows[share.host] for share in allocation], self._now))
        for counter in consumer.on_hosts:
            if counter.rule.rest_s:
                continue
            taken = self._taken_on.get(counter)
            if taken is None:
                taken = self._taken_on[counter] = np.zeros(len(self._table))
            for share in shares_on(counter.rule, allocation):
                taken[self._table.rows[share.host]] += sign * amount_of(counter.rule, (share,))


def _is_within(amount: float, left: float) -> bool:
    """True if the amount is zero or fits: a limit may already be exceeded after it was lowered."""
    return not amount or amount <= left + _TINY


class Ceilings:
    """Most slots, memory and GPUs that one job may have on each host."""

    def __init__(self, slots: NDArray[Any]) -> None:
        self.slots = slots
        self.memory_mib: NDArray[np.float64] | None = None
        self.gpus: NDArray[np.float64] | None = None

    def lower(self, what: str, left: NDArray[Any]) -> None:
        """Lower the ceiling of one resource; limits on cluster-wide resources are checked after placement instead."""
        if what == SLOTS:
            self.slots = np.minimum(self.slots, left)
        elif what == JOBS:
            self.slots = np.where(left < 1 - _TINY, 0.0, self.slots)
        elif what == MEMORY:
            self.memory_mib = _lower(self.memory_mib, left)
        elif what in DEVICES:
            self.gpus = _lower(self.gpus, left)

    def slots_on(self, row: int, free: int) -> int:
        """Slots the job may have on a host with ``free`` free slots."""
        most = float(self.slots[row])
        return free if most >= free else max(0, floor(most + _TINY))


def _lower(most: NDArray[np.float64] | None, left: NDArray[Any]) -> NDArray[np.float64]:
    """Minimum of ceiling and amount left; at least 0, so that jobs without need of it pass."""
    some: NDArray[np.float64] = np.maximum(left, 0.0)
    return np.minimum(some, np.inf if most is None else most)
