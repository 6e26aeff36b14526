"""Restart of a master: a new cluster made only from what the store keeps of another one.

A real master has to find out anew what is dropped here (sessions, silence, load, usage, plans).
"""

from copy import copy

from lavad.core.apply.restore import (
    adopt_array,
    adopt_attempt,
    adopt_claim,
    adopt_ended_element,
    adopt_host,
    adopt_job,
    adopt_job_group,
    adopt_lock_ids,
    adopt_remembered,
    adopt_reservation,
)
from lavad.core.cluster import Cluster
from lavad.core.model.ranges import Ranges
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import ArrayRecord, Job
from lavad.core.state.tasks import JobTasks, TaskList

ATTEMPT_FIELDS = (
    "version",
    "leaves_silent",
    "lease_s",
    "launch_due",
    "started_at",
    "pid",
    "exec_home",
    "exec_cwd",
    "kill_reason",
    "doomed",
    "last_signal",
    "again",
    "held_again",
    "excludes",
    "suspended",
    "suspended_at",
    "lends",
    "preemptions",
    "is_unconstrained",
    "resizing",
    "resume_state",
    "limits_version",
    "changed",
    "warned",
    "warnings",
    "progress",
    "pre_exec",
)


def reborn(old: Cluster) -> Cluster:
    """Return a new cluster that shares no mutable state with the old."""
    new = Cluster(old.configured, old.name, old.term)
    new.queue_states.update(old.queue_states)
    new.take_queue_states()
    new.group_changes.update(old.group_changes)
    for host in old.hosts.values():
        adopt_host(new, host.offered, host.closed_by, host.comment, host.revoked_at, host.noticed_at)
        adopt_lock_ids(new, host.facts.name, dict(host.lock_ids))
    for reservation in old.reserved.by_name.values():
        adopt_reservation(new, reservation)
    new.reserved.numbers.update(old.reserved.numbers)
    for group in old.job_groups:
        adopt_job_group(new, group)
    for record in old.jobs.values():
        if isinstance(record, Job):
            adopt_job(new, _job(record))
        else:
            adopt_array(new, _array(record))
    for status in old.external_statuses:
        new.external_statuses.put(*status)
    for record in old.remembered.values():
        adopt_remembered(new, _job(record) if isinstance(record, Job) else _array(record))
    for job in old.finished.values():
        array = new.jobs.get(job.id)
        if isinstance(array, ArrayRecord):
            adopt_ended_element(new, array, _job(job))
    new.shares.adopt(old.shares.used())
    for attempt in old.attempts.values():
        adopt_attempt(new, _attempt(attempt))
    for claim in old.claims.values():
        adopt_claim(new, claim)
    new.next_job = old.next_job
    new.request_ids.update(old.request_ids)  # stands for the store's lookup of ids that memory has forgotten
    return new


def _job(old: Job) -> Job:
    job = Job(old.id, old.index, old.shared, old.text, old.submitted_at, old.state)
    names = (
        "attempts",
        "priority",
        "position",
        "aged_from",
        "postponed_reason",
        "end",
        "start_conditions",
        "part",
    )
    for name in names:
        setattr(job, name, getattr(old, name))
    job.tasks = _tasks(old.tasks)
    return job


def _tasks(old: JobTasks | None) -> JobTasks | None:
    if old is None:
        return None
    new = copy(old)
    new.records = TaskList(old.records)
    new.restarts_in_place, new.addresses = dict(old.restarts_in_place), dict(old.addresses)
    new.led, new.stands_for = {}, {}  # found out at adoption
    return new


def _array(old: ArrayRecord) -> ArrayRecord:
    array = ArrayRecord(old.id, old.shared, old.text, old.submitted_at, Ranges(old.indices.parts()), old.limit, False)
    array.pending, array.held, array.killed = old.pending.copy(), old.held.copy(), old.killed.copy()
    array.pending.update(old.blocked)  # divided again at adoption
    array.unmet = old.unmet.copy()
    array.ended, array.codes = bytearray(old.ended), bytearray(old.codes)
    for name in ("done", "exited", "over_at", "position", "aged_from", "priority", "start_conditions", "newest_part"):
        setattr(array, name, getattr(old, name))
    array.attempts, array.postponed, array.retries = dict(old.attempts), dict(old.postponed), dict(old.retries)
    array.post_awaited, array.post_failed = old.post_awaited.copy(), old.post_failed.copy()
    array.tasks = {index: found for index, tasks in old.tasks.items() if (found := _tasks(tasks)) is not None}
    array.live = {index: _job(job) for index, job in old.live.items()}
    array.apart, array.changed = {index: _job(job) for index, job in old.apart.items()}, {*old.changed}
    return array


def _attempt(old: Attempt) -> Attempt:
    attempt = Attempt(old.key, old.allocation, old.dispatched_at, old.launched, old.start_reason)
    for name in ATTEMPT_FIELDS:
        setattr(attempt, name, getattr(old, name))
    attempt.staged, attempt.unreleased = old.staged, old.unreleased
    return attempt
