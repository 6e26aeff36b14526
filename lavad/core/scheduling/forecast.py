"""When should a waiting job start, how sure is that, and who goes before it? Asked by people, so computed when asked.

The present is copied and played forward: running jobs end at their run limits, and at each end the jobs that go before
this one are placed, within what limits leave them, then this one, as a pass would do. That is the list-scheduling
estimate of Smith, Taylor and Foster ("Using run-time predictions to estimate queue wait times", JSSPP 1999) with run
limits as run times.

Nothing is changed, and the work comes in small pieces: the generator yields between them, so that whoever drives it can
serve others meanwhile.
"""

import heapq
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from lavad.core.allocations import are_slots
from lavad.core.cluster import Cluster
from lavad.core.headroom import Headroom
from lavad.core.indexes.pending import Bucket, BucketKey
from lavad.core.limits import NOBODY, Consumer
from lavad.core.listed import entry
from lavad.core.model import Allocation, JobState, Request
from lavad.core.records import ArrayRecord, Job
from lavad.core.scheduling.capped import Placer
from lavad.core.scheduling.ordering import Rank, Ranking
from lavad.core.scheduling.room import Room
from lavad.core.scheduling.walk import Cursor

NEVER = float("inf")
AHEAD_MAX = 2_000  # jobs before this one that are played; with more of them the estimate is said to be rough
PLACINGS_MAX = 20_000  # tries to place a job: what one answer may cost
ENDS_A_PIECE = 2_000
BUCKETS_A_PIECE = 256


class Sureness(Enum):
    """How far an estimated start can be trusted."""

    FIRM = "it goes first, and everything it waits for has a run limit"
    LIKELY = "no later, unless something more urgent is submitted"
    ROUGH = "jobs behind it may fill the hosts first, or some jobs have no run limit"
    UNKNOWN = "what it waits for has no run limit, or is not about room"


@dataclass(frozen=True, slots=True)
class Forecast:
    """``start_at`` is None when it can't be told. ``ahead`` counts waiting jobs and job arrays that go first."""

    start_at: float | None
    sureness: Sureness
    ahead: int


def forecast(
    cluster: Cluster, ranking: Ranking, record: Job | ArrayRecord, index: int = 0
) -> Generator[None, None, Forecast]:
    """Play the future until the job starts; ``ranking`` says from which moment on, and who goes before whom."""
    is_waiting = cluster.present_state(record.id, index) is JobState.PEND
    key = cluster.pending.key_of(record.shared) if is_waiting else None
    bucket = cluster.pending.buckets.get(key) if key is not None else None
    mine = _place_of(ranking, bucket, record) if bucket is not None else None
    if key is None or mine is None:
        return Forecast(None, Sureness.UNKNOWN, 0)
    ahead = yield from _count_ahead(cluster, ranking, mine)
    jobs = yield from _first_ahead(cluster, ranking, mine)
    future = _Future(cluster, ranking.now)
    yield from future.note_ends(cluster)
    jobs.append(_Waiting(mine, key.request, record.shared.run_limit_s, _consumer(cluster, key)))
    start_at = yield from future.play(jobs)
    queue = cluster.policy.by_name[record.shared.queue]
    is_protected = queue.backfill_depth > ahead or queue.in_order
    return Forecast(start_at, _sureness(future, start_at, ahead, len(jobs) - 1, is_protected), ahead)


def _sureness(future: "_Future", start_at: float | None, ahead: int, played: int, is_protected: bool) -> Sureness:
    if start_at is None:
        return Sureness.UNKNOWN
    if future.has_unlimited or played < ahead:
        return Sureness.ROUGH
    if not is_protected:
        return Sureness.ROUGH
    return Sureness.LIKELY if ahead else Sureness.FIRM


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


@dataclass(frozen=True, slots=True)
class _Waiting:
    """What the game needs to know of a waiting job."""

    rank: Rank
    request: Request
    run_limit_s: int
    consumer: Consumer  # of limits


def _consumer(cluster: Cluster, key: BucketKey) -> Consumer:
    return cluster.limits.consumer(key.kind.user, key.queue, key.kind.project)


def _first_ahead(cluster: Cluster, ranking: Ranking, mine: Rank) -> Generator[None, None, list[_Waiting]]:
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
        cursor = Cursor(ranking, bucket)
        if bucket.key in cluster.pending.buckets and cursor.advance() and cursor.rank < mine:
            cursors.append((cursor.rank, number, cursor))
    return list(islice(_merge(cluster, cursors, mine), AHEAD_MAX))


def _merge(cluster: Cluster, heads: list[tuple[Rank, int, Cursor]], mine: Rank) -> Iterator[_Waiting]:
    heapq.heapify(heads)
    while heads:
        rank, number, cursor = heads[0]
        yield _Waiting(rank, cursor.key.request, cursor.run_limit_s, _consumer(cluster, cursor.key))
        if cursor.advance() and cursor.rank < mine:
            heapq.heapreplace(heads, (cursor.rank, number, cursor))
        else:
            heapq.heappop(heads)


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """What comes back when a job ends."""

    whole_hosts: bool
    shares: Allocation
    consumer: Consumer = NOBODY
    counted: Allocation = ()  # by limits


class _Future:
    """A copy of the hosts, and when what they hold comes back. What limits count meanwhile is not copied: an answer
    that takes several turns may be off by what ends or starts between them."""

    def __init__(self, cluster: Cluster, now: float) -> None:
        self.table = cluster.table.copy()
        self.now = now
        self.has_unlimited = False
        self._limits = cluster.limits
        self._headroom = Headroom(cluster.limits, self.table, now)
        self._ends: list[tuple[float, int, _Held]] = []  # a heap
        self._placings = 0
        self._taken = 0

    def note_ends(self, cluster: Cluster) -> Generator[None, None, None]:
        """When running jobs give back their hosts: at their run limits; what is only being cleared, at once."""
        for number, attempt in enumerate(list(cluster.attempts.values())):
            if number % ENDS_A_PIECE == ENDS_A_PIECE - 1:
                yield
            record = cluster.jobs.get(attempt.key.job)
            run_limit_s = record.shared.run_limit_s if record is not None else 0
            shares = tuple(share for share in attempt.booked if share.host in attempt.unreleased)
            at, held = self.now, _Held(attempt.takes_whole_hosts, shares)
            if not attempt.over:
                began = attempt.started_at or attempt.dispatched_at
                at = max(began + run_limit_s, self.now + 1) if run_limit_s else NEVER
                if record is not None:
                    shared = record.shared
                    consumer = self._limits.consumer(shared.user, shared.queue, shared.project)
                    held = _Held(attempt.takes_whole_hosts, shares, consumer, attempt.booked)
            self._ends.append((at, number, held))
        heapq.heapify(self._ends)

    def play(self, jobs: list[_Waiting]) -> Generator[None, None, float | None]:
        """When the last of these jobs starts; None when that can't be foreseen."""
        last, at = jobs[-1], self.now
        while at < NEVER and self._placings <= PLACINGS_MAX:
            yield
            jobs = self._place_all(jobs, at)
            if not jobs or jobs[-1] is not last:
                return at
            at = self._free_next()
        return None

    def _place_all(self, jobs: list[_Waiting], at: float) -> list[_Waiting]:
        """Start what fits, in order; those that are left. What was asked for in vain is not asked for again."""
        self._headroom.move_to(at)
        room, slots_open = Room(self.table), self.table.slots_open
        placer = Placer(room, self._headroom)
        vain: set[tuple[Request, Consumer]] = set()
        left, started = [], []
        for job in jobs:
            allocation = None
            if (job.request, job.consumer) not in vain and job.request.slots_min <= slots_open:
                self._placings += 1
                if self._headroom.blocking(job.consumer, job.request) is None:
                    allocation = placer.place(job.consumer, job.request)
            if allocation is None:
                vain.add((job.request, job.consumer))
                left.append(job)
            else:
                slots_open -= sum(share.slots for share in allocation)
                started.append((job, allocation))
        for job, allocation in started:
            self._take(job, allocation, at)
        return left

    def _take(self, job: _Waiting, allocation: Allocation, at: float) -> None:
        rows = [self.table.rows[share.host] for share in allocation]
        self.table.take_all(rows, allocation, job.request.exclusive, are_slots(allocation))
        end = at + job.run_limit_s if job.run_limit_s else NEVER
        self.has_unlimited = self.has_unlimited or not job.run_limit_s
        self._taken += 1
        held = _Held(job.request.exclusive, allocation, job.consumer, allocation)
        heapq.heappush(self._ends, (end, -self._taken, held))

    def _free_next(self) -> float:
        """Give back everything that ends next; when that is."""
        at = self._ends[0][0] if self._ends else NEVER
        while at < NEVER and self._ends and self._ends[0][0] <= at:
            _, _, held = heapq.heappop(self._ends)
            self._headroom.take(held.consumer, held.counted, -1)
            for share in held.shares:
                self.table.give_back(self.table.rows[share.host], share, held.whole_hosts)
        return at
