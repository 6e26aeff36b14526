"""Events of jobs and attempts: one function each. Nothing is decided here.

Each change of a job's state passes ``lifecycle.check``; host shares are booked and released by ``allocate`` alone.
"""

from collections.abc import Callable
from typing import Any

from lavad.core import events as e
from lavad.core import lifecycle
from lavad.core import task_events as t
from lavad.core.activity_events import JobWarned
from lavad.core.apply import (
    allocate,
    charge,
    claims,
    elements,
    hosts,
    resize,
    start_conditions,
)
from lavad.core.apply.charge import note_usage
from lavad.core.apply.elements import made_element
from lavad.core.apply.enqueue import entry, list_array, list_job, waiting_counts
from lavad.core.apply.restore import adopt_host
from lavad.core.apply.tasks import activity, places, queue_wait
from lavad.core.apply.tasks import events as task_events
from lavad.core.cluster import Cluster
from lavad.core.model import (
    BY_USER,
    FINAL,
    PREEMPTION,
    HostFacts,
    JobState,
    serial_of,
)
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import is_done
from lavad.core.model.tuples import new as _new
from lavad.core.model.usage import NO_ONE, HostUsage, JobUsage, depart, gpus_of_attempt, of_attempt, taken
from lavad.core.state.attempts import Attempt, JobEnd, exit_code
from lavad.core.state.records import ArrayRecord, Job

S = JobState
STOP, CONT = 19, 18
REQUEST_IDS_KEPT = 100_000  # newest submit request ids in memory; the store knows the older ones


# -- helpers -----------------------------------------------------------------------------------------------------


def _move(cluster: Cluster, job: Job, event: object, target: JobState) -> None:
    lifecycle.check(job.state, event, target)
    if job.state is not target:
        cluster.counters.move(job.shared, job.state, target)
        old, job.state = job.state, target
        if job.array is not None:
            job.array.counts[old] -= 1
            job.array.counts[target] += 1
        if cluster.dependants:
            cluster.dependants.note(job.id, job.index, old, target)


def _leave_attempt(cluster: Cluster, job: Job, at: float, used: JobUsage | None = None) -> Attempt:
    attempt = job.attempt
    assert attempt is not None, f"{job.key} holds no attempt"
    if cluster.charges:
        used = used or of_attempt(attempt)
        charge.discharge(cluster, attempt, job.shared.queue, at, used.cpu_s)
    attempt.over, attempt.resume_state = True, None
    cluster.changed_attempts.add(attempt.key)
    cluster.staging.pop(attempt.key)
    if cluster.preemptable.queues:
        cluster.preemptable.discard(attempt)
    if cluster.resized(attempt.key) is not None:
        resize.forget(cluster, attempt)
    if attempt.lends:
        _lend_no_more(cluster, attempt)
    if cluster.migrations:
        cluster.migrations.forget(attempt.key)
    if not attempt.unreleased:
        cluster.attempts.pop(attempt.key)
    job.attempt = None
    return attempt


def _note_finished(cluster: Cluster, job: Job) -> None:
    cluster.finished[job.id, job.index] = job
    array = job.array
    if array is None:
        start_conditions.leave(cluster, job)
        start_conditions.watch_ttl(cluster, job)
    else:
        del array.live[job.index]
        array.counts[job.state] -= 1
        if job.index in array.changed:
            elements.count_end(cluster, array, job)
        array.note_end(job.index, job.state, exit_code(job.end.status) if job.end else 0)
        if job.end is not None and job.end.post:
            array.note_post(job.index, job.end.post)
        array.attempts.pop(job.index, None)
        array.retries.pop(job.index, None)
        _close_array(cluster, array, job.end.at if job.end else 0.0)
        list_array(cluster, array)


def _close_array(cluster: Cluster, array: ArrayRecord, at: float) -> None:
    if array.is_over:
        array.over_at = at
        cluster.ended_arrays[array.id] = at
        start_conditions.watch_ttl(cluster, array)
        start_conditions.leave(cluster, array)


# -- submission and pending jobs -----------------------------------------------------------------------------------


def _job_submitted(cluster: Cluster, event: e.JobSubmitted) -> None:
    new = event.job
    shared = cluster.intern(new.shared)
    if new.id >= cluster.next_job:
        cluster.next_job = new.id + 1
    else:  # given back by a host to an older database
        cluster.displaced.add(new.id)
    cluster.names.add(shared.uid, new.text, new.id)
    if new.request_id:
        cluster.request_ids[shared.user, new.request_id] = new.id
        if len(cluster.request_ids) > REQUEST_IDS_KEPT:
            cluster.request_ids.popitem(last=False)
    if shared.request.reservation:
        cluster.reserved.enter(shared.request.reservation, new.id)
    if new.indices:
        _array_submitted(cluster, event, shared)
        return
    job = Job(new.id, 0, shared, cluster.texts[new.text], event.at, S.PSUSP if new.hold else S.PEND)
    job.priority = new.priority
    cluster.jobs[new.id] = job
    cluster.counters.add(shared, job.state)
    start_conditions.begin(cluster, job, new, event.at)
    if not new.hold:
        list_job(cluster, job)


def _array_submitted(cluster: Cluster, event: e.JobSubmitted, shared: Any) -> None:
    new = event.job
    array = ArrayRecord(new.id, shared, new.text, event.at, Ranges(new.indices), new.array_limit, new.hold)
    array.priority = new.priority
    cluster.jobs[new.id] = array
    cluster.counters.add(shared, S.PSUSP if new.hold else S.PEND, len(array.indices))
    start_conditions.begin(cluster, array, new, event.at)
    list_array(cluster, array)


def _pending_ended(cluster: Cluster, event: e.PendingEnded) -> None:
    record, final = cluster.jobs[event.job], S.DONE if event.is_done else S.EXIT
    if isinstance(record, Job):
        cluster.pending.remove(record.shared, entry(cluster, record))
        _move(cluster, record, event, final)
        record.end = JobEnd(event.at, 0, event.reason)
        _note_finished(cluster, record)
        return
    elements.end(cluster, record, event, final)
    for waiting, state in ((record.pending, S.PEND), (record.blocked, S.PEND), (record.held, S.PSUSP)):
        gone = waiting.intersection(event.indices)
        waiting.difference_update(gone)
        record.killed.update(gone)
        cluster.counters.move(record.shared, state, final, len(gone))
        for index in gone:
            record.note_end(index, final)
            record.retries.pop(index, None)
    record.unmet.difference_update(event.indices)
    cluster.dependants.note(record.id, 0, S.PEND, final)
    _close_array(cluster, record, event.at)
    list_array(cluster, record)


def _pending_held(cluster: Cluster, event: e.PendingHeld) -> None:
    _shift_waiting(cluster, event, S.PEND, S.PSUSP)


def _pending_freed(cluster: Cluster, event: e.PendingFreed) -> None:
    _shift_waiting(cluster, event, S.PSUSP, S.PEND)


def _shift_waiting(cluster: Cluster, event: e.PendingHeld | e.PendingFreed, old: JobState, new: JobState) -> None:
    record = cluster.jobs[event.job]
    if new is S.PEND:
        queue_wait.enters(cluster, record, event.at)
        start_conditions.forget_failures(record, event.indices, event.at)
    start_conditions.note_hold(record, event.indices, isinstance(event, e.PendingHeld) and event.is_admins)
    if isinstance(record, Job):
        _move(cluster, record, event, new)
        list_job(cluster, record)
        return
    elements.shift(cluster, record, event, new)
    if old is S.PEND:
        moved = record.waiting().intersection(event.indices)
        record.pending.difference_update(moved)
        record.blocked.difference_update(moved)
        record.held.update(moved)
    else:
        moved = record.held.intersection(event.indices)
        record.held.difference_update(moved)
        record.admit(moved)
    cluster.counters.move(record.shared, old, new, len(moved))
    cluster.dependants.note(record.id, 0, old, new)
    list_array(cluster, record)


# -- the life of an attempt -----------------------------------------------------------------------------------------


def _attempt_dispatched(cluster: Cluster, event: e.AttemptDispatched) -> None:
    key = event.key
    record = cluster.jobs[key.job]
    job = element_for_dispatch(cluster, record, key.index) if isinstance(record, ArrayRecord) else record
    if job.array is None:
        if not cluster.pending.remove_head(job.shared, job.id, is_planned=False):
            cluster.pending.remove(job.shared, entry(cluster, job))
        if job.start_conditions is not None:
            start_conditions.force(cluster, job, 0)
    if cluster.claims:
        claims.drop_claim(cluster, key.job, key.index)
    _move(cluster, job, event, S.STAGING)
    job.attempts = key.attempt
    job.postponed_reason = ""
    attempt = Attempt(key, event.allocation, event.at, event.launch_now, event.reason)
    cluster.changed_attempts.add(key)
    attempt.launch_due = event.at + cluster.policy.staging_s(job.shared.queue, job.shared.application)
    attempt.is_unconstrained = event.is_unconstrained
    if event.lease_s is not None:
        allocate.keep_lease(cluster, attempt, event.lease_s)
    elif cluster.policy.fence_after_s:
        allocate.begin_lease(cluster, attempt)
    job.attempt = cluster.attempts[key] = cluster.staging[key] = attempt
    for share in event.allocation:
        if share.host not in cluster.hosts:  # of a recovered attempt, on a host that has not joined yet
            adopt_host(cluster, HostFacts(share.host, share.slots, share.memory_mib))
    allocate.take(cluster, attempt, event.allocation)
    charge.charge(cluster, attempt, job.shared)
    if job.shared.tasks is not None:
        task_events.begin(cluster, job, attempt)


def element_for_dispatch(cluster: Cluster, array: ArrayRecord, index: int) -> Job:
    """Make the element a job, unless it is one already, and take it off the array's pending elements."""
    job = elements.taken(cluster, array, index) if index in array.apart else made_element(array, index, S.PEND)
    array.counts[S.PEND] += 1
    if not array.pending.discard(index):
        start_conditions.force(cluster, array, index)
    array.live[index] = job
    array.postponed.pop(index, None)
    job.tasks = array.tasks.pop(index, None)
    list_array(cluster, array)
    return job


def _host_staged(cluster: Cluster, event: e.HostStaged) -> None:
    attempt = cluster.attempts[event.key]
    attempt.staged |= {event.host}
    if attempt.tasks is not None:
        places.reserved(attempt.tasks, event.host, event.address, event.tasks)


def _attempt_launched(cluster: Cluster, event: e.AttemptLaunched) -> None:
    attempt = cluster.attempts[event.key]
    attempt.launched = True
    _look_at_tasks(cluster, attempt)


def _look_at_tasks(cluster: Cluster, attempt: Attempt) -> None:
    """Note a job of tasks: some may be started now, or none is left."""
    if attempt.tasks is not None:
        task_events.note(cluster, _holder(cluster, attempt.key))


def _job_started(cluster: Cluster, event: e.JobStarted) -> None:
    job, attempt = _holder(cluster, event.key), cluster.attempts[event.key]
    if job.state is S.UNKWN:  # another of its hosts is silent
        _move(cluster, job, event, S.UNKWN)
        attempt.resume_state = S.RUN
    else:
        _move(cluster, job, event, S.RUN)
        cluster.staging.pop(event.key)
    cluster.changed_attempts.add(event.key)
    start_conditions.forget_failures(job.array or job, (job.index,), event.at)
    attempt.started_at, attempt.pid = event.at, event.pid
    attempt.exec_home, attempt.exec_cwd = event.exec_home, event.exec_cwd
    if cluster.exit_rates:
        cluster.exit_rates.note_start(attempt.lead)
    cluster.preemptable.note(job)
    resize.note_resizable(cluster, job)


def _job_finished(cluster: Cluster, event: e.JobFinished) -> None:
    job = _holder(cluster, event.key)
    _move(cluster, job, event, S.DONE if is_done(event.status, event.reason) else S.EXIT)
    used = _used_at_end(cluster.attempts[event.key], event)
    attempt = _leave_attempt(cluster, job, event.at, used)
    at, _, status, reason, _, _, pid, started_at, _, _, _, _, _, home, cwd, *_ = event
    began_at = attempt.started_at or started_at
    cpu_s, memory_mib_max, memory_mib_mean, user_s, system_s = used
    directories = attempt.exec_home or home, attempt.exec_cwd or cwd
    job.end = _new(
        JobEnd,
        (at, status, reason, cpu_s, memory_mib_max, began_at, attempt.allocation, attempt.pid or pid,
         user_s, system_s, memory_mib_mean, *directories, gpus_of_attempt(attempt), event.post, 0.0),
    )  # fmt: skip
    if job.tasks is None and (status or cluster.exit_rates):
        cluster.exit_rates.note_end(job, attempt, event, began_at)
    if job.tasks is not None:
        places.closed(job.tasks, at, reason)
    _note_finished(cluster, job)


def _used_at_end(attempt: Attempt, event: e.JobFinished) -> JobUsage:
    """Usage of the job: reported by its lead host at the end, and by the others before."""
    is_known = attempt.usage or event.others or event.gpus or attempt.departed is not NO_ONE
    if not is_known and len(attempt.unreleased) < 2:  # most jobs: short, and on one host
        return _new(JobUsage, (event.cpu_s, event.memory_mib_max, event.memory_mib_mean, event.user_s, event.system_s))
    own = HostUsage(
        event.cpu_s, memory_mib_max=event.memory_mib_max, memory_mib_mean=event.memory_mib_mean,
        user_s=event.user_s, system_s=event.system_s, seconds=event.seconds, gpus=event.gpus,
    )  # fmt: skip
    others = [(host, usage) for host, usage in event.others if host in attempt.unreleased]
    attempt.usage = taken(attempt.usage, [(attempt.lead, own), *others])
    return of_attempt(attempt)


def _host_released(cluster: Cluster, event: e.HostReleased) -> None:
    attempt = cluster.attempts[event.key]
    if event.usage is not None and not attempt.over:
        note_usage(cluster, attempt, ((event.host, event.usage),))
    elif event.usage is not None:
        _complete_record(cluster, attempt, event.host, event.usage, event.at)
    if event.host in attempt.usage and not attempt.over:
        depart(attempt, event.host)
    allocate.give_back(cluster, attempt, event.host, event.at)
    if attempt.over and event.host == attempt.lead:
        start_conditions.lose_post(cluster, attempt.key, event.at)
    activity.host_left(cluster, attempt, event.host)
    if not attempt.over:
        _look_at_tasks(cluster, attempt)


def _complete_record(cluster: Cluster, attempt: Attempt, host: str, usage: HostUsage, at: float) -> None:
    """Add a host's final usage to the record of a job that has ended."""
    before = of_attempt(attempt)
    attempt.usage = taken(attempt.usage, ((host, usage),))
    used = of_attempt(attempt)
    job = cluster.element(attempt.key.job, attempt.key.index)
    if job is None or job.end is None or job.attempts != attempt.key.attempt:
        return
    cpu_s, memory_mib_max, memory_mib_mean, user_s, system_s = used
    end = job.end
    job.end = end._replace(
        cpu_s=max(end.cpu_s, cpu_s), memory_mib_max=max(end.memory_mib_max, memory_mib_max),
        memory_mib_mean=memory_mib_mean, user_s=max(end.user_s, user_s), system_s=max(end.system_s, system_s),
        gpus=gpus_of_attempt(attempt),
    )  # fmt: skip
    charge.charge_more(cluster, job.shared, used.cpu_s - before.cpu_s, at)


def _job_requeued(cluster: Cluster, event: e.JobRequeued) -> None:
    job = _holder(cluster, event.key)
    _move(cluster, job, event, S.PSUSP if event.hold else S.PEND)
    _leave_attempt(cluster, job, event.at)
    if job.tasks is not None:
        places.left(job.tasks)
        if job.array is not None:
            job.array.tasks[job.index] = job.tasks
    if event.avoid_host and event.avoid_host in cluster.hosts:
        cluster.hosts[event.avoid_host].avoid_until = event.avoid_until
        hosts.refresh_host(cluster, cluster.hosts[event.avoid_host], event.at)
    start_conditions.watch_deadline(cluster, job)
    queue_wait.enters(cluster, job.array or job, event.at)
    if event.exclude_host:
        _bar(cluster, job, event.exclude_host)
    if event.pre_exec:
        start_conditions.try_later(cluster, job, event.pre_exec, event.hold, event.at)
    if job.array is None:
        job.postponed_reason = event.reason
        if not event.hold:
            list_job(cluster, job)
        return
    elements.put_back(cluster, job.array, job, event)


def _bar(cluster: Cluster, job: Job, host: str) -> None:
    """Exclude a host from those of the job, which makes it another bucket's."""
    record = job.array or job
    for state, count in waiting_counts(record):
        cluster.counters.add(record.shared, state, -count)
    if job.array is not None:
        cluster.pending.remove(record.shared, entry(cluster, record))
    start_conditions.bar(cluster, record, host)
    for state, count in waiting_counts(record):
        cluster.counters.add(record.shared, state, count)
    if job.array is not None:
        list_array(cluster, job.array)


def _job_suspended(cluster: Cluster, event: e.JobSuspended) -> None:
    job, attempt = _holder(cluster, event.key), cluster.attempts[event.key]
    attempt.suspended = {**attempt.suspended, event.cause: event.reason}
    activity.forget_parts(cluster, attempt)
    if event.state in (S.STAGING, S.UNKWN):  # the signal is sent when the job has started, or is in contact again
        _move(cluster, job, event, event.state)
        _note_for_return(job, attempt, event.at)
        return
    if job.state is S.RUN:
        _note_signal(attempt, STOP, "", event.at)
    if job.state is not event.state:
        attempt.suspended_at = event.at
    _move(cluster, job, event, event.state)
    cluster.migrations.follow(cluster.policy, job, attempt)
    if event.lends:
        attempt.lends, attempt.preemptions = event.lends, attempt.preemptions + 1
        cluster.lenders[event.key] = attempt
    cluster.changed_attempts.add(event.key)
    cluster.preemptable.note(job)


def _job_resumed(cluster: Cluster, event: e.JobResumed) -> None:
    job, attempt = _holder(cluster, event.key), cluster.attempts[event.key]
    if job.state is S.USUSP:  # and it may be the system's from now on
        attempt.suspended_at = event.at
    _move(cluster, job, event, event.state)
    cluster.migrations.follow(cluster.policy, job, attempt)
    attempt.suspended = {cause: reason for cause, reason in attempt.suspended.items() if cause != event.cause}
    activity.forget_parts(cluster, attempt)
    if event.state is S.RUN:
        _note_signal(attempt, CONT, "", event.at)
    _look_at_tasks(cluster, attempt)
    _note_for_return(job, attempt, event.at)
    if attempt.lends and event.cause == PREEMPTION:
        _lend_no_more(cluster, attempt)
    cluster.changed_attempts.add(event.key)
    cluster.preemptable.note(job)


def _note_for_return(job: Job, attempt: Attempt, at: float) -> None:
    """Set the state to which a job in UNKWN returns, and the signal that its hosts get then."""
    if job.state is not S.UNKWN or attempt.resume_state is S.STAGING:
        return
    state = S.USUSP if BY_USER in attempt.suspended else S.SSUSP if attempt.suspended else S.RUN
    if (state is S.RUN) is not (attempt.resume_state is S.RUN):
        _note_signal(attempt, CONT if state is S.RUN else STOP, "", at)
        attempt.suspended_at = at
    attempt.resume_state = state


def _lend_no_more(cluster: Cluster, attempt: Attempt) -> None:
    attempt.lends = ()
    cluster.lenders.pop(attempt.key, None)


def _job_signalled(cluster: Cluster, event: e.JobSignalled) -> None:
    job = _holder(cluster, event.key)
    _move(cluster, job, event, job.state)
    attempt = cluster.attempts[event.key]
    _note_signal(attempt, event.signal, event.reason, event.at)
    _look_at_tasks(cluster, attempt)
    if not event.signal:  # another signal changes nothing about the notice before the end
        attempt.warned = event.warns
    if event.reason:
        attempt.kill_reason = event.reason
        cluster.preemptable.note(job)


WARNINGS_KEPT = 20  # to be shown; the history has them all


def _job_warned(cluster: Cluster, event: JobWarned) -> None:
    job = _holder(cluster, event.key)
    _move(cluster, job, event, job.state)
    attempt = cluster.attempts[event.key]
    if attempt.told is None:
        attempt.told = {about: (at, text) for at, about, text in attempt.warnings}
    attempt.told[event.about] = (event.at, event.text)
    others = [one for one in attempt.warnings if one[1] != event.about]
    attempt.warnings = (*others[-WARNINGS_KEPT + 1 :], (event.at, event.about, event.text))


def _note_signal(attempt: Attempt, signal: int, reason: str, at: float) -> None:
    """Keep the signal to send again at each hello: the kill, else the newest stop or continue, else the newest
    other."""
    is_state = signal in (STOP, CONT)
    had_state = attempt.last_signal is not None and attempt.last_signal[0] in (STOP, CONT)
    if reason or (not attempt.kill_reason and (is_state or not had_state)):
        attempt.last_signal = (signal, reason, serial_of(at, signal))


def _progress_reported(cluster: Cluster, event: e.ProgressReported) -> None:
    attempt = cluster.attempts[event.key]
    attempt.progress, attempt.progress_saved_at = event.progress, event.at


def _job_doomed(cluster: Cluster, event: e.JobDoomed) -> None:
    job = _holder(cluster, event.key)
    _move(cluster, job, event, job.state)
    attempt = cluster.attempts[event.key]
    attempt.doomed, attempt.again = event.reason, event.again
    attempt.held_again, attempt.excludes = event.hold, event.exclude_host
    attempt.leaves_silent, attempt.warned = event.leaves_silent, event.warns
    attempt.pre_exec = event.pre_exec
    _look_at_tasks(cluster, attempt)
    cluster.preemptable.note(job)


def _job_lost(cluster: Cluster, event: e.JobLost) -> None:
    job = _holder(cluster, event.key)
    cluster.attempts[event.key].resume_state = job.state
    _move(cluster, job, event, S.UNKWN)
    cluster.staging.pop(event.key)
    cluster.preemptable.note(job)


def _job_found(cluster: Cluster, event: e.JobFound) -> None:
    job, attempt = _holder(cluster, event.key), cluster.attempts[event.key]
    state = attempt.resume_state or S.RUN
    _move(cluster, job, event, state)
    attempt.resume_state = None
    cluster.migrations.follow(cluster.policy, job, attempt)
    cluster.preemptable.note(job)
    activity.look_at_parts(cluster, attempt)
    _look_at_tasks(cluster, attempt)
    if state is S.STAGING:
        cluster.staging[event.key] = attempt


def _job_abandoned(cluster: Cluster, event: e.JobAbandoned) -> None:
    job = _holder(cluster, event.key)
    _move(cluster, job, event, S.ZOMBI)
    attempt = cluster.attempts[event.key]
    attempt.kill_reason = event.reason
    _note_signal(attempt, 0, event.reason, event.at)


def _holder(cluster: Cluster, key: Any) -> Job:
    job = cluster.holder(key)
    if job is None:
        raise lifecycle.IllegalTransition(f"{key} is over or unknown")
    return job


def _finished_forgotten(cluster: Cluster, event: e.FinishedForgotten) -> None:
    while cluster.finished:
        key, job = next(iter(cluster.finished.items()))
        if job.end is not None and job.end.at >= event.before:
            break
        del cluster.finished[key]
        if job.array is None and job.state in FINAL:
            start_conditions.forget(cluster, job.id)
    while cluster.ended_arrays:
        array_id, at = next(iter(cluster.ended_arrays.items()))
        if at >= event.before:
            break
        del cluster.ended_arrays[array_id]
        start_conditions.forget(cluster, array_id)


def _job_forgotten(cluster: Cluster, event: t.JobForgotten) -> None:
    record = cluster.jobs[event.job]
    for index in record.indices if isinstance(record, ArrayRecord) else (0,):
        cluster.finished.pop((event.job, index), None)
    cluster.ended_arrays.pop(event.job, None)
    start_conditions.forget(cluster, event.job)


HANDLERS: dict[type, Callable[[Cluster, Any], None]] = {
    e.JobSubmitted: _job_submitted,
    e.PendingEnded: _pending_ended,
    e.PendingHeld: _pending_held,
    e.PendingFreed: _pending_freed,
    e.AttemptDispatched: _attempt_dispatched,
    e.HostStaged: _host_staged,
    e.AttemptLaunched: _attempt_launched,
    e.JobStarted: _job_started,
    e.JobFinished: _job_finished,
    e.HostReleased: _host_released,
    e.JobRequeued: _job_requeued,
    e.JobSuspended: _job_suspended,
    e.JobResumed: _job_resumed,
    e.JobSignalled: _job_signalled,
    JobWarned: _job_warned,
    e.JobDoomed: _job_doomed,
    e.ProgressReported: _progress_reported,
    e.JobLost: _job_lost,
    e.JobFound: _job_found,
    e.JobAbandoned: _job_abandoned,
    e.FinishedForgotten: _finished_forgotten,
    t.JobForgotten: _job_forgotten,
}
