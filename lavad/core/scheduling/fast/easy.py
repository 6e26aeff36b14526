"""EASY backfilling of slots-only jobs: the fast path of passes with few buckets and at most one reservation.

It applies where no limit, share, pool, window or advance reservation bounds a job, and requests are for slots on any
hosts. A job may start beside the holder of the reservation if it ends before the shadow time, at which the holder can
start, or takes extra slots left over then (Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995). The shadow time
needs a walk over expected ends, but no profile and no walk over hosts. Any other pass is left to ``cycle``, which
decides the same at a higher cost (a property test).

Invariants: jobs come in order of rank; the reservation belongs to the first blocked one.
"""

import heapq
from collections.abc import Iterable

from lavad.core.cluster_view import ClusterView
from lavad.core.model import Allocation, Key, Request
from lavad.core.model.allocation import slots_of
from lavad.core.model.rules.queues import Queue
from lavad.core.model.tuples import new as _new
from lavad.core.plan import Start, Starts
from lavad.core.scheduling.backfill.host_reservations import has_shut_holders
from lavad.core.scheduling.backfill.profile import NEVER
from lavad.core.scheduling.backfill.reservation import Reservation
from lavad.core.scheduling.budget import WORK_OF_A_START
from lavad.core.scheduling.capacity.allowance import Allowance
from lavad.core.scheduling.capacity.slot_list import SlotList, free_slots_of
from lavad.core.scheduling.placement.within_limits import with_at_most
from lavad.core.scheduling.queueing.cursor import JobCursor, blocked_in_order
from lavad.core.scheduling.queueing.ordering import Rank
from lavad.core.scheduling.worklist import Worklist
from lavad.core.state.expected_ends import ExpectedEnd
from lavad.core.state.pending import BucketKey


class ShadowTime:
    """Shadow time ``at``, at which the holder can start, and the extra slots that its start leaves free (``spare``)."""

    __slots__ = ("at", "spare")

    def __init__(self, now: float, free: int, wanted: int, ends: Iterable[ExpectedEnd]) -> None:
        """Compute both from ``ends``, the expected ends in order of time; overdue ones count as the next second."""
        at, soonest = now, now + 1
        for end, slots, _ in ends:
            end = end if end > soonest else soonest
            if (free >= wanted and end > at) or end == NEVER:
                break
            free += slots
            at = end
        self.at = at if free >= wanted else NEVER
        self.spare = free - wanted

    def most(self, end: float, free: int) -> int:
        """Most of the ``free`` slots that a job may have until ``end``."""
        return free if end <= self.at or free < self.spare else self.spare

    def take(self, end: float, slots: int) -> None:
        """Deduct the slots of a job that ends at ``end``."""
        if end > self.at:
            self.spare -= slots


_FEW = 64  # buckets to examine; with more, the fixed cost of a plain slice does not matter
_EasyEntry = tuple[int, float, float, int, BucketKey, int]  # a queue entry, and the number started before its job
_NO_KEY = Key(0, 0, 0)  # of an attempt not created yet
_NO_QUEUE: frozenset[str] = frozenset()


def ranks_of(cluster: ClusterView, allowance: Allowance) -> dict[str, int]:
    """Queue part of ranks by queue, if only free slots and one reservation can refuse a job; else an empty dict."""
    queues = cluster.policy.queues
    if allowance or cluster.shares or cluster.preemption_rules.preemptors:
        return {}
    if not all(map(_is_simple, queues)) or sum(queue.backfill_depth for queue in queues) > 1:
        return {}
    return {queue.name: -queue.served_at for queue in queues if queue.starts_jobs}


def _is_simple(queue: Queue) -> bool:
    return not (queue.in_order or queue.has_windows) and not queue.order.is_scored


def entries_of(cluster: ClusterView, worklist: Worklist) -> list[_EasyEntry] | None:
    """Heap of the first jobs of all buckets to examine; None if the plain path is needed."""
    if not _may_be_short(cluster, worklist):
        return None
    due, blocked = worklist.due_at_once(cluster, _FEW), worklist.blocked
    unblocked = blocked.fitting(cluster.table.slots_open) if worklist.freed_hosts else []
    if due is None or len(due) + len(unblocked) > _FEW:
        return None
    buckets, ranks = cluster.pending.buckets, worklist.easy_ranks or {}
    entries: list[_EasyEntry] = []
    for key in (*due, *unblocked):
        bucket, queue = buckets.get(key), ranks.get(key.queue)
        if bucket is None or queue is None:
            due.discard(key)
            blocked.discard(key)
        elif bucket.arrays or not key.is_slots_only:
            return None
        else:
            entries.append((queue, *bucket.head(), key, 0))
    heapq.heapify(entries)
    return entries


def _may_be_short(cluster: ClusterView, worklist: Worklist) -> bool:
    """True if nothing but slots and one reservation can refuse a job now, and all blocked jobs wait for slots only."""
    if worklist.easy_ranks is None:
        worklist.easy_ranks = ranks_of(cluster, worklist.allowance)
    if not worklist.easy_ranks or worklist.reached or worklist.blocked.others:
        return False
    if worklist.allowance or cluster.resizable or cluster.replacing or cluster.lenders or cluster.claims:
        return False
    if cluster.table.shut and has_shut_holders(cluster.table):  # their slots do not go to the holder of the reservation
        return False
    return all([one.key.is_slots_only for one in worklist.reservation_table.reservations])


class EasyPass:
    """Slice under way: its starts, and the holder of the reservation."""

    def __init__(self, cluster: ClusterView, worklist: Worklist, steps: int, now: float) -> None:
        self._cluster = cluster
        self._worklist = worklist
        self._steps = steps
        self._now = now
        self._free: SlotList | None = None  # set at the first placement
        self._work = 0
        self._slots_open = cluster.table.slots_open
        self._starts: list[Start] = []
        self._ends: list[ExpectedEnd] = []  # of this slice's starts
        self._full = worklist.reservation_table.full
        self._carried = (
            worklist.reservation_table.reservations[0] if worklist.reservation_table.reservations else None
        )  # until its turn
        self._holder: Reservation | None = None  # of the reservation that precedes the present candidate
        self._shadow: ShadowTime | None = None  # of the holder, set on first use
        self._waiting: list[tuple[Rank, JobCursor]] | None = None  # blocked buckets, candidates for the reservation
        self._refused: set[BucketKey] = set()  # deferred in this slice
        self._upset_by: Rank | None = None  # rank of the start or reservation that affects deferred jobs

    def run(self, entries: list[_EasyEntry]) -> Starts:
        """Serve buckets until the work budget of the slice is spent, or none is left."""
        worklist, due = self._worklist, self._worklist.due
        while entries and self._work < self._steps and self._upset_by is None:
            entry = heapq.heappop(entries)
            key = entry[4]
            if key not in due:  # blocked until hosts were freed
                if key.request.slots_min > self._slots_open:
                    continue  # earlier starts have taken the freed slots
                worklist.blocked.discard(key)
                due.add(key)
            self._serve(entry, entries)
        worklist.clear_share_queues()
        self._write_down()
        if self._upset_by is not None:
            worklist.requeue_deferred_behind(self._cluster, self._upset_by, self._refused)
        is_complete = not (entries or worklist.due)
        worklist.end_slice(is_complete)
        return Starts(tuple(self._starts), is_complete, self._work, self._cluster.version)

    def _serve(self, entry: _EasyEntry, entries: list[_EasyEntry]) -> None:
        """Start jobs of one bucket until another goes first, one is refused, or it is empty."""
        key = entry[4]
        bucket = self._cluster.pending.buckets[key]
        while self._start(entry, key):
            at = entry[5] + 1
            if at == len(bucket):
                self._worklist.due.discard(key)
                return
            entry = (entry[0], *bucket.at(at), key, at)
            if (entries and entries[0] < entry) or self._work >= self._steps or self._upset_by is not None:
                heapq.heappush(entries, entry)
                return
        self._worklist.due.discard(key)
        self._worklist.tried.add(key)

    def _start(self, entry: _EasyEntry, key: BucketKey) -> bool:
        """Start the job if it fits without delaying the reservation; else block or defer its bucket."""
        self._work += WORK_OF_A_START
        job, wanted = entry[3], key.request.slots_min
        if self._holder is None and (self._carried is not None or self._full):
            self._find_holder(_new(Rank, entry[:4]))
        if wanted > self._slots_open:
            self._block(entry, key)
            return False
        limit_s = self._cluster.jobs[job].shared.run_limit_s
        end = self._now + limit_s if limit_s else NEVER
        request = key.request if self._holder is None else self._beside(self._holder, key.request, end)
        if request is None:
            self._worklist.reservation_table.deferred.add(key)
            self._refused.add(key)
            return False
        allocation = self._place(request)
        self._note_upset(_new(Rank, entry[:4]))
        self._starts.append(_new(Start, (job, 0, allocation, "in order" if self._holder is None else "backfilled")))
        self._take(end, slots_of(allocation))
        return True

    def _place(self, request: Request) -> Allocation:
        free = self._free
        if free is None:
            free = self._free = free_slots_of(self._cluster.table)
            self._work += free.work
        before = free.work
        role = request.single_role
        assert role is not None, "a request for slots only has one role"
        allocation = free.take(role)
        assert allocation is not None, "open slots are on hosts, and any will do"
        self._work += free.work - before
        return allocation

    def _take(self, end: float, slots: int) -> None:
        self._slots_open -= slots
        if self._shadow is None:
            self._ends.append(ExpectedEnd(end, slots, _NO_KEY))
        else:
            self._shadow.take(end, slots)

    def _block(self, entry: _EasyEntry, key: BucketKey) -> None:
        """Block the job's bucket; the job gets the reservation if none is held before it."""
        rank = _new(Rank, entry[:4])
        self._worklist.blocked.add(key, self._worklist.need_of(key), rank)
        if self._holder is None and self._cluster.policy.by_name[key.queue].backfill_depth:
            self._holder = Reservation(self._cluster, (rank, 0), key, entry[3])
            if self._carried is not None:
                self._note_upset(rank)

    def _note_upset(self, rank: Rank) -> None:
        """Note a start or a new reservation that changes what jobs behind the former holder may use."""
        before, worklist = self._worklist.reservation_table.reservations, self._worklist
        if before and (self._carried is not None or before[0].job == rank.job):
            self._upset_by = rank if not worklist.reservation_table.deferred <= self._refused else None

    # -- the reservation -------------------------------------------------------------------------------------------

    def _find_holder(self, rank: Rank) -> None:
        """Find the reservation that precedes a job of this rank: that of the last pass, else a promoted one."""
        one = self._carried
        if one is not None and one.place <= (rank, 0):
            self._carried = None
            if one.job != rank.job:  # a reservation is void while its own job is the candidate
                self._holder = one
                return
        if self._full:
            self._promote(rank)

    def _promote(self, rank: Rank) -> None:
        """Reserve for the first blocked job, as the former holder has started."""
        if self._waiting is None:
            self._waiting = blocked_in_order(self._worklist.ranking, self._worklist.blocked, self._full)
        while self._waiting and self._waiting[0][0] < rank:
            _, cursor = heapq.heappop(self._waiting)
            if cursor.key in self._worklist.blocked:
                self._holder = Reservation(self._cluster, cursor.place, cursor.key, cursor.job)
                return

    def _beside(self, holder: Reservation, request: Request, end: float) -> Request | None:
        """Request reduced to what does not delay the holder; None if that is below its minimum."""
        most = self._shadow_of(holder).most(end, self._slots_open)
        role = request.single_role
        if role is None or most < request.slots_min:
            return None
        return request if most >= role.tasks_max else with_at_most(request, most)

    def _shadow_of(self, holder: Reservation) -> ShadowTime:
        shadow = self._shadow
        if shadow is None:
            ends: Iterable[ExpectedEnd] = self._worklist.reservation_table.ends_of(self._cluster)
            if self._ends:
                ends = heapq.merge(ends, sorted(self._ends))
            shadow = self._shadow = ShadowTime(self._now, self._slots_open, holder.key.request.slots_min, ends)
            holder.start_at = shadow.at
        return shadow

    def _write_down(self) -> None:
        """Record the holder of the reservation, and whether other blocked jobs wait for one."""
        worklist, holder = self._worklist, self._holder or self._carried
        before, full = worklist.reservation_table.reservations, self._full if len(worklist.blocked) else _NO_QUEUE
        if holder is not None:
            full |= {holder.key.queue}
        if full != self._full or holder is not (before[0] if before else None):
            worklist.reservation_table.write([holder] if holder is not None else [], full)
