"""Restore of the cluster from rows at start: all live jobs, and recently ended ones that are still shown.

``restore(save(cluster))`` equals the cluster in job and attempt state; load, plans and sessions are not stored.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, or_, select

from lavad.core.apply.restore import (
    adopt_array,
    adopt_attempt,
    adopt_claim,
    adopt_ended_element,
    adopt_host,
    adopt_host_lock,
    adopt_job,
    adopt_job_group,
    adopt_lock_ids,
    adopt_remembered,
    adopt_reservation,
    order_jobs,
)
from lavad.core.cluster import FINISHED_KEPT
from lavad.core.decide.jobs.dependencies import missing_parents
from lavad.core.model import FINAL, NO_RETRY, WAITING, JobState, Shared
from lavad.core.model.ranges import Ranges
from lavad.core.model.rules.names import MemberChange
from lavad.core.state.attempts import exit_code
from lavad.core.state.fairshare import Used
from lavad.core.state.jobs.external_statuses import STATUS
from lavad.core.state.records import ArrayRecord, Job, QueueState
from lavad.core.state.tasks import JobTasks
from lavad.store import schema
from lavad.store.rows import task_values, waits
from lavad.store.rows import values as v

if TYPE_CHECKING:
    from lavad.core.cluster import Cluster

Adopt = Callable[["Cluster", str, str], None]
_NAMED_AT_ONCE = 500  # jobs in one query
_FETCH = 10_000  # rows fetched at a time
_END_COLUMNS = ("ended_at", "status", "reason", "cpu_s", "memory_mib_max", "started_at", "pid", "hosts",
                "user_s", "system_s", "memory_mib_mean", "places", "gpus")  # fmt: skip

jobs, specs, arrays, parts = schema.jobs.c, schema.specs.c, schema.arrays.c, schema.parts.c


class SharedTexts:
    """Decoder of the shared fields of submissions, each distinct text once."""

    def __init__(self) -> None:
        self._decoded: dict[str, Shared] = {}

    def __len__(self) -> int:
        return len(self._decoded)

    def decode(self, text: str) -> Shared:
        """Decode a ``specs.shared`` column."""
        shared = self._decoded.get(text)
        if shared is None:
            shared = self._decoded[text] = v.decode_shared(text)
        return shared


def select_jobs() -> Select[Any]:
    """Select job rows with the submission columns that ``job_of`` needs."""
    own = and_(jobs.job == parts.job, jobs.part == parts.part)
    shared, words = func.coalesce(parts.shared, specs.shared), func.coalesce(parts.words, specs.words)
    query = select(schema.jobs, shared.label("shared"), words.label("words"))
    return query.join_from(schema.jobs, schema.specs, jobs.job == specs.job).outerjoin(schema.parts, own)


def job_of(row: Row[Any], texts: SharedTexts) -> Job:
    """Build the job of a row of ``select_jobs``, without its attempt."""
    job = Job(row.job, row.idx, texts.decode(row.shared), row.words, row.submitted_at, JobState(row.state))
    job.attempts, job.priority, job.position = row.attempts, row.priority, row.position
    job.aged_from = row.aged_from
    job.postponed_reason, job.part = row.postponed, row.part
    job.end = v.decode_end([getattr(row, name) for name in _END_COLUMNS])
    job.start_conditions, _ = waits.decode_start_conditions(row.waits)
    return job


def _select_attempts() -> Select[Any]:
    """Select the rows of attempts, each with the state to which its job returns from UNKWN."""
    held = schema.allocations
    of_its_job = and_(held.c.job == jobs.job, held.c.idx == jobs.idx)
    return select(held, jobs.resume_state).outerjoin_from(held, schema.jobs, of_its_job)


def select_arrays() -> Select[Any]:
    """Select array rows with the submission columns that ``array_of`` needs."""
    return select(schema.arrays, specs.shared, specs.words).join_from(
        schema.arrays, schema.specs, schema.arrays.c.job == schema.specs.c.job
    )


def array_of(row: Row[Any], texts: SharedTexts) -> ArrayRecord:
    """Build the array of a row of ``select_arrays``, without its elements."""
    indices = Ranges.parse(row.indices)
    array = ArrayRecord(row.job, texts.decode(row.shared), row.words, row.submitted_at, indices, row.run_limit, False)
    array.pending, array.held = Ranges.parse(row.pending), Ranges.parse(row.held)
    array.killed = Ranges.parse(row.killed)
    array.start_conditions, array.unmet = waits.decode_start_conditions(row.waits)
    array.priority, array.position, array.over_at = row.priority, row.position, row.ended_at
    array.aged_from = row.aged_from
    return array


def restore(connection: Connection, cluster: "Cluster", now: float) -> None:
    """Fill an empty cluster from the database, in one read transaction."""
    since = now - cluster.policy.clean_period_s
    texts = SharedTexts()
    for row in connection.execute(select(schema.queues)):
        state = QueueState(bool(row.is_open), bool(row.is_active), row.ruled_by, row.ruled_at, row.comment)
        cluster.queue_states[row.name] = state
    cluster.take_queue_states()
    for row in connection.execute(select(schema.hosts)):
        adopt_host(cluster, v.decode_facts(row.facts), row.closed_by, row.comment, row.revoked_at, row.noticed_at)
    standing = connection.execute(select(schema.standing)).all()
    _adopt_standing(cluster, standing, _BEFORE_JOBS)
    found = _arrays(connection, since, texts)
    plain = _place_unfinished(connection, found, texts)
    for job in sorted(plain, key=lambda job: job.id):
        adopt_job(cluster, job)
    for array in sorted(found.values(), key=lambda array: (array.over_at, array.id)):
        adopt_array(cluster, array)
    _adopt_ended(connection, cluster, since, texts)
    _adopt_tasks(connection, cluster)
    used = connection.execute(select(schema.shares))
    cluster.shares.adopt({row.account: Used(row.cpu_s, row.run_s, row.gpu_s, row.as_of) for row in used})
    for row in connection.execute(_select_attempts()):
        attempt = v.decode_attempt(row)
        adopt_attempt(cluster, attempt)
        if row.resume_state and not attempt.over:
            attempt.resume_state = JobState(row.resume_state)
    _remember_parents(connection, cluster, texts)
    _adopt_statuses(connection, cluster)
    _adopt_standing(cluster, standing, _AFTER_JOBS)
    order_jobs(cluster)
    next_job = connection.scalar(select(schema.cluster.c.next_job))
    cluster.next_job = max(cluster.next_job, next_job or 1)


def _adopt_tasks(connection: Connection, cluster: "Cluster") -> None:
    """Give each job of tasks in memory its tasks, before its attempt is adopted."""
    for row in connection.execute(select(schema.task_jobs)).all():
        record, job = cluster.jobs.get(row.job), cluster.element(row.job, row.idx)
        if record is None or record.shared.tasks is None:
            continue
        tasks = task_values.tasks_of(record.shared, row.content, read_tasks(connection, row.job, row.idx))
        if job is not None:
            job.tasks = tasks
        elif isinstance(record, ArrayRecord) and row.idx in record.attempts:
            record.tasks[row.idx] = tasks


def read_job_tasks(connection: Connection, job: Job) -> JobTasks | None:
    """Read the tasks of a job that memory has forgotten; None for a job without any."""
    of = schema.task_jobs.c
    content = connection.scalar(select(of.content).where(of.job == job.id, of.idx == job.index))
    if content is None or job.shared.tasks is None:
        return None
    return task_values.tasks_of(job.shared, content, read_tasks(connection, job.id, job.index))


def read_tasks(connection: Connection, job: int, index: int) -> Iterable[Row[Any]]:
    """Read the rows of a job's tasks, in order of role and number."""
    of = schema.tasks.c
    return connection.execute(select(schema.tasks).where(of.job == job, of.idx == index).order_by(of.role, of.number))


def _adopt_standing(cluster: "Cluster", rows: Iterable[Row[Any]], kinds: Mapping[str, Adopt]) -> None:
    for row in rows:
        if row.kind in kinds:
            kinds[row.kind](cluster, row.name, row.content)


def _adopt_claim(cluster: "Cluster", name: str, content: str) -> None:
    adopt_claim(cluster, v.decode_claim(content))


def _adopt_reservation(cluster: "Cluster", name: str, content: str) -> None:
    adopt_reservation(cluster, v.decode_reservation(content))


def _adopt_reservation_number(cluster: "Cluster", name: str, content: str) -> None:
    cluster.reserved.numbers[name] = int(content)


def _adopt_job_group(cluster: "Cluster", name: str, content: str) -> None:
    adopt_job_group(cluster, v.decode_job_group(name, content))


def _adopt_host_lock(cluster: "Cluster", name: str, content: str) -> None:
    adopt_host_lock(cluster, name, v.decode_host_lock(content))


def _adopt_lock_ids(cluster: "Cluster", name: str, content: str) -> None:
    adopt_lock_ids(cluster, name, v.decode_lock_ids(content))


def _adopt_budget(cluster: "Cluster", name: str, content: str) -> None:
    v.adopt_budget(cluster.budgets, content)


def _adopt_host_group(cluster: "Cluster", name: str, content: str) -> None:
    cluster.group_changes[name] = v.decode_host_group(content)


def read_group_changes(connection: Connection) -> dict[str, MemberChange]:
    """Return what administrators have changed of the members of host groups, by group."""
    rows = connection.execute(select(schema.standing).where(schema.standing.c.kind == v.HOST_GROUP))
    return {row.name: v.decode_host_group(row.content) for row in rows}


def read_host_names(connection: Connection) -> frozenset[str]:
    """Return the names of all hosts that have joined."""
    return frozenset(connection.scalars(select(schema.hosts.c.name)))


def read_adoptions(connection: Connection) -> list[tuple[int, str]]:
    """Return the rows of past adoptions: term and content."""
    rows = connection.execute(select(schema.standing).where(schema.standing.c.kind == v.ADOPTED))
    return [(int(row.name), row.content) for row in rows]


def _adopt_lost_jobs(cluster: "Cluster", name: str, content: str) -> None:
    lost = json.loads(content)["lost"]
    cluster.lost_jobs.append(range(*lost))


_BEFORE_JOBS: dict[str, Adopt] = {
    v.ADOPTED: _adopt_lost_jobs,
    v.RESERVATION: _adopt_reservation,
    v.RESERVATION_NUMBER: _adopt_reservation_number,
    v.JOB_GROUP: _adopt_job_group,
    v.HOST_LOCK: _adopt_host_lock,
    v.LOCK_IDS: _adopt_lock_ids,
    v.HOST_GROUP: _adopt_host_group,
    v.BUDGET: _adopt_budget,
}
_AFTER_JOBS: dict[str, Adopt] = {v.CLAIM: _adopt_claim}


def _stream(connection: Connection, query: Select[Any]) -> Iterable[Row[Any]]:
    return connection.execution_options(yield_per=_FETCH).execute(query)


def _arrays(connection: Connection, since: float, texts: SharedTexts) -> dict[int, ArrayRecord]:
    """Read live and recently ended arrays, with the final states of their elements."""
    is_wanted = or_(arrays.ended_at == 0, arrays.ended_at >= since)
    return _wanted_arrays(connection, is_wanted, texts)


def _wanted_arrays(
    connection: Connection, is_wanted: ColumnElement[bool], texts: SharedTexts
) -> dict[int, ArrayRecord]:
    found, completed_in = {}, {}
    for row in _stream(connection, select_arrays().where(is_wanted)):
        found[row.job], completed_in[row.job] = array_of(row, texts), waits.decode_completed(row.waits)
    for array in found.values():
        completed = completed_in[array.id]
        for index in array.killed:
            array.note_end(index, JobState.DONE if index in completed else JobState.EXIT)
    ended = and_(is_wanted, jobs.state.in_([int(state) for state in FINAL]))
    columns = (jobs.job, jobs.idx, jobs.state, jobs.status, jobs.attempts, jobs.places, jobs.part)
    query = select(*columns).join_from(schema.jobs, schema.arrays, jobs.job == arrays.job)
    for row in _stream(connection, query.where(ended)):
        array = found[row.job]
        _note_part(array, row)
        if row.idx in array.killed:  # it may be requeued, and its attempts then count on
            array.attempts[row.idx] = row.attempts
        else:
            array.note_end(row.idx, JobState(row.state), exit_code(row.status))
            if post := v.post_of(row.places):
                array.note_post(row.idx, post)
    return found


def _remember_parents(connection: Connection, cluster: "Cluster", texts: SharedTexts) -> None:
    """Restore the ends of jobs that ended long ago and that pending jobs depend on."""
    missing = missing_parents(cluster)
    for at in range(0, len(missing), _NAMED_AT_ONCE):
        some = missing[at : at + _NAMED_AT_ONCE]
        for array in _wanted_arrays(connection, arrays.job.in_(some), texts).values():
            adopt_remembered(cluster, array)
        for row in connection.execute(select_jobs().where(jobs.job.in_(some), jobs.idx == 0)):
            adopt_remembered(cluster, job_of(row, texts))


def _adopt_statuses(connection: Connection, cluster: "Cluster") -> None:
    """Restore the external statuses of the jobs that are in memory."""
    table = schema.job_messages.c
    for row in connection.execute(select(table.job, table.idx, table.text).where(table.number == STATUS)):
        if row.job in cluster.jobs or row.job in cluster.remembered:
            cluster.external_statuses.put(row.job, row.idx, row.text)


def _place_unfinished(connection: Connection, found: dict[int, ArrayRecord], texts: SharedTexts) -> list[Job]:
    """Add elements to their arrays; return the plain jobs."""
    plain = []
    for row in _stream(connection, select_jobs().where(jobs.ended_at == 0)):
        if not row.idx:
            plain.append(job_of(row, texts))
            continue
        array = found[row.job]
        if row.idx in array.pending or row.idx in array.held:
            array.attempts[row.idx] = row.attempts
            if row.postponed:  # a job requeued after its end has no reason
                array.postponed[row.idx] = row.postponed
        else:
            job = job_of(row, texts)
            job.start_conditions = None  # those of an element are its array's
            if job.state in WAITING:
                array.apart[row.idx] = job
                array.attempts.update({row.idx: row.attempts} if row.attempts else {})
                array.postponed.update({row.idx: row.postponed} if row.postponed else {})
            else:
                array.live[row.idx] = job
        _note_part(array, row)
        conditions, _ = waits.decode_start_conditions(row.waits)
        if conditions is not None and conditions.retry != NO_RETRY:
            array.retries[row.idx] = conditions.retry
    return plain


def _note_part(array: ArrayRecord, row: Row[Any]) -> None:
    """Note that an element was changed by itself."""
    if row.part:
        array.changed.add(row.idx)
        array.newest_part = max(array.newest_part, row.part)


def _adopt_ended(connection: Connection, cluster: "Cluster", since: float, texts: SharedTexts) -> None:
    query = select_jobs().where(jobs.ended_at > 0, jobs.ended_at >= since)
    newest = query.order_by(jobs.ended_at.desc()).limit(FINISHED_KEPT)
    for row in reversed(connection.execute(newest).all()):
        job = job_of(row, texts)
        array = cluster.jobs.get(job.id)
        if not job.index:
            adopt_job(cluster, job)
        elif isinstance(array, ArrayRecord) and job.index not in array.killed:
            adopt_ended_element(cluster, array, job)
