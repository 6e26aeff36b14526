"""Headroom: what limits still allow, less what this slice has taken, checked before and after a placement.

Pending reasons of limits have LSF's numbers and words.
"""

from collections.abc import Hashable, Iterator

import numpy as np
from numpy.typing import NDArray

from lavad.core.cluster_view import ClusterView
from lavad.core.language.numbers import number_text
from lavad.core.language.requirements.parsed import wants_of
from lavad.core.language.requirements.rusage import Per
from lavad.core.model import PARTS, Allocation, HostShare, Request, RoleRequest
from lavad.core.model import reasons as r
from lavad.core.model.demand import Demand
from lavad.core.model.reasons import PendingReason, Reason
from lavad.core.scheduling.capacity.constraint import Ceilings, Constraint, Limit, Obstacle, Refusal, no_ceilings
from lavad.core.scheduling.capacity.free_resources import FreeResources, smallest_share
from lavad.core.state.hosts.table import HostTable
from lavad.core.state.limits import (
    DEVICES,
    JOBS,
    MEMORY,
    NOBODY,
    SLOTS,
    Consumer,
    Counter,
    LimitKind,
    Limits,
    Rule,
    amount_of,
    least_of,
    shares_on,
    text_of,
)

_INFINITE = float("inf")
_TINY = 1e-9  # amounts are sums of floats
_K = LimitKind
# Nothing left at all, and too little left for a parallel job.
_OVERALL = {
    _K.QUEUE: (r.QUEUE_SLOTS, r.QUEUE_SLOTS_PARALLEL),
    _K.QUEUE_USER: (r.QUEUE_USER_SLOTS, r.QUEUE_USER_SLOTS_PARALLEL),
    _K.USER: (r.USER_SLOTS, r.USER_SLOTS_PARALLEL),
    _K.GROUP: (r.GROUP_SLOTS, r.GROUP_SLOTS_PARALLEL),
    _K.JOB_GROUP: (r.JOB_GROUP, r.JOB_GROUP),
}
_ON_HOSTS = {
    _K.QUEUE_PROCESSOR: r.QUEUE_PROCESSOR,
    _K.QUEUE_HOST: r.QUEUE_HOST,
    _K.QUEUE_REST: r.JUST_STARTED,
    _K.USER_PROCESSOR: r.USER_PROCESSOR,
    _K.GROUP_PROCESSOR: r.GROUP_PROCESSOR,
    _K.HOST_USER: r.HOST_USER,
    _K.UNKNOWN_USER: r.UNKNOWN_USER,
    _K.LACKING: r.LACKING,
}
_OF_GROUPS = frozenset({_K.GROUP, _K.GROUP_PROCESSOR})


class Headroom(Constraint):
    """Headroom at one moment; starts recorded here do not change the cluster."""

    is_simulated = True

    def __init__(self, limits: Limits, table: HostTable, now: float) -> None:
        self._limits = limits
        self._table = table
        self._now = now
        self._taken: dict[Counter, float] = {}
        self._taken_on: dict[Counter, NDArray[np.float64]] = {}
        self._left_on: dict[Counter, NDArray[np.float64]] = {}  # until the next change
        self._active: dict[Rule, bool] = {}
        self._started_on: dict[int, float] = {}  # time of the last start by row, where limits need it
        self._asked: tuple[Demand | None, Consumer] = (None, NOBODY)

    def left(self, counter: Counter) -> float:
        """Amount left of a limit that does not count each host apart."""
        if counter.rule.windows and not self._is_active(counter.rule):
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
        found = self._left_on.get(counter)
        if found is None:
            found = self._left_on[counter] = self._left_on_now(counter)
        return found

    def _left_on_now(self, counter: Counter) -> NDArray[np.float64]:
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

    def consumer(self, demand: Demand) -> Consumer:
        """Return the counters of the limits on the job; kept for one demand, as each start asks several times."""
        if self._asked[0] is not demand:
            consumer = self._limits.consumer(
                demand.user, demand.queue, demand.project, demand.job_group, demand.application
            )
            self._asked = demand, consumer
        return self._asked[1]

    def limit(self, demand: Demand) -> Limit:
        """Return the slots left in all and, of limits that depend on hosts, the amounts left on each."""
        consumer, slots = self.consumer(demand), _INFINITE
        for counter in consumer.overall:
            if counter.rule.what == SLOTS:
                slots = min(slots, self.left(counter))
        ceilings = self._ceilings(consumer, demand.attempt is None) if consumer.is_of_hosts else None
        return Limit(slots, ceilings)

    def is_checked(self, demand: Demand) -> bool:
        """True if the job's use of limits depends on the hosts it is placed on."""
        return _depends_on_hosts(self.consumer(demand), demand.request)

    def concerns(self, demand: Demand) -> bool:
        """True if there is any limit on such a job."""
        return self.consumer(demand) is not NOBODY

    def kind_of(self, demand: Demand) -> Hashable:
        """Return the counters of the limits on the job."""
        return self.consumer(demand)

    def _ceilings(self, consumer: Consumer, is_new: bool) -> Ceilings:
        """Amounts one more job may take on each host; a limit on a group of hosts is applied to each of them."""
        found = no_ceilings(len(self._table))
        for counter in consumer.on_hosts:
            if is_new or counter.rule.what != JOBS:
                found.lower(counter.rule.what, self.left_on(counter))
        for counter in consumer.among_hosts:
            if counter.rule.what == JOBS and not is_new:
                continue
            is_in = self._limits.members_of(counter.rule)
            found.lower(counter.rule.what, np.where(is_in, self.left(counter), np.inf))
        return found

    def why(self, demand: Demand, allocation: Allocation | None = None) -> Obstacle | None:
        """Return the first limit that forbids the allocation or, without one, every allocation."""
        consumer = self.consumer(demand)
        if allocation is None:
            first = next(self._blocking(consumer, demand.request), None)
            return self._obstacle(Refusal.LIMITED, first, demand.request) if first is not None else None
        counter = self._exceeded(consumer, allocation, is_new=demand.attempt is None)
        if counter is None:
            return None
        refusal = Refusal.LIMITED_THERE if counter in consumer.overall else Refusal.NO_ROOM
        return self._obstacle(refusal, counter, demand.request)

    def _blocking(self, consumer: Consumer, request: Request) -> Iterator[Counter]:
        """Limits that leave too little on any hosts; an exceeded limit binds only jobs that use what it limits."""
        for counter in consumer.overall:
            least = least_of(counter.rule, request)
            if least and least > self.left(counter) + _TINY:
                yield counter

    def _obstacle(self, refusal: Refusal, counter: Counter, request: Request) -> Obstacle:
        return Obstacle(refusal, self._reason(counter, request), counter)

    def share_out(self, demand: Demand, obstacle: Obstacle, ceilings: Ceilings, room: FreeResources) -> bool:
        """Share out what limits on groups of hosts leave to their hosts in order, as far as they have free slots."""
        consumer, table = self.consumer(demand), room.table
        if obstacle.counter not in consumer.among_hosts:
            return False
        for counter in consumer.among_hosts:
            if counter.rule.what != SLOTS:
                continue
            left = self.left(counter)
            for row in table.sorted_rows(self._limits.members_of(counter.rule)).tolist():
                offered = min(float(ceilings.slots[row]), left, float(max(0, room.slots(row))))
                ceilings.slots[row] = offered
                left -= offered
        return True

    # -- after ------------------------------------------------------------------------------------------------------

    def _exceeded(self, consumer: Consumer, allocation: Allocation, is_new: bool) -> Counter | None:
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
        self._left_on.clear()

    def take(self, demand: Demand, allocation: Allocation, sign: int = 1) -> None:
        """Deduct an allocation or, with ``sign`` -1, return it."""
        consumer = self.consumer(demand)
        self._left_on.clear()
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

    # -- explanations ------------------------------------------------------------------------------------------------

    def reasons(self, demand: Demand) -> Iterator[PendingReason]:
        """Yield the reasons of limits that leave too little on any hosts."""
        request, overall = demand.request, self.consumer(demand).overall
        found = list(self._blocking(self.consumer(demand), request))
        short = [one for one in overall if _least_of_job(one.rule.what, request) > self.left(one)]
        for counter in dict.fromkeys([*found, *short]):
            yield PendingReason(self._reason(counter, request), advice=_usage_of(counter))

    def _reason(self, counter: Counter, request: Request) -> Reason:
        rule, left = counter.rule, self.left(counter)
        pair = _OVERALL.get(rule.kind)
        if pair is None:
            return r.NAMED_LIMIT.saying(text_of(counter))
        reason = pair[1] if left > 0 and request.slots_min > 1 else pair[0]
        return reason.saying(reason.text + _group_of(rule))

    def reason_on(self, demand: Demand, role: RoleRequest, row: int) -> Reason | None:
        """Return the first limit that forbids the smallest part of the role on this host, or None."""
        consumer = self.consumer(demand)
        return next(self._reasons_on(consumer, role, row), None) if consumer.is_of_hosts else None

    def _reasons_on(self, consumer: Consumer, role: RoleRequest, row: int) -> Iterator[Reason]:
        for counter in consumer.on_hosts:
            if self.left_on(counter)[row] < _least_on_host(counter.rule.what, role):
                reason = _ON_HOSTS.get(counter.rule.kind) or r.NAMED_LIMIT.saying(text_of(counter))
                yield reason.saying(reason.text + _group_of(counter.rule))
        for counter in consumer.among_hosts:
            is_short = self.left(counter) < _least_on_host(counter.rule.what, role)
            if is_short and self._limits.members_of(counter.rule)[row]:
                yield r.NAMED_LIMIT.saying(text_of(counter))


def headroom_of(cluster: ClusterView, now: float) -> Headroom | None:
    """Headroom of the cluster's limits; None if it has none."""
    return Headroom(cluster.limits, cluster.table, now) if cluster.limits else None


def _depends_on_hosts(consumer: Consumer, request: Request) -> bool:
    """True if the job's use of limits depends on the hosts it is placed on."""
    if consumer.is_of_hosts or request.alternatives:
        return bool(consumer.counters)
    return consumer.counts_resources


def _is_within(amount: float, left: float) -> bool:
    """True if the amount is zero or fits: a limit may already be exceeded after it was lowered."""
    return not amount or amount <= left + _TINY


def _least_on_host(what: str, role: RoleRequest) -> float:
    """Minimum of a limited resource that the role takes on a host where it has a task.

    The resource is slots, jobs, MiB of memory, devices, or a cluster-wide resource.
    """
    slots, memory_mib, gpus = smallest_share(role)
    if what == SLOTS:
        return slots
    if what == JOBS:
        return 1.0
    if what in DEVICES:
        return gpus
    reserved = sum(_reserved(what, role, slots // role.slots_per_task, (Per.TASK, Per.HOST)))
    return memory_mib + reserved if what == MEMORY else reserved


def _least_of_job(what: str, request: Request) -> float:
    """Minimum of a rusage resource that the job takes on any hosts, over all alternatives.

    0 for slots, jobs and devices, which every request counts.
    """
    if what in (SLOTS, JOBS, *DEVICES):
        return 0.0
    choices = [request.roles, *(one.roles for one in request.alternatives)]
    return min(sum(_least_of_role(what, role) for role in roles) for roles in choices)


def _least_of_role(what: str, role: RoleRequest) -> float:
    return (role.memory_mib if what == MEMORY else 0.0) + sum(_reserved(what, role, role.tasks_min, tuple(Per)))


def _reserved(what: str, role: RoleRequest, tasks: int, per: tuple[Per, ...]) -> Iterator[float]:
    """Amounts of a resource that the role reserves for ``tasks`` tasks on one host, in the units ``per`` only."""
    for one in wants_of(role).reserves:
        if one.name == what and one.per in per:
            yield one.largest * (tasks if one.per is Per.TASK else 1) / PARTS


def _usage_of(counter: Counter) -> str:
    where = counter.rule.kind.value.replace("of a group", f"of group {counter.rule.name}")
    return f"{where}: {number_text(counter.used)} of {number_text(counter.rule.amount)} in use"


def _group_of(rule: Rule) -> str:
    """Text with the user's or the job group and its limit, with the user unknown to the host, or with what it lacks."""
    if rule.kind is _K.UNKNOWN_USER:
        return f" (User: {rule.name})"
    if rule.kind is _K.LACKING:
        return f" ({rule.name})"
    if rule.kind is _K.JOB_GROUP:
        return f" (Job Group: {rule.name}, Limit Value: {number_text(rule.amount)})"
    return f" (Group: {rule.name}, Limit Value: {number_text(rule.amount)})" if rule.kind in _OF_GROUPS else ""
