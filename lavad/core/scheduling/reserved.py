"""What advance reservations leave of each host to one job, with what has been decided since.

A job with a reservation may have the slots of it that its other jobs don't use, as long as it holds, and no others. It
is started even if its run limit goes beyond the end. Any other job may have what is not reserved until it ends by its
run limit; without one it would never end.
"""

from collections.abc import Iterator

import numpy as np

from lavad.core.cluster import Cluster
from lavad.core.model import Allocation, Request
from lavad.core.reserved import Slots
from lavad.core.windows import NEVER


class Withheld:
    """As of one moment. Nothing of the cluster is changed by what is taken here."""

    def __init__(self, cluster: Cluster, now: float) -> None:
        self._cluster = cluster
        self._now = now
        self._reserved = cluster.reserved
        self._timeline = self._reserved.timeline(cluster, now)
        self._taken: list[Slots | None] = [None] * (1 + len(self._timeline.moments))  # now, and at each moment
        self._taken_own: dict[str, Slots] = {}
        self._parts: dict[tuple[int, frozenset[str]], Slots] = {}
        self._is_any_unused: bool | None = None

    def most(self, request: Request, queue: str, run_limit_s: int, given: Allocation = ()) -> Slots | None:
        """How many slots such a job may have on each host; None: as many as are free.

        Args:
            given: shares that count as free although they are booked: others leave them to the job.
        """
        if request.reservation:
            found: Slots | None = self._own(request.reservation)
        else:
            found = self._of_others(queue, run_limit_s, given)
        if found is not None and request.exclusive:
            hosts = len(self._cluster.table)
            return np.where(found < self._cluster.table.slots_max[:hosts], 0, found)
        return found

    def refuses(
        self, request: Request, queue: str, run_limit_s: int, allocation: Allocation, given: Allocation = ()
    ) -> bool:
        """Would this allocation take what is set apart for others?"""
        most = self.most(request, queue, run_limit_s, given)
        if most is None:
            return False
        rows = self._cluster.table.rows
        return any(share.slots > most[rows[share.host]] for share in allocation)

    def take(self, request: Request, run_limit_s: int, allocation: Allocation) -> None:
        """A job is going to have this allocation."""
        rows = [self._cluster.table.rows[share.host] for share in allocation]
        slots = [share.slots for share in allocation]
        if request.reservation:
            self._add(self._taken_own.setdefault(request.reservation, self._none()), rows, slots)
            return
        self._parts.clear()
        for number in range(1 + self._timeline.before(self._end(run_limit_s))):
            taken = self._taken[number]
            if taken is None:
                taken = self._taken[number] = self._none()
            self._add(taken, rows, slots)

    def spans(self) -> Iterator[tuple[float, float, int]]:
        """Slots of all hosts that others do without from one time to another, in the week to come."""
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
        """What its reservation sets apart, less what its other jobs use."""
        if name not in self._timeline.now:
            return self._none()
        left = self._reserved.slots(self._cluster, name) - self._reserved.own(self._cluster, name, self._now)
        taken = self._taken_own.get(name)
        return left if taken is None else left - taken

    # -- all others --------------------------------------------------------------------------------------------------

    def _of_others(self, queue: str, run_limit_s: int, given: Allocation) -> Slots | None:
        """The least that is left from now until the job ends."""
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
        """At one of the moments to come. What is reserved for the first time then does not bind exempt queues."""
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
