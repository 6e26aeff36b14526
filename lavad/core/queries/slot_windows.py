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
Column = NDArray[np.float64]


class SlotWindow(NamedTuple):
    """Slots by host that are free from now until a time; infinite: without an end."""

    until: float
    hosts: tuple[tuple[str, int], ...]

    @property
    def slots(self) -> int:
        return sum(slots for _, slots in self.hosts)


def slot_windows(
    cluster: ClusterView, reservation_table: ReservationTable, hosts: Sequence[str], now: float
) -> list[SlotWindow]:
    """Windows from the longest to the shortest: each has more slots than those before it."""
    asking = _Query(cluster, reservation_table, hosts, now)
    found: list[SlotWindow] = []
    for until in (NEVER, *sorted(asking.ends(), reverse=True)):
        window = asking.window(until)
        if window.slots > (found[-1].slots if found else 0):
            found.append(window)
    return found


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
        self._moments = list(moments_of(cluster, stretches_of(cluster, now), now)) if cluster.reserved.by_name else []
        begins.update(moment.at for moment in self._moments)
        self._begins = begins
        self._free: Column = np.maximum(table.slots_free[: len(table)], 0) * table.open_rows().astype(np.float64)
        if cluster.reserved.by_name:
            self._free = np.maximum(self._free - cluster.reserved.unused(cluster, now), 0)
        self._rows = [(name, table.rows[name]) for name in hosts if name in table.rows]

    def ends(self) -> Iterator[float]:
        """Times at which fewer slots may be left."""
        return (at for at in self._begins if self._now < at < NEVER)

    def window(self, until: float) -> SlotWindow:
        """Slots that are free until then: on each host, and of all hosts together."""
        left = self._free
        if self._known and (window := self._reservations.window(self._known, self._now, until)) is not None:
            left = np.minimum(left, window.slots(self._table, _PLAIN))
        for moment in self._moments:
            if moment.at < until:
                left = left.copy()
                for row, rest in moment.rows.items():
                    left[row] = min(left[row], max(0, rest.slots))
        most = max(0, self._profile.free_until(until))
        found: list[tuple[str, int]] = []
        for name, row in self._rows:
            slots = min(int(left[row]), most)
            if slots > 0:
                found.append((name, slots))
                most -= slots
        return SlotWindow(until, tuple(found))


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
