"""Admission of candidates: blocked jobs get reservations, and a later job is backfilled only if it delays none of them.

One rule covers all depths: a job may start now if its slots stay free until its run limit in a future in which every
job before it that holds a reservation has its place. Reservations on certain hosts, or of more than slots, are kept in
``host_reservations``. With one reservation that is EASY backfilling (Lifka, "The ANL/IBM SP scheduling system", JSSPP
1995), with all of them conservative backfilling (Mu'alem and Feitelson, IEEE TPDS 12(6), 2001).

Invariants: candidates come in order of rank; reservations are computed in the same order, and only when a job that fits
into the free resources asks to start after them.
"""

import heapq
from collections import Counter as Counted
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

from lavad.core.model import Allocation, Request, RoleRequest
from lavad.core.model.allocation import slots_of
from lavad.core.model.demand import Demand
from lavad.core.model.rules.queues import Queue
from lavad.core.plan import Start
from lavad.core.scheduling.backfill.host_reservations import (
    RESERVATIONS_MAX,
    HostReservation,
    ReservationFinder,
    has_shut_holders,
    is_anywhere,
    shuts_others_out,
)
from lavad.core.scheduling.backfill.profile import NEVER, PoolProfile, come_back
from lavad.core.scheduling.backfill.reservation import Reservation
from lavad.core.scheduling.backfill.reservations import ReservationTable, slots_of_hosts
from lavad.core.scheduling.budget import WORK_SPARED
from lavad.core.scheduling.capacity.allowance import NO_CONSTRAINTS, Allowance
from lavad.core.scheduling.capacity.backfill_window import BackfillWindow
from lavad.core.scheduling.capacity.constraint import Obstacle, Refusal
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.placement.place import host_of_one, is_one_task, place
from lavad.core.scheduling.placement.within_limits import LimitedPlacer, has_place, with_at_most
from lavad.core.scheduling.queueing.blocked import BlockedBuckets
from lavad.core.scheduling.queueing.cursor import JobCursor, blocked_in_order
from lavad.core.scheduling.queueing.ordering import Rank, Ranking
from lavad.core.state.pending import BucketKey

if TYPE_CHECKING:
    from lavad.core.state.limits import Counter

_FIRST = float("-inf")
_NEVER_RESERVED_FOR = frozenset({Refusal.LIMITED_THERE, Refusal.FORBIDDEN})
_LAST = (Rank(2**62, 0, 0.0, 0), 0)


class BackfillGate:
    """Gate of one slice. ``refusal`` is the reason of the last refusal; ``slots_open`` counts the free slots left.

    ``limited`` lists the buckets whose reservation a constraint forbids now, each with that obstacle.
    """

    def __init__(
        self,
        ranking: Ranking,
        reservation_table: ReservationTable,
        blocked: BlockedBuckets,
        room: FreeResources,
        allowance: Allowance = NO_CONSTRAINTS,
        starts: Sequence[Start] = (),
    ) -> None:
        """Take ``starts``, the starts of the slice so far, by reference: the caller appends to it."""
        self.refusal = Refusal.NO_ROOM
        self.counter: Counter | None = None  # the limit that refused the last job
        self.limited: list[tuple[BucketKey, Obstacle]] = []
        self.is_paused = False  # the last candidate has to ask again in the next slice
        self.is_upset = False  # reservations behind the last job may have moved, and with them the deferred jobs
        self._allowance = allowance
        self._is_bound = bool(allowance)
        self._simulated = allowance.simulated
        self._placer = LimitedPlacer(room, allowance)
        self._ranking = ranking
        self._cluster = cluster = ranking.cluster
        self._reservation_table = reservation_table
        self._blocked = blocked
        self._room = room
        self._now = ranking.now
        self._queues = cluster.policy.by_name
        self._carried = reservation_table.reservations[::-1]  # of earlier passes, in reverse order
        self._holders = {(one.job, one.index) for one in self._carried}
        self._has_vacancy = bool(reservation_table.full) and self._has_room_for_more()
        self._made: list[Reservation] = []
        self._starts: Sequence[Start] = starts
        self._says_where = allowance.withholds_later  # at least one needs more than a number of slots on any hosts
        self._finder: ReservationFinder | None = None
        self._beside: HostReservation | None = None  # the newest result,
        self._beside_of = 0, -1  # its number of reservations, and the version it was computed in
        self._too_few: dict[int, float] = {}  # soonest end of the refused jobs, by slots
        self._refused_beside: dict[Hashable, Refusal] = {}  # kinds of demands refused beside reservations
        self._computed = 0  # number of reservations entered in the profile
        self._depth_left: dict[str, int] = {}  # reservations still allowed, by queue
        self._next_blocked: list[tuple[Rank, JobCursor]] | None = None
        self._blocked_queues: set[str] = set()  # strict-order queues whose head is blocked
        self.slots_open = cluster.table.slots_open
        self._planned: list[tuple[int, int, int]] = []  # jobs, indices and slots of this slice's starts,
        self._single_task_starts: list[list[Start]] = []  # without the starts made while the gate was open
        self._profile: PoolProfile | None = None

    def _has_room_for_more(self) -> bool:
        """True if a queue that was at its reservation depth holds fewer reservations now."""
        counts = Counted(one.key.queue for one in self._carried)
        return any(counts[name] < self._queues[name].backfill_depth for name in self._reservation_table.full)

    @property
    def reason(self) -> str:
        """Log word for the last placement: backfilled, or in order."""
        return "backfilled" if self._made else "in order"

    @property
    def is_open(self) -> bool:
        """True if no reservation, limit or ordering rule can refuse a job that fits."""
        is_bound = self._is_bound or self._carried or self._made
        return not (is_bound or self._reservation_table.full or self._blocked_queues)

    def waits_for_ends(self, steps: int) -> bool:
        """True if reservations need more expected ends than a slice of ``steps`` should enter: those come first."""
        return bool(self._made) and self._reservation_table.is_far_behind(self._cluster, steps)

    # -- asking ------------------------------------------------------------------------------------------------------

    def place(self, candidate: JobCursor) -> Allocation | None:
        """Place the candidate now. None refuses it; if its queue makes reservations it then gets one."""
        self.is_upset = False
        if self._carried:
            self._carry(candidate.place, candidate.job, candidate.index)
        if self._reservation_table.full:
            self._promote(candidate.rank)
        obstacle = self._allowance.why(candidate.key.demand) if self._is_bound else None
        if obstacle is not None:
            self.refusal, self.counter = obstacle.refusal, obstacle.counter
            return None
        self.refusal = Refusal.NO_ROOM
        key = candidate.key
        if self._blocked_queues and key.queue in self._blocked_queues and not key.reservation:
            self.refusal = Refusal.OUT_OF_TURN
        elif key.request.slots_min <= self.slots_open:
            allocation = self._place(candidate)
            if allocation is not None:
                return allocation
        if self.refusal not in _NEVER_RESERVED_FOR and not (key.reservation or self.is_paused):
            self._reserve_for(candidate)
        return None

    def _reserve_for(self, candidate: JobCursor) -> None:
        """Reserve for a blocked job if its queue has reservation depth left."""
        queue = self._queues[candidate.key.queue]
        if self._makes_more(queue):
            place = self._noted_place(queue, candidate)
            self._reserve(queue, Reservation(self._cluster, place, candidate.key, candidate.job))
            self.is_upset = bool(self._carried) and (candidate.job, candidate.index) not in self._holders

    def _noted_place(self, queue: Queue, candidate: JobCursor) -> tuple[Rank, int]:
        """Position of a reservation in the order of candidates.

        Ranks do not order the jobs of a fairshare queue, so there it precedes every candidate still to come.
        """
        if self._ranking.tree_of(candidate.key) is None:
            return candidate.place
        return Rank(-queue.served_at, _FIRST, _FIRST, candidate.job), candidate.index

    def is_checked(self, key: BucketKey) -> bool:
        """True if the constraints on the bucket's jobs depend on the hosts they are placed on."""
        return self._is_bound and self._allowance.is_checked(key.demand)

    def keeps_slots(self, refused: JobCursor) -> bool:
        """True if the job refused last should gather free slots (SLOT_RESERVE).

        If its queue backfills, a reservation serves it better, unless its start cannot be predicted.
        """
        if not self._queues[refused.key.queue].backfill_depth:
            return True
        one = self._made[-1] if self._made else None
        if one is None or (one.job, one.index) != (refused.job, refused.index):
            return False  # its queue is at its reservation depth
        if self._says_where:
            promised = self._host_reservations()
            is_its = promised is not None and promised.place == (one.place, one.key)
            return promised is not None and is_its and promised.begin == NEVER
        self._future()
        return one.start_at == NEVER

    def wants_more(self, key: BucketKey) -> bool:
        """True if the next job of a blocked bucket may hold a reservation, too."""
        return self._depth_left.get(key.queue, 0) > 0

    def close(self) -> None:
        """Record the reservations of this slice for the next one."""
        if self._carried:
            self._carry(_LAST, 0, 0)
        if not (self._made or self._reservation_table.reservations or self._reservation_table.full):
            return
        full = {name for name, left in self._depth_left.items() if not left} | self._blocked_queues
        if len(self._blocked):
            full |= self._reservation_table.full  # candidates for a vacancy are searched only when one is needed
        self._reservation_table.write(self._made, frozenset(full))

    # -- reservations ------------------------------------------------------------------------------------------------

    def _carry(self, place: tuple[Rank, int], job: int, index: int) -> None:
        """Renew earlier reservations that rank before this job; its own is void while it is the candidate."""
        while self._carried and self._carried[-1].place <= place:
            if self._has_vacancy:
                self._promote(self._carried[-1].place[0])
            one = self._carried.pop()
            if one.job != job or one.index != index:
                self._reserve(self._queues[one.key.queue], one)

    def _promote(self, rank: Rank) -> None:
        """Reserve for the next blocked jobs where a reservation of a queue at full depth has become vacant."""
        for name in self._reservation_table.full:
            if self._depth_left.get(name, self._queues[name].backfill_depth):
                break
        else:
            return
        if self._next_blocked is None:
            self._next_blocked = blocked_in_order(self._ranking, self._blocked, self._reservation_table.full)
        while self._next_blocked and self._next_blocked[0][0] < rank:
            _, cursor = heapq.heappop(self._next_blocked)
            is_starting = any(start.job == cursor.job and start.index == cursor.index for start in self._starts)
            if is_starting and cursor.advance():
                heapq.heappush(self._next_blocked, (cursor.rank, cursor))
            if is_starting:
                continue
            if cursor.key in self._blocked and all(one.place != cursor.place for one in self._made):
                queue = self._queues[cursor.key.queue]
                self._reserve(queue, Reservation(self._cluster, cursor.place, cursor.key, cursor.job))
            if self.wants_more(cursor.key) and cursor.advance():
                heapq.heappush(self._next_blocked, (cursor.rank, cursor))

    def _is_upsetting(self, job: int, index: int) -> bool:
        """True if a start or new reservation of this job may move the starts of later jobs."""
        return bool(self._carried) or (job, index) in self._holders

    def _makes_more(self, queue: Queue) -> bool:
        if queue.in_order:
            return queue.name not in self._blocked_queues
        return self._depth_left.get(queue.name, queue.backfill_depth) > 0

    def _reserve(self, queue: Queue, one: Reservation) -> None:
        obstacle = self._allowance.why(one.key.demand) if self._is_bound else None
        if obstacle is not None:
            self.limited.append((one.key, obstacle))
            self.is_upset = True
            return
        if queue.in_order:
            if queue.name not in self._blocked_queues:
                self._blocked_queues.add(queue.name)
                self._make(one)
            return
        left = self._depth_left.get(queue.name, queue.backfill_depth)
        if left:
            self._depth_left[queue.name] = left - 1
            self._make(one)

    def _make(self, one: Reservation) -> None:
        if not self._says_where:
            table = self._cluster.table
            self._says_where = not is_anywhere(self._simulated, one.key) or has_shut_holders(table)
        self._made.append(one)

    # -- starting ----------------------------------------------------------------------------------------------------

    def _waited_s(self, candidate: JobCursor) -> float:
        """Seconds since submission: alternative requirements may apply only after a delay."""
        return self._now - self._cluster.jobs[candidate.job].submitted_at

    def _place(self, candidate: JobCursor) -> Allocation | None:
        key = candidate.key
        request, window = key.request, None
        is_beside = False
        if self._made and not key.reservation:  # an advance reservation's slots are in no backfill reservation
            until = self._end_of(candidate)
            is_beside = self._says_where or shuts_others_out(request)
            if not is_beside or len(self._made) > RESERVATIONS_MAX:
                if self._are_too_few(request.slots_min, until):
                    self.refusal = Refusal.RESERVED
                    self._room.work -= WORK_SPARED
                    return None
                free = self._future().free_until(until)
                if free < request.slots_min:
                    self.refusal = Refusal.RESERVED
                    self._too_few[request.slots_min] = until
                    return None
                if free < request.slots_max:
                    request = with_at_most(request, free)
            if is_beside:
                promised = self._host_reservations()
                if promised is None:
                    self.is_paused = True
                    return None
                window = promised.moments.window(self._now, until)
        allocation = self._fit(candidate, request, window)
        if allocation is not None:
            self._note(candidate, allocation, is_beside)
        return allocation

    def _are_too_few(self, slots: int, until: float) -> bool:
        """True if this slice refused a job of no more slots and no later end: free slots only decrease."""
        return any(fewer <= slots and sooner <= until for fewer, sooner in self._too_few.items())

    def _note(self, candidate: JobCursor, allocation: Allocation, is_beside: bool) -> None:
        """Record that the job starts on this allocation."""
        key = candidate.key
        slots = slots_of(allocation) if not key.request.exclusive else slots_of_hosts(self._cluster, allocation)
        self.is_upset = self._is_upsetting(candidate.job, candidate.index)
        if is_beside:
            start = Start(candidate.job, candidate.index, allocation)
            self._reservation_table.host_reservations.take(
                self._cluster, start, self._now, self._end_of(candidate), len(self._made)
            )
        elif self._reservation_table.host_reservations:
            self._reservation_table.host_reservations.note_start(self._cluster, allocation)
        if key.reservation:
            self.slots_open -= slots
        else:
            self._take(slots, candidate)

    def _end_of(self, candidate: JobCursor) -> float:
        run_limit_s = candidate.run_limit_s
        return self._now + run_limit_s if run_limit_s else NEVER

    def _fit(self, candidate: JobCursor, request: Request, window: BackfillWindow | None) -> Allocation | None:
        """Place the request within the job's allowance and the backfill window."""
        waited_s = self._waited_s(candidate) if request.alternatives else 0.0
        if not self._is_bound and window is None:
            return place(self._room, request, waited_s)
        demand = candidate.key.demand
        if window is not None or self._says_where:
            demand = demand._replace(request=request, run_limit_s=candidate.run_limit_s)
        elif request is not demand.request:
            demand = demand._replace(request=request)
        if window is not None:
            return self._fit_beside(window, demand, waited_s)
        return self._fit_within(demand, waited_s)

    def _fit_within(self, demand: Demand, waited_s: float, window: BackfillWindow | None = None) -> Allocation | None:
        allocation = self._placer.place(demand, waited_s, window)
        obstacle = self._placer.obstacle
        if allocation is None and obstacle is not None and obstacle.refusal is not Refusal.NO_ROOM:
            self.refusal, self.counter = obstacle.refusal, obstacle.counter
        return allocation

    def _fit_beside(self, window: BackfillWindow, demand: Demand, waited_s: float) -> Allocation | None:
        """Place the request within the backfill window; an equal one that failed in this slice is not tried again."""
        request = demand.request
        role = request.single_role
        if role is not None and not self._is_bound and is_one_task(request) and not request.is_slots_only:
            first = host_of_one(self._room, request, role)
            if first is None:
                return None
            if self._is_left(window, first[0], role):
                return place(self._room, request)
        kind = self._allowance.kind_of(demand)
        if kind in self._refused_beside:
            self.refusal = self._refused_beside[kind]
            return None
        found = self._fit_within(demand, waited_s, window)
        if found is None and self.refusal is Refusal.NO_ROOM:
            if has_place(self._room, self._allowance.limit(demand).on_hosts, request, waited_s):
                self.refusal = Refusal.RESERVED if request.is_slots_only else Refusal.RESERVED_THERE
            if not request.alternatives:
                self._refused_beside[kind] = self.refusal
        return found

    @staticmethod
    def _is_left(window: BackfillWindow, row: int, role: RoleRequest) -> bool:
        """True if the window leaves room for a task on the host that it would get without reservations.

        Hosts of lower preference need not be searched then.
        """
        if role.gpus:
            return window.is_free(row)  # reserved devices are not compared one by one here
        return window.leaves(row, role.slots_per_task, role.memory_mib)

    def _host_reservations(self) -> HostReservation | None:
        """Return the window beside all reservations so far; None if computing it would exceed the slice's budget."""
        host_reservations = self._reservation_table.host_reservations
        if self._beside_of == (len(self._made), host_reservations.version):
            return self._beside
        if self._finder is None:
            self._finder = ReservationFinder(self._cluster, self._reservation_table.ends_of, self._starts, self._now)
        found = host_reservations.of(self._made, self._finder)
        self._beside_of = len(self._made), host_reservations.version
        if found is not self._beside:
            self._beside, self._refused_beside = found, {}
        return found

    def _take(self, slots: int, candidate: JobCursor) -> None:
        self.slots_open -= slots
        if self._profile is None:
            self._planned.append((candidate.job, candidate.index, slots))
        else:
            self._profile.take(self._now, candidate.run_limit_s or NEVER, slots)

    def note_starts(self, starts: list[Start], slots_open: int) -> None:
        """Record starts made without asking the gate while it ``is_open``; ``slots_open`` slots are left."""
        self._reservation_table.host_reservations.clear()
        self.slots_open = slots_open
        self._single_task_starts.append(starts)

    def _future(self) -> PoolProfile:
        """Availability profile with every reservation so far entered."""
        profile = self._profile
        if profile is None:
            profile = self._profile = PoolProfile(self._now, self.slots_open, self._ends())
            for begin, end, slots in self._allowance.spans():
                profile.take(begin, end - begin, slots)
        for one in self._made[self._computed :]:
            slots, duration = one.key.request.slots_min, one.key.run_limit_s or NEVER
            one.start_at = profile.earliest(slots, duration)
            if one.start_at < NEVER:
                profile.take(one.start_at, duration, slots)
        self._computed = len(self._made)
        return profile

    def _end_of_start(self, job: int, index: int) -> float:
        return self._now + (self._cluster.bearer(job, index).shared.run_limit_s or NEVER)

    def _ends(self) -> Iterator[tuple[float, int]]:
        single_tasks = [
            (one.job, one.index, one.allocation[0].slots) for some in self._single_task_starts for one in some
        ]
        planned = [(self._end_of_start(job, index), slots) for job, index, slots in (*self._planned, *single_tasks)]
        running = come_back(self._reservation_table.ends_of(self._cluster), self._now)
        return heapq.merge(running, sorted(planned)) if planned else running
