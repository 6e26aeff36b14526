"""Start conditions of pending jobs: begin time, dependency condition, hold, the pause after a pre-execution command has
failed or an exit value has requeued the job; events that change them, those of jobs they depend on, and alarms.

A job whose conditions are not met is in no bucket, so it costs the scheduler nothing. Alarms are a heap of times at
which a job is checked: its begin time, and the deadline of one that may still be pending then.
"""

import heapq
from collections.abc import Callable
from dataclasses import replace
from math import ceil
from typing import Any

from lavad.core import events as e
from lavad.core import lifecycle
from lavad.core.apply import elements
from lavad.core.apply.enqueue import ended_counts, list_apart, list_array, list_element, list_job, unlist_element
from lavad.core.apply.tasks import places, queue_wait
from lavad.core.cluster import Cluster
from lavad.core.events import NewJob
from lavad.core.language.dependency import Expression
from lavad.core.model import EXIT_VALUE, FINAL, NO_RETRY, JobState, Key, PostState, Retry, Shared
from lavad.core.model.ranges import Ranges, keys_in
from lavad.core.model.windows import NEVER
from lavad.core.state.records import ArrayRecord, Job, StartConditions
from lavad.core.task_events import RestartedInQueue


def begin(cluster: Cluster, record: Job | ArrayRecord, new: NewJob, now: float) -> None:
    """Set the start conditions of a new job."""
    if new.condition is not None or new.begin_at or record.shared.terminate_at:
        _set(cluster, record, new, now)
    else:
        queue_wait.watch(cluster, record)


def change(cluster: Cluster, record: Job | ArrayRecord, new: NewJob, now: float) -> None:
    """Set the start conditions of a modified job. A condition once met stays met unless it is replaced."""
    old = record.start_conditions
    if new.dependency is not None:
        _let_go(cluster, record.id)
        _set(cluster, record, new, now)
        return
    condition = old.condition if old is not None else None
    record.start_conditions = _renewed(old, condition, new, now)
    _set_alarms(cluster, record)
    if isinstance(record, ArrayRecord):
        record.divide()
        list_apart(cluster, record)


def _set(cluster: Cluster, record: Job | ArrayRecord, new: NewJob, now: float) -> None:
    record.start_conditions = _renewed(record.start_conditions, new.condition, new, now)
    if isinstance(record, ArrayRecord):
        record.unmet = Ranges()
        if new.condition is not None:
            record.unmet = record.all_waiting(S.PEND)
            record.unmet.update(record.all_waiting(S.PSUSP))
        record.divide()
        list_apart(cluster, record)
    adopt(cluster, record)


def _renewed(
    old: StartConditions | None, condition: Expression | None, new: NewJob, now: float
) -> StartConditions | None:
    made = replace(
        old or StartConditions(),
        condition=condition,
        begin_at=new.begin_at,
        is_early=max(new.begin_at, old.retry.at if old is not None else 0.0) > now,
        ends_orphan=new.ends_orphan,
        absolute=new.absolute,
    )
    return None if made == StartConditions() else made


def bar(cluster: Cluster, record: Job | ArrayRecord, host: str) -> None:
    """Exclude a host from those of the job; of an array for all its elements."""
    conditions = record.start_conditions or StartConditions()
    if host not in conditions.excluded_hosts:
        record.start_conditions = replace(conditions, excluded_hosts=(*conditions.excluded_hosts, host))
        _adapt(cluster, record)


def _adapt(cluster: Cluster, record: Job | ArrayRecord) -> None:
    record.shared = adapted(cluster, record.shared, record.start_conditions)
    if not isinstance(record, ArrayRecord):
        return
    for index in record.changed:
        job = cluster.element(record.id, index)
        if job is not None:
            unlist_element(cluster, record, job)
            job.shared = adapted(cluster, job.shared, record.start_conditions)
            if index in record.apart:
                list_element(cluster, record, job)


def forgive(record: Job | ArrayRecord, shared: Shared) -> None:
    """Lift what keeps the job off hosts that its user names now (bmod -m, bmig -m)."""
    conditions = record.start_conditions
    if conditions is None or not conditions.excluded_hosts:
        return
    before = [host for host in record.shared.request.hosts if host.removeprefix("~") not in conditions.excluded_hosts]
    if list(shared.request.hosts) != before:
        named = {word.partition("+")[0].removesuffix("!") for word in shared.request.hosts}
        kept = tuple([host for host in conditions.excluded_hosts if host not in named])
        record.start_conditions = replace(conditions, excluded_hosts=kept)


def detach(cluster: Cluster, record: Job | ArrayRecord, reservation: str) -> None:
    """Detach the job from a removed advance reservation."""
    record.start_conditions = replace(record.start_conditions or StartConditions(), detached=reservation)
    _adapt(cluster, record)


def adapted(cluster: Cluster, shared: Shared, conditions: StartConditions | None) -> Shared:
    """Shared facts of the job that exclude the hosts to avoid, and leave out a removed reservation."""
    if conditions is None:
        return shared
    before = request = shared.request
    words = tuple(f"~{host}" for host in conditions.excluded_hosts if f"~{host}" not in request.hosts)
    if words:
        request = replace(request, hosts=(*request.hosts, *words))
    if conditions.detached and request.reservation == conditions.detached:
        request = replace(request, reservation="")
    return shared if request is before else cluster.intern(replace(shared, request=request))


def adopt(cluster: Cluster, record: Job | ArrayRecord) -> None:
    """Register the job with its parents and its alarms."""
    if record.start_conditions is not None and record.start_conditions.condition is not None:
        cluster.dependants.add(record.id, record.shared.uid, record.start_conditions.condition)
    _set_alarms(cluster, record)


def force(cluster: Cluster, record: Job | ArrayRecord, index: int) -> None:
    """Drop the start conditions of a job that is started by force (brun)."""
    if isinstance(record, ArrayRecord):
        record.blocked.discard(index)
        record.unmet.discard(index)
    elif record.start_conditions is not None:
        leave(cluster, record)
        record.start_conditions = replace(record.start_conditions, is_early=False)


def _set_alarms(cluster: Cluster, record: Job | ArrayRecord) -> None:
    if record.start_conditions is not None and record.start_conditions.is_early:
        heapq.heappush(cluster.alarms, (record.start_conditions.opens_at, record.id))
    if isinstance(record, ArrayRecord):
        for at in {one.at for one in record.retries.values() if one.at > 0}:
            heapq.heappush(cluster.alarms, (at, record.id))
    watch_deadline(cluster, record)
    queue_wait.watch(cluster, record)


def watch_deadline(cluster: Cluster, record: Job | ArrayRecord) -> None:
    """Set an alarm for the job's deadline, when it must not be pending any more."""
    if record.shared.terminate_at:
        heapq.heappush(cluster.alarms, (record.shared.terminate_at, record.id))


def met(cluster: Cluster, record: Job | ArrayRecord, indices: Ranges) -> None:
    """Note that the condition was true for these elements."""
    conditions = record.start_conditions
    assert conditions is not None, f"job {record.id} has no condition"
    if isinstance(record, ArrayRecord):
        record.unmet.difference_update(indices)
        if not conditions.is_early:
            opened = record.blocked.intersection(indices)
            record.blocked.difference_update(opened)
            record.pending.update(opened)
        if record.unmet:
            return
    record.start_conditions = replace(conditions, condition=None)
    _let_go(cluster, record.id)


def reached(record: Job | ArrayRecord, elements: tuple[int, ...], now: float) -> None:
    """Note that the begin time has come, or that the pause before the next try is over."""
    if record.start_conditions is not None and record.start_conditions.opens_at <= now:
        record.start_conditions = replace(record.start_conditions, is_early=False)
    if isinstance(record, ArrayRecord):
        record.retries.update({index: record.retries[index]._replace(at=0.0) for index in elements})
        record.divide()


def try_later(cluster: Cluster, job: Job, whose: str, is_held: bool, now: float) -> None:
    """Let a job whose pre-execution command has failed, or whose exit value requeues it, wait before it may start
    again; or hold it."""
    by_exit, policy = whose == EXIT_VALUE, cluster.policy
    pause_s = policy.requeue_pause_s if by_exit else policy.pre_exec_pause_s
    if by_exit and not pause_s:
        return
    at = -1.0 if is_held else float(ceil(now + pause_s))
    retry = Retry(0 if by_exit else job.retry.failures + 1, whose, at)
    if job.array is not None:
        job.array.retries[job.index] = retry
    else:
        conditions = job.start_conditions or StartConditions()
        job.start_conditions = replace(conditions, retry=retry, is_early=max(conditions.begin_at, at) > now)
    if not is_held:
        heapq.heappush(cluster.alarms, (at, job.id))


def note_hold(record: Job | ArrayRecord, indices: Ranges, is_admins: bool) -> None:
    """Note which elements an administrator holds: these besides others, or no longer."""
    conditions = record.start_conditions or StartConditions()
    if not (is_admins or conditions.admin_held):
        return
    held = conditions.admin_held.copy()
    chosen = indices if isinstance(record, ArrayRecord) else Ranges.of(0)
    (held.update if is_admins else held.difference_update)(chosen)
    if len(held) != len(conditions.admin_held):
        record.start_conditions = replace(conditions, admin_held=held)


def forget_failures(record: Job | ArrayRecord, indices: Ranges | tuple[int], now: float) -> None:
    """Forget failures and the pause before the next try: the job has started, or is resumed by a user."""
    if isinstance(record, ArrayRecord):
        for index in keys_in(record.retries, indices) if record.retries else ():
            del record.retries[index]
    elif record.start_conditions is not None and record.start_conditions.retry != NO_RETRY:
        record.start_conditions = replace(
            record.start_conditions, retry=NO_RETRY, is_early=record.start_conditions.begin_at > now
        )


def leave(cluster: Cluster, record: Job | ArrayRecord) -> None:
    """Drop the dependency condition of a job that is over."""
    if record.start_conditions is not None and record.start_conditions.condition is not None:
        record.start_conditions = replace(record.start_conditions, condition=None)
        _let_go(cluster, record.id)


def _let_go(cluster: Cluster, job: int) -> None:
    for parent in cluster.dependants.remove(job):
        if cluster.remembered.pop(parent, None) is not None:
            cluster.external_statuses.forget(parent)


def forget(cluster: Cluster, job: int) -> None:
    """Remove an ended job from memory; it is remembered while jobs depend on it."""
    record = cluster.jobs.pop(job, None)
    if record is None:
        return
    cluster.names.remove(record.shared.uid, record.text, job)
    cluster.capped.discard(job)
    cluster.displaced.discard(job)
    for state, count in ended_counts(record):
        cluster.counters.add(record.shared, state, -count)
    if record.shared.request.reservation:
        cluster.reserved.leave(record.shared.request.reservation, job)
    if cluster.dependants.is_parent(job):
        cluster.remembered[job] = record
    else:
        cluster.external_statuses.forget(job)


def _post_exec_ended(cluster: Cluster, event: e.PostExecEnded) -> None:
    _note_post(cluster, event.key, event.post, event.at)


def _note_post(cluster: Cluster, key: Key, post: PostState, at: float) -> None:
    """Set what has become of the post-execution commands of an ended job, for itself and for its dependants."""
    job, record = cluster.element(key.job, key.index), cluster.jobs.get(key.job)
    if job is not None and job.end is not None and job.attempts == key.attempt:
        job.end = job.end._replace(post=post, posted_at=at)
    if isinstance(record, ArrayRecord) and (job is None or job.end is not None):
        record.note_post(key.index, post)
    cluster.dependants.note_post(key.job, key.index)


def lose_post(cluster: Cluster, key: Key, at: float) -> None:
    """Note that the first host of an ended job has nothing of it any more: commands after it that are not told of have
    failed."""
    job = cluster.element(key.job, key.index)
    end = job.end if job is not None and job.attempts == key.attempt else None
    if end is not None and end.post is PostState.AWAITED:
        _note_post(cluster, key, PostState.ERR, at)


def ttl_end(record: Job | ArrayRecord) -> float:
    """Time at which an ended job is forgotten because it asked for that; infinite for any other."""
    ttl_s = record.shared.tasks.ttl_s if record.shared.tasks is not None else None
    if isinstance(record, Job):
        ended = record.end.at if record.end is not None and record.state in FINAL else None
    else:
        ended = record.over_at if record.is_over else None
    return ended + ttl_s if ttl_s is not None and ended is not None else NEVER


def watch_ttl(cluster: Cluster, record: Job | ArrayRecord) -> None:
    """Set the alarm at which an ended job is forgotten, if it asked for that."""
    if (at := ttl_end(record)) < NEVER:
        heapq.heappush(cluster.alarms, (at, record.id))


def is_due(record: Job | ArrayRecord, now: float) -> bool:
    """True if the begin time of a job, or the end of the pause of a retry, has come and is not noted yet."""
    is_open = (
        record.start_conditions is not None
        and record.start_conditions.is_early
        and record.start_conditions.opens_at <= now
    )
    return is_open or bool(due_elements(record, now))


def due_elements(record: Job | ArrayRecord, now: float) -> tuple[int, ...]:
    """Elements of an array whose pause before the next try is over, and not noted as such."""
    if not isinstance(record, ArrayRecord) or not record.retries:
        return ()
    return tuple([index for index, one in record.retries.items() if 0 < one.at <= now])


def waits_past_deadline(record: Job | ArrayRecord, now: float) -> bool:
    """True if the job, or an element, is still pending at its deadline."""
    if not 0.0 < record.shared.terminate_at <= now:
        return False
    if isinstance(record, ArrayRecord):
        return bool(record.pending or record.blocked or record.held or record.apart)
    return record.state in (JobState.PEND, JobState.PSUSP)


S = JobState


def _job_revived(cluster: Cluster, event: e.JobRevived) -> None:
    record = cluster.jobs[event.job]
    target = S.PSUSP if event.hold else S.PEND
    if isinstance(record, ArrayRecord):
        _elements_revived(cluster, record, event, target)
        return
    lifecycle.check(record.state, event, target)
    cluster.finished.pop((record.id, 0), None)
    cluster.counters.move(record.shared, record.state, target)
    if cluster.dependants:
        cluster.dependants.note(record.id, 0, record.state, target)
    record.state, record.end = target, None
    if record.tasks is not None:
        places.renewed(record.tasks)
    queue_wait.forget(record)
    watch_deadline(cluster, record)
    queue_wait.enters(cluster, record, event.at)
    list_job(cluster, record)


def _elements_revived(cluster: Cluster, array: ArrayRecord, event: e.JobRevived, target: JobState) -> None:
    elements.revive(cluster, array, event, target)
    before = ended_counts(array)
    for index in event.indices:
        if index in array.apart:
            continue
        old = cluster.finished.pop((array.id, index), None)
        if old is not None:
            array.attempts[index] = old.attempts
            if old.tasks is not None:
                places.renewed(old.tasks)
                array.tasks[index] = old.tasks
        array.forget_end(index)
    revived = event.indices.copy()
    revived.difference_update(Ranges.from_sorted(sorted(array.apart)))
    (array.held.update if event.hold else array.admit)(revived)
    array.over_at = 0.0
    cluster.ended_arrays.pop(array.id, None)
    for (state, count), (_, left) in zip(before, ended_counts(array), strict=True):
        cluster.counters.move(array.shared, state, target, count - left)
    cluster.dependants.note(array.id, 0, S.EXIT, target)
    queue_wait.forget(array)
    watch_deadline(cluster, array)
    queue_wait.enters(cluster, array, event.at)
    list_array(cluster, array)


def _dependency_met(cluster: Cluster, event: e.DependencyMet) -> None:
    record = cluster.jobs[event.job]
    met(cluster, record, event.indices)
    queue_wait.enters(cluster, record, event.at)
    _list(cluster, record)


def _restarted_in_queue(cluster: Cluster, event: RestartedInQueue) -> None:
    queue_wait.restarted(cluster, cluster.jobs[event.job], event.since, event.times)


def _begin_time_reached(cluster: Cluster, event: e.BeginTimeReached) -> None:
    record = cluster.jobs[event.job]
    reached(record, event.elements, event.at)
    queue_wait.enters(cluster, record, event.at)
    _list(cluster, record)


def _list(cluster: Cluster, record: Job | ArrayRecord) -> None:
    if isinstance(record, ArrayRecord):
        list_array(cluster, record)
        list_apart(cluster, record)
    elif record.state is S.PEND:
        list_job(cluster, record)


def _queue_window_changed(cluster: Cluster, event: e.QueueWindowChanged) -> None:
    cluster.windows[event.queue] = event.state
    cluster.pending.freshen(event.queue)


HANDLERS: dict[type, Callable[[Cluster, Any], None]] = {
    e.JobRevived: _job_revived,
    e.PostExecEnded: _post_exec_ended,
    e.DependencyMet: _dependency_met,
    RestartedInQueue: _restarted_in_queue,
    e.BeginTimeReached: _begin_time_reached,
    e.QueueWindowChanged: _queue_window_changed,
}
