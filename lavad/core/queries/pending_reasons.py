"""Pending reasons of a job, computed on request: every reason that holds, host by host, with advice."""

from dataclasses import replace

from lavad.core.cluster_view import ClusterView
from lavad.core.decide.jobs.dependencies import is_never
from lavad.core.model import NO_RETRY, JobState, Retry, Shared
from lavad.core.model import reasons as r
from lavad.core.model.demand import demand_of
from lavad.core.model.reasons import PendingReason
from lavad.core.model.windows import NEVER, Window, moment_text, opens_at
from lavad.core.queries.backfill_reasons import DelayedBy, delayed_by
from lavad.core.queries.fairshare_tree import turn
from lavad.core.queries.host_reasons import host_reasons
from lavad.core.scheduling.backfill.reservations import ReservationTable
from lavad.core.scheduling.capacity.allowance import Allowance
from lavad.core.scheduling.capacity.constraints import allowance_of
from lavad.core.scheduling.queueing.eligibility import obstacle
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import ArrayRecord, Claim, Job

Windows = tuple[Window, ...]


def explain(
    cluster: ClusterView,
    record: Job | ArrayRecord,
    index: int,
    now: float,
    reservation_table: ReservationTable | None = None,
    of_hosts: dict[Shared, list[PendingReason]] | None = None,
) -> list[PendingReason]:
    """Return every reason that holds now, those of the job itself first; empty if it is not pending.

    Args:
        reservation_table: the scheduler's reservation table.
        of_hosts: host reasons of equal jobs at this moment; new ones are added.
    """
    record = _bearer_of(record, index)
    state = record.state_of(index) if isinstance(record, ArrayRecord) else record.state
    retry = record.retries.get(index, NO_RETRY) if isinstance(record, ArrayRecord) else record.retry
    if state is JobState.PSUSP:
        holder = r.HELD_BY_ADMIN if _is_held_by_admin(record, index) else r.HELD_BY_USER
        return [_pre_exec_reason(cluster, retry, now)] if retry.at < 0 else [PendingReason(holder)]
    if state is not JobState.PEND:
        return []
    conditions = _start_condition_reasons(cluster, record, index)
    if conditions or retry.at > now:
        postponed = record.postponed.get(index, "") if isinstance(record, ArrayRecord) else record.postponed_reason
        return [*conditions, *_retry_reasons(cluster, retry, postponed, now)]
    allowance = allowance_of(cluster, now)
    own = [*_own_reasons(cluster, record, index, now), *allowance.reasons(demand_of(record.shared))]
    if any(one.code in (r.RESERVATION_GONE.code, r.RESERVATION_INACTIVE.code) for one in own):
        return own  # no host matters until then
    claim = cluster.claims.get((record.id, index))
    known = of_hosts.get(record.shared) if of_hosts is not None and claim is None else None
    about_hosts = _about_hosts(cluster, record.shared, allowance, claim, now) if known is None else known
    if of_hosts is not None and claim is None:
        of_hosts[record.shared] = about_hosts
    found = [*own, *about_hosts]
    if not about_hosts:
        held = delayed_by(cluster, reservation_table, record, index, now)
        found += [_held_reason(cluster, held)] if held is not None else []
    return found or [PendingReason(r.NEW_JOB, advice=turn(cluster, record.shared, now))]


def _bearer_of(record: Job | ArrayRecord, index: int) -> Job | ArrayRecord:
    """The record with the parameters of a pending job or element."""
    return record.apart.get(index, record) if isinstance(record, ArrayRecord) else record


def _array_of(record: Job | ArrayRecord) -> ArrayRecord | None:
    return record if isinstance(record, ArrayRecord) else record.array


def _is_held_by_admin(record: Job | ArrayRecord, index: int) -> bool:
    return record.conditions is not None and index in record.conditions.admin_held


def _about_hosts(
    cluster: ClusterView, shared: Shared, allowance: Allowance, claim: Claim | None, now: float
) -> list[PendingReason]:
    demand = demand_of(shared, cluster.pending.request_of(shared))
    demand = demand._replace(given=claim.allocation if claim is not None else ())
    queue = cluster.policy.queue(shared.queue)
    bounds = queue.thresholds if queue is not None else ()
    found = host_reasons(cluster, demand, allowance=allowance, claim=claim, bounds=bounds)
    return [_with_opening(cluster, one, now) for one in found]


class PendingReasons:
    """Pending reasons of many jobs at one moment; parts common to equal jobs are computed once.

    Valid as long as the cluster does not change.
    """

    def __init__(self, cluster: ClusterView, now: float, reservation_table: ReservationTable | None) -> None:
        self._cluster = cluster
        self._now = now
        self._reservation_table = reservation_table
        self._of_hosts: dict[Shared, list[PendingReason]] = {}
        self._of_elements: dict[tuple[int, JobState, str], list[PendingReason]] = {}
        self._with_reservation = (
            {one.job for one in reservation_table.reservations} if reservation_table is not None else set()
        )

    def of(self, record: Job | ArrayRecord, index: int) -> list[PendingReason]:
        """Reasons of the job or element, as ``explain`` returns them."""
        key = self._key(record, index)
        found = self._of_elements.get(key) if key is not None else None
        if found is None:
            found = explain(self._cluster, record, index, self._now, self._reservation_table, self._of_hosts)
            if key is not None:
                self._of_elements[key] = found
        return found

    def _key(self, record: Job | ArrayRecord, index: int) -> tuple[int, JobState, str] | None:
        """Key shared by array elements with equal reasons; None if this element may have reasons of its own."""
        if not isinstance(record, ArrayRecord) or index in record.apart:
            return None
        if index in record.unmet or record.id in self._with_reservation:
            return None
        state = record.state_of(index)
        if state is JobState.PSUSP and _is_held_by_admin(record, index):
            return None
        if state is None or index in record.retries or (record.id, index) in self._cluster.claims:
            return None
        return record.id, state, record.postponed.get(index, "")


def _held_reason(cluster: ClusterView, held: DelayedBy) -> PendingReason:
    """Reason for a job that fits now but would delay a reservation."""
    name = f"{held.job}[{held.element}]" if held.element else str(held.job)
    details = f"Job: {name}, From: {moment_text(held.begins_at, cluster.policy.zone)}"
    minutes = held.minutes
    unit = "minute" if minutes == 1 else "minutes"
    advice = f"with a run limit of at most {minutes} {unit} it would be over by then" if minutes else ""
    return PendingReason(r.HELD_BACK.with_details(details), advice=advice)


def explain_ending(attempt: Attempt) -> list[PendingReason]:
    """Reasons for which a job to be requeued still holds hosts: those that have not released it."""
    if not attempt.doomed:
        return []
    waits = r.REQUEUED.saying(f"{r.REQUEUED.text} ({attempt.doomed}), when nothing is left of it")
    return [PendingReason(waits, tuple(sorted(attempt.unreleased)))]


def _start_condition_reasons(cluster: ClusterView, record: Job | ArrayRecord, index: int) -> list[PendingReason]:
    """Start conditions still unmet; until then no host matters."""
    conditions, array = record.conditions, _array_of(record)
    if conditions is None:
        return []
    found = [PendingReason(r.BEGIN_TIME)] if conditions.is_early and conditions.begin_at >= conditions.retry.at else []
    if conditions.condition is not None and (array is None or index in array.unmet):
        is_lost = is_never(cluster, conditions.condition, index)
        found.append(PendingReason(r.NEVER_SATISFIED if is_lost else r.DEPENDENCY))
    return found


def _pre_exec_reason(cluster: ClusterView, retry: Retry, now: float) -> PendingReason:
    """Reason for a job whose pre-execution command has failed."""
    times = f"{retry.failures} times in a row" if retry.failures > 1 else "once"
    if retry.at < 0:
        return PendingReason(r.PRE_EXEC[retry.whose], advice=f"held after it failed {times}; bresume tries it again")
    after = f"; next try after {moment_text(retry.at, cluster.policy.zone)}" if retry.at > now else ""
    return PendingReason(r.PRE_EXEC[retry.whose], advice=f"it failed {times}{after}; bhist -l says how")


def _retry_reasons(cluster: ClusterView, retry: Retry, postponed: str, now: float) -> list[PendingReason]:
    """Reason for a job that was dispatched before, with the time of its next try while it waits for that."""
    if retry.failures:
        return [_pre_exec_reason(cluster, retry, now)]
    if not postponed:
        return []
    advice = f"next start after {moment_text(retry.at, cluster.policy.zone)}" if retry.at > now else ""
    return [PendingReason(r.REQUEUED.with_details(postponed), advice=advice)]


def _own_reasons(cluster: ClusterView, record: Job | ArrayRecord, index: int, now: float) -> list[PendingReason]:
    found = []
    shared = record.shared
    queue = cluster.policy.queue(shared.queue)
    kept_back = obstacle(cluster, queue, shared.run_limit_s, shared.terminate_at, now)
    if kept_back is not None:
        advice = _opening(cluster, queue.run_windows, queue.dispatch_windows, now) if queue is not None else ""
        found.append(PendingReason(kept_back, advice=advice if kept_back == r.QUEUE_WINDOW else ""))
    reservation = shared.request.reservation
    if reservation and reservation not in cluster.reserved.by_name:
        found.append(PendingReason(r.RESERVATION_GONE, advice="take it out of the reservation with bmod -Un"))
    elif reservation and not cluster.reserved.holds(cluster, reservation, now):
        found.append(PendingReason(r.RESERVATION_INACTIVE))
    if shared.queue in cluster.shares.trees and _has_no_share(cluster, record):
        found.append(PendingReason(r.NO_SHARE))
    postponed = record.postponed.get(index, "") if isinstance(record, ArrayRecord) else record.postponed_reason
    retry = record.retries.get(index, NO_RETRY) if isinstance(record, ArrayRecord) else record.retry
    found += _retry_reasons(cluster, retry, postponed, now)
    array = _array_of(record)
    if array is not None and array.is_full:
        found.append(PendingReason(r.ARRAY_LIMIT, advice=f"raise its limit of {array.limit} running elements"))
    return found


def _opening(cluster: ClusterView, one: Windows, other: Windows, now: float) -> str:
    """Text with the next time at which both windows are open."""
    at = opens_at([one, other], cluster.policy.zone, now)
    return f"they open next on {moment_text(at, cluster.policy.zone)}" if at < NEVER else "they never open"


def _with_opening(cluster: ClusterView, reason: PendingReason, now: float) -> PendingReason:
    """Reason about hosts; if their windows are closed, with the time at which the first opens."""
    if reason.code != r.HOST_WINDOW.code:
        return reason
    facts = [cluster.hosts[name].facts for name in reason.hosts]
    rules = {cluster.policy.host_rule(one.name, one.model, one.type).dispatch_windows for one in facts}
    first = min((opens_at([windows], cluster.policy.zone, now) for windows in rules), default=NEVER)
    told = f"the first opens on {moment_text(first, cluster.policy.zone)}" if first < NEVER else "none ever opens"
    return replace(reason, advice=told)


def _has_no_share(cluster: ClusterView, record: Job | ArrayRecord) -> bool:
    """True if the user's share was removed after the submission."""
    shared = record.shared
    return cluster.shares.account_of(shared.queue, shared.user, shared.user_group) is None
