"""Start-time estimate of a pending job, with its confidence and the number of jobs ahead; computed on request.

A copy of the present state is simulated: running jobs end at their run limits, and at each end the jobs ahead of this
one are placed, within what limits and advance reservations leave them, then this one, as a pass would do. That is the
list-scheduling estimate of Smith, Taylor and Foster ("Using run-time predictions to estimate queue wait times", JSSPP
1999) with run limits as run times.

The cluster is not changed, and the work is divided: the generator yields between pieces, so that its caller can serve
other requests meanwhile.
"""

import heapq
from bisect import bisect_left
from collections.abc import Generator, Hashable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice, takewhile

from lavad.core.apply.enqueue import entry, is_listed
from lavad.core.cluster_view import ClusterView
from lavad.core.model import Allocation, JobState
from lavad.core.scheduling.backfill.simulated_future import (
    PendingRequest,
    SimulatedFuture,
    asked_for,
    by_report,
    ends_of_all,
)
from lavad.core.scheduling.queueing.cursor import JobCursor
from lavad.core.scheduling.queueing.ordering import Rank, Ranking
from lavad.core.state.attempts import Attempt
from lavad.core.state.pending import Bucket, BucketKey
from lavad.core.state.records import ArrayRecord, Job

AHEAD_MAX = 2_000  # jobs ahead that are simulated; with more of them the estimate is rough
PLACINGS_MAX = 20_000  # placements tried for one answer
ENDS_A_PIECE = 2_000
BUCKETS_A_PIECE = 256


class Confidence(Enum):
    """Confidence of an estimated start."""

    REPORTED = "running jobs report that they end by then; their run limits are later"
    WINDOW = "its advance reservation begins then"
    FIRM = "it goes first, and everything it waits for has a run limit"
    LIKELY = "no later, unless something more urgent is submitted"
    ROUGH = "jobs behind it may fill the hosts first, or some jobs have no run limit"
    UNKNOWN = "what it waits for has no run limit, or is not about room"


@dataclass(frozen=True, slots=True)
class StartEstimate:
    """Estimated start of a job; ``start_at`` is None if it cannot be predicted.

    ``ahead`` counts pending jobs and job arrays that go first. ``promised`` is the allocation reserved for it, if it
    holds a reservation.
    """

    start_at: float | None
    confidence: Confidence
    ahead: int
    promised: Allocation = ()


def forecast(
    cluster: ClusterView, ranking: Ranking, record: Job | ArrayRecord, index: int = 0, is_held: bool = False
) -> Generator[None, None, StartEstimate]:
    """Simulate until the job starts; ``ranking`` gives the present time and the scheduling order.

    ``is_held``: it fits now but would delay a reservation ahead of it, so it is placed after all jobs ahead.
    """
    record = cluster.bearer(record.id, index)
    is_waiting = cluster.present_state(record.id, index) is JobState.PEND
    key = cluster.pending.key_of(record.shared) if is_waiting else None
    if key is not None and key.reservation and not cluster.reserved.holds(cluster, key.reservation, ranking.now):
        return _forecast_of_window(cluster, key, record, ranking.now)
    bucket = cluster.pending.buckets.get(key) if key is not None else None
    mine = _place_of(ranking, bucket, record) if bucket is not None else None
    if key is None or mine is None:
        return StartEstimate(None, Confidence.UNKNOWN, 0)
    ahead = yield from _count_ahead(cluster, ranking, mine)
    if key.reservation:
        return StartEstimate(None, Confidence.UNKNOWN, ahead)  # the future of an advance reservation is not simulated
    jobs = yield from _first_ahead(cluster, ranking, mine)
    ends = yield from _all_ends(cluster, ranking.now)
    future = SimulatedFuture(cluster, ranking.now, ends)
    for claim in cluster.claims.values():
        if claim.is_partial:  # the jobs that gathered it are placed before this one, or release it in time
            future.free(claim)
    is_limited = future.allowance.why(key.demand) is not None  # now: then the scheduler reserves nothing for it
    game = _Simulation(future, is_held)
    jobs.append(asked_for(cluster, key, record.id, index))
    allocation = yield from game.play(jobs)
    if allocation is None:
        return StartEstimate(None, Confidence.UNKNOWN, ahead)
    queue = cluster.policy.by_name[record.shared.queue]
    is_protected = (queue.backfill_depth > ahead or queue.in_order) and not is_limited
    confidence = _confidence(game, ahead, len(jobs) - 1, is_protected)
    if _rests_on_reports(ends, game.future.at, ranking.now):
        return StartEstimate(game.future.at, Confidence.REPORTED, ahead)
    is_promised = is_protected and confidence is not Confidence.ROUGH
    return StartEstimate(game.future.at, confidence, ahead, allocation if is_promised else ())


def _forecast_of_window(cluster: ClusterView, key: BucketKey, record: Job | ArrayRecord, now: float) -> StartEstimate:
    """Estimate for a job in an advance reservation: the next start of that."""
    stretches = cluster.reserved.timeline(cluster, now).stretches
    begin = min((begin for begin, _, name in stretches if name == key.reservation and begin > now), default=None)
    if begin is None or not is_listed(record):
        return StartEstimate(None, Confidence.UNKNOWN, 0)
    queues, mine = cluster.policy.by_name, entry(cluster, record)
    ahead = 0
    for bucket in cluster.pending.buckets.values():
        queue = queues.get(bucket.key.queue)
        if queue is not None and bucket.key.reservation == key.reservation:
            lead = queue.served_at - queues[key.queue].served_at
            entries = range(len(bucket))
            ahead += bisect_left(entries, mine, key=bucket.at) if not lead else len(bucket) * (lead > 0)
    return StartEstimate(begin, Confidence.WINDOW, ahead)


def _all_ends(cluster: ClusterView, now: float) -> Generator[None, None, list[tuple[float, Attempt]]]:
    """Expected ends of all attempts, in order of time."""
    found = []
    for number, end in enumerate(ends_of_all(cluster, now, by_progress=True)):
        if number % ENDS_A_PIECE == ENDS_A_PIECE - 1:
            yield
        found.append(end)
    return sorted(found, key=lambda end: (end[0], end[1].key))


def _rests_on_reports(ends: list[tuple[float, Attempt]], at: float, now: float) -> bool:
    """True if a job is expected to end before that time only because it says so."""
    return any(by_report(attempt, now) == end for end, attempt in takewhile(lambda one: one[0] <= at, ends))


def _confidence(game: "_Simulation", ahead: int, played: int, is_protected: bool) -> Confidence:
    if game.has_unlimited or played < ahead:
        return Confidence.ROUGH
    if not is_protected:
        return Confidence.ROUGH
    return Confidence.LIKELY if ahead else Confidence.FIRM


def _place_of(ranking: Ranking, bucket: Bucket, record: Job | ArrayRecord) -> Rank | None:
    return ranking.of(bucket.key, entry(ranking.cluster, record))


def _count_ahead(cluster: ClusterView, ranking: Ranking, mine: Rank) -> Generator[None, None, int]:
    """Number of entries of all buckets that rank before this one: a binary search in each."""
    count = 0
    for number, bucket in enumerate(list(cluster.pending.buckets.values())):
        if number % BUCKETS_A_PIECE == BUCKETS_A_PIECE - 1:
            yield
        if bucket.key in cluster.pending.buckets:
            count += _ahead_in(ranking, bucket, mine)
    return count


def _ahead_in(ranking: Ranking, bucket: Bucket, mine: Rank) -> int:
    low, high = 0, len(bucket)
    while low < high:
        middle = (low + high) // 2
        rank = ranking.of(bucket.key, bucket.at(middle))
        if rank is not None and rank < mine:
            low = middle + 1
        else:
            high = middle
    return low


def _first_ahead(cluster: ClusterView, ranking: Ranking, mine: Rank) -> Generator[None, None, list[PendingRequest]]:
    """First jobs and elements that rank before this one, in order.

    Buckets may change between pieces, so only their ranks are kept over a pause. Each bucket yields at least one job,
    so no more buckets than jobs are examined.
    """
    heads: list[tuple[Rank, int, Bucket]] = []
    for number, bucket in enumerate(list(cluster.pending.buckets.values())):
        if number % BUCKETS_A_PIECE == BUCKETS_A_PIECE - 1:
            yield
        if bucket.key in cluster.pending.buckets:
            rank = ranking.of(bucket.key, bucket.head())
            if rank is not None and rank < mine:
                heads.append((rank, number, bucket))
    cursors = []
    for _, number, bucket in heapq.nsmallest(AHEAD_MAX, heads):
        cursor = JobCursor(ranking, bucket)
        if bucket.key in cluster.pending.buckets and cursor.advance() and cursor.rank < mine:
            cursors.append((cursor.rank, number, cursor))
    return list(islice(_merge(cluster, cursors, mine), AHEAD_MAX))


def _merge(cluster: ClusterView, heads: list[tuple[Rank, int, JobCursor]], mine: Rank) -> Iterator[PendingRequest]:
    heapq.heapify(heads)
    while heads:
        _, number, cursor = heads[0]
        if not cursor.key.reservation:  # else it takes only reserved slots
            yield asked_for(cluster, cursor.key, cursor.job, cursor.index)
        if cursor.advance() and cursor.rank < mine:
            heapq.heapreplace(heads, (cursor.rank, number, cursor))
        else:
            heapq.heappop(heads)


@dataclass(slots=True)
class _Simulation:
    """Simulated future, with the cost so far."""

    future: SimulatedFuture
    is_held: bool  # the last job starts after all others
    placings: int = 0
    has_unlimited: bool = False

    def play(self, jobs: list[PendingRequest]) -> Generator[None, None, Allocation | None]:
        """Simulate until the last of these jobs starts; return its allocation, or None if that cannot be predicted."""
        last = jobs[-1]
        while self.placings <= PLACINGS_MAX:
            yield
            jobs, allocation = self._place_all(jobs)
            if not jobs or jobs[-1] is not last:
                return allocation
            if not self.future.advance():
                return None
        return None

    def _place_all(self, jobs: list[PendingRequest]) -> tuple[list[PendingRequest], Allocation]:
        """Start the jobs that fit, in order; return the others, and the allocation of the last start.

        A request equal to one that failed is not tried again.
        """
        table, placing = self.future.table, self.future.placing()
        slots_open = table.slots_open
        tried: set[Hashable] = set()
        left: list[PendingRequest] = []
        started: list[tuple[PendingRequest, Allocation]] = []
        for job in jobs:
            if left and self.is_held and job is jobs[-1]:
                left.append(job)
                continue
            allocation, alike = None, self.future.allowance.kind_of(job.demand)
            if alike not in tried and job.demand.request.slots_min <= slots_open:
                self.placings += 1
                allocation = placing.place(job)
            if allocation is None:
                tried.add(alike)
                left.append(job)
            else:
                slots_open -= sum(share.slots for share in allocation)
                started.append((job, allocation))
        for job, allocation in started:
            self.has_unlimited = self.has_unlimited or not job.demand.run_limit_s
            self.future.take(job, allocation)
        return left, started[-1][1] if started else ()
