"""Who waits with a promise: the first blocked jobs of a queue, in the order in which they would start.

A reservation is no allocation. It is made anew from the present state whenever a later job asks to go first, so it
never grows stale; what is remembered between passes is only who holds one. ``start_at`` is the newest estimate.
"""

import heapq
from collections.abc import Iterable, Iterator
from itertools import islice

from lavad.core.apply.enqueue import entry
from lavad.core.cluster import Cluster
from lavad.core.model import Allocation, Key
from lavad.core.model.allocation import slots_of
from lavad.core.model.policy import Queue
from lavad.core.scheduling.backfill.host_reservations import HostReservations
from lavad.core.scheduling.backfill.reservation import Reservation
from lavad.core.scheduling.queueing.ordering import Rank
from lavad.core.state.expected_ends import NEVER, ExpectedEnd, ExpectedEnds, expected_end
from lavad.core.state.pending import BucketKey
from lavad.core.state.records import ArrayRecord

MOVED_S = 1.0  # what ends so much earlier or later than was thought changes nobody's turn
_WORK_OF_ENTERING = 8  # hosts that could be looked at while one end is entered
_ENTERED_MIN = 64  # ends in one slice
_FORESEEN_MAX = 2048  # that have changed since ends were entered, for one answer


class ReservationTable:
    """All reservations in order of rank, the buckets they hold back, and the expected ends they are computed from."""

    def __init__(self) -> None:
        self.reservations: list[Reservation] = []
        self.held: set[BucketKey] = set()  # there was room for these, but it is promised
        self.full: frozenset[str] = frozenset()  # queues in which more jobs wait than may hold a reservation
        self.ends = ExpectedEnds()
        self.promises = HostReservations()  # what the reservations come to, where they say which hosts
        self._keys: set[BucketKey] = set()
        self._touched: set[Key] | None = None  # None: nothing was ever asked, so nothing is kept
        self._pages: list[int] = []  # of attempts that were there then, and have not been looked at

    def note(self, touched: Iterable[Key]) -> None:
        """Attempts that took or gave back slots."""
        if self._touched is not None:
            self._touched.update(touched)

    def are_moved(self, cluster: Cluster, touched: Iterable[Key]) -> bool:
        """Will one of these attempts end at quite another time than was thought when somebody was held back?"""
        return bool(self.held) and any(self._is_moved(cluster, key) for key in touched)

    def _is_moved(self, cluster: Cluster, key: Key) -> bool:
        attempt, record = cluster.attempts.get(key), cluster.jobs.get(key.job)
        if attempt is None or record is None:
            return False  # room has appeared then
        old, run_limit_s = self.ends.of(key), record.shared.run_limit_s
        if old is None and attempt.limits_version:
            return True
        before = old.at if old is not None else attempt.dispatched_at + (run_limit_s or NEVER)
        return abs(expected_end(attempt, run_limit_s, 0).at - before) > MOVED_S

    def ends_of(self, cluster: Cluster) -> ExpectedEnds:
        """The expected ends as they are now."""
        touched = self._to_enter(cluster)
        while self._pages:
            self._take_page(cluster, touched)
        if touched:
            self._touched = set()
            self._enter(cluster, touched)
        return self.ends

    def foreseen(self, cluster: Cluster) -> Iterator[ExpectedEnd] | None:
        """The same for those who only ask: nothing is entered. None: it would take too long."""
        if self.is_far_behind(cluster, _FORESEEN_MAX * _WORK_OF_ENTERING):
            return None
        touched = cluster.touched | self._to_enter(cluster)
        known = (end for end in self.ends if end.key not in touched)
        return heapq.merge(known, sorted([end for key in touched if (end := _expectation(cluster, key)) is not None]))

    def enter_some(self, cluster: Cluster, steps: int) -> bool:
        """Enter expected ends if there are too many for a slice that does anything else; True when it did."""
        if not (self.reservations or self.full) or not self.is_far_behind(cluster, steps):
            return False
        touched = self._to_enter(cluster)
        some = list(islice(touched, _portion(steps)))
        self._enter(cluster, some)
        touched.difference_update(some)
        return True

    def is_far_behind(self, cluster: Cluster, steps: int) -> bool:
        """Are there more ends to enter than a slice of so many steps should?"""
        touched = self._to_enter(cluster)
        while self._pages and len(touched) <= _portion(steps):
            self._take_page(cluster, touched)
        return len(touched) > _portion(steps)

    def _to_enter(self, cluster: Cluster) -> set[Key]:
        """As far as it has been looked for: what lies in ``_pages`` is to be entered, too."""
        if self._touched is None:
            self._touched, self._pages = set(), cluster.attempts.numbers()
        return self._touched

    def _take_page(self, cluster: Cluster, touched: set[Key]) -> None:
        touched.update(cluster.attempts.page(self._pages.pop()))

    def _enter(self, cluster: Cluster, keys: Iterable[Key]) -> None:
        self.ends.update({key: _expectation(cluster, key) for key in keys})

    def has_overdue(self, cluster: Cluster, now: float) -> bool:
        """Should something have ended by now that holds slots still?"""
        return self.ends.first() <= now and self.ends_of(cluster).first() <= now

    def write(self, reservations: list[Reservation], full: frozenset[str]) -> None:
        """Who holds a reservation from now on, and in which queues no more are made."""
        self.reservations = reservations
        self.full = full
        self._keys = {one.key for one in reservations}

    def is_behind(self, queue: Queue, rank: Rank) -> bool:
        """Would a blocked job of this rank hold no reservation? Its queue makes none, or all go to jobs before it."""
        if queue.in_order:
            return False
        if not queue.backfill_depth:
            return True
        before = sum([one.key.queue == queue.name and one.place[0] < rank for one in self.reservations])
        return queue.name in self.full and before >= queue.backfill_depth

    def concerns(self, buckets: Iterable[BucketKey]) -> bool:
        """Does one of these buckets have a job that holds a reservation?"""
        return not self._keys.isdisjoint(buckets)

    def drop_departed(self, cluster: Cluster, left: set[BucketKey]) -> bool:
        """Forget reservations of jobs that don't wait where they did in these buckets; True when there were any."""
        if not self.concerns(left):
            return False
        kept = [one for one in self.reservations if one.key not in left or _still_waits(cluster, one)]
        is_less = len(kept) < len(self.reservations)
        self.write(kept, self.full)
        return is_less


def _portion(steps: int) -> int:
    return max(_ENTERED_MIN, steps // _WORK_OF_ENTERING)


def _expectation(cluster: Cluster, key: Key) -> ExpectedEnd | None:
    attempt = cluster.attempts.get(key)
    if attempt is None:
        return None
    shared = cluster.jobs[key.job].shared
    slots = slots_of(attempt.booked) if not shared.request.exclusive else slots_of_hosts(cluster, attempt.booked)
    return expected_end(attempt, shared.run_limit_s, slots)


def slots_of_hosts(cluster: Cluster, allocation: Allocation) -> int:
    """What an exclusive job takes from others, and gives back: all slots of its hosts."""
    return sum([cluster.hosts[share.host].facts.slots for share in allocation])


def _still_waits(cluster: Cluster, one: Reservation) -> bool:
    record = cluster.jobs.get(one.job)
    if record is None or cluster.pending.key_of(record.shared) != one.key or entry(cluster, record) != one.entry:
        return False
    if isinstance(record, ArrayRecord):
        return one.index in record.pending
    return record.may_start
