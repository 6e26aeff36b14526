"""State restored from rows after a restart. Rows are the truth, so no event comes of it."""

from lavad.core.apply import allocate, charge, claims, enqueue, resize, start_conditions
from lavad.core.apply.reconfigure import note_exclusive, sort_pending
from lavad.core.apply.tasks import activity, places
from lavad.core.apply.tasks import events as task_events
from lavad.core.cluster import Cluster
from lavad.core.job_group_events import JobGroup
from lavad.core.model import FINAL, HOLDING, HostFacts, JobState
from lavad.core.model.advance_reservation import AdvanceReservation
from lavad.core.model.host_config import BY_HOST, as_configured
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import ArrayRecord, Claim, Host, Job, LockId


def adopt_host(
    cluster: Cluster,
    facts: HostFacts,
    closed_by: str = "",
    comment: str = "",
    revoked_at: float = 0.0,
    noticed_at: float = 0.0,
) -> None:
    """Restore a host as its agent last offered it; it is unusable until the agent's hello."""
    counting = as_configured(cluster.policy, facts)
    host = Host(counting, cluster.table.add(counting), cluster.unentered, facts)
    if closed_by == BY_HOST and not noticed_at:  # as databases before schema step 11 have it
        revoked_at, noticed_at = 0.0, revoked_at
    host.closed_by, host.comment, host.revoked_at, host.noticed_at = closed_by, comment, revoked_at, noticed_at
    cluster.hosts[facts.name] = host
    cluster.pools.note_host(facts.name, counting.slots)
    note_exclusive(cluster, counting)


def adopt_host_lock(cluster: Cluster, name: str, lock: tuple[str, float]) -> None:
    """Restore the lock of a host."""
    if name in cluster.hosts:
        cluster.hosts[name].lock = lock
        cluster.locked_hosts.add(name)


def adopt_lock_ids(cluster: Cluster, name: str, lock_ids: dict[str, LockId]) -> None:
    """Restore the lock IDs that a host is closed with."""
    if name in cluster.hosts:
        cluster.hosts[name].lock_ids = lock_ids


def adopt_job(cluster: Cluster, job: Job) -> None:
    """Restore a plain job. Its attempt, if any, is restored by ``adopt_attempt``."""
    job.shared = start_conditions.adapted(cluster, cluster.intern(job.shared), job.start_conditions)
    job.text = cluster.texts[job.text]
    cluster.jobs[job.id] = job
    _note_reservation(cluster, job)
    cluster.next_job = max(cluster.next_job, job.id + 1)
    cluster.counters.add(job.shared, job.state)
    if job.state in FINAL:
        cluster.finished[job.id, 0] = job
        start_conditions.watch_ttl(cluster, job)
        return
    start_conditions.adopt(cluster, job)
    if job.may_start:
        enqueue.add(cluster, job)


def order_jobs(cluster: Cluster) -> None:
    """Sort the restored jobs by number, so that listings are as before the restart."""
    ordered = sorted(cluster.jobs.items())
    cluster.jobs.clear()
    cluster.jobs.update(ordered)
    cluster.displaced.update(job for job, record in ordered if record.position != job)


def adopt_array(cluster: Cluster, array: ArrayRecord) -> None:
    """Restore an array: pending and held sets, ended elements, live elements in ``live``."""
    array.shared = start_conditions.adapted(cluster, cluster.intern(array.shared), array.start_conditions)
    cluster.jobs[array.id] = array
    _note_reservation(cluster, array)
    cluster.next_job = max(cluster.next_job, array.id + 1)
    array.divide()
    cluster.counters.add(array.shared, JobState.PEND, len(array.pending) + len(array.blocked))
    cluster.counters.add(array.shared, JobState.PSUSP, len(array.held))
    for state, count in enqueue.ended_counts(array):
        cluster.counters.add(array.shared, state, count)
    for job in (*array.live.values(), *array.apart.values()):
        _join(cluster, array, job)
        cluster.counters.add(job.shared, job.state)
    for job in array.live.values():
        array.counts[job.state] += 1
    if array.is_over:
        cluster.ended_arrays[array.id] = array.over_at
        start_conditions.watch_ttl(cluster, array)
    else:
        start_conditions.adopt(cluster, array)
    enqueue.list_array(cluster, array)
    enqueue.list_apart(cluster, array)


def _join(cluster: Cluster, array: ArrayRecord, job: Job) -> None:
    """Connect an element with its array; it has the array's shared facts unless it was changed by itself."""
    job.array = array
    is_own = job.part > 0
    job.shared = (
        start_conditions.adapted(cluster, cluster.intern(job.shared), array.start_conditions)
        if is_own
        else array.shared
    )


def adopt_ended_element(cluster: Cluster, array: ArrayRecord, job: Job) -> None:
    """Restore an ended element that is recent enough for listings."""
    _join(cluster, array, job)
    cluster.finished[job.id, job.index] = job


def adopt_attempt(cluster: Cluster, attempt: Attempt) -> None:
    """Restore an attempt and book its shares. An unknown host is made up from the share, silent."""
    job = cluster.element(attempt.key.job, attempt.key.index)
    if job is not None and job.state in HOLDING and job.attempts == attempt.key.attempt:
        job.attempt = attempt
        attempt.over = False
        if job.state is JobState.STAGING:
            cluster.staging[attempt.key] = attempt
    else:
        attempt.over = True
    if job is not None and job.tasks is not None and not attempt.over:
        adopt_tasks(cluster, job, attempt)
    cluster.attempts[attempt.key] = attempt
    cluster.changed_attempts.add(attempt.key)
    activity.adopt(cluster, attempt)
    if job is not None and not attempt.over:
        cluster.migrations.follow(cluster.policy, job, attempt)
    cluster.has_leases = cluster.has_leases or bool(attempt.lease_s)
    if attempt.lends:
        cluster.lenders[attempt.key] = attempt
    if job is not None and not attempt.over:
        cluster.preemptable.note(job)
        resize.note_resizable(cluster, job)
    for share in attempt.booked:
        if share.host in attempt.unreleased:
            if share.host not in cluster.hosts:
                adopt_host(cluster, HostFacts(share.host, share.slots, share.memory_mib))
            allocate.take(cluster, attempt, (share,))
    if not attempt.over and job is not None:
        charge.charge(cluster, attempt, job.shared)


def adopt_tasks(cluster: Cluster, job: Job, attempt: Attempt) -> None:
    """Restore the tasks of a running job: what follows from their state is decided at the next step."""
    attempt.tasks = job.tasks
    assert job.tasks is not None, f"{job.key} has no tasks"
    job.tasks.wishes = attempt.resizing.wishes
    places.find_leads(job.tasks)
    task_events.note(cluster, job)
    cluster.timed_tasks[job.id, job.index] = None


def _note_reservation(cluster: Cluster, record: Job | ArrayRecord) -> None:
    name = record.shared.request.reservation
    if name:
        cluster.reserved.enter(name, record.id)


def adopt_reservation(cluster: Cluster, one: AdvanceReservation) -> None:
    """Restore an advance reservation, before jobs, whose buckets depend on it."""
    cluster.reserved.put(one)
    sort_pending(cluster)


def adopt_job_group(cluster: Cluster, group: JobGroup) -> None:
    """Restore a job group, before attempts, which count for its limit."""
    cluster.job_groups.put(group)
    cluster.limits.limit_group(group.path, group.limit)


def adopt_claim(cluster: Cluster, claim: Claim) -> None:
    """Restore a claim, after attempts, so that its hosts are known."""
    claims.book_claim(cluster, claim)


def adopt_remembered(cluster: Cluster, record: Job | ArrayRecord) -> None:
    """Restore a forgotten job for jobs that depend on it."""
    record.shared = start_conditions.adapted(cluster, record.shared, record.start_conditions)
    cluster.remembered[record.id] = record
