"""Events of bmod, bswitch, btop and bbot, and of job groups."""

from collections.abc import Callable
from typing import Any

from lavad.core import events as e
from lavad.core.apply import advance_reservations, allocate, charge, elements, start_conditions
from lavad.core.apply.enqueue import (
    add,
    ended_counts,
    entry,
    is_listed,
    list_apart,
    list_array,
    list_element,
    list_job,
    unlist_element,
    waiting_counts,
)
from lavad.core.cluster import Cluster
from lavad.core.job_group_events import JobGroupSet, JobGroupsRemoved
from lavad.core.model import AS_STARTED, JobState, RunChange, Shared, limits_of
from lavad.core.state.records import ArrayRecord, Job


def _job_modified(cluster: Cluster, event: e.JobModified) -> None:
    record = cluster.jobs[event.job.id]
    if event.indices and isinstance(record, ArrayRecord):
        _elements_modified(cluster, record, event)
        return
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
        _change_run(cluster, record, event.run)
    record.shared, record.text, record.priority = shared, event.job.text, event.job.priority
    cluster.names.add(shared.uid, record.text, record.id)
    start_conditions.change(cluster, record, event.job, event.at)
    if isinstance(record, ArrayRecord):
        record.limit = event.job.array_limit
        for job in record.live.values():
            if job.index not in record.changed:
                _change_running(cluster, job, shared)
        list_array(cluster, record)
        list_apart(cluster, record)
    elif waiting:
        list_job(cluster, record)
    else:
        _change_runner(cluster, record)


def _elements_modified(cluster: Cluster, array: ArrayRecord, event: e.JobModified) -> None:
    """Change elements by themselves; what they wait for stays up to their array."""
    shared = start_conditions.adapted(cluster, cluster.intern(event.job.shared), array.start_conditions)
    elements.set_apart(array, event.indices)
    array.changed.update(event.indices)
    array.newest_part = max(array.newest_part, event.part)
    for index in event.indices:
        job = array.job_of(index)
        assert job is not None, f"{array.id}[{index}] has ended"
        if index in array.live:
            _change_memory(cluster, job, shared)
            _change_running(cluster, job, shared)
            _change_run(cluster, job, event.run)
        else:
            unlist_element(cluster, array, job)
            cluster.counters.add(job.shared, job.state, -1)
            cluster.counters.add(shared, job.state)
            job.shared = shared
        job.text, job.priority, job.part = event.job.text, event.job.priority, event.part
    list_array(cluster, array)
    list_apart(cluster, array)


def _change_running(cluster: Cluster, job: Job, shared: Shared) -> None:
    """Give an element that holds hosts other parameters."""
    cluster.counters.add(job.shared, job.state, -1)
    cluster.counters.add(shared, job.state)
    charge.recharge(cluster, job, shared)
    _change_limits(cluster, job, shared)
    job.shared = shared
    _change_runner(cluster, job)


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


def _change_run(cluster: Cluster, job: Job, given: RunChange) -> None:
    """Give a job that holds hosts what else a bmod changes of it; what it was given before stays."""
    attempt = job.attempt
    if attempt is not None and given != AS_STARTED:
        before = attempt.changed or AS_STARTED
        limit_s = before.cpu_limit_s if given.cpu_limit_s is None else given.cpu_limit_s
        attempt.changed = RunChange(limit_s, given.files or before.files)
        attempt.limits_version += 1
        cluster.changed_attempts.add(attempt.key)


def _change_runner(cluster: Cluster, job: Job) -> None:
    """Update the index of preemptable jobs, and when the job migrates, after a change of the queue."""
    if job.attempt is not None:
        cluster.preemptable.discard(job.attempt)
        cluster.preemptable.note(job)
        cluster.migrations.follow(cluster.policy, job, job.attempt)


def _job_moved(cluster: Cluster, event: e.JobMoved) -> None:
    record = cluster.jobs[event.job]
    was_listed = is_listed(record)
    if was_listed:
        cluster.pending.remove(record.shared, entry(cluster, record))
    record.position, record.aged_from = event.position, event.aged_from
    cluster.displaced.add(record.id)
    if was_listed:
        add(cluster, record)
    if isinstance(record, ArrayRecord):
        _move_changed(cluster, record)


def _move_changed(cluster: Cluster, array: ArrayRecord) -> None:
    """Move elements that were changed by themselves along with their array."""
    for index in array.changed:
        job = array.job_of(index)
        if job is not None:
            unlist_element(cluster, array, job)
            job.position, job.aged_from = array.position, array.aged_from
            if index in array.apart:
                list_element(cluster, array, job)


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
