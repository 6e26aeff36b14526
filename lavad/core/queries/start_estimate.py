"""When should a waiting job start, how sure is that, and who goes before it? Asked by people, so computed when asked.

The present is copied and played forward: running jobs end at their run limits, and at each end the jobs that go before
this one are placed, within what limits and advance reservations leave them, then this one, as a pass would do. That is
the list-scheduling estimate of Smith, Taylor and Foster ("Using run-time predictions to estimate queue wait times",
JSSPP 1999) with run limits as run times.

Nothing is changed, and the work comes in small pieces: the generator yields between them, so that whoever drives it can
serve others meanwhile.
"""

import heapq
from bisect import bisect_left
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING

from lavad.core.apply.enqueue import entry
from lavad.core.cluster import Cluster
from lavad.core.model import Allocation, JobState, Request
from lavad.core.scheduling.backfill.simulated_future import PendingRequest, SimulatedFuture, asked_for, ends_of_all
from lavad.core.scheduling.queueing.cursor import JobCursor
from lavad.core.scheduling.queueing.ordering import Rank, Ranking
from lavad.core.state.pending import Bucket, BucketKey
from lavad.core.state.records import ArrayRecord, Attempt, Job

if TYPE_CHECKING:
    from lavad.core.state.limits import Consumer

AHEAD_MAX = 2_000  # jobs before this one that are played; with more of them the estimate is said to be rough
PLACINGS_MAX = 20_000  # tries to place a job: what one answer may cost
ENDS_A_PIECE = 2_000
BUCKETS_A_PIECE = 256


class Confidence(Enum):
    """How far an estimated start can be trusted."""

    WINDOW = "its advance reservation begins then"
    FIRM = "it goes first, and everything it waits for has a run limit"
    LIKELY = "no later, unless something more urgent is submitted"
    ROUGH = "jobs behind it may fill the hosts first, or some jobs have no run limit"
    UNKNOWN = "what it waits for has no run limit, or is not about room"


@dataclass(frozen=True, slots=True)
class StartEstimate:
    """``start_at`` is None when it can't be told. ``ahead`` counts waiting jobs and job arrays that go first.

    ``promised`` are the hosts that jobs behind it leave to it, where it holds a reservation.
    """

    start_at: float | None
    sureness: Confidence
    ahead: int
    promised: Allocation = ()


def forecast(
    cluster: Cluster, ranking: Ranking, record: Job | ArrayRecord, index: int = 0, is_held: bool = False
) -> Generator[None, None, StartEstimate]:
    """Play the future until the job starts; ``ranking`` says from which moment on, and who goes before whom.

    ``is_held``: it would start now, but for a reservation of one that goes before it; so it follows all of them.
    """
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
        return StartEstimate(None, Confidence.UNKNOWN, ahead)  # what its own reservation will have is not played
    jobs = yield from _first_ahead(cluster, ranking, mine)
    ends = yield from _all_ends(cluster, ranking.now)
    future = SimulatedFuture(cluster, ranking.now, ends)
    for claim in cluster.claims.values():
        if claim.is_partial:  # the jobs that saved it up are placed before this one, or let it go in time
            future.free(claim)
    game = _Simulation(future, is_held)
    jobs.append(asked_for(cluster, key, record.id, index))
    allocation = yield from game.play(jobs)
    if allocation is None:
        return StartEstimate(None, Confidence.UNKNOWN, ahead)
    queue = cluster.policy.by_name[record.shared.queue]
    is_protected = queue.backfill_depth > ahead or queue.in_order
    sureness = _sureness(game, ahead, len(jobs) - 1, is_protected)
    is_promised = is_protected and sureness is not Confidence.ROUGH
    return StartEstimate(game.future.at, sureness, ahead, allocation if is_promised else ())


def _forecast_of_window(cluster: Cluster, key: BucketKey, record: Job | ArrayRecord, now: float) -> StartEstimate:
    """A job that waits for its advance reservation starts when that begins, as far as it has the turn then."""
    stretches = cluster.reserved.timeline(cluster, now).stretches
    begin = min((begin for begin, _, name in stretches if name == key.reservation and begin > now), default=None)
    is_listed = record.room() > 0 if isinstance(record, ArrayRecord) else record.may_start
    if begin is None or not is_listed:
        return StartEstimate(None, Confidence.UNKNOWN, 0)
    queues, mine = cluster.policy.by_name, entry(cluster, record)
    ahead = 0
    for bucket in cluster.pending.buckets.values():
        queue = queues.get(bucket.key.queue)
        if queue is not None and bucket.key.reservation == key.reservation:
            lead = queue.priority - queues[key.queue].priority
            entries = range(len(bucket))
            ahead += bisect_left(entries, mine, key=bucket.at) if not lead else len(bucket) * (lead > 0)
    return StartEstimate(begin, Confidence.WINDOW, ahead)


def _all_ends(cluster: Cluster, now: float) -> Generator[None, None, list[tuple[float, Attempt]]]:
    """When all that runs is expected to end, in that order."""
    found = []
    for number, end in enumerate(ends_of_all(cluster, now)):
        if number % ENDS_A_PIECE == ENDS_A_PIECE - 1:
            yield
        found.append(end)
    return sorted(found, key=lambda end: (end[0], end[1].key))


def _sureness(game: "_Simulation", ahead: int, played: int, is_protected: bool) -> Confidence:
    if game.has_unlimited or played < ahead:
        return Confidence.ROUGH
    if not is_protected:
        return Confidence.ROUGH
    return Confidence.LIKELY if ahead else Confidence.FIRM


def _place_of(ranking: Ranking, bucket: Bucket, record: Job | ArrayRecord) -> Rank | None:
    return ranking.of(bucket.key, entry(ranking.cluster, record))


def _count_ahead(cluster: Cluster, ranking: Ranking, mine: Rank) -> Generator[None, None, int]:
    """How many entries of all buckets rank before this one: a binary search in each."""
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


def _first_ahead(cluster: Cluster, ranking: Ranking, mine: Rank) -> Generator[None, None, list[PendingRequest]]:
    """The first jobs and elements that rank before this one, in order.

    Buckets may change while others are served, so nothing but their ranks is kept over a pause. Each bucket gives one
    job at least, so there is no need to look at more of them than jobs are wanted.
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


def _merge(cluster: Cluster, heads: list[tuple[Rank, int, JobCursor]], mine: Rank) -> Iterator[PendingRequest]:
    heapq.heapify(heads)
    while heads:
        _, number, cursor = heads[0]
        if not cursor.key.reservation:  # it takes only what is set apart for it
            yield asked_for(cluster, cursor.key, cursor.job, cursor.index)
        if cursor.advance() and cursor.rank < mine:
            heapq.heapreplace(heads, (cursor.rank, number, cursor))
        else:
            heapq.heappop(heads)


@dataclass(slots=True)
class _Simulation:
    """A future, and what has been tried in it."""

    future: SimulatedFuture
    is_held: bool  # the last job waits for all others
    placings: int = 0
    has_unlimited: bool = False

    def play(self, jobs: list[PendingRequest]) -> Generator[None, None, Allocation | None]:
        """Until the last of these jobs starts: where; None when that can't be foreseen."""
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
        """Start what fits, in order; those that are left, and where the last one starts.

        What was asked for in vain is not asked for again.
        """
        table, placing = self.future.table, self.future.placing()
        slots_open = table.slots_open
        vain: set[tuple[Request, Consumer, str, int]] = set()
        left: list[PendingRequest] = []
        started: list[tuple[PendingRequest, Allocation]] = []
        for job in jobs:
            if left and self.is_held and job is jobs[-1]:
                left.append(job)
                continue
            allocation, alike = None, (job.request, job.consumer, job.queue, job.run_limit_s)
            if alike not in vain and job.request.slots_min <= slots_open:
                self.placings += 1
                allocation = placing.place(job)
            if allocation is None:
                vain.add(alike)
                left.append(job)
            else:
                slots_open -= sum(share.slots for share in allocation)
                started.append((job, allocation))
        for job, allocation in started:
            self.has_unlimited = self.has_unlimited or not job.run_limit_s
            self.future.take(job, allocation)
        return left, started[-1][1] if started else ()
