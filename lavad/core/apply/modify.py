"""Events of bmod, bswitch, btop and bbot, and of job groups."""

from collections.abc import Callable
from typing import Any

from lavad.core import events as e
from lavad.core.apply import advance_reservations, allocate, charge, start_conditions
from lavad.core.apply.enqueue import add, ended_counts, entry, is_listed, list_array, list_job, waiting_counts
from lavad.core.cluster import Cluster
from lavad.core.job_group_events import JobGroupSet, JobGroupsRemoved
from lavad.core.model import JobState, Shared, limits_of
from lavad.core.state.records import ArrayRecord, Job


def _job_modified(cluster: Cluster, event: e.JobModified) -> None:
    record = cluster.jobs[event.job.id]
    start_conditions.forgive(record, event.job.shared)
    shared = start_conditions.adapted(cluster, cluster.intern(event.job.shared), record.start_conditions)
    if shared.request.reservation != record.shared.request.reservation:
        advance_reservations.move(cluster, record, shared.request.reservation)
    waiting = isinstance(record, ArrayRecord) or record.state is JobState.PEND
    cluster.pending.remove(record.shared, entry(cluster, record))
    ended = ended_counts(record) if isinstance(record, ArrayRecord) else []
    for state, count in (*waiting_counts(record), *ended):
        cluster.counters.add(record.shared, state, -count)
        cluster.counters.add(shared, state, count)
    cluster.names.remove(record.shared.uid, record.text, record.id)
    if isinstance(record, Job):
        _change_memory(cluster, record, shared)
        charge.recharge(cluster, record, shared)
        _change_limits(cluster, record, shared)
    record.shared, record.text, record.priority = shared, event.job.text, event.job.priority
    cluster.names.add(shared.uid, record.text, record.id)
    start_conditions.change(cluster, record, event.job, event.at)
    if isinstance(record, ArrayRecord):
        record.limit = event.job.array_limit
        for job in record.live.values():
            cluster.counters.add(job.shared, job.state, -1)
            cluster.counters.add(shared, job.state)
            charge.recharge(cluster, job, shared)
            _change_limits(cluster, job, shared)
            job.shared = shared
            _change_runner(cluster, job)
        list_array(cluster, record)
    elif waiting:
        list_job(cluster, record)
    else:
        _change_runner(cluster, record)


def _change_memory(cluster: Cluster, job: Job, shared: Shared) -> None:
    """Change the memory held by a job that has hosts."""
    old, new = job.shared.request.single_role, shared.request.single_role
    if job.attempt is None or old is None or new is None:  # with several roles the change was refused
        return
    if new.memory_mib != old.memory_mib:
        allocate.hold_memory(cluster, job.attempt, new.memory_mib - old.memory_mib)


def _change_limits(cluster: Cluster, job: Job, shared: Shared) -> None:
    """Give a job that holds hosts other limits; its expected end may change."""
    if job.attempt is not None and limits_of(job.shared) != limits_of(shared):
        job.attempt.limits_version += 1
        cluster.changed_attempts.add(job.attempt.key)


def _change_runner(cluster: Cluster, job: Job) -> None:
    """Update the index of preemptable jobs after a change of the queue."""
    if job.attempt is not None:
        cluster.preemptable.discard(job.attempt)
        cluster.preemptable.note(job)


def _job_moved(cluster: Cluster, event: e.JobMoved) -> None:
    record = cluster.jobs[event.job]
    was_listed = is_listed(record)
    if was_listed:
        cluster.pending.remove(record.shared, entry(cluster, record))
    record.position, record.aged_from = event.position, event.aged_from
    if was_listed:
        add(cluster, record)


def _job_group_set(cluster: Cluster, event: JobGroupSet) -> None:
    cluster.job_groups.put(event.group)
    cluster.limits.limit_group(event.group.path, event.group.limit)


def _job_groups_removed(cluster: Cluster, event: JobGroupsRemoved) -> None:
    for path in event.paths:
        cluster.job_groups.drop(path)
        cluster.limits.drop_group(path)


HANDLERS: dict[type, Callable[[Cluster, Any], None]] = {
    e.JobModified: _job_modified,
    e.JobMoved: _job_moved,
    JobGroupSet: _job_group_set,
    JobGroupsRemoved: _job_groups_removed,
}
