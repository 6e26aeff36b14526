"""Explanation of "delayed by a reservation": the job it would delay, from when on, and the longest run limit that fits.

Computed on request from the scheduler's reservation table and the running jobs; it decides nothing. Reservations that
the scheduler has not computed yet are not reported, nor is anything beyond the next ``_ENDS_MAX`` expected ends.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import islice
from math import ceil
from typing import NamedTuple

from lavad.core.apply.enqueue import entry
from lavad.core.cluster_view import ClusterView
from lavad.core.model.demand import demand_of
from lavad.core.scheduling.backfill.host_reservations import (
    RESERVATIONS_MAX,
    has_shut_holders,
    is_anywhere,
    shuts_others_out,
)
from lavad.core.scheduling.backfill.profile import NEVER, PoolProfile, come_back
from lavad.core.scheduling.backfill.reservation import Reservation
from lavad.core.scheduling.backfill.reservations import ReservationTable
from lavad.core.scheduling.capacity.constraints import allowance_of
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.placement.within_limits import LimitedPlacer
from lavad.core.scheduling.queueing.ordering import Ranking
from lavad.core.state.records import ArrayRecord, Job

_ENDS_MAX = 4096  # expected ends examined for one answer
TYPING_S = 30  # margin for typing a command that changes the run limit


class DelayedBy(NamedTuple):
    """Reservation of another job from ``begins_at`` on; a job that ends within ``longest_s`` does not delay it."""

    job: int
    element: int
    begins_at: float
    longest_s: float  # 0: no run limit is short enough

    @property
    def minutes(self) -> int:
        """Run limit with which the job would start, with a margin for typing it; 0 if there is none."""
        return max(0, int((self.longest_s - TYPING_S) // 60))


def delayed_by(
    cluster: ClusterView, reservation_table: ReservationTable | None, record: Job | ArrayRecord, index: int, now: float
) -> DelayedBy | None:
    """Find the reservation that delays a job for which resources are free; None if none is known."""
    key = cluster.pending.key_of(record.shared)
    if reservation_table is None or not reservation_table.reservations or key is None or key.reservation:
        return None
    rank = Ranking(cluster, now).of(key, entry(cluster, record))
    if rank is None:
        return None
    place_, job = (rank, index), (record.id, index)
    before = [one for one in reservation_table.reservations if one.place < place_ and (one.job, one.index) != job]
    if not before:
        return None
    asking = _Query(cluster, reservation_table, before, record, now)
    found = [one for one in (asking.by_slots(), asking.by_host()) if one is not None]
    return found[0]._replace(longest_s=min(one.longest_s for one in found)) if found else None


class _Query:
    """Query for one job against the reservations ``before`` it."""

    def __init__(
        self,
        cluster: ClusterView,
        reservation_table: ReservationTable,
        before: Sequence[Reservation],
        record: Job | ArrayRecord,
        now: float,
    ) -> None:
        self._cluster = cluster
        self._reservation_table = reservation_table
        self._before = before
        self._now = now
        self._shared = record.shared
        self._request = cluster.pending.request_of(record.shared)
        self._waited_s = now - record.submitted_at
        self._allowance = allowance_of(cluster, now)
        simulated = self._allowance.simulated
        says_where = self._allowance.withholds_later or has_shut_holders(cluster.table)
        says_where = says_where or not all(is_anywhere(simulated, one.key) for one in before)
        self._is_by_host = says_where or shuts_others_out(self._request)

    def _until(self, run_limit_s: float) -> float:
        return self._now + run_limit_s if run_limit_s else NEVER

    # -- slots of the whole cluster ------------------------------------------------------------------------------------

    def by_slots(self) -> DelayedBy | None:
        """Reservation of slots on any hosts that leaves too few of them."""
        ends = self._reservation_table.foreseen(self._cluster)
        if ends is None or (self._is_by_host and len(self._before) <= RESERVATIONS_MAX):
            return None
        cluster, wanted, until = self._cluster, self._request.slots_min, self._until(self._shared.run_limit_s)
        soon = islice(ends, _ENDS_MAX)
        profile = PoolProfile(self._now, cluster.table.slots_open, come_back(soon, self._now))
        for begin, end, slots in self._allowance.spans():
            profile.take(begin, end - begin, slots)
        holder: DelayedBy | None = None
        for one in self._before:
            slots, duration = one.key.request.slots_min, one.key.run_limit_s or NEVER
            at = profile.earliest(slots, duration)
            if at < NEVER:
                profile.take(at, duration, slots)
            if holder is None and profile.free_until(until) < wanted:
                holder = DelayedBy(one.job, one.index, at, 0.0)
        return holder._replace(longest_s=profile.short_from(wanted) - self._now) if holder is not None else None

    # -- certain hosts -------------------------------------------------------------------------------------------------

    def by_host(self) -> DelayedBy | None:
        """First reservation on concrete hosts beside which the job does not fit."""
        known = self._reservation_table.host_reservations.known(self._before) if self._is_by_host else 0
        limit_s = self._shared.run_limit_s
        if not known or self._fits(known, limit_s):
            return None
        number = bisect_left(range(1, known), True, key=lambda count: not self._fits(count, limit_s)) + 1
        one = self._before[number - 1]
        until = self._until(limit_s)
        ends = sorted({at for at in self._reservation_table.host_reservations.begins(known) if self._now < at < until})
        shorter = bisect_left(ends, True, key=lambda at: not self._fits(known, at - self._now))
        begins_at = one.start_at if one.start_at is not None else self._now
        return DelayedBy(one.job, one.index, begins_at, ends[shorter - 1] - self._now if shorter else 0.0)

    def _fits(self, count: int, run_limit_s: float) -> bool:
        """True if the job fits for ``run_limit_s`` seconds beside the first ``count`` reservations."""
        window = self._reservation_table.host_reservations.window(count, self._now, self._until(run_limit_s))
        demand = demand_of(self._shared, self._request)._replace(run_limit_s=ceil(run_limit_s))
        placer = LimitedPlacer(FreeResources(self._cluster.table), allowance_of(self._cluster, self._now))
        return placer.place(demand, self._waited_s, window) is not None
