"""The gate every start passes: blocked jobs get reservations, and others start early only if they delay none of them.

One rule covers all depths: a job may start now if its slots stay free until its run limit in a future in which every
job before it that holds a reservation has its place. With one reservation that is EASY backfilling (Lifka, "The ANL/IBM
SP scheduling system", JSSPP 1995), with all of them conservative backfilling (Mu'alem and Feitelson, IEEE TPDS 12(6),
2001).

Invariants: jobs come in order of rank; reservations are computed in the same order, and only when a job that there is
room for asks to start after them.
"""

import heapq
from collections.abc import Container, Iterator
from enum import Enum
from typing import Protocol

from lavad.core.cluster import Cluster
from lavad.core.indexes.pending import BucketKey
from lavad.core.model import Allocation, Queue, Request
from lavad.core.scheduling.ordering import Rank
from lavad.core.scheduling.placement import place
from lavad.core.scheduling.profile import NEVER, PoolProfile
from lavad.core.scheduling.reservation import Book, Reservation
from lavad.core.scheduling.room import Room


class Refusal(Enum):
    """Why a job can't start now."""

    NO_ROOM = "no room"
    PROMISED = "there is room, but it is promised to jobs that go before it"
    OUT_OF_TURN = "a job ahead of it in its queue has to start first"


class Candidate(Protocol):
    """The job that asks to start."""

    key: BucketKey
    rank: Rank
    job: int
    index: int
    run_limit_s: int


class Gate:
    """Of one slice. ``refusal`` tells why the last job that was refused can't start."""

    def __init__(self, cluster: Cluster, book: Book, room: Room, due: Container[BucketKey], now: float) -> None:
        self.refusal = Refusal.NO_ROOM
        self._cluster = cluster
        self._book = book
        self._room = room
        self._now = now
        self._queues = {queue.name: queue for queue in cluster.policy.queues}
        self._carried = [one for one in book.reservations if one.key not in due]
        self._made: list[Reservation] = []
        self._computed = 0  # so many of them have their place in the profile
        self._depth_left = {name: queue.backfill_depth for name, queue in self._queues.items()}
        self._barred: set[str] = set()  # queues in order whose head is blocked
        self._free = cluster.table.slots_open()
        self._planned: list[tuple[float, int]] = []  # ends and slots of what this slice starts
        self._profile: PoolProfile | None = None

    # -- asking ------------------------------------------------------------------------------------------------------

    def place(self, candidate: Candidate) -> Allocation | None:
        """Where the job starts now; None when it can't, and then it is written down if its queue makes reservations."""
        self._carry(candidate.rank)
        queue = self._queues[candidate.key.queue]
        request = candidate.key.request
        allocation = None
        self.refusal = Refusal.NO_ROOM
        if queue.name in self._barred:
            self.refusal = Refusal.OUT_OF_TURN
        elif request.slots_min <= self._free:
            allocation = self._place(request, candidate.run_limit_s)
        if allocation is None and (queue.backfill_depth or queue.in_order):
            self._reserve(queue, Reservation(candidate.rank, candidate.key, candidate.job, candidate.index))
        return allocation

    def wants_more(self, key: BucketKey) -> bool:
        """Should the next job of a blocked bucket hold a reservation, too?"""
        return self._depth_left[key.queue] > 0

    def close(self) -> None:
        """Write down who holds a reservation."""
        for one in self._carried:
            self._reserve(self._queues[one.key.queue], one)
        exhausted = {name for name, left in self._depth_left.items() if not left and self._queues[name].backfill_depth}
        self._book.write(self._made, frozenset(exhausted | self._barred))

    # -- reservations ------------------------------------------------------------------------------------------------

    def _carry(self, rank: Rank) -> None:
        """Earlier passes' reservations that rank before this job hold against it."""
        at = 0
        for one in self._carried:
            if one.rank >= rank:
                break
            self._reserve(self._queues[one.key.queue], one)
            at += 1
        if at:
            del self._carried[:at]

    def _reserve(self, queue: Queue, one: Reservation) -> None:
        if queue.in_order:
            if queue.name not in self._barred:
                self._barred.add(queue.name)
                self._made.append(one)
        elif self._depth_left[queue.name]:
            self._depth_left[queue.name] -= 1
            self._made.append(one)

    def _place(self, request: Request, run_limit_s: int) -> Allocation | None:
        if not self._made:
            allocation = place(self._room, request)
        else:
            profile = self._future()
            if profile.free_until(self._now + run_limit_s if run_limit_s else NEVER) < request.slots_min:
                self.refusal = Refusal.PROMISED
                return None
            allocation = place(self._room, request)
        if allocation is not None:
            self._take(sum(share.slots for share in allocation), run_limit_s)
        return allocation

    def _take(self, slots: int, run_limit_s: int) -> None:
        self._free -= slots
        duration = run_limit_s or NEVER
        if self._profile is None:
            self._planned.append((self._now + duration, slots))
        else:
            self._profile.take(self._now, duration, slots)

    def _future(self) -> PoolProfile:
        """The profile with every reservation so far in its place."""
        profile = self._profile
        if profile is None:
            profile = self._profile = PoolProfile(self._now, self._free, self._ends())
        for one in self._made[self._computed :]:
            slots, duration = one.key.request.slots_min, one.key.run_limit_s or NEVER
            one.start_at = profile.earliest(slots, duration)
            if one.start_at < NEVER:
                profile.take(one.start_at, duration, slots)
        self._computed = len(self._made)
        return profile

    def _ends(self) -> Iterator[tuple[float, int]]:
        return heapq.merge(self._running(), sorted(self._planned))

    def _running(self) -> Iterator[tuple[float, int]]:
        """What runs gives its slots back at its expected end; what has outrun it, at the next moment."""
        soonest = self._now + 1
        for at, slots, _ in self._book.ends_of(self._cluster).entries:
            if at == NEVER:
                return
            yield (at if at > soonest else soonest), slots
