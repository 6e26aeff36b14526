"""Simulated future state of the hosts: a copy of the host table, advanced from event to event.

Events are job ends at run limits, ends of dispatch intervals (JOB_ACCEPT_INTERVAL), starts and ends of advance
reservations, and the reservations that the caller enters. The cluster is not changed. Limit counters are copied for one
moment only: an answer computed in several steps may be off by what ends or starts between them.
"""

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lavad.core.cluster_view import ClusterView
from lavad.core.model import Allocation, HostShare, Key
from lavad.core.model.demand import Demand, demand_of
from lavad.core.model.windows import NEVER
from lavad.core.scheduling.capacity.advance_reservations import Interval, ends_by_reservation, moments_of, stretches_of
from lavad.core.scheduling.capacity.backfill_window import FutureReservations
from lavad.core.scheduling.capacity.constraints import allowance_of
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.placement.within_limits import LimitedPlacer
from lavad.core.state.attempts import Attempt
from lavad.core.state.expected_ends import expected_end
from lavad.core.state.hosts import compute_units
from lavad.core.state.pending import BucketKey
from lavad.core.state.records import Claim

SOON_S = 1.0  # overdue jobs are expected to end after this time
_GIVES, _TAKES = 0, 1  # at one time, releases come before starts


class FutureRelease(NamedTuple):
    """Resources released when a job ends; ``counted`` is the part that constraints count for the job of ``demand``."""

    whole_hosts: bool
    shares: Allocation
    demand: Demand | None = None
    counted: Allocation = ()
    keeper: Key | None = None  # the attempt that holds compute units exclusively


class FutureStart(NamedTuple):
    """Resources taken by a start at a future time, until its expected end."""

    demand: Demand
    allocation: Allocation
    until: float
    key: Key


class PendingRequest(NamedTuple):
    """Pending job, as far as its placement depends on it."""

    demand: Demand
    submitted_at: float
    key: Key  # with attempt number 0: there is none yet


def asked_for(cluster: ClusterView, key: BucketKey, job: int, index: int) -> PendingRequest:
    """Placement request of a pending job of that bucket."""
    record = cluster.bearer(job, index)
    demand = key.demand._replace(run_limit_s=record.shared.run_limit_s)
    return PendingRequest(demand, record.submitted_at, Key(job, index, 0))


class SimulatedFuture:
    """Host state at simulated time ``at``; ``freed`` are the rows with resources released by the last event."""

    def __init__(self, cluster: ClusterView, now: float, ends: Iterable[tuple[float, Attempt]]) -> None:
        """Take ``ends``, the expected ends in order of time; those within advance reservations are found here."""
        self.table = cluster.table.copy()
        self.at = now
        self.allowance = allowance_of(cluster, now).simulated
        self.moments = FutureReservations()
        self.freed: set[int] = set()
        self.steps = 0  # cost so far
        self._cluster = cluster
        self._ends = iter(ends)
        self._next = next(self._ends, None)
        self._turns: list[
            tuple[float, int, int, FutureRelease | FutureStart | Interval | int]
        ] = []  # heap; an int is a row
        self._count = 0
        self._own: dict[str, dict[int, int]] = {}  # slots held by a reservation's jobs, by name and row
        self._apart: set[Key] = set()  # attempts that run in advance reservations
        if cluster.reserved:
            self._note_reserved()
        for at, row in cluster.limits.dispatch_intervals():
            self._note(at, _GIVES, row)

    # -- events --------------------------------------------------------------------------------------------------------

    def _note(self, at: float, order: int, what: FutureRelease | FutureStart | Interval | int) -> None:
        if at < NEVER:
            self._count += 1
            heapq.heappush(self._turns, (at, order, self._count, what))

    def _note_reserved(self) -> None:
        stretches = stretches_of(self._cluster, self.at)
        for attempt, name, end in ends_by_reservation(self._cluster, stretches):
            self._note(end, _GIVES, _held(self._cluster, attempt))
            self._apart.add(attempt.key)
            own = self._own.setdefault(name, {})
            for share in _unreleased(attempt):
                row = self.table.rows[share.host]
                own[row] = own.get(row, 0) + share.slots
        for moment in moments_of(self._cluster, stretches, self.at):
            self.moments.add(moment)
        for stretch in stretches:
            if stretch.begin <= self.at:
                self._set_apart(stretch)
            else:
                self._note(stretch.begin, _TAKES, stretch)

    def _set_apart(self, stretch: Interval) -> None:
        """Take the reserved slots that the reservation's own jobs do not hold; its jobs release theirs when it ends."""
        own, found = self._own.get(stretch.name, {}), []
        for row, slots in stretch.slots:
            unused = slots - own.get(row, 0)
            if unused > 0:
                found.append(HostShare(self.table.names[row], unused))
                self.table.take(row, found[-1], False)
        self._note(stretch.end, _GIVES, FutureRelease(False, tuple(found)))

    def free(self, claim: Claim | None) -> None:
        """Release a claim: its shares become free for the next placement."""
        for share in claim.allocation if claim is not None else ():
            self.table.give_back(self.table.rows[share.host], share, False)

    def promise(self, begin: float, taken: FutureStart) -> None:
        """Enter a start at ``begin``."""
        if begin <= self.at:
            self._take(taken)
        else:
            self._note(begin, _TAKES, taken)

    # -- time ----------------------------------------------------------------------------------------------------------

    def advance(self) -> bool:
        """Advance to the next event; False if there is none."""
        following = self._next
        at = following[0] if following is not None else NEVER
        if self._turns and self._turns[0][0] < at:
            at = self._turns[0][0]
        if at == NEVER:
            return False
        self.at = at = max(at, self.at)
        self.freed = set()
        self.allowance.move_to(at)
        while following is not None and following[0] <= at:
            if following[1].key not in self._apart:
                self._give_back(_held(self._cluster, following[1]))
            following = self._next = next(self._ends, None)
        while self._turns and self._turns[0][0] <= at:
            self._turn(heapq.heappop(self._turns)[3])
        return True

    def _turn(self, what: FutureRelease | FutureStart | Interval | int) -> None:
        match what:
            case FutureRelease():
                self._give_back(what)
            case FutureStart():
                self._take(what)
            case Interval():
                self._set_apart(what)
            case int():
                self.freed.add(what)

    def _give_back(self, held: FutureRelease) -> None:
        table = self.table
        self.steps += 1
        if held.demand is not None:
            self.allowance.take(held.demand, held.counted, -1)
        rows = [table.rows[share.host] for share in held.shares]
        for row, share in zip(rows, held.shares, strict=True):
            table.give_back(row, share, held.whole_hosts)
        self.freed.update(rows)
        if held.keeper is not None:
            for row in rows:
                table.keep_no_more(held.keeper, row)
            self.freed |= table.freed_hosts
        table.freed_hosts.clear()

    # -- starts --------------------------------------------------------------------------------------------------------

    def until(self, demand: Demand) -> float:
        """End of a job that starts now, at its run limit."""
        return self.at + demand.run_limit_s if demand.run_limit_s else NEVER

    def placing(self) -> "FuturePlacer":
        """Placement at the present simulated time."""
        return FuturePlacer(self)

    def take(self, asked: PendingRequest, allocation: Allocation) -> None:
        """Start a job now that the limit counters already include."""
        until = self.until(asked.demand)
        self._take(FutureStart(asked.demand, allocation, until, asked.key), False)
        self.moments.take(self.table, allocation, self.at, until)

    def _take(self, taken: FutureStart, is_counted: bool = True) -> None:
        table, (demand, allocation, until, key) = self.table, taken
        request = demand.request
        rows = [table.rows[share.host] for share in allocation]
        table.take_all(rows, allocation, request.exclusive)
        kind = compute_units.kept_type(request)
        if kind is not None:
            for row in rows:
                for members in compute_units.unit_rows(table, kind):
                    if row in members:
                        table.keep(key, row, members)
        if is_counted:
            self.allowance.take(demand, allocation)
        for at in self._cluster.limits.rests_after(self.at):
            for row in rows:
                self._note(at, _GIVES, row)
        keeper = key if kind is not None else None
        self._note(until, _GIVES, FutureRelease(request.exclusive, allocation, demand, allocation, keeper))


class FuturePlacer:
    """Placement of jobs at one moment of a simulated future; ``room`` holds the free resources."""

    def __init__(self, future: SimulatedFuture) -> None:
        self.room = FreeResources(future.table)
        self._future = future
        self._placer = LimitedPlacer(self.room, future.allowance)

    def place(self, asked: PendingRequest) -> Allocation | None:
        """Place a job and take its resources and limits; None if no allocation can be kept until its run limit."""
        future, demand = self._future, asked.demand
        if future.allowance.why(demand) is not None:
            return None
        moments = future.moments
        window = moments.window(future.at, future.until(demand), demand.queue) if moments else None
        return self._placer.place(demand, future.at - asked.submitted_at, window)


def ends_of_all(cluster: ClusterView, now: float, by_progress: bool = False) -> Iterator[tuple[float, Attempt]]:
    """Expected ends of all attempts with a run limit, unordered.

    ``by_progress``: jobs that report the time they have left are expected to end then, though never after their run
    limit; that is an estimate, on which nothing may be promised.
    """
    for attempt in list(cluster.attempts.values()):
        record = cluster.find_bearer(attempt.key.job, attempt.key.index)
        at = expected_end(attempt, record.shared.run_limit_s if record is not None else 0, 0).at
        if by_progress and not attempt.over:
            at = min(at, by_report(attempt, now))
        if at < NEVER:
            yield max(at, now + SOON_S), attempt


def by_report(attempt: Attempt, now: float) -> float:
    """End of an attempt as the job itself reports it; NEVER if it does not, or that time has passed."""
    at = attempt.progress.ends_at if attempt.progress is not None else 0.0
    return at if at > now + SOON_S else NEVER


def _held(cluster: ClusterView, attempt: Attempt) -> FutureRelease:
    """Resources an attempt will release: shares on hosts not yet released, and limit counts unless the job is over."""
    shares, keeper = _unreleased(attempt), attempt.key if attempt.keeps_units is not None else None
    record = cluster.find_bearer(attempt.key.job, attempt.key.index)
    if record is None or attempt.over:
        return FutureRelease(attempt.takes_whole_hosts, shares, keeper=keeper)
    return FutureRelease(attempt.takes_whole_hosts, shares, demand_of(record.shared), attempt.booked, keeper)


def _unreleased(attempt: Attempt) -> Allocation:
    return tuple([share for share in attempt.booked if share.host in attempt.unreleased])
