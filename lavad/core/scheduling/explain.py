"""Why does this job wait? Computed when asked, host by host: every cause that holds, and the change that would help."""

from lavad.core import reasons as r
from lavad.core.cluster import Cluster
from lavad.core.conditions import is_never
from lavad.core.eligibility import obstacle
from lavad.core.model import JobState, Request, RoleRequest
from lavad.core.reasons import PendingReason
from lavad.core.records import ArrayRecord, Attempt, Job
from lavad.core.requirement import select_mask


def explain(cluster: Cluster, record: Job | ArrayRecord, index: int, now: float) -> list[PendingReason]:
    """Every reason that holds now, those about the job itself first; empty when the job does not wait."""
    state = record.state_of(index) if isinstance(record, ArrayRecord) else record.state
    if state is JobState.PSUSP:
        return [PendingReason(*r.HELD_BY_USER)]
    if state is not JobState.PEND:
        return []
    terms = _terms_reasons(cluster, record, index)
    if terms:
        return terms
    return [*_own_reasons(cluster, record, index, now), *_host_reasons(cluster, record.shared.request)] or [
        PendingReason(*r.NEW_JOB)
    ]


def explain_ending(attempt: Attempt) -> list[PendingReason]:
    """Why a job that is to run again still holds its hosts: those that have not yet said that nothing is left."""
    if not attempt.doomed:
        return []
    code, text = r.REQUEUED
    waits = f"{text} ({attempt.doomed}), when nothing is left of it"
    return [PendingReason(code, waits, tuple(sorted(attempt.unreleased)))]


def _terms_reasons(cluster: Cluster, record: Job | ArrayRecord, index: int) -> list[PendingReason]:
    """What must come true before the job is considered at all; no host matters until then."""
    terms = record.terms
    if terms is None:
        return []
    found = [PendingReason(*r.BEGIN_TIME)] if terms.is_early else []
    if terms.condition is not None and (not isinstance(record, ArrayRecord) or index in record.unmet):
        is_lost = is_never(cluster, terms.condition, index)
        found.append(PendingReason(*(r.NEVER_SATISFIED if is_lost else r.DEPENDENCY)))
    return found


def _own_reasons(cluster: Cluster, record: Job | ArrayRecord, index: int, now: float) -> list[PendingReason]:
    found = []
    shared = record.shared
    queue = cluster.policy.queue(shared.queue)
    kept_back = obstacle(cluster, queue, shared.run_limit_s, shared.terminate_at, now)
    if kept_back is not None:
        found.append(PendingReason(*kept_back))
    postponed = record.postponed.get(index, "") if isinstance(record, ArrayRecord) else record.postponed_reason
    if postponed:
        code, text = r.REQUEUED
        found.append(PendingReason(code, f"{text} ({postponed})"))
    if isinstance(record, ArrayRecord) and record.limit and len(record.live) >= record.limit:
        found.append(PendingReason(*r.ARRAY_LIMIT, advice=f"raise its limit of {record.limit} running elements"))
    return found


def _host_reasons(cluster: Cluster, request: Request) -> list[PendingReason]:
    """One reason for each cause, with the hosts it rules out; none when enough hosts have room."""
    if not any(host.facts.server for host in cluster.hosts.values()):
        return [PendingReason(r.NO_SLOTS[0], "No host has joined the cluster yet")]
    by_cause: dict[tuple[int, str], list[str]] = {}
    free_slots = free_hosts = 0
    has_room = True
    for role in request.roles:
        mask = select_mask(role.select, cluster.table)
        room = 0
        for name, host in cluster.hosts.items():
            if not host.facts.server:
                continue
            cause = _cause(cluster, request, role, name, bool(mask[host.row]))
            if cause is not None:
                by_cause.setdefault(cause, []).append(name)
            else:
                free = int(cluster.table.slots_free[host.row])
                free_slots += free
                free_hosts += 1
                room += min(free // role.slots_per_task, role.ptile or role.tasks_min)
        has_room = has_room and room >= role.tasks_min
    if has_room:
        return []
    found = [PendingReason(code, text, tuple(names)) for (code, text), names in by_cause.items()]
    if free_hosts and free_slots < request.slots_min:
        advice = f"it needs {request.slots_min} slots; {free_slots} are free on hosts it could use"
        found.insert(0, PendingReason(*r.NO_SLOTS, advice=advice))
    elif free_hosts and found:
        found.insert(0, PendingReason(*r.SPAN))
    return found


def _cause(cluster: Cluster, request: Request, role: RoleRequest, name: str, selected: bool) -> tuple[int, str] | None:
    """The first thing that rules this host out for this role, or None."""
    host, table = cluster.hosts[name], cluster.table
    row = host.row
    tasks = role.tasks_min if role.one_host else min(role.ptile or 1, role.tasks_min)
    gpus = role.gpus * tasks if role.gpus_per_task else role.gpus
    checks = (
        (bool(request.hosts) and name not in request.hosts, r.NOT_NAMED),
        (not host.is_connected or host.is_silent, r.UNREACHABLE),
        (bool(host.closed_by), r.CLOSED),
        (host.is_shut, r.HOST_WINDOW),
        (not table.usable[row], r.RECENT_FAILURE),
        (not selected, r.REQUIREMENT),
        (bool(table.taken_whole[row]), r.RUNNING_EXCLUSIVE),
        (request.exclusive and bool(host.attempts), r.EXCLUSIVE),
        (host.facts.slots < tasks * role.slots_per_task, r.SLOT_LIMIT),
        (bool(table.slots_free[row] < tasks * role.slots_per_task), r.NO_SLOTS),
        (bool(table.memory_free_mib[row] < role.memory_mib), r.MEMORY),
        (bool(table.gpus_free[row] < gpus), r.GPUS),
    )
    return next((reason for holds, reason in checks if holds), None)
