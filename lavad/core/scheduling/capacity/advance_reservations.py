"""Capacity that advance reservations leave to one job, now and later.

While its reservation is active, a job may use the reserved slots that the reservation's other jobs do not, and no
others; it starts even if its run limit goes beyond the end. Any other job may use unreserved slots until its run limit;
without one it counts as endless. ``ReservedCapacity`` serves starts now, the intervals serve predicted starts.
"""

from collections.abc import Hashable, Iterator
from typing import NamedTuple

import numpy as np

from lavad.core.cluster_view import ClusterView
from lavad.core.model import Allocation, Key, RoleRequest
from lavad.core.model import reasons as r
from lavad.core.model.demand import Demand
from lavad.core.model.windows import NEVER
from lavad.core.scheduling.capacity.backfill_window import HostRemainder, WindowEnd
from lavad.core.scheduling.capacity.constraint import NO_LIMIT, Ceilings, Constraint, Limit, Obstacle, Refusal
from lavad.core.scheduling.capacity.free_resources import smallest_share
from lavad.core.state.advance_reservations import Slots
from lavad.core.state.attempts import Attempt
from lavad.core.state.expected_ends import expected_end


class ReservedCapacity(Constraint):
    """Reserved capacity at one moment, less what this slice has taken; the cluster is not changed."""

    counts_claims = True  # the host table books claims
    has_reason_on_full_hosts = True
    withholds_later = True

    def __init__(self, cluster: ClusterView, now: float) -> None:
        self._cluster = cluster
        self._now = now
        self._reserved = cluster.reserved
        self._timeline = self._reserved.timeline(cluster, now)
        self._taken: list[Slots | None] = [None] * (1 + len(self._timeline.moments))  # now, and at each moment
        self._taken_own: dict[str, Slots] = {}
        self._parts: dict[tuple[int, frozenset[str]], Slots] = {}
        self._is_any_unused: bool | None = None
        self._asked: tuple[Demand, Slots | None] | None = None

    def limit(self, demand: Demand) -> Limit:
        """Return the slots that the job may have on each host."""
        most = self.most(demand)
        return NO_LIMIT if most is None else Limit(on_hosts=Ceilings(most))

    def is_checked(self, demand: Demand) -> bool:
        """False: the ceilings say all."""
        return False

    def kind_of(self, demand: Demand) -> Hashable:
        """Return a constant: queue, request and run limit say all."""
        return ()

    def most(self, demand: Demand) -> Slots | None:
        """Slots that the job may have on each host; None if reservations constrain nothing."""
        request = demand.request
        if request.reservation:
            found: Slots | None = self._own(request.reservation)
        else:
            found = self._of_others(demand.queue, demand.run_limit_s, demand.given)
        if found is not None and request.exclusive:
            hosts = len(self._cluster.table)
            return np.where(found < self._cluster.table.slots_max[:hosts], 0, found)
        return found

    def why(self, demand: Demand, allocation: Allocation | None = None) -> Obstacle | None:
        """Return an obstacle if the allocation exceeds what reservations leave to the job."""
        most = self.most(demand) if allocation else None
        if most is None:
            return None
        rows = self._cluster.table.rows
        is_over = any(share.slots > max(0, most[rows[share.host]]) for share in allocation or ())
        return Obstacle(Refusal.NO_ROOM, r.RESERVED) if is_over else None

    def take(self, demand: Demand, allocation: Allocation, sign: int = 1) -> None:
        """Deduct the allocation of a job that is about to start."""
        rows = [self._cluster.table.rows[share.host] for share in allocation]
        slots = [sign * share.slots for share in allocation]
        if demand.request.reservation:
            self._add(self._taken_own.setdefault(demand.request.reservation, self._none()), rows, slots)
            return
        self._parts.clear()
        for number in range(1 + self._timeline.before(self._end(demand.run_limit_s))):
            taken = self._taken[number]
            if taken is None:
                taken = self._taken[number] = self._none()
            self._add(taken, rows, slots)

    def reason_on(self, demand: Demand, role: RoleRequest, row: int) -> r.Reason | None:
        """Return a reason for a host on which reservations leave the job too few slots; None if they leave enough."""
        most, request = self._most_once(demand), demand.request
        if most is None or most[row] >= smallest_share(role)[0]:
            return None
        if not request.reservation:
            return r.RESERVED
        is_there = request.reservation in self._reserved.by_name
        is_of_it = is_there and self._reserved.slots(self._cluster, request.reservation)[row] > 0
        return r.NO_SLOTS if is_of_it else r.NOT_RESERVED

    def _most_once(self, demand: Demand) -> Slots | None:
        """Result of ``most``, kept for one demand: reasons ask it for each host."""
        if self._asked is None or self._asked[0] is not demand:
            self._asked = demand, self.most(demand)
        return self._asked[1]

    def spans(self) -> Iterator[tuple[float, float, int]]:
        """Intervals of the coming week, with the slots of all hosts that they withhold from other jobs."""
        is_open = self._cluster.table.open_rows()
        for begin, end, name in self._timeline.stretches:
            left = self._reserved.slots(self._cluster, name)
            if name in self._timeline.now and begin <= self._now:
                left = np.maximum(self._own(name), 0)
            yield max(begin, self._now), end, int(left[is_open].sum())

    def _none(self) -> Slots:
        return np.zeros(len(self._cluster.table), np.int64)

    @staticmethod
    def _add(taken: Slots, rows: list[int], slots: list[int]) -> None:
        np.add.at(taken, rows, slots)

    def _end(self, run_limit_s: int) -> float:
        return self._now + run_limit_s if run_limit_s else NEVER

    # -- jobs of a reservation ---------------------------------------------------------------------------------------

    def _own(self, name: str) -> Slots:
        """Slots of an active reservation on each host, less those its jobs use."""
        if name not in self._timeline.now:
            return self._none()
        left = self._reserved.slots(self._cluster, name) - self._reserved.own(self._cluster, name, self._now)
        taken = self._taken_own.get(name)
        return left if taken is None else left - taken

    # -- all others --------------------------------------------------------------------------------------------------

    def _of_others(self, queue: str, run_limit_s: int, given: Allocation) -> Slots | None:
        """Minimum of the unreserved slots on each host from now until the job's end; None if nothing is reserved."""
        moments = self._timeline.before(self._end(run_limit_s))
        if not moments and not self._is_reserved_now():
            return None
        exempt = frozenset(name for name, one in self._reserved.by_name.items() if queue in one.queues)
        if given:
            return self._least(moments, exempt, given)
        found = self._parts.get((moments, exempt))
        if found is None:
            found = self._parts[moments, exempt] = self._least(moments, exempt, ())
        return found

    def _least(self, moments: int, exempt: frozenset[str], given: Allocation) -> Slots:
        now = self._left_now()
        for share in given:
            now[self._cluster.table.rows[share.host]] += share.slots
        least: Slots = np.minimum.reduce([now, *(self._left_at(number, exempt) for number in range(moments))])
        return least

    def _is_reserved_now(self) -> bool:
        if self._is_any_unused is None:
            self._is_any_unused = bool(self._reserved.unused(self._cluster, self._now).any())
        return self._is_any_unused

    def _left_now(self) -> Slots:
        hosts = len(self._cluster.table)
        free: Slots = self._cluster.table.slots_free[:hosts] - self._reserved.unused(self._cluster, self._now)
        return self._less(free, 0)  # an array of its own

    def _left_at(self, number: int, exempt: frozenset[str]) -> Slots:
        """Unreserved slots at a future moment; a reservation that begins then does not bind exempt queues."""
        hosts, moment = len(self._cluster.table), self._timeline.moments[number]
        needed = self._reserved.held(self._cluster, self._now)[number].copy()
        is_bound = np.zeros(hosts, np.bool_)
        for name in moment.names - exempt:
            slots = self._reserved.slots(self._cluster, name)
            needed += slots
            is_bound |= slots > 0
        left = self._less(self._cluster.table.slots_max[:hosts] - needed, number + 1)
        return np.where(is_bound, left, np.iinfo(np.int64).max)

    def _less(self, left: Slots, number: int) -> Slots:
        taken = self._taken[number]
        return left if taken is None else left - taken


def reserved_capacity_of(cluster: ClusterView, now: float) -> ReservedCapacity | None:
    """Reserved capacity of the cluster; None if it has no advance reservations."""
    return ReservedCapacity(cluster, now) if cluster.reserved.by_name else None


class Interval(NamedTuple):
    """Interval in which slots of hosts (by row) are reserved."""

    begin: float
    end: float
    name: str
    slots: tuple[tuple[int, int], ...]

    def covers(self, at: float) -> bool:
        """True if the interval contains this time."""
        return self.begin <= at < self.end


def stretches_of(cluster: ClusterView, now: float) -> list[Interval]:
    """Intervals of all advance reservations in the coming week, in order of time."""
    reserved, found = cluster.reserved, []
    for begin, end, name in reserved.timeline(cluster, now).stretches:
        slots = reserved.slots(cluster, name)
        rows = slots.nonzero()[0]
        found.append(Interval(begin, end, name, tuple(zip(rows.tolist(), slots[rows].tolist(), strict=True))))
    return sorted(found)


def ends_by_reservation(cluster: ClusterView, stretches: list[Interval]) -> Iterator[tuple[Attempt, str, float]]:
    """Attempts that run in a reservation, with the time from which others may use their resources.

    That is never before the end of the interval in which the attempt ends. Jobs of a closed reservation end with it.
    """
    for name, jobs in cluster.reserved.jobs.items():
        one = cluster.reserved.by_name.get(name)
        mine = [stretch for stretch in stretches if stretch.name == name]
        for attempt in [attempt for job in sorted(jobs) for attempt in cluster.attempts_of(job)] if one else ():
            end = _end_of(cluster, attempt.key)
            if one is not None and not one.is_open and mine:
                end = min(end, mine[0].end)
            yield attempt, name, next((stretch.end for stretch in mine if stretch.covers(end)), end)


def _end_of(cluster: ClusterView, key: Key) -> float:
    record = cluster.find_bearer(key.job, key.index)
    return expected_end(cluster.attempts[key], record.shared.run_limit_s if record is not None else 0, 0).at


def moments_of(cluster: ClusterView, stretches: list[Interval], now: float) -> Iterator[WindowEnd]:
    """Slots left on reserved hosts at the start of each interval, if nothing more starts."""
    for stretch in stretches:
        if stretch.begin > now:
            one = cluster.reserved.by_name[stretch.name]
            moment = WindowEnd(stretch.begin, frozenset(one.queues))
            together = {other.name: dict(other.slots) for other in stretches if other.covers(stretch.begin)}
            for row, _ in stretch.slots:
                moment.rows[row] = HostRemainder(_left(cluster, together, row, stretch.begin))
            yield moment


def _left(cluster: ClusterView, together: dict[str, dict[int, int]], row: int, at: float) -> int:
    """Slots of a host that are neither reserved at that time nor held by jobs still running then."""
    apart = {name: slots.get(row, 0) for name, slots in together.items()}
    own, held = dict.fromkeys(apart, 0), 0
    for key, share in cluster.hosts[cluster.table.names[row]].attempts.items():
        record = cluster.jobs.get(key.job)
        name = record.shared.request.reservation if record is not None else ""
        if _end_of(cluster, key) <= at:
            continue
        if name in own:
            own[name] += share.slots
        else:
            held += share.slots
    apart_or_used = sum(max(slots, own[name]) for name, slots in apart.items())
    return int(cluster.table.slots_max[row]) - held - apart_or_used
