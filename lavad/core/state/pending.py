"""Pending jobs in buckets: all jobs of one scheduling class are alike to the scheduler until it starts one.

So a pass costs buckets and starts, never jobs. A bucket's entries are jobs or whole arrays in one order: job priority,
then position in the queue. An array is an entry as long as it has elements that may start.
"""

import bisect
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from lavad.core.model import Request, Shared
from lavad.core.model.demand import Demand
from lavad.core.model.host_config import NO_CHECKPOINTS, NO_COMMANDS, NO_COPIES, REVOCABLE
from lavad.core.model.rules.queues import QueueHosts
from lavad.core.state.hosts.job_commands import JobCommands
from lavad.core.state.hosts.revocable import tolerates

_LAST = float("inf")  # after all positions
_NO_ARRAYS: frozenset[int] = frozenset()
_COMPACT_AT = 1024  # dead entries at the front before the list is shortened
_CONFINED_MAX = 100_000  # requests cached with their queue's hosts
_NAME = re.compile(r"[A-Za-z_]\w*")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_NO_NAMES: frozenset[str] = frozenset()
_REVOCABLE = frozenset({REVOCABLE})
_NO_COMMANDS = frozenset({NO_COMMANDS})
_NO_COPIES = frozenset({NO_COPIES})
_NO_CHECKPOINTS = frozenset({NO_CHECKPOINTS})
_ANY_HOST = JobCommands()
_NO_HOSTS: Mapping[str, QueueHosts] = MappingProxyType({})
_PLACES_KEPT = 250_000  # cached by the object of the jobs' shared facts: more than there are buckets


class SchedulingClass(NamedTuple):
    """Scheduling class: attributes in which two pending jobs must be equal to be alike."""

    queue: str
    user: str
    user_group: str
    request: Request
    run_limit_s: int = 0  # 0 unless the expected end of a job matters
    deadline: float = 0.0
    project: str = ""  # empty unless limits depend on it
    job_group: str = ""  # it may get a limit at any time
    application: str = ""  # empty unless limits depend on it


def names_in(request: Request) -> frozenset[str]:
    """All names in the select sections of a request: a job that names an exclusive resource may use its hosts."""
    choices = (request.roles, *(one.roles for one in request.alternatives))
    texts = {role.select for roles in choices for role in roles if role.select}
    return frozenset(name for text in texts for name in _NAME.findall(_QUOTED.sub("", text)))


class BucketKey:
    """Identity of a bucket while it exists. One object each, compared by identity, since the scheduler compares often.

    ``task_size``: slots, memory and GPUs of a job that is one simple task on any host; None for all others.
    ``is_slots_only``: any free slots fit, at any time.
    """

    __slots__ = (
        "_demand",
        "deadline",
        "is_slots_only",
        "kind",
        "number",
        "queue",
        "request",
        "reservation",
        "run_limit_s",
        "task_size",
    )

    def __init__(self, kind: SchedulingClass, number: int) -> None:
        self.kind = kind
        self.queue = kind.queue
        self.request = kind.request
        self.task_size = kind.request.task_size
        self.reservation = kind.request.reservation
        self.run_limit_s = kind.run_limit_s
        self.deadline = kind.deadline
        self._demand: Demand | None = None
        self.is_slots_only = self.request.is_slots_only and not self.reservation and not self.deadline
        self.number = number

    @property
    def demand(self) -> Demand:
        """Demand of one job. Made when a constraint first asks, since most buckets of most clusters are under none."""
        if self._demand is None:
            kind = self.kind
            self._demand = Demand(
                kind.user, kind.queue, kind.project, kind.request, kind.run_limit_s, kind.job_group,
                application=kind.application,
            )  # fmt: skip
        return self._demand

    def __lt__(self, other: "BucketKey") -> bool:
        return self.number < other.number

    def __repr__(self) -> str:
        return repr(self.kind)


class PendingEntry(NamedTuple):
    """Job or array in its bucket; tuples compare in scheduling order.

    ``job`` is the record's number: of an element that waits by itself it tells the array and the index.
    """

    rank: float  # job priority, negated
    position: float
    job: int


class BucketSlot:
    """Slot for the bucket of one scheduling class, which may be empty."""

    __slots__ = ("bucket", "kind")

    def __init__(self, kind: SchedulingClass) -> None:
        self.kind = kind
        self.bucket: Bucket | None = None

    @property
    def key(self) -> BucketKey | None:
        """Key of the bucket; None if the class has no pending jobs."""
        return self.bucket.key if self.bucket is not None else None


class Bucket:
    """Entries in scheduling order. Removing the head is O(1); anything else is a binary search and a move of memory."""

    __slots__ = ("_entries", "_head", "arrays", "key", "place")

    def __init__(self, key: BucketKey, place: BucketSlot) -> None:
        self.key = key
        self.place = place
        self.arrays: set[int] | frozenset[int] = _NO_ARRAYS  # of the entries that are arrays or elements of some
        self._entries: list[PendingEntry] = []
        self._head = 0

    def __len__(self) -> int:
        return len(self._entries) - self._head

    def __iter__(self) -> Iterator[PendingEntry]:
        for at in range(self._head, len(self._entries)):
            yield self._entries[at]

    def of_rank(self, rank: float | None, backwards: bool) -> Iterator[PendingEntry]:
        """Entries of one rank (None: all), forwards or backwards."""
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
        """The entry with that number; None beyond the last."""
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

    def move(self, old: PendingEntry, new: PendingEntry) -> None:
        """Replace an entry by one of another rank; the cost is that of the entries between their places."""
        entries = self._entries
        at = bisect.bisect_left(entries, old, lo=self._head)
        to = bisect.bisect_left(entries, new, lo=self._head)
        if to > at:
            entries[at : to - 1] = entries[at + 1 : to]
            to -= 1
        else:
            entries[to + 1 : at + 1] = entries[to:at]
        entries[to] = new

    def remove_head(self, job: int) -> int | None:
        """Remove the first entry if it is this job and no array, and return the number left; else return None."""
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
    """All buckets, and those that the next pass must examine."""

    def __init__(
        self,
        timed_queues: frozenset[str] = frozenset(),
        eager_queues: frozenset[str] = frozenset(),
        by_project: bool = False,
        queue_hosts: Mapping[str, QueueHosts] = _NO_HOSTS,
        exclusive: frozenset[str] = frozenset(),
        job_commands: JobCommands = _ANY_HOST,
        by_application: bool = False,
    ) -> None:
        self.buckets: dict[BucketKey, Bucket] = {}
        self.changed_buckets: set[BucketKey] = set()  # changed since the last pass
        self.shrunk_buckets: set[BucketKey] = set()  # lost entries since then: reservations may be outdated
        self._timed_queues = timed_queues
        self._by_project = by_project
        self._by_application = by_application
        self._eager_queues = eager_queues  # queues in which a job at any position may matter to others
        self._queue_hosts = queue_hosts  # of queues that may not use all hosts, or prefer some
        self.exclusive = exclusive  # host resources that are only for jobs that name them
        self._job_commands = job_commands
        self._confined: dict[tuple[str, Request, frozenset[str]], Request] = {}
        self._places: dict[SchedulingClass, BucketSlot] = {}
        self._by_id: dict[int, BucketSlot] = {}  # the same, by the id of the jobs' shared facts
        self._known: list[Shared] = []  # the objects of these ids: kept alive so that no other object gets their ids
        self._made = 0

    def is_like(self, other: "PendingIndex") -> bool:
        """True if both put the same jobs into the same buckets."""
        return self._rules == other._rules

    @property
    def _rules(self) -> tuple[object, ...]:
        confined = (self._queue_hosts, self.exclusive, self._job_commands)
        by = (self._by_project, self._by_application)
        return self._timed_queues, self._eager_queues, by, *confined

    def request_of(self, shared: Shared) -> Request:
        """The request to place for such a job: its own, confined to the hosts that its present queue allows, and
        without those with exclusive resources that it does not name.

        The result is cached for each queue and request.
        """
        hosts = self._queue_hosts.get(shared.queue)
        if hosts is None and not self.exclusive:
            return shared.request
        borne = self._borne(shared)
        found = self._confined.get((shared.queue, shared.request, borne))
        if found is None:
            if len(self._confined) >= _CONFINED_MAX:
                self._confined.clear()
            found = replace(shared.request, queue_hosts=hosts, avoids=self.exclusive - names_in(shared.request) - borne)
            self._confined[shared.queue, shared.request, borne] = found
        return found

    def _borne(self, shared: Shared) -> frozenset[str]:
        """Exclusive resources of hosts that such a job may use without naming them."""
        borne = _NO_NAMES
        if REVOCABLE in self.exclusive and tolerates(shared):
            borne |= _REVOCABLE
        if NO_COMMANDS in self.exclusive and not self._job_commands.includes(shared):
            borne |= _NO_COMMANDS
        if NO_COPIES in self.exclusive and not shared.special.has_copies:
            borne |= _NO_COPIES
        if NO_CHECKPOINTS in self.exclusive and not shared.special.checkpointable:
            borne |= _NO_CHECKPOINTS
        return borne

    def kind_of(self, shared: Shared) -> SchedulingClass:
        """Scheduling class of jobs with these shared facts."""
        deadline = shared.terminate_at
        run_limit_s = shared.run_limit_s if deadline or shared.queue in self._timed_queues else 0
        project = shared.project if self._by_project else ""
        request = self.request_of(shared)
        application = shared.application if self._by_application else ""
        return SchedulingClass(
            shared.queue, shared.user, shared.user_group, request, run_limit_s, deadline, project, shared.job_group,
            application,
        )  # fmt: skip

    def key_of(self, shared: Shared) -> BucketKey | None:
        """Key of the bucket of jobs with these shared facts; None if none of them is pending."""
        place = self._by_id.get(id(shared)) or self._places.get(self.kind_of(shared))
        return place.key if place is not None else None

    def _place_of(self, shared: Shared) -> BucketSlot:
        """Bucket slot of jobs with these shared facts."""
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
        """Add a job or array that may start."""
        place = self._place_of(shared)
        bucket = place.bucket
        if bucket is None:
            self._made += 1
            key = BucketKey(place.kind, self._made)
            bucket = place.bucket = self.buckets[key] = Bucket(key, place)
            bucket.add(entry, is_array)
            self.changed_buckets.add(key)
            return
        was_head = bucket.head()
        bucket.add(entry, is_array)
        if is_array:  # it may have been there already, with fewer elements
            self.shrunk_buckets.add(bucket.key)
        # Behind a head that waits for resources nothing new can start, unless the entry is to get a reservation.
        if bucket.head() != was_head or shared.queue in self._eager_queues:
            self.changed_buckets.add(bucket.key)

    def remove(self, shared: Shared, entry: PendingEntry) -> None:
        """Remove a job or array that may not start any more."""
        bucket = self._place_of(shared).bucket
        if bucket is not None:
            if len(bucket) > 1 and bucket.head() == entry:  # the bucket takes the rank of its next entry
                self.changed_buckets.add(bucket.key)
            bucket.remove(entry)
            self.shrunk_buckets.add(bucket.key)
            if not len(bucket):
                self._drop(bucket)

    def move(self, shared: Shared, old: PendingEntry, new: PendingEntry) -> None:
        """Give a job or array in its bucket another rank."""
        bucket = self._place_of(shared).bucket
        assert bucket is not None, f"job {old.job} is in no bucket"
        was_head = bucket.head()
        bucket.move(old, new)
        self.shrunk_buckets.add(bucket.key)
        if bucket.head() != was_head or shared.queue in self._eager_queues:
            self.changed_buckets.add(bucket.key)

    def remove_head(self, shared: Shared, job: int, is_planned: bool) -> bool:
        """Remove a job if it is the head of its bucket; else return False and do nothing.

        ``is_planned``: the scheduler knows of it, and has examined the next entry.
        """
        place = self._by_id.get(id(shared)) or self._place_of(shared)
        bucket = place.bucket
        left = bucket.remove_head(job) if bucket is not None else None
        if bucket is None or left is None:
            return False
        self.shrunk_buckets.add(bucket.key)
        if not left:
            self._drop(bucket)
        elif not is_planned:
            self.changed_buckets.add(bucket.key)
        return True

    def _drop(self, bucket: Bucket) -> None:
        bucket.place.bucket = None
        del self.buckets[bucket.key]
        self.changed_buckets.discard(bucket.key)

    def freshen(self, queue: str) -> None:
        """Mark all buckets of a queue that has changed for the next pass."""
        self.changed_buckets |= {key for key in self.buckets if key.queue == queue}

    def __len__(self) -> int:
        return sum(map(len, self.buckets.values()))
