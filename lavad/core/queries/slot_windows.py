"""Free slots, and how long a job may use them without delaying a job that holds a reservation: bslots.

Computed on request from the scheduler's reservations and the advance reservations; it decides nothing. Reservations
that the scheduler has not computed yet, and limits of users and queues, are not considered.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lavad.core.cluster_view import ClusterView
from lavad.core.model import Request
from lavad.core.scheduling.backfill.profile import NEVER, PoolProfile, come_back
from lavad.core.scheduling.backfill.reservations import ReservationTable
from lavad.core.scheduling.capacity.advance_reservations import moments_of, stretches_of
from lavad.core.scheduling.capacity.constraints import allowance_of

_ENDS_MAX = 4096  # expected ends examined for one answer
_PLAIN = Request(())  # it has no host for itself
Column = NDArray[np.int32]


class SlotWindow(NamedTuple):
    """Slots by host that are free from now until a time; infinite: without an end."""

    until: float
    hosts: tuple[tuple[str, int], ...]

    @property
    def slots(self) -> int:
        return sum(slots for _, slots in self.hosts)


def slot_windows(
    cluster: ClusterView, reservation_table: ReservationTable, hosts: Sequence[str], now: float
) -> Iterator[SlotWindow]:
    """Windows from the longest to the shortest: each has more slots than those before it."""
    asking = _Query(cluster, reservation_table, hosts, now)
    for until, left, most in reversed(asking.steps()):
        yield SlotWindow(until, tuple(asking.hosts_of(left, most)))


class _Query:
    """Free slots of some hosts at one time, with all that constrains them later."""

    def __init__(
        self, cluster: ClusterView, reservation_table: ReservationTable, hosts: Sequence[str], now: float
    ) -> None:
        self._table = table = cluster.table
        self._now = now
        self._profile, begins = _profile(cluster, reservation_table, now)
        self._reservations = reservation_table.host_reservations
        self._known = self._reservations.known(reservation_table.reservations)
        if self._known:
            begins.update(self._reservations.begins(self._known))
        moments = moments_of(cluster, stretches_of(cluster, now), now) if cluster.reserved.by_name else ()
        self._moments = sorted(moments, key=lambda moment: moment.at)
        begins.update(moment.at for moment in self._moments)
        self._ends = [*sorted(at for at in begins if now < at < NEVER), NEVER]
        self._names = [name for name in hosts if name in table.rows]
        self._rows = np.array([table.rows[name] for name in self._names], np.intp)
        free = np.where(table.open_rows(), table.slots_free[: len(table)], 0)
        if cluster.reserved.by_name:
            free = free - cluster.reserved.unused(cluster, now)
        self._free = np.maximum(free, 0).astype(np.int32)

    def steps(self) -> list[tuple[float, Column, int]]:
        """Ends of windows in order of time, with the slots left on each host and on all together: each has fewer."""
        found: list[tuple[float, Column, int]] = []
        left, entered, least = self._free.copy(), 0, -1
        for until in self._ends:
            while entered < len(self._moments) and self._moments[entered].at < until:
                for row, rest in self._moments[entered].rows.items():
                    left[row] = min(left[row], max(0, rest.slots))
                entered += 1
            if self._known and (window := self._reservations.window(self._known, self._now, until)) is not None:
                left = np.minimum(left, window.slots(self._table, _PLAIN)).astype(np.int32)
            most = min(max(0, self._profile.free_until(until)), int(left[self._rows].sum()))
            if most == least:
                found.pop()  # as many slots are free for longer
            if most:
                found.append((until, left.copy(), most))
            least = most
        return found

    def hosts_of(self, left: Column, most: int) -> Iterator[tuple[str, int]]:
        """Hosts with the slots left on each, until there are that many."""
        for name, slots in zip(self._names, left[self._rows].tolist(), strict=True):
            if slots > 0 and most:
                yield name, min(slots, most)
                most -= min(slots, most)


def _profile(cluster: ClusterView, reservation_table: ReservationTable, now: float) -> tuple[PoolProfile, set[float]]:
    """Free slots of all hosts over time, with the reservations of slots on any hosts in place, and their begins."""
    ends = reservation_table.foreseen(cluster)
    soon = islice(ends, _ENDS_MAX) if ends is not None else ()
    profile, begins = PoolProfile(now, cluster.table.slots_open, come_back(soon, now)), set[float]()
    for begin, end, slots in allowance_of(cluster, now).spans():
        profile.take(begin, end - begin, slots)
        begins.add(begin)
    for one in reservation_table.reservations:
        slots, duration = one.key.request.slots_min, one.key.run_limit_s or NEVER
        at = profile.earliest(slots, duration)
        if at < NEVER:
            profile.take(at, duration, slots)
            begins.add(at)
    return profile, begins
