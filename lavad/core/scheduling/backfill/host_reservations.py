"""Reservations that say where: for blocked jobs of which "so many slots of the whole cluster" does not say enough.

Such a job waits for certain hosts, or for memory, devices, whole hosts or resources of the site. Its reservation is
found by playing the ends of what runs forward until it fits, in a future in which every reservation before it has its
place. From then on it is promised what it would have there, and a job behind it may have no more than what is left
beside that, unless it ends before.

Costs a copy of the hosts, a step for each end that comes before, and a try to place the job whenever it could fit. What
was found is kept from slice to slice, and found anew when that may lead elsewhere.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lavad.core.cluster import Cluster
from lavad.core.language.requirements.parsed import all_roles, wants_of
from lavad.core.model import Allocation, Key, Request
from lavad.core.model.windows import NEVER
from lavad.core.plan import Start
from lavad.core.scheduling.backfill.earliest_start import could_take, earliest
from lavad.core.scheduling.backfill.simulated_future import (
    SOON_S,
    FutureStart,
    PendingRequest,
    SimulatedFuture,
    asked_for,
    consumer_of,
)
from lavad.core.scheduling.capacity.backfill_window import (
    BackfillWindow,
    FutureReservations,
    HostRemainder,
    WindowEnd,
    place_of,
)
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.placement.within_limits import is_checked, with_at_most
from lavad.core.state.expected_ends import ExpectedEnds, expected_end
from lavad.core.state.hosts.compute_units import kept_type, unit_mates
from lavad.core.state.hosts.table import HostTable
from lavad.core.state.pending import BucketKey
from lavad.core.state.records import NEVER_RESIZED, Attempt

if TYPE_CHECKING:
    from lavad.core.scheduling.backfill.reservation import Reservation
    from lavad.core.scheduling.queueing.ordering import Rank

PROMISES_MAX = 32  # that say where: each may cost milliseconds on a large cluster
STEPS_FREE = 500  # that may be played each time that something has changed
STEPS_A_SLICE = 200  # that may be played before a slice ends
HOLD_S_PER_STEP = 0.001  # more of them take some 20 us each, and so a fiftieth of the time
_SCANS_A_STEP = 16
_STEPS_OF_A_COPY = 25

Ends = Callable[[Cluster], ExpectedEnds]


def is_anywhere(cluster: Cluster, key: BucketKey) -> bool:
    """Does "so many slots of the whole cluster" say all that a job of this bucket waits for?"""
    if not key.request.is_plain:
        return False
    return not cluster.limits or not is_checked(consumer_of(cluster, key), key.request)


def has_shut_holders(table: HostTable) -> bool:
    """Is something held on hosts that may take nothing when it is given back?"""
    return bool(table.shut) and any(table.attempts[row] for row in table.shut)


def shuts_others_out(request: Request) -> bool:
    """Does it take more from others than it uses: whole hosts, or compute units?"""
    return not request.is_simple and (request.exclusive or kept_type(request) is not None)


class HostReservation:
    """What one reservation and all before it come to: what others may have beside them.

    On a large cluster it may take so long to find that it has to hold for a while, as long as the hosts it names have
    no less room.
    """

    def __init__(self, one: "Reservation", before: "HostReservation | None", relevant: NDArray[np.bool_]) -> None:
        self.place: tuple[tuple[Rank, int], BucketKey] = one.place, one.key
        self.begin = NEVER  # when the last of them starts; NEVER: that can't be foreseen
        self.moments: FutureReservations = before.moments.copy() if before is not None else FutureReservations()
        self.taken: list[tuple[float, FutureStart]] = list(before.taken) if before is not None else []
        self.relevant = relevant  # hosts on which it could be, also those that are shut now
        self.rows: set[int] = set()  # that it names
        self.found_at = 0.0
        self.steps: int = before.steps if before is not None else 0  # that it took to find it, and all before

    def is_spoilt(self, grown: set[int], shrunk: set[int], now: float, steps: int) -> bool:
        """Might it be another one by now, since there is more room on some hosts and less on others?

        ``steps``: so many it would take to find this one and all behind it anew.
        """
        if any(moment.at <= now for moment in self.moments.all) or not self.rows.isdisjoint(shrunk):
            return True
        holds_until = self.found_at + max(0, steps - STEPS_FREE) * HOLD_S_PER_STEP
        return now >= holds_until and any(self.relevant[row] for row in grown | shrunk)

    def promise(self, table: HostTable, begin: float, taken: FutureStart, room: FreeResources) -> None:
        """From then on the job has that; ``room`` is what is left then beside it."""
        request, allocation = taken.request, taken.allocation
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
    """Of all reservations, in their order; a job must mind those that go before it."""

    def __init__(self) -> None:
        self.version = 0  # raised whenever one is found or forgotten
        self._all: list[HostReservation] = []
        self._noted: dict[tuple[int, int], float] = {}  # ends of what started beside them, not entered yet

    def __bool__(self) -> bool:
        return bool(self._all)

    def clear(self) -> None:
        """Find all of them anew."""
        self._forget_from(0)

    def _forget_from(self, number: int) -> None:
        self.version += 1
        del self._all[number:]

    # -- for those who ask ---------------------------------------------------------------------------------------------

    def known(self, reservations: "Sequence[Reservation]") -> int:
        """Of so many of these, from the first on, it is known what is promised."""
        count = 0
        for one, reservation in zip(self._all, reservations, strict=False):
            if one.place != (reservation.place, reservation.key):
                break
            count += 1
        return count

    def leeway(self, behind: int, begin: float, end: float) -> BackfillWindow | None:
        """What the first so many leave to a job from one time to another; None: whatever is free."""
        return self._all[behind - 1].moments.leeway(begin, end)

    def begins(self, behind: int) -> Iterator[float]:
        """When the first so many begin, as far as it can be foreseen."""
        return (moment.at for moment in self._all[behind - 1].moments.all)

    # -- while they are kept -------------------------------------------------------------------------------------------

    def look_again(
        self,
        cluster: Cluster,
        grown: set[int],
        lost: set[int],
        touched: set[Key],
        ends: ExpectedEnds,
        now: float,
    ) -> bool:
        """There is more room on some hosts, others are shut, and these attempts differ: True when promises may, too."""
        if not self._all:
            return False
        shrunk = set(lost)
        for key in touched:
            shrunk.update(self._moved_on(cluster, key, ends))
        is_void = bool(cluster.claims) or len(self._all[0].relevant) < len(cluster.table)
        steps, played = self._all[-1].steps, 0  # in all, and up to the one before
        for number, one in enumerate(self._all):
            if is_void or one.is_spoilt(grown, shrunk, now, steps - played):
                self._forget_from(number)
                return True
            played = one.steps
        return False

    def _moved_on(self, cluster: Cluster, key: Key, ends: ExpectedEnds) -> list[int]:
        """The hosts of an attempt, if it is a new one or will hold them at other moments than was thought."""
        attempt, record = cluster.attempts.get(key), cluster.jobs.get(key.job)
        old = ends.of(key)
        if attempt is None or record is None or old is not None:
            noted = self._noted.pop((key.job, key.index), None)
        else:
            noted = self._noted.get((key.job, key.index))
        if attempt is None or record is None:
            return []  # of what it has given back others tell
        before = old.at if old is not None else noted
        after = expected_end(attempt, record.shared.run_limit_s, 0).at
        moments = self._all[-1].moments.all
        is_new = before is None or attempt.resizing is not NEVER_RESIZED
        if is_new or any(_side(before or 0.0, one.at) != _side(after, one.at) for one in moments):
            return [cluster.table.rows[share.host] for share in attempt.booked]
        return []

    def note_start(self, cluster: Cluster, allocation: Allocation, behind: int = 0) -> None:
        """A job is about to start that need not mind any but the first so many."""
        rows = [cluster.table.rows[share.host] for share in allocation]
        for number, one in enumerate(self._all[behind:], behind):
            if any(one.relevant[row] for row in rows):
                self._forget_from(number)
                return

    def take(self, cluster: Cluster, start: Start, now: float, until: float, behind: int) -> None:
        """A job starts beside the first so many."""
        self._noted[start.job, start.index] = until
        for one in self._all[:behind]:
            one.moments.take(cluster.table, start.allocation, now, until)
        self.note_start(cluster, start.allocation, behind)

    # -- finding them --------------------------------------------------------------------------------------------------

    def of(self, reservations: "list[Reservation]", ask: "ReservationFinder") -> HostReservation | None:
        """What these come to, at most ``PROMISES_MAX`` of them; found as far as it is not known.

        None: the slice has done enough of that, and the next one is to go on.
        """
        some = reservations[:PROMISES_MAX]
        for number, one in enumerate(some):
            if number < len(self._all) and self._all[number].place != (one.place, one.key):
                self._forget_from(number)
            if number >= len(self._all):
                if ask.steps >= STEPS_A_SLICE:
                    return None
                self.version += 1
                self._all.append(ask.find(one, self._all[-1] if self._all else None))
                self._noted.update(ask.started())
        return self._all[len(some) - 1]


class ReservationFinder:
    """Finds promises in one slice, of which ``starts`` are what has been decided so far: the caller adds to them."""

    def __init__(self, cluster: Cluster, ends: Ends, starts: Sequence[Start], now: float) -> None:
        """``ends`` tells when what runs ends: it is asked only where something has to be found."""
        self._cluster = cluster
        self._ends = ends
        self._starts = starts
        self._now = now
        self._scanned = 0
        self.steps = 0  # that were played in this slice

    def find(self, one: "Reservation", before: HostReservation | None) -> HostReservation:
        """Where and when, after those before it; nothing is promised where that can't be foreseen."""
        asked = asked_for(self._cluster, one.key, one.job, one.index)
        asked = asked._replace(request=with_at_most(asked.request, asked.request.slots_min))
        relevant = could_take(self._cluster.table, asked.request)
        made = HostReservation(one, before, relevant)
        relevant = relevant & self._cluster.table.usable[: len(relevant)]
        future = self._future(asked, relevant, made)
        found = earliest(future, asked, relevant)
        one.start_at = future.at if found is not None else NEVER
        if found is not None:
            allocation, placing = found
            until = future.at + asked.run_limit_s if asked.run_limit_s else NEVER
            taken = FutureStart(asked.request, asked.consumer, allocation, until, asked.key)
            made.promise(self._cluster.table, future.at, taken, placing.room)
        steps = _STEPS_OF_A_COPY + future.steps + self._scanned // _SCANS_A_STEP
        made.found_at = self._now
        made.steps += steps
        self.steps += steps
        return made

    def started(self) -> dict[tuple[int, int], float]:
        """Until when the jobs that start in this slice will hold their hosts."""
        return {(start.job, start.index): self._end_of(start) for start in self._starts}

    def _end_of(self, start: Start) -> float:
        run_limit_s = self._cluster.jobs[start.job].shared.run_limit_s
        return self._now + run_limit_s if run_limit_s else NEVER

    def _future(self, asked: PendingRequest, relevant: NDArray[np.bool_], made: HostReservation) -> SimulatedFuture:
        cluster = self._cluster
        future = SimulatedFuture(
            cluster, self._now, self._coming(relevant, bool(cluster.limits) or bool(relevant.all()))
        )
        future.free(cluster.claims.get(asked.key[:2]))  # it starts in what it has saved
        for start in self._starts:
            shared = cluster.jobs[start.job].shared
            until = self._end_of(start)
            consumer = cluster.limits.consumer(shared.user, shared.queue, shared.project)
            key = Key(start.job, start.index, 0)
            future.promise(self._now, FutureStart(shared.request, consumer, start.allocation, until, key))
        for moment in made.moments.all:
            future.moments.add(moment)
        for begin, taken in made.taken:
            future.promise(begin, taken)
        return future

    def _coming(self, relevant: NDArray[np.bool_], is_all: bool) -> Iterator[tuple[float, Attempt]]:
        """Who ends when: all, or those that hold something of relevant hosts or of the site's resources."""
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
    """Before, at, or after it?"""
    return (end > moment) - (end < moment)
