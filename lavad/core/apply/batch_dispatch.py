"""Many dispatches at once: what their events do one after the other, with what buckets and hosts lose summed up."""

from collections.abc import Sequence

from lavad.core import lifecycle
from lavad.core.apply import charge, leases, start_conditions
from lavad.core.apply.allocate import enter_in_pool
from lavad.core.apply.enqueue import entry
from lavad.core.apply.jobs import element_for_dispatch
from lavad.core.cluster import Cluster
from lavad.core.events import AttemptDispatched, Event
from lavad.core.model import CountKey, HostShare, JobState, Key, Request, Shared
from lavad.core.state.hosts import compute_units
from lavad.core.state.records import ArrayRecord, Attempt, Job

_PEND, _STAGING = JobState.PEND, JobState.STAGING
MANY = 16  # from so many on it pays


def all_starts(cluster: Cluster, events: Sequence[Event]) -> list[AttemptDispatched] | None:
    """The same events, if they are dispatches and nothing else, and nobody starts in room that was kept for him."""
    starts = [event for event in events if isinstance(event, AttemptDispatched)]
    return starts if len(starts) == len(events) and not cluster.claims else None


def dispatch_all(cluster: Cluster, events: Sequence[AttemptDispatched]) -> None:
    """Let these dispatches take effect."""
    jobs, pending, booking = cluster.jobs, cluster.pending, _Booking(cluster)
    has_dependants = bool(cluster.dependants)
    moved: list[CountKey] = []
    begun: dict[Key, Attempt] = {}
    for event in events:
        key = event[1]
        record = jobs[key[0]]
        shared = record.shared
        if isinstance(record, ArrayRecord):
            job = _element(cluster, record, event)
        else:
            job = record
            if not pending.remove_head(shared, job.id, is_planned=True):
                pending.remove(shared, entry(cluster, job))
            if job.terms is not None:
                start_conditions.force(cluster, job, 0)
        moved.append(shared.sort)
        if has_dependants:
            cluster.dependants.note(job.id, job.index, _PEND, _STAGING)
        attempt = begun[key] = _begin_attempt(cluster, job, event)
        booking.book(attempt, shared)
    cluster.attempts.update(begun)
    cluster.staging.update(begun)
    cluster.touched.update(begun)
    cluster.tally.move_each(moved, _PEND, _STAGING)
    booking.close()


def _element(cluster: Cluster, array: ArrayRecord, event: AttemptDispatched) -> Job:
    job = element_for_dispatch(cluster, array, event.key.index)
    array.counts[_PEND] -= 1
    array.counts[_STAGING] += 1
    return job


def _begin_attempt(cluster: Cluster, job: Job, event: AttemptDispatched) -> Attempt:
    at, key, allocation, launch_now, reason, is_unconstrained, _ = event
    if job.state is not _PEND:
        lifecycle.check(job.state, event, _STAGING)
    job.state = _STAGING
    job.attempts = key.attempt
    job.postponed_reason = ""
    attempt = Attempt(key, allocation, at, launch_now, reason)
    attempt.launch_due = at + cluster.policy.staging_timeout_s
    attempt.is_unconstrained = is_unconstrained
    if cluster.policy.fence_after_s:
        leases.begin(cluster, attempt)
    job.attempt = attempt
    return attempt


class _Booking:
    """What these attempts hold on all hosts: noted with each host at once, and booked in the host table together."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._hosts = cluster.hosts
        cluster.unentered.enter()
        self._is_charged = bool(cluster.limits or cluster.shares)
        self._is_pooled = bool(cluster.pools)
        self._rows: list[int] = []
        self._shares: list[HostShare] = []

    def book(self, attempt: Attempt, shared: Shared) -> None:
        """Take the shares of an attempt."""
        key, hosts, request = attempt.key, self._hosts, shared.request
        for share in attempt.allocation:
            host = hosts[share[0]]
            host.entered[key] = share
            self._rows.append(host.row)
            self._shares.append(share)
        if not request.is_simple:
            self._book_special(attempt, request)
        if self._is_pooled:
            enter_in_pool(self._cluster, attempt, attempt.allocation)
        if self._is_charged:
            charge.charge(self._cluster, attempt, shared)

    def _book_special(self, attempt: Attempt, request: Request) -> None:
        """What comes beside slots, memory and devices."""
        table, count = self._cluster.table, len(attempt.allocation)
        rows = self._rows[-count:]
        compute_units.keep(table, attempt, rows, request)
        self._cluster.easing.note(attempt, request)
        attempt.takes_whole_hosts = request.exclusive
        if request.exclusive:
            for row, share in zip(rows, attempt.allocation, strict=True):
                table.take(row, share, True)
            del self._rows[-count:], self._shares[-count:]

    def close(self) -> None:
        """Nothing more comes."""
        if self._rows:
            self._cluster.table.take_many(self._rows, self._shares)
