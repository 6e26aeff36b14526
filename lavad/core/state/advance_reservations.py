"""Advance reservations: slots reserved on each host, now and at the future moments that matter to a job.

A job without a reservation may hold slots of a host as long as reservations do not need them until it ends: at each
moment the slots reserved there and those ``held`` by other jobs that still run must fit the host beside it. Both change
only when a reservation begins or ends and when a job ends, and held slots only decrease, so it suffices to check now
and at the starts of reservations; of those, the ones that reserve more than an earlier one.

Counted host by host, lazily: a host is counted again after an allocation or a release there. Without reservations
nothing is counted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lavad.core import events as e
from lavad.core.model import Allocation, Key
from lavad.core.model.advance_reservation import (
    LOOK_AHEAD_S,
    AdvanceReservation,
    end_after,
    holds,
    next_turn,
    stretches,
)
from lavad.core.model.policy import Policy
from lavad.core.model.windows import NEVER
from lavad.core.state.attempts import Attempt
from lavad.core.state.expected_ends import expected_end
from lavad.core.state.hosts.table import HostTable
from lavad.core.state.paged import PagedView
from lavad.core.state.records import ArrayRecord, Host, Job

Slots = NDArray[np.int64]


class AllocationView(Protocol):
    """The parts of the cluster needed for counting: allocations on hosts, and their expected ends."""

    @property
    def policy(self) -> Policy: ...
    @property
    def jobs(self) -> Mapping[int, Job | ArrayRecord]: ...
    def find_bearer(self, job_id: int, index: int) -> Job | ArrayRecord | None: ...
    @property
    def attempts(self) -> PagedView[Attempt]: ...
    @property
    def hosts(self) -> Mapping[str, Host]: ...
    @property
    def table(self) -> HostTable: ...


@dataclass(frozen=True, slots=True)
class ReservationStart:
    """Future moment at which reservations begin, with all that are active then."""

    at: float
    names: frozenset[str]


class Timeline:
    """Active reservations over time: now, until the next begin or end, and at later starts."""

    def __init__(self, reservations: dict[str, AdvanceReservation], zone: tzinfo, now: float) -> None:
        self.since = now
        self.until = min((next_turn(one.times, zone, now) for one in reservations.values()), default=NEVER)
        self.now = frozenset(name for name, one in reservations.items() if holds(one.times, zone, now))
        self.stretches = list(_stretches(reservations, zone, now))
        self.moments = _moments(self.stretches, now)

    def covers(self, at: float) -> bool:
        """True if the reservations active at that time are those of ``now``."""
        return self.since <= at < self.until

    def before(self, end: float) -> int:
        """Number of the starts before that time."""
        return sum(moment.at < end for moment in self.moments)


def _moments(stretches: list[tuple[float, float, str]], now: float) -> list[ReservationStart]:
    found: list[ReservationStart] = []
    for at in sorted({begin for begin, _, _ in stretches if begin > now}):
        names = frozenset(name for begin, end, name in stretches if begin <= at < end)
        if not any(names <= before.names for before in found):
            found.append(ReservationStart(at, names))
    return found


def _stretches(
    reservations: dict[str, AdvanceReservation], zone: tzinfo, now: float
) -> Iterator[tuple[float, float, str]]:
    """Intervals in which reservations are active: those of the next week, and for each one-time reservation beyond it
    also those of the others meanwhile."""
    spans = [(now, now + LOOK_AHEAD_S)]
    once = [one.times for one in reservations.values() if not one.times.recurs]
    spans += [(times.begins_at, times.ends_at) for times in once if times.ends_at > now + LOOK_AHEAD_S]
    for name, one in reservations.items():
        if one.times.recurs:
            found = {stretch for span in spans for stretch in stretches(one.times, zone, max(now, span[0]), span[1])}
            yield from ((begin, end, name) for begin, end in found)
        elif one.times.ends_at > now:
            yield one.times.begins_at, one.times.ends_at, name


class AdvanceReservations:
    """All advance reservations. ``version`` is raised when slots may have become free, for their jobs or for others."""

    def __init__(self) -> None:
        self.by_name: dict[str, AdvanceReservation] = {}
        self.numbers: dict[str, int] = {}  # number of the newest reservation of each user, group and the system
        self.jobs: dict[str, set[int]] = {}  # jobs submitted to each that are not forgotten
        self.holding: frozenset[str] = frozenset()  # those that were active at the last tick
        self.version = 0
        self.is_unsettled = False  # events that follow from a change, or from a restart, are still to be decided
        self._timeline: Timeline | None = None
        self._slots: dict[str, Slots] = {}  # of each reservation, by row
        self._facts_version = -1  # of the hosts' facts at the last count
        self._rows: frozenset[int] = frozenset()  # hosts with reserved slots, now or later
        self._ceasing: dict[str, float] = {}
        self._stale: set[int] | None = None  # rows to be counted anew; None: all
        self._unused: Slots = np.zeros(0, np.int64)
        self._own: dict[str, Slots] = {}
        self._held: list[Slots] = []

    def __bool__(self) -> bool:
        return bool(self.by_name)

    # -- change ----------------------------------------------------------------------------------------------------

    def put(self, one: AdvanceReservation) -> None:
        """Add a reservation, or replace the one of that name."""
        self.by_name[one.name] = one
        self.look_again()

    def drop(self, name: str) -> None:
        """Remove a reservation."""
        self.by_name.pop(name, None)
        self.holding -= {name}
        self.look_again()

    def enter(self, name: str, job: int) -> None:
        """Add a job submitted to that reservation."""
        self.jobs.setdefault(name, set()).add(job)

    def leave(self, name: str, job: int) -> None:
        """Remove a job that is forgotten, or not to run in that reservation any more."""
        jobs = self.jobs.get(name, set())
        jobs.discard(job)
        if not jobs:
            self.jobs.pop(name, None)

    def turn(self, holding: frozenset[str]) -> None:
        """Set the active reservations; the events that follow are decided."""
        self.look_again()
        self.holding, self.is_unsettled = holding, False

    def look_again(self) -> None:
        """Discard all counts; pending jobs may fit now."""
        self.version += 1
        self.is_unsettled = True
        self._timeline, self._slots = None, {}

    def note(self, booked: AllocationView, event: e.Event) -> None:
        """Note an event before it is applied: hosts are counted again if it may change allocations or their ends."""
        if isinstance(event, e.PolicyChanged):
            self.look_again()
        elif isinstance(event, e.JobModified | e.JobDetached):
            self._stale = None
        elif self._stale is not None and (key := getattr(event, "key", None)) is not None:
            attempt, rows = booked.attempts.get(key), booked.table.rows
            shares: Allocation = getattr(event, "allocation", ()) + getattr(event, "additions", ())
            shares += attempt.booked if attempt is not None else ()
            self._stale.update(rows[share.host] for share in shares)

    # -- active reservations -------------------------------------------------------------------------------------------

    def timeline(self, booked: AllocationView, now: float) -> Timeline:
        """Active reservations, now and later."""
        if self._timeline is None or not self._timeline.covers(now):
            self._timeline = Timeline(self.by_name, booked.policy.zone, now)
            self._stale = None
        return self._timeline

    def holds(self, booked: AllocationView, name: str, now: float) -> bool:
        """True if a reservation of that name is active; only then its jobs may start."""
        return name in self.by_name and name in self.timeline(booked, now).now

    # -- slots ---------------------------------------------------------------------------------------------------------

    def slots(self, booked: AllocationView, name: str) -> Slots:
        """Slots of each host that a reservation reserves."""
        table = booked.table
        if self._facts_version != table.facts_version:
            self._slots, self._stale, self._facts_version = {}, None, table.facts_version
        found = self._slots.get(name)
        if found is None:
            one = self.by_name[name]
            found = self._slots[name] = np.zeros(len(table), np.int64)
            for host, slots in one.hosts:
                row = table.rows.get(host)
                if row is not None:
                    found[row] = table.slots_max[row] if one.is_whole else min(slots, int(table.slots_max[row]))
        return found

    def unused(self, booked: AllocationView, now: float) -> Slots:
        """Reserved slots of each host that no job of the active reservations uses."""
        self._count(booked, now)
        return self._unused

    def own(self, booked: AllocationView, name: str, now: float) -> Slots:
        """Slots of each host used by the jobs of an active reservation."""
        self._count(booked, now)
        return self._own[name]

    def held(self, booked: AllocationView, now: float) -> list[Slots]:
        """For each later start: slots still held then by running jobs of reservations that are not active then."""
        self._count(booked, now)
        return self._held

    def _count(self, booked: AllocationView, now: float) -> None:
        timeline = self.timeline(booked, now)
        sets = [self.slots(booked, name) for name in self.by_name]
        if self._stale is None:
            self._begin_counting(booked, timeline, sets)
            stale = self._rows
        else:
            stale, self._stale = self._rows.intersection(self._stale), set()
        for row in stale:
            self._count_host(booked, timeline, row)

    def _begin_counting(self, booked: AllocationView, timeline: Timeline, sets: list[Slots]) -> None:
        hosts = len(booked.table)
        self._rows = frozenset(np.flatnonzero(sum(sets, start=np.zeros(hosts, np.int64))).tolist())
        self._ceasing = {}
        self._stale = set()
        self._unused = np.zeros(hosts, np.int64)
        self._own = {name: np.zeros(hosts, np.int64) for name in timeline.now}
        self._held = [np.zeros(hosts, np.int64) for _ in timeline.moments]

    def _count_host(self, booked: AllocationView, timeline: Timeline, row: int) -> None:
        host = booked.hosts[booked.table.names[row]]
        own = dict.fromkeys(timeline.now, 0)
        held = [0] * len(timeline.moments)
        for key, share in host.attempts.items():
            name, end = self._tenure(booked, key)
            if name in own:
                own[name] += share.slots
            for number, moment in enumerate(timeline.moments):
                if end > moment.at and name not in moment.names:
                    held[number] += share.slots
        for number, slots in enumerate(held):
            self._held[number][row] = slots
        self._unused[row] = 0
        for name, slots in own.items():
            self._own[name][row] = slots
            self._unused[row] += max(0, int(self.slots(booked, name)[row]) - slots)

    def _tenure(self, booked: AllocationView, key: Key) -> tuple[str, float]:
        """Reservation of an attempt, and the time until which it may hold its slots."""
        attempt, record = booked.attempts[key], booked.find_bearer(key.job, key.index)
        shared = record.shared if record is not None else None
        name = shared.request.reservation if shared is not None else ""
        end = expected_end(attempt, shared.run_limit_s if shared is not None else 0, 0).at
        one = self.by_name.get(name)
        if one is not None and not one.is_open:
            end = min(end, self._ceases(booked, one))
        return name, end

    def _ceases(self, booked: AllocationView, one: AdvanceReservation) -> float:
        """Time at which jobs of a closed reservation will be ended: with its present occurrence, else with its next."""
        found = self._ceasing.get(one.name)
        if found is None:
            assert self._timeline is not None, "a time line is made before anything is counted"
            found = end_after(one.times, booked.policy.zone, self._timeline.since)
            self._ceasing[one.name] = found
        return found
