"""Reservation table: the first blocked jobs of each queue, in the order in which they would start.

A reservation is no allocation. It is recomputed from the present state whenever a later job asks to be backfilled, so
it never grows stale; only its holder is remembered between passes. ``start_at`` is the newest estimate.
"""

import heapq
from collections.abc import Iterable, Iterator, Set
from itertools import islice

from lavad.core.apply.enqueue import entry
from lavad.core.cluster_view import ClusterView
from lavad.core.model import Allocation, Key
from lavad.core.model.allocation import slots_of
from lavad.core.model.rules.queues import Queue
from lavad.core.scheduling.backfill.host_reservations import HostReservations
from lavad.core.scheduling.backfill.reservation import Reservation
from lavad.core.scheduling.budget import WORK_OF_ENTERING
from lavad.core.scheduling.queueing.ordering import Rank
from lavad.core.state.expected_ends import NEVER, ExpectedEnd, ExpectedEnds, expected_end
from lavad.core.state.pending import BucketKey
from lavad.core.state.records import ArrayRecord

MOVED_S = 1.0  # an expected end that moves by less alters no reservation
_ENTERED_MIN = 64  # ends entered in one slice
_FORESEEN_MAX = 2048  # missing ends that one query may read


class ReservationTable:
    """All reservations in order of rank, the buckets deferred by them, and the expected ends they are computed from."""

    def __init__(self) -> None:
        self.reservations: list[Reservation] = []
        self.deferred: set[BucketKey] = set()  # deferred: they fit now, but into reserved slots
        self.full: frozenset[str] = frozenset()  # queues at their reservation depth with more blocked jobs
        self.ends = ExpectedEnds()
        self.host_reservations = HostReservations()  # the reservations on concrete hosts
        self._keys: set[BucketKey] = set()
        self._changed_attempts: set[Key] | None = None  # attempts to read again; None until the first query
        self._pages: list[int] = []  # of attempts present at the first query, not yet read

    def note(self, changed_attempts: Iterable[Key]) -> None:
        """Note attempts that took or released slots."""
        if self._changed_attempts is not None:
            self._changed_attempts.update(changed_attempts)

    def are_moved(self, cluster: ClusterView, changed_attempts: Iterable[Key]) -> bool:
        """True if the expected end of one of these attempts has moved since buckets were deferred for reservations."""
        return bool(self.deferred) and any(self._is_moved(cluster, key) for key in changed_attempts)

    def _is_moved(self, cluster: ClusterView, key: Key) -> bool:
        attempt, record = cluster.attempts.get(key), cluster.find_bearer(key.job, key.index)
        if attempt is None or record is None:
            return False  # its slots are free: the hosts are reported as changed
        old, run_limit_s = self.ends.of(key), record.shared.run_limit_s
        if old is None and attempt.limits_version:
            return True
        before = old.at if old is not None else attempt.dispatched_at + (run_limit_s or NEVER)
        return abs(expected_end(attempt, run_limit_s, 0).at - before) > MOVED_S

    def ends_of(self, cluster: ClusterView) -> ExpectedEnds:
        """Return the expected ends, brought up to date."""
        changed_attempts = self._to_enter(cluster)
        while self._pages:
            self._take_page(cluster, changed_attempts)
        if changed_attempts:
            self._changed_attempts = set()
            self._enter(cluster, changed_attempts)
        return self.ends

    def foreseen(self, cluster: ClusterView) -> Iterator[ExpectedEnd] | None:
        """Up-to-date expected ends for read-only queries, entering nothing. None if that would take too long."""
        if self.is_far_behind(cluster, _FORESEEN_MAX * WORK_OF_ENTERING):
            return None
        changed_attempts = cluster.changed_attempts | self._to_enter(cluster)
        known = (end for end in self.ends if end.key not in changed_attempts)
        return heapq.merge(
            known, sorted([end for key in changed_attempts if (end := _expectation(cluster, key)) is not None])
        )

    def enter_some(self, cluster: ClusterView, steps: int) -> bool:
        """Enter expected ends if too many are missing for an ordinary slice; True if it did, and the slice is spent."""
        if not (self.reservations or self.full) or not self.is_far_behind(cluster, steps):
            return False
        changed_attempts = self._to_enter(cluster)
        some = list(islice(changed_attempts, _portion(steps)))
        self._enter(cluster, some)
        changed_attempts.difference_update(some)
        return True

    def is_far_behind(self, cluster: ClusterView, steps: int) -> bool:
        """True if more expected ends are missing than a slice of ``steps`` should enter."""
        changed_attempts = self._to_enter(cluster)
        while self._pages and len(changed_attempts) <= _portion(steps):
            self._take_page(cluster, changed_attempts)
        return len(changed_attempts) > _portion(steps)

    def _to_enter(self, cluster: ClusterView) -> set[Key]:
        """Attempts whose ends are known to be missing, beside those in ``_pages`` not yet read."""
        if self._changed_attempts is None:
            self._changed_attempts, self._pages = set(), cluster.attempts.numbers()
        return self._changed_attempts

    def _take_page(self, cluster: ClusterView, changed_attempts: set[Key]) -> None:
        changed_attempts.update(cluster.attempts.page(self._pages.pop()))

    def _enter(self, cluster: ClusterView, keys: Iterable[Key]) -> None:
        self.ends.update({key: _expectation(cluster, key) for key in keys})

    def has_overdue(self, cluster: ClusterView, now: float) -> bool:
        """True if an attempt still holds slots past its expected end."""
        return self.ends.first() <= now and self.ends_of(cluster).first() <= now

    def write(self, reservations: list[Reservation], full: frozenset[str]) -> None:
        """Replace the reservations, and the queues at their reservation depth."""
        self.reservations = reservations
        self.full = full
        self._keys = {one.key for one in reservations}

    def is_behind(self, queue: Queue, rank: Rank) -> bool:
        """True if a blocked job of this rank gets no reservation: depth 0, or used up by jobs before it."""
        if queue.in_order:
            return False
        if not queue.backfill_depth:
            return True
        before = sum([one.key.queue == queue.name and one.place[0] < rank for one in self.reservations])
        return queue.name in self.full and before >= queue.backfill_depth

    def concerns(self, buckets: Iterable[BucketKey]) -> bool:
        """True if a job of one of these buckets holds a reservation."""
        return not self._keys.isdisjoint(buckets)

    def drop_departed(self, cluster: ClusterView, shrunk: Set[BucketKey]) -> bool:
        """Drop reservations of jobs that have left their position in buckets that shrank; True if there were any."""
        if not self.concerns(shrunk):
            return False
        kept = [one for one in self.reservations if one.key not in shrunk or _still_waits(cluster, one)]
        is_less = len(kept) < len(self.reservations)
        self.write(kept, self.full)
        return is_less


def _portion(steps: int) -> int:
    return max(_ENTERED_MIN, steps // WORK_OF_ENTERING)


def _expectation(cluster: ClusterView, key: Key) -> ExpectedEnd | None:
    attempt = cluster.attempts.get(key)
    if attempt is None:
        return None
    record = cluster.find_bearer(
        key.job, key.index
    )  # none if the job was forgotten before a silent host has released it
    run_limit_s = record.shared.run_limit_s if record is not None else 0
    slots = slots_of_hosts(cluster, attempt.booked) if attempt.takes_whole_hosts else slots_of(attempt.booked)
    return expected_end(attempt, run_limit_s, slots)


def slots_of_hosts(cluster: ClusterView, allocation: Allocation) -> int:
    """Slots that an exclusive job takes and releases: all slots of its hosts, but of those removed since."""
    known = (cluster.hosts.get(share.host) for share in allocation)
    return sum([host.facts.slots for host in known if host is not None])


def _still_waits(cluster: ClusterView, one: Reservation) -> bool:
    record = cluster.find_bearer(one.job, one.index)
    if record is None or cluster.pending.key_of(record.shared) != one.key or entry(cluster, record) != one.entry:
        return False
    if isinstance(record, ArrayRecord):
        return one.index in record.pending
    return record.may_start if record.array is None else record.array.may_start(record)
