"""Waiting jobs in buckets: all jobs of one user, queue and request are alike to the scheduler until it starts one.

So a pass costs buckets and starts, never jobs. A bucket's entries are jobs or whole arrays in one order: job priority,
then place in the queue. An array stands there as long as it has elements that may start.
"""

import bisect
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from lavad.core.model import Request, Shared
from lavad.core.model.policy import QueueHosts

_LAST = float("inf")  # after all positions
_NO_ARRAYS: frozenset[int] = frozenset()
_COMPACT_AT = 1024  # dead entries at the front before the list is shortened
_CONFINED_MAX = 100_000  # requests kept with their queue's hosts
_NAME = re.compile(r"[A-Za-z_]\w*")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_NO_HOSTS: Mapping[str, QueueHosts] = MappingProxyType({})
_PLACES_KEPT = 250_000  # found without another look at what jobs were submitted with: more than there are buckets


class SchedulingClass(NamedTuple):
    """What makes two waiting jobs alike."""

    queue: str
    user: str
    user_group: str
    request: Request
    run_limit_s: int = 0  # only where it matters when a job will have ended
    deadline: float = 0.0
    project: str = ""  # only where limits tell projects apart


def names_in(request: Request) -> frozenset[str]:
    """Every name in the select of any role, asked for or not: who names a resource knows of it."""
    choices = (request.roles, *(one.roles for one in request.alternatives))
    texts = {role.select for roles in choices for role in roles if role.select}
    return frozenset(name for text in texts for name in _NAME.findall(_QUOTED.sub("", text)))


class BucketKey:
    """Names a bucket for as long as it lives. One object each, compared by identity: the scheduler asks that often.

    ``chunk``: slots, memory and GPUs of a job that is one simple task and may run on any host; None of all others.
    ``is_plain``: any free slots will do, at any time.
    """

    __slots__ = ("chunk", "deadline", "is_plain", "kind", "number", "queue", "request", "reservation", "run_limit_s")

    def __init__(self, kind: SchedulingClass, number: int) -> None:
        self.kind = kind
        self.queue = kind.queue
        self.request = kind.request
        self.chunk = kind.request.chunk
        self.reservation = kind.request.reservation
        self.run_limit_s = kind.run_limit_s
        self.deadline = kind.deadline
        self.is_plain = self.request.is_plain and not self.reservation and not self.deadline
        self.number = number

    def __lt__(self, other: "BucketKey") -> bool:
        return self.number < other.number

    def __repr__(self) -> str:
        return repr(self.kind)


class PendingEntry(NamedTuple):
    """A job or array in its bucket; tuples compare in scheduling order."""

    rank: float  # job priority, negated
    position: float
    job: int


class BucketSlot:
    """Where jobs of one kind wait: their bucket, as long as any of them does."""

    __slots__ = ("bucket", "kind")

    def __init__(self, kind: SchedulingClass) -> None:
        self.kind = kind
        self.bucket: Bucket | None = None

    @property
    def key(self) -> BucketKey | None:
        """Of the bucket; None where nobody waits."""
        return self.bucket.key if self.bucket is not None else None


class Bucket:
    """Entries in scheduling order. Taking the head is O(1); anything else is a binary search and a move of memory."""

    __slots__ = ("_entries", "_head", "arrays", "key", "place")

    def __init__(self, key: BucketKey, place: BucketSlot) -> None:
        self.key = key
        self.place = place
        self.arrays: set[int] | frozenset[int] = _NO_ARRAYS  # those of its jobs that are arrays
        self._entries: list[PendingEntry] = []
        self._head = 0

    def __len__(self) -> int:
        return len(self._entries) - self._head

    def __iter__(self) -> Iterator[PendingEntry]:
        for at in range(self._head, len(self._entries)):
            yield self._entries[at]

    def of_rank(self, rank: float | None, backwards: bool) -> Iterator[PendingEntry]:
        """Its entries of one rank (None: all of them) from the first, or from the last to the first."""
        low, high = self._head, len(self._entries)
        if rank is not None:
            low = bisect.bisect_left(self._entries, (rank,), lo=low)
            high = bisect.bisect_left(self._entries, (rank, _LAST), lo=low)
        for at in range(high - 1, low - 1, -1) if backwards else range(low, high):
            yield self._entries[at]

    def head(self) -> PendingEntry:
        """The first entry."""
        return self._entries[self._head]

    def at(self, number: int) -> PendingEntry:
        """The entry with that number, from 0, in scheduling order."""
        return self._entries[self._head + number]

    def get(self, number: int) -> PendingEntry | None:
        """The entry with that number; None behind the last."""
        at = self._head + number
        return self._entries[at] if at < len(self._entries) else None

    def add(self, entry: PendingEntry, is_array: bool) -> None:
        if is_array:
            self.arrays = {*self.arrays, entry.job} if isinstance(self.arrays, frozenset) else self.arrays
            self.arrays.add(entry.job)
        if not self._entries or entry > self._entries[-1]:
            self._entries.append(entry)
            return
        at = bisect.bisect_left(self._entries, entry, lo=self._head)
        if at == len(self._entries) or self._entries[at] != entry:
            self._entries.insert(at, entry)

    def remove(self, entry: PendingEntry) -> None:
        if entry.job in self.arrays and isinstance(self.arrays, set):
            self.arrays.discard(entry.job)
        if self._head < len(self._entries) and self._entries[self._head] == entry:
            self._head += 1
            if self._head >= _COMPACT_AT:
                self._compact()
            return
        at = bisect.bisect_left(self._entries, entry, lo=self._head)
        if at < len(self._entries) and self._entries[at] == entry:
            del self._entries[at]

    def remove_head(self, job: int) -> int | None:
        """Remove the first entry, if it is this job and no array; how many are left then. Else nothing, and None."""
        entries, head = self._entries, self._head
        if self.arrays or entries[head].job != job:
            return None
        self._head = head = head + 1
        left = len(entries) - head
        if head >= _COMPACT_AT:
            self._compact()
        return left

    def _compact(self) -> None:
        if self._head * 2 >= len(self._entries):
            del self._entries[: self._head]
            self._head = 0


class PendingIndex:
    """All buckets, and which of them the next pass must look at."""

    def __init__(
        self,
        timed_queues: frozenset[str] = frozenset(),
        eager_queues: frozenset[str] = frozenset(),
        by_project: bool = False,
        queue_hosts: Mapping[str, QueueHosts] = _NO_HOSTS,
        exclusive: frozenset[str] = frozenset(),
    ) -> None:
        self.buckets: dict[BucketKey, Bucket] = {}
        self.fresh: set[BucketKey] = set()  # changed since the last pass: must be looked at
        self.left: set[BucketKey] = set()  # lost jobs or elements since the last pass: reservations may have no holder
        self._timed_queues = timed_queues
        self._by_project = by_project
        self._eager_queues = eager_queues  # where a job matters to others as soon as it waits, wherever it stands
        self._queue_hosts = queue_hosts  # of the queues that may not use all hosts, or prefer some
        self._exclusive = exclusive  # resources of hosts that are for jobs that name them alone
        self._confined: dict[tuple[str, Request], Request] = {}
        self._places: dict[SchedulingClass, BucketSlot] = {}
        self._by_id: dict[
            int, BucketSlot
        ] = {}  # the same by the one object that stands for what jobs were submitted with
        self._known: list[Shared] = []  # those objects: as long as they live nothing else has their numbers
        self._made = 0

    def is_like(self, other: "PendingIndex") -> bool:
        """Would both put the same jobs into the same buckets?"""
        return self._rules == other._rules

    @property
    def _rules(self) -> tuple[object, ...]:
        return self._timed_queues, self._eager_queues, self._by_project, self._queue_hosts, self._exclusive

    def request_of(self, shared: Shared) -> Request:
        """What is to be placed for such a job: its own request, kept to hosts that the rules leave to it.

        They are those of the queue that it is in now, without those that are exclusive for something else.
        """
        hosts = self._queue_hosts.get(shared.queue)
        if hosts is None and not self._exclusive:
            return shared.request
        found = self._confined.get((shared.queue, shared.request))
        if found is None:
            if len(self._confined) >= _CONFINED_MAX:
                self._confined.clear()
            found = replace(shared.request, queue_hosts=hosts, avoids=self._exclusive - names_in(shared.request))
            self._confined[shared.queue, shared.request] = found
        return found

    def kind_of(self, shared: Shared) -> SchedulingClass:
        """All jobs submitted like this one are alike."""
        deadline = shared.terminate_at
        run_limit_s = shared.run_limit_s if deadline or shared.queue in self._timed_queues else 0
        project = shared.project if self._by_project else ""
        request = self.request_of(shared)
        return SchedulingClass(shared.queue, shared.user, shared.user_group, request, run_limit_s, deadline, project)

    def key_of(self, shared: Shared) -> BucketKey | None:
        """The bucket of all jobs submitted like this one, or None when none of them waits."""
        place = self._by_id.get(id(shared)) or self._places.get(self.kind_of(shared))
        return place.key if place is not None else None

    def _place_of(self, shared: Shared) -> BucketSlot:
        """Where jobs submitted like this one wait."""
        place = self._by_id.get(id(shared))
        if place is None:
            if len(self._known) >= _PLACES_KEPT:
                self._forget_empty()
            kind = self.kind_of(shared)
            place = self._by_id[id(shared)] = self._places.setdefault(kind, BucketSlot(kind))
            self._known.append(shared)
        return place

    def _forget_empty(self) -> None:
        self._by_id.clear()
        self._known.clear()
        self._places = {kind: place for kind, place in self._places.items() if place.bucket is not None}

    def add(self, shared: Shared, entry: PendingEntry, is_array: bool) -> None:
        """A job or array may start from now on."""
        place = self._place_of(shared)
        bucket = place.bucket
        if bucket is None:
            self._made += 1
            key = BucketKey(place.kind, self._made)
            bucket = place.bucket = self.buckets[key] = Bucket(key, place)
            bucket.add(entry, is_array)
            self.fresh.add(key)
            return
        was_head = bucket.head()
        bucket.add(entry, is_array)
        if is_array:  # it may have stood there before, with more elements
            self.left.add(bucket.key)
        # Behind a head that waits for room there is nothing new to look at, unless it is to hold a reservation.
        if bucket.head() != was_head or shared.queue in self._eager_queues:
            self.fresh.add(bucket.key)

    def remove(self, shared: Shared, entry: PendingEntry) -> None:
        """A job or array may no longer start."""
        bucket = self._place_of(shared).bucket
        if bucket is not None:
            if len(bucket) > 1 and bucket.head() == entry:  # the bucket stands where its next job does from now on
                self.fresh.add(bucket.key)
            bucket.remove(entry)
            self.left.add(bucket.key)
            if not len(bucket):
                self._drop(bucket)

    def remove_head(self, shared: Shared, job: int, is_planned: bool) -> bool:
        """A job may no longer start; False, and nothing is done, if it does not stand first where it waits.

        ``is_planned``: the scheduler knows, and has looked at the next one.
        """
        bucket = self._place_of(shared).bucket
        left = bucket.remove_head(job) if bucket is not None else None
        if bucket is None or left is None:
            return False
        self.left.add(bucket.key)
        if not left:
            self._drop(bucket)
        elif not is_planned:
            self.fresh.add(bucket.key)
        return True

    def _drop(self, bucket: Bucket) -> None:
        bucket.place.bucket = None
        del self.buckets[bucket.key]
        self.fresh.discard(bucket.key)

    def freshen(self, queue: str) -> None:
        """Something about this queue has changed: the next pass must look at all that waits in it."""
        self.fresh |= {key for key in self.buckets if key.queue == queue}

    def __len__(self) -> int:
        return sum(map(len, self.buckets.values()))
