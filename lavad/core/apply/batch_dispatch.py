"""Application of many dispatches at once: same effect as one by one, with changes of buckets and hosts summed up."""

from collections.abc import Sequence

from lavad.core import lifecycle
from lavad.core.apply import charge, start_conditions
from lavad.core.apply.allocate import begin_lease, enter_in_pool
from lavad.core.apply.enqueue import entry
from lavad.core.apply.jobs import element_for_dispatch
from lavad.core.apply.tasks import events as task_events
from lavad.core.cluster import Cluster
from lavad.core.events import AttemptDispatched, Event
from lavad.core.model import CountKey, HostShare, JobState, Key, Request, Shared
from lavad.core.state.attempts import Attempt
from lavad.core.state.hosts import compute_units
from lavad.core.state.records import ArrayRecord, Job

_PEND, _STAGING = JobState.PEND, JobState.STAGING
MANY = 16  # events from which on it pays


def all_starts(cluster: Cluster, events: Sequence[Event]) -> list[AttemptDispatched] | None:
    """The events, if all are dispatches and no claim exists; else None."""
    starts = [event for event in events if isinstance(event, AttemptDispatched)]
    return starts if len(starts) == len(events) and not cluster.claims else None


def dispatch_all(cluster: Cluster, events: Sequence[AttemptDispatched]) -> None:
    """Apply these dispatches."""
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
            shared = job.shared
        else:
            job = record
            if not pending.remove_head(shared, job.id, is_planned=True):
                pending.remove(shared, entry(cluster, job))
            if job.start_conditions is not None:
                start_conditions.force(cluster, job, 0)
        moved.append(shared.sort)
        if has_dependants:
            cluster.dependants.note(job.id, job.index, _PEND, _STAGING)
        attempt = begun[key] = _begin_attempt(cluster, job, shared, event)
        booking.book(attempt, shared)
    cluster.attempts.update(begun)
    cluster.staging.update(begun)
    cluster.changed_attempts.update(begun)
    cluster.counters.move_each(moved, _PEND, _STAGING)
    booking.close()


def _element(cluster: Cluster, array: ArrayRecord, event: AttemptDispatched) -> Job:
    job = element_for_dispatch(cluster, array, event.key.index)
    array.counts[_PEND] -= 1
    array.counts[_STAGING] += 1
    return job


def _begin_attempt(cluster: Cluster, job: Job, shared: Shared, event: AttemptDispatched) -> Attempt:
    at, key, allocation, launch_now, reason, is_unconstrained, _ = event
    if job.state is not _PEND:
        lifecycle.check(job.state, event, _STAGING)
    job.state = _STAGING
    job.attempts = key[2]
    job.postponed_reason = ""
    attempt, policy = Attempt(key, allocation, at, launch_now, reason), cluster.policy
    attempt.launch_due = at + policy.staging_s(shared.queue, shared.application)
    attempt.is_unconstrained = is_unconstrained
    if policy.fence_after_s:
        begin_lease(cluster, attempt)
    job.attempt = attempt
    if shared.tasks is not None:
        task_events.begin(cluster, job, attempt)
    return attempt


class _Booking:
    """Booking of the shares of several attempts: entered with hosts one by one, in the host table together."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._hosts = cluster.hosts
        cluster.unentered.enter()
        self._is_charged = bool(cluster.limits or cluster.shares or cluster.budgets or cluster.job_groups)
        self._is_pooled = bool(cluster.pools)
        self._rows: list[int] = []
        self._shares: list[HostShare] = []

    def book(self, attempt: Attempt, shared: Shared) -> None:
        """Book the shares of an attempt."""
        key, hosts, request = attempt.key, self._hosts, shared.request
        for share in attempt.allocation:
            host = hosts[share[0]]
            host.entered[key] = share
            self._rows.append(host.row)
            self._shares.append(share)
        if not request.is_basic:
            self._book_special(attempt, request)
        if self._is_pooled:
            enter_in_pool(self._cluster, attempt, attempt.allocation)
        if self._is_charged:
            charge.charge(self._cluster, attempt, shared)

    def _book_special(self, attempt: Attempt, request: Request) -> None:
        """Book compute units, timed reservations and exclusive hosts."""
        table, count = self._cluster.table, len(attempt.allocation)
        rows = self._rows[-count:]
        compute_units.keep(table, attempt, rows, request)
        self._cluster.timed_rusage.note(attempt, request)
        attempt.takes_whole_hosts = request.exclusive
        if request.exclusive:
            for row, share in zip(rows, attempt.allocation, strict=True):
                table.take(row, share, True)
            del self._rows[-count:], self._shares[-count:]

    def close(self) -> None:
        """Book the collected shares in the host table."""
        if self._rows:
            self._cluster.table.take_many(self._rows, self._shares)
