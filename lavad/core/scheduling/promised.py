"""Reservations that say where: for blocked jobs of which "so many slots of the whole cluster" does not say enough.

Such a job waits for certain hosts, or for memory, devices, whole hosts or resources of the site. Its reservation is
found by playing the ends of what runs forward until it fits, in a future in which every reservation before it has its
place. From then on it is promised what it would have there, and a job behind it may have no more than what is left
beside that, unless it ends before.

Costs a copy of the hosts, a step for each end that comes before, and a try to place the job whenever it could fit.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lavad.core.cluster import Cluster
from lavad.core.indexes.ends import ExpectedEnd
from lavad.core.indexes.hosts import HostTable
from lavad.core.indexes.pending import BucketKey
from lavad.core.keeping import kept_type, unit_mates
from lavad.core.limits import NOBODY
from lavad.core.model import Allocation, Key, Request
from lavad.core.plan import Start
from lavad.core.records import Attempt
from lavad.core.scheduling.capped import is_checked, with_at_most
from lavad.core.scheduling.future import SOON_S, Asked, Future, Placing, Taken, asked_for, consumer_of
from lavad.core.scheduling.leeway import Leeway, Moment, Moments, Rest, place_of
from lavad.core.scheduling.placement import Need, smallest_need
from lavad.core.scheduling.reservation import Reservation
from lavad.core.scheduling.room import Room
from lavad.core.scheduling.usable import usable
from lavad.core.scheduling.wants import all_roles, names_of, wants_of, watched_by
from lavad.core.windows import NEVER

PROMISES_MAX = 32  # that say where: each may cost milliseconds on a large cluster
TRIES_MAX = 200  # to place one job in the future: then its start can't be foreseen
STEPS_MAX = 20_000  # ends that are played for one job


def is_anywhere(cluster: Cluster, key: BucketKey) -> bool:
    """Does "so many slots of the whole cluster" say all that a job of this bucket waits for?"""
    if not key.request.is_plain:
        return False
    return not cluster.limits or not is_checked(consumer_of(cluster, key), key.request)


def has_shut_holders(table: HostTable) -> bool:
    """Is something held on hosts that may take nothing when it is given back?"""
    return bool(table.shut) and any(table.attempts[row] for row in table.shut)


def shuts_others_out(request: Request) -> bool:
    """Does it take more from others than it uses: whole hosts, or compute units?"""
    return not request.is_simple and (request.exclusive or kept_type(request) is not None)


class Promised:
    """What is promised to jobs with reservations, as of one moment, and what others may have beside it.

    ``starts`` are those of the slice under way, which goes on entering its own.
    """

    def __init__(self, cluster: Cluster, ends: Iterable[ExpectedEnd], starts: Sequence[Start], now: float) -> None:
        self._cluster = cluster
        self._ends = ends
        self._starts = starts
        self._now = now
        self._moments = Moments()
        self._added: list[Moment] = []
        self._taken: list[tuple[float, Taken]] = []
        self._computed = 0  # so many of the reservations have their place
        self.is_complete = True  # no reservation came too late to be given a place

    def extend(self, reservations: list[Reservation]) -> bool:
        """Give those their place that have none yet; True if there were any."""
        is_more = self._computed < len(reservations)
        for one in reservations[self._computed :]:
            if self._computed < PROMISES_MAX:
                self._give_place(one)
            else:
                self.is_complete = False
            self._computed += 1
        return is_more

    def leeway(self, until: float) -> Leeway | None:
        """What is left to a job that starts now and ends then; None: whatever is free."""
        return self._moments.leeway(self._now, until)

    def take(self, allocation: Allocation, until: float) -> None:
        """A job starts now."""
        self._moments.take(self._cluster.table, allocation, self._now, until)

    # -- finding places ------------------------------------------------------------------------------------------------

    def _give_place(self, one: Reservation) -> None:
        asked = asked_for(self._cluster, one.key, one.job, one.index)
        asked = asked._replace(request=with_at_most(asked.request, asked.request.slots_min))
        relevant = _could_take(self._cluster.table, asked.request)
        future = self._future(asked, relevant)
        found = _earliest(future, asked, relevant)
        one.start_at = future.at if found is not None else NEVER
        if found is not None:
            allocation, placing = found
            self._promise(future, asked, allocation, placing.room)

    def _future(self, asked: Asked, relevant: NDArray[np.bool_]) -> Future:
        cluster = self._cluster
        future = Future(cluster, self._now, self._coming(relevant, bool(cluster.limits) or bool(relevant.all())))
        claim = cluster.claims.get(asked.key[:2])
        for share in claim.allocation if claim is not None else ():  # it starts in what it has saved
            future.table.give_back(future.table.rows[share.host], share, False)
        for start in self._starts:
            shared = cluster.jobs[start.job].shared
            until = self._now + shared.run_limit_s if shared.run_limit_s else NEVER
            consumer = cluster.limits.consumer(shared.user, shared.queue, shared.project)
            key = Key(start.job, start.index, 0)
            future.promise(self._now, Taken(shared.request, consumer, start.allocation, until, key))
        for moment in self._added:
            future.moments.add(moment)
        for begin, taken in self._taken:
            future.promise(begin, taken)
        return future

    def _coming(self, relevant: NDArray[np.bool_], is_all: bool) -> Iterator[tuple[float, Attempt]]:
        """Who ends when: all, or those that hold something of relevant hosts or of the site's resources."""
        attempts, rows, soonest = self._cluster.attempts, self._cluster.table.rows, self._now + SOON_S
        for at, _, key in self._ends:
            if at == NEVER:
                return
            attempt = attempts[key]
            is_needed = is_all or attempt.keeps_units is not None
            if is_needed or any(relevant[rows[share.host]] or share.resources for share in attempt.booked):
                yield max(at, soonest), attempt

    def _promise(self, future: Future, asked: Asked, allocation: Allocation, room: Room) -> None:
        table = self._cluster.table
        until = future.at + asked.run_limit_s if asked.run_limit_s else NEVER
        self._moments.take(table, allocation, future.at, until)
        self._taken.append((future.at, Taken(asked.request, asked.consumer, allocation, until, asked.key)))
        moment = Moment(future.at)
        are_certain = any(wants_of(role).is_placed for role in all_roles(asked.request))
        rows = {table.rows[share.host]: share for share in allocation}
        for row in _shut_by(table, asked.request, rows):
            moment.rows[row] = Rest(0, 0, 0)
        for row, share in rows.items():
            free = room.free(row)
            rest = moment.rows[row] = Rest(free.slots, free.memory_mib, free.gpus.bit_count())
            rest.promise(share, are_certain)
            for resource in share.resources:
                left = room.left(resource.name, row)
                if left is not None:
                    moment.stores[place_of(table, resource.name, row)] = left.amount
        self._added.append(moment)
        self._moments.add(moment)


def _shut_by(table: HostTable, request: Request, rows: Iterable[int]) -> set[int]:
    """Hosts of which nothing is left to others although the job does not run there."""
    kind = kept_type(request)
    return unit_mates(table, rows, kind) if kind is not None else set()


def _could_take(table: HostTable, request: Request) -> NDArray[np.bool_]:
    """Hosts that could take part of such a job if they were empty."""
    need, hosts = smallest_need(request), len(table)
    found = table.usable[:hosts] & (table.slots_max[:hosts] >= need.slots)
    if need.memory_mib:
        found &= table.values("maxmem") >= need.memory_mib
    if need.gpus:
        found &= table.values("ngpus") >= need.gpus
    if request.is_particular:
        found &= usable(table, request).contains
    selects = {role.select for role in all_roles(request)}
    if len(selects) == 1 and (select := selects.pop()) and all(map(table.is_fixed, names_of(select))):
        found &= Room(table).mask(select)
    return np.asarray(found)


def _earliest(future: Future, asked: Asked, relevant: NDArray[np.bool_]) -> tuple[Allocation, Placing] | None:
    """Play until the job fits, and keeps its place until its run limit; None when that can't be foreseen."""
    table, request, need = future.table, asked.request, smallest_need(asked.request)
    is_watching = asked.consumer is not NOBODY or any(table.site.amounts(name) for name in watched_by(request))
    is_due, tries = True, 0
    for _ in range(STEPS_MAX):
        if is_due and _is_enough(table, request, relevant, need):
            placing = future.placing()
            allocation = placing.place(asked)
            if allocation is not None:
                return allocation, placing
            tries += 1
            is_due = False
        if tries >= TRIES_MAX or not future.advance():
            return None
        is_due = is_due or is_watching or _has_room(table, future.freed, need.slots, need.memory_mib, need.gpus)
    return None


def _is_enough(table: HostTable, request: Request, relevant: NDArray[np.bool_], need: Need) -> bool:
    """Could the hosts hold as many tasks as it needs? If not, it need not be tried."""
    if table.slots_open < need.slots_in_all:
        return False
    if need.tasks == 1:
        return True
    hosts, (role, *_) = len(table), request.roles
    fits = relevant & table.open_rows() & (table.memory_free_mib[:hosts] >= need.memory_mib)
    fits &= table.gpus_free[:hosts] >= need.gpus
    if request.exclusive:
        fits &= table.attempts[:hosts] == 0
    tasks = np.minimum(table.slots_free[:hosts][fits] // need.slots_per_task, need.tasks_per_host)
    if role.gpus and role.gpus_per_task and not role.gpu:
        tasks = np.minimum(tasks, table.gpus_free[:hosts][fits] // role.gpus)
    return int(tasks.clip(0).sum()) >= need.tasks


def _has_room(table: HostTable, rows: set[int], slots: int, memory_mib: int, gpus: int) -> bool:
    return any(
        table.slots_free[row] >= slots and table.memory_free_mib[row] >= memory_mib and table.gpus_free[row] >= gpus
        for row in rows
    )
