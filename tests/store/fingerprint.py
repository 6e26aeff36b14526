"""State that must be the same before and after a restart, as plain values that compare and print well."""

from typing import Any

from lavad.core.cluster import Cluster
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import ArrayRecord, Job
from lavad.core.state.tasks import JobTasks


def fingerprint(cluster: Cluster) -> dict[str, Any]:
    """Job, array, attempt and host state; not load, sessions, or caches."""
    return {
        "next_job": cluster.next_job,
        "jobs": {record.id: _record(record) for record in cluster.jobs.values()},
        "attempts": {tuple(key): _attempt(attempt) for key, attempt in cluster.attempts.items()},
        "resizable": {tuple(key) for key in cluster.resizable},
        "resizing": {tuple(key) for key in cluster.resizing},
        "staging": {tuple(key) for key in cluster.staging},
        "lenders": {tuple(key) for key in cluster.lenders},
        "claims": dict(cluster.claims),
        "reservations": dict(cluster.reserved.by_name),
        "reservation numbers": dict(cluster.reserved.numbers),
        "jobs by reservation": cluster.reserved.jobs,
        "job groups": {group.path: group for group in cluster.job_groups},
        "jobs by group": dict(cluster.counters.jobs_by_group),
        "slots by group": dict(cluster.counters.slots_by_group),
        "finished": {key: _job(job) for key, job in cluster.finished.items()},
        "ended_arrays": sorted((at, job) for job, at in cluster.ended_arrays.items()),
        "remembered": {record.id: _record(record) for record in cluster.remembered.values()},
        "hosts": {
            name: (host.facts, host.offered, host.closed_by, host.comment, host.lock_ids)
            for name, host in cluster.hosts.items()
        },
        "host groups": dict(cluster.group_changes),
        "queues": dict(cluster.queue_states),
        "used": cluster.shares.used(),
        "shares": {name: {tuple(key): s for key, s in h.attempts.items()} for name, h in cluster.hosts.items()},
    }


def _record(record: Job | ArrayRecord) -> Any:
    return _array(record) if isinstance(record, ArrayRecord) else _job(record)


def _job(job: Job) -> tuple[Any, ...]:
    is_own = not job.index or job.part
    words = (job.text, repr(job.shared)) if is_own else ()  # other elements have their array's as they are now
    return (
        *words,
        job.id,
        job.index,
        job.part,
        job.state,
        job.attempts,
        job.priority,
        job.position,
        job.aged_from,
        job.submitted_at,
        job.postponed_reason,
        (job.attempt.resume_state or 0) if job.attempt is not None else 0,
        repr(job.start_conditions) if job.end is None else "",
        repr(job.end),
        tuple(job.attempt.key) if job.attempt else (),
        _tasks(job.tasks),
    )


def _tasks(tasks: JobTasks | None) -> tuple[Any, ...]:
    if tasks is None:
        return ()
    names = ("version", "restarts", "restarts_in_place", "verdict", "delayed", "addresses", "led", "stands_for")
    return (dict(tasks.records), *(getattr(tasks, name) for name in names))


def _array(array: ArrayRecord) -> tuple[Any, ...]:
    waiting = {*array.pending, *array.held, *array.apart}
    return (
        array.id,
        list(array.indices),
        list(array.pending),
        list(array.held),
        list(array.killed),
        bytes(array.ended).rstrip(b"\0"),
        bytes(array.codes).rstrip(b"\0"),
        (list(array.blocked), list(array.unmet), repr(array.start_conditions) if not array.is_over else ""),
        (dict(array.retries), list(array.post_awaited), list(array.post_failed)),
        (array.done, array.exited, array.limit, array.priority, array.position, array.aged_from, array.submitted_at),
        array.over_at if array.is_over else 0.0,
        repr(array.shared),
        array.text,
        {index: count for index, count in array.attempts.items() if index in waiting},
        {index: why for index, why in array.postponed.items() if index in waiting},
        {index: _job(job) for index, job in array.live.items()},
        {index: _job(job) for index, job in array.apart.items()},
        (array.changed, array.newest_part, array.listed),
        {index: _tasks(tasks) for index, tasks in array.tasks.items()},
    )


def _attempt(attempt: Attempt) -> dict[str, Any]:
    known = {name: getattr(attempt, name) for name in Attempt.__slots__ if name not in ("usage", "tasks")}
    return known | {"activity": attempt.activity._replace(inactive=frozenset())}  # those are reported again
