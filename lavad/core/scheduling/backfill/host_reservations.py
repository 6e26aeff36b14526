"""Reservations on concrete hosts, for blocked jobs that wait for more than a number of slots on any hosts.

Such a job needs certain hosts, memory, GPUs, whole hosts or cluster-wide resources. Its reservation is found by
simulating the ends of running jobs until it fits, with every earlier reservation in its place. From its start on, a job
behind it may use only what is left beside the reserved allocation, unless it ends before.

The search costs a copy of the host table, a step for each end before the start, and a placement whenever the job could
fit. Results are kept from slice to slice and recomputed when changes on the hosts may alter them.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lavad.core.cluster_view import ClusterView
from lavad.core.language.requirements.parsed import all_roles, wants_of
from lavad.core.model import Allocation, Key, Request
from lavad.core.model.demand import demand_of
from lavad.core.model.windows import NEVER
from lavad.core.plan import Start
from lavad.core.scheduling.backfill.earliest_start import could_take, earliest
from lavad.core.scheduling.backfill.simulated_future import (
    SOON_S,
    FutureStart,
    PendingRequest,
    SimulatedFuture,
    asked_for,
)
from lavad.core.scheduling.budget import HOLD_S_PER_STEP, SCANS_A_STEP, STEPS_A_SLICE, STEPS_FREE, STEPS_OF_A_COPY
from lavad.core.scheduling.capacity.allowance import Allowance
from lavad.core.scheduling.capacity.backfill_window import (
    BackfillWindow,
    FutureReservations,
    HostRemainder,
    WindowEnd,
    place_of,
)
from lavad.core.scheduling.capacity.constraints import allowance_of
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.placement.within_limits import with_at_most
from lavad.core.state.attempts import NEVER_RESIZED, Attempt
from lavad.core.state.changes import Changes
from lavad.core.state.expected_ends import ExpectedEnds, expected_end
from lavad.core.state.hosts.compute_units import kept_type, unit_mates
from lavad.core.state.hosts.table import HostTable
from lavad.core.state.pending import BucketKey

if TYPE_CHECKING:
    from lavad.core.scheduling.backfill.reservation import Reservation
    from lavad.core.scheduling.queueing.ordering import Rank

RESERVATIONS_MAX = 32  # on hosts: each may cost milliseconds on a large cluster

Ends = Callable[[ClusterView], ExpectedEnds]


def is_anywhere(simulated: Allowance, key: BucketKey) -> bool:
    """True if the request needs only a number of slots, on any hosts.

    Args:
        simulated: the constraints that simulated futures ask.
    """
    return key.request.is_slots_only and not simulated.is_checked(key.demand)


def has_shut_holders(table: HostTable) -> bool:
    """True if jobs hold resources on closed hosts: those return no usable capacity when they end."""
    return bool(table.shut) and any(table.attempts[row] for row in table.shut)


def shuts_others_out(request: Request) -> bool:
    """True if the request takes whole hosts or exclusive compute units, and so denies others more than it uses."""
    return not request.is_basic and (request.exclusive or kept_type(request) is not None)


class HostReservation:
    """One reservation, with the window that it and all before it leave to later jobs.

    On a large cluster, where the search is expensive, it stays valid for some time while the hosts it names have no
    fewer free resources.
    """

    def __init__(self, one: "Reservation", before: "HostReservation | None", relevant: NDArray[np.bool_]) -> None:
        self.place: tuple[tuple[Rank, int], BucketKey] = one.place, one.key
        self.begin = NEVER  # start of the last one; NEVER if it cannot be predicted
        self.moments: FutureReservations = before.moments.copy() if before is not None else FutureReservations()
        self.taken: list[tuple[float, FutureStart]] = list(before.taken) if before is not None else []
        self.relevant = relevant  # hosts that could run it, also closed ones
        self.rows: set[int] = set()  # of the hosts it names
        self.found_at = 0.0
        self.steps: int = before.steps if before is not None else 0  # cost of computing this one and all before it

    def is_spoilt(self, freed: Set[int], shrunk: set[int], now: float, steps: int) -> bool:
        """True if recomputation may move the reservation.

        It may if a start is due, a named host has fewer free resources, or a relevant host has changed long enough
        after the last computation.

        Args:
            steps: cost of recomputing this reservation and all behind it; the dearer it is, the longer it stands.
        """
        if any(moment.at <= now for moment in self.moments.all) or not self.rows.isdisjoint(shrunk):
            return True
        holds_until = self.found_at + max(0, steps - STEPS_FREE) * HOLD_S_PER_STEP
        return now >= holds_until and any(self.relevant[row] for row in freed | shrunk)

    def promise(self, table: HostTable, begin: float, taken: FutureStart, room: FreeResources) -> None:
        """Enter the allocation from ``begin`` on; ``room`` holds the free resources left beside it then."""
        request, allocation = taken.demand.request, taken.allocation
        self.begin = begin
        self.moments.take(table, allocation, begin, taken.until)
        self.taken.append((begin, taken))
        moment = WindowEnd(begin)
        are_certain = any(wants_of(role).is_placed for role in all_roles(request))
        rows = {table.rows[share.host]: share for share in allocation}
        kind = kept_type(request)
        for row in unit_mates(table, rows, kind) if kind is not None else ():
            moment.rows[row] = HostRemainder(0, 0, 0)
        for row, share in rows.items():
            free = room.free(row)
            rest = moment.rows[row] = HostRemainder(free.slots, free.memory_mib, free.gpus.bit_count())
            rest.promise(share, are_certain)
            for resource in share.resources:
                left = room.left(resource.name, row)
                if left is not None:
                    moment.stores[place_of(table, resource.name, row)] = left.amount
        self.rows.update(moment.rows)
        self.moments.add(moment)


class HostReservations:
    """All reservations on hosts in order of rank; a job must not delay those before it."""

    def __init__(self) -> None:
        self.version = 0  # raised whenever one is computed or discarded
        self._all: list[HostReservation] = []
        self._noted: dict[tuple[int, int], float] = {}  # ends of backfilled jobs, not yet among the expected ends

    def __bool__(self) -> bool:
        return bool(self._all)

    def clear(self, number: int = 0) -> None:
        """Discard them from this rank on, so that they are recomputed."""
        self.version += 1
        del self._all[number:]

    # -- queries -------------------------------------------------------------------------------------------------------

    def known(self, reservations: "Sequence[Reservation]") -> int:
        """Number of leading ``reservations`` that are computed and still stand."""
        count = 0
        for one, reservation in zip(self._all, reservations, strict=False):
            if one.place != (reservation.place, reservation.key):
                break
            count += 1
        return count

    def window(self, behind: int, begin: float, end: float) -> BackfillWindow | None:
        """Backfill window from ``begin`` to ``end`` beside the first ``behind`` reservations; None if unconstrained."""
        return self._all[behind - 1].moments.window(begin, end)

    def begins(self, behind: int) -> Iterator[float]:
        """Predicted start times of the first ``behind`` reservations."""
        return (moment.at for moment in self._all[behind - 1].moments.all)

    # -- keeping them up to date ---------------------------------------------------------------------------------------

    def look_again(
        self,
        cluster: ClusterView,
        changes: Changes,
        ends: ExpectedEnds,
        now: float,
    ) -> bool:
        """Discard reservations that changes on hosts or of attempts may have outdated; True if there were any."""
        if not self._all:
            return False
        shrunk = set(changes.closed_hosts)
        for key in changes.changed_attempts:
            shrunk.update(self._moved_on(cluster, key, ends))
        is_void = bool(cluster.claims) or len(self._all[0].relevant) < len(cluster.table)
        steps, played = self._all[-1].steps, 0  # in all, and up to the previous one
        for number, one in enumerate(self._all):
            if is_void or one.is_spoilt(changes.freed_hosts, shrunk, now, steps - played):
                self.clear(number)
                return True
            played = one.steps
        return False

    def _moved_on(self, cluster: ClusterView, key: Key, ends: ExpectedEnds) -> list[int]:
        """Rows of an attempt's hosts if it is new, or if its expected end has passed a reservation's start time."""
        attempt, record = cluster.attempts.get(key), cluster.find_bearer(key.job, key.index)
        old = ends.of(key)
        if attempt is None or record is None or old is not None:
            noted = self._noted.pop((key.job, key.index), None)
        else:
            noted = self._noted.get((key.job, key.index))
        if attempt is None or record is None:
            return []  # its freed hosts are reported as such
        before = old.at if old is not None else noted
        after = expected_end(attempt, record.shared.run_limit_s, 0).at
        moments = self._all[-1].moments.all
        is_new = before is None or attempt.resizing is not NEVER_RESIZED
        if is_new or any(_side(before or 0.0, one.at) != _side(after, one.at) for one in moments):
            return [cluster.table.rows[share.host] for share in attempt.booked]
        return []

    def note_start(self, cluster: ClusterView, allocation: Allocation, behind: int = 0) -> None:
        """Discard reservations, after the first ``behind``, that may have wanted the hosts of a job about to start."""
        rows = [cluster.table.rows[share.host] for share in allocation]
        for number, one in enumerate(self._all[behind:], behind):
            if any(one.relevant[row] for row in rows):
                self.clear(number)
                return

    def take(self, cluster: ClusterView, start: Start, now: float, until: float, behind: int) -> None:
        """Enter a backfilled start beside the first ``behind`` reservations."""
        self._noted[start.job, start.index] = until
        self.note_start(cluster, start.allocation, behind)
        for one in self._all:  # those behind it that remain hold copies of the windows before them
            one.moments.take(cluster.table, start.allocation, now, until)

    # -- computing -----------------------------------------------------------------------------------------------------

    def of(self, reservations: "list[Reservation]", ask: "ReservationFinder") -> HostReservation | None:
        """Return the last of these reservations, at most ``RESERVATIONS_MAX``, computing those that are missing.

        None: the budget of the slice is spent, and the next slice continues.
        """
        some = reservations[:RESERVATIONS_MAX]
        for number, one in enumerate(some):
            if number < len(self._all) and self._all[number].place != (one.place, one.key):
                self.clear(number)
            if number >= len(self._all):
                if ask.steps >= STEPS_A_SLICE:
                    return None
                self.version += 1
                self._all.append(ask.find(one, self._all[-1] if self._all else None))
                self._noted.update(ask.started())
        return self._all[len(some) - 1]


class ReservationFinder:
    """Search for host reservations in one slice. The caller appends its decisions to ``starts``."""

    def __init__(self, cluster: ClusterView, ends: Ends, starts: Sequence[Start], now: float) -> None:
        """Take ``ends`` as a function: expected ends are read only if a reservation has to be computed."""
        self._cluster = cluster
        self._ends = ends
        self._starts = starts
        self._now = now
        self._scanned = 0
        self.steps = 0  # spent in this slice

    def find(self, one: "Reservation", before: HostReservation | None) -> HostReservation:
        """Compute start and hosts after those before it; reserve nothing if the start cannot be predicted."""
        asked = asked_for(self._cluster, one.key, one.job, one.index)
        request = with_at_most(asked.demand.request, asked.demand.request.slots_min)
        asked = asked._replace(demand=asked.demand._replace(request=request))
        relevant = could_take(self._cluster.table, request)
        made = HostReservation(one, before, relevant)
        relevant = relevant & self._cluster.table.usable[: len(relevant)]
        future = self._future(asked, relevant, made)
        found = earliest(future, asked, relevant)
        one.start_at = future.at if found is not None else NEVER
        if found is not None:
            allocation, placing = found
            taken = FutureStart(asked.demand, allocation, future.until(asked.demand), asked.key)
            made.promise(self._cluster.table, future.at, taken, placing.room)
        steps = STEPS_OF_A_COPY + future.steps + self._scanned // SCANS_A_STEP
        made.found_at = self._now
        made.steps += steps
        self.steps += steps
        return made

    def started(self) -> dict[tuple[int, int], float]:
        """Expected ends of the jobs that start in this slice, by job and index."""
        return {(start.job, start.index): self._end_of(start) for start in self._starts}

    def _end_of(self, start: Start) -> float:
        run_limit_s = self._cluster.bearer(start.job, start.index).shared.run_limit_s
        return self._now + run_limit_s if run_limit_s else NEVER

    def _future(self, asked: PendingRequest, relevant: NDArray[np.bool_], made: HostReservation) -> SimulatedFuture:
        cluster = self._cluster
        is_all = bool(allowance_of(cluster, self._now).simulated) or bool(relevant.all())
        future = SimulatedFuture(cluster, self._now, self._coming(relevant, is_all))
        future.free(cluster.claims.get(asked.key[:2]))  # it starts in the slots it has gathered
        for start in self._starts:
            shared = cluster.bearer(start.job, start.index).shared
            until = self._end_of(start)
            key = Key(start.job, start.index, 0)
            future.promise(self._now, FutureStart(demand_of(shared), start.allocation, until, key))
        for moment in made.moments.all:
            future.moments.add(moment)
        for begin, taken in made.taken:
            future.promise(begin, taken)
        return future

    def _coming(self, relevant: NDArray[np.bool_], is_all: bool) -> Iterator[tuple[float, Attempt]]:
        """Expected ends in order: all, or those of attempts that hold relevant hosts or cluster-wide resources."""
        attempts, rows, soonest = self._cluster.attempts, self._cluster.table.rows, self._now + SOON_S
        self._scanned = 0
        for at, _, key in self._ends(self._cluster):
            if at == NEVER:
                return
            self._scanned += 1
            attempt = attempts[key]
            is_needed = is_all or attempt.keeps_units is not None
            if is_needed or any(relevant[rows[share.host]] or share.resources for share in attempt.booked):
                yield max(at, soonest), attempt


def _side(end: float, moment: float) -> int:
    """Sign of the difference: -1 if ``end`` is before the moment, 0 at it, 1 after it."""
    return (end > moment) - (end < moment)
