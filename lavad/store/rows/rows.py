"""Rows from core values: the changes of one step of the master, as whole rows of the present state.

The only module that knows the fields of both sides on the way out; ``values.py`` has the encodings and the decoders.
Pure, and on the path of every job, so written for speed.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, get_args

from lavad.core import activity_events as a
from lavad.core import events as e
from lavad.core import task_events as t
from lavad.core.activity_events import JobWarned
from lavad.core.apply.charge import gpu_seconds, slot_seconds, touched_accounts
from lavad.core.model import JobState, Key, PostState
from lavad.core.state.attempts import Attempt, JobEnd
from lavad.core.state.paged import Paged
from lavad.core.state.records import ArrayRecord, Job
from lavad.store.rows import activity_rows, cluster_rows, task_rows, waits
from lavad.store.rows import values as v
from lavad.store.rows.spec_rows import but_changed, part_row, spec_row
from lavad.store.writer.batch import Batch, Row

if TYPE_CHECKING:
    from lavad.core.cluster import Cluster

_PEND, _PSUSP = int(JobState.PEND), int(JobState.PSUSP)
_LATER = (JobState.STAGING, JobState.UNKWN)  # their suspension or resumption takes effect later
_NO_END: Row = (0.0, 0, "", 0.0, 0, 0.0, 0, "", 0.0, 0.0, 0.0, "", "")


class RowMaker:
    """Builder of the batch for a step's events, after the cluster has applied them.

    It keeps the live attempts, because an attempt that ends may have left the cluster before its rows are made.
    """

    def __init__(self) -> None:
        self._attempts: Paged[Attempt] = Paged()
        self._claims: set[tuple[int, int]] = set()
        self._queues: cluster_rows.QueueStates = {}

    def adopt(self, cluster: "Cluster") -> None:
        """Start with the attempts of a restored cluster."""
        self._attempts = Paged(cluster.attempts.items())
        self._claims = set(cluster.claims)
        self._queues = {name: (state.is_open, state.is_active) for name, state in cluster.queue_states.items()}

    def rows_for(self, events: Iterable[e.Event], cluster: "Cluster") -> Batch:
        """Build the rows that make these events, already applied to the cluster, durable."""
        turn = _Turn(cluster, self._attempts, self._claims, self._queues)
        for event in events:
            handler = _HANDLERS.get(type(event))
            if handler is not None:
                handler(turn, event)
        return turn.finish()


class _Turn:
    """Changes of one step; the rows are made once, at the end."""

    __slots__ = ("arrays", "attempts", "batch", "claims", "cluster", "jobs", "known", "queues", "tasks")

    def __init__(
        self,
        cluster: "Cluster",
        known: Paged[Attempt],
        claims: set[tuple[int, int]],
        queues: cluster_rows.QueueStates,
    ) -> None:
        self.cluster = cluster
        self.queues = queues
        self.known = known
        self.claims = claims
        self.batch = Batch()
        self.jobs: dict[tuple[int, int], None] = {}
        self.arrays: dict[int, None] = {}
        self.attempts: dict[Key, None] = {}
        self.tasks: dict[tuple[int, int], None] = {}  # jobs of tasks

    def tell(self, at: float, key: Key, kind: str, detail: str = "") -> None:
        """Add an event row to the job's history."""
        job, index, attempt = key
        self.batch.events.append((job, index, attempt, at, kind, detail))

    def touch(self, key: Key) -> None:
        """Mark the attempt's job as changed."""
        self.jobs[key.job, key.index] = None

    def finish(self) -> Batch:
        batch, cluster = self.batch, self.cluster
        for key in self.attempts:
            attempt = cluster.attempts.get(key)
            if attempt is None:
                self.known.pop(key)
                batch.allocations[key] = None
            else:
                batch.allocations[key] = v.allocation_row(attempt)
        for job, index in self.jobs:
            batch.jobs[job, index] = _row_of(cluster, job, index)
        if cluster.charged:
            for path, used in touched_accounts(cluster).items():
                batch.shares[path] = (path, v.finite(used.cpu_s), used.run_s, used.gpu_s, used.as_of)
        if cluster.budgets.touched:
            for budget in cluster.budgets.touched.values():
                row = v.budget_row(budget)
                batch.standing[row[0], row[1]] = row
            cluster.budgets.touched = {}
        for job, index in self.tasks:
            task_rows.add_rows(batch, cluster, job, index)
        for array in self.arrays:
            batch.arrays[array] = _array_row(_array(cluster, array))
        return batch


# -- the present state as rows ---------------------------------------------------------------------------------------


def _row_of(cluster: "Cluster", job_id: int, index: int) -> Row:
    job = cluster.element(job_id, index)
    return _job_row(job) if job is not None else _waiting_row(_array(cluster, job_id), index)


def _array(cluster: "Cluster", job_id: int) -> ArrayRecord:
    array = cluster.jobs[job_id]
    assert isinstance(array, ArrayRecord), f"job {job_id} is not an array"
    return array


def _job_row(job: Job) -> Row:
    end = job.end
    return (
        job.id,
        job.index,
        int(job.state),
        job.attempts,
        job.priority,
        float(job.position),
        job.aged_from,
        int(job.attempt.resume_state or 0) if job.attempt is not None else 0,
        v.clean(job.postponed_reason),
        job.submitted_at,
        *(_NO_END if end is None else v.end_values(end)),
        waits.waits_text(job),
        job.part,
    )


def _waiting_row(array: ArrayRecord, index: int, end: Row = _NO_END) -> Row:
    """Build the row of an element that is pending again after a dispatch, or (with an end) ended while pending."""
    waiting = _PSUSP if index in array.held else _PEND
    return (
        array.id,
        index,
        waiting if end is _NO_END else array.ended[index],
        array.attempts.get(index, 0),
        array.priority,
        float(array.position),
        array.aged_from,
        0,
        v.clean(array.postponed.get(index, "")),
        array.submitted_at,
        *end,
        waits.retry_text(array.retries[index]) if index in array.retries else "",
        0,
    )


def _array_row(array: ArrayRecord) -> Row:
    return (
        array.id,
        array.indices.text(),
        array.limit,
        array.waiting().text(),
        array.held.text(),
        array.killed.text(),
        array.done,
        array.exited,
        array.priority,
        float(array.position),
        array.aged_from,
        array.submitted_at,
        array.over_at if array.is_over else 0.0,
        waits.array_waits_text(array),
    )


def _accounting_row(cluster: "Cluster", attempt: Attempt, state: int, ended: Row) -> Row:
    """Build an accounting row; ``ended`` is (ended_at, status, reason), then the fields of a
    JobUsage, then the use of GPUs."""
    key = attempt.key
    record = cluster.bearer(key.job, key.index)
    shared = record.shared
    ended_at, status, reason, cpu_s, memory_mib_max, *figures = ended
    return (
        *key,
        v.clean(shared.user),
        v.clean(shared.queue),
        v.clean(shared.project),
        record.submitted_at,
        attempt.dispatched_at,
        attempt.started_at,
        ended_at,
        state,
        status,
        reason,
        cpu_s,
        memory_mib_max,
        attempt.slots,
        v.hosts_text(attempt.allocation),
        *figures,
        *slot_seconds(cluster, attempt, float(ended_at)),
        gpu_seconds(attempt, float(ended_at)),
        v.clean(shared.user_group),
    )


_OfAttempt = e.HostStaged | e.AttemptLaunched | e.ProgressReported | e.ResizeNoted | t.ResizeAcknowledged | t.PartsFreed

# -- one function an event -------------------------------------------------------------------------------------------


def _job_submitted(turn: _Turn, event: e.JobSubmitted) -> None:
    new, batch = event.job, turn.batch
    batch.specs[new.id] = spec_row(turn.cluster, new)
    if new.environment is not None:
        batch.environments[new.environment[0]] = new.environment
    batch.next_job = max(batch.next_job, new.id + 1)
    if new.request_id:
        user = v.clean(new.shared.user)
        batch.requests.setdefault((new.request_id, user), (new.request_id, user, new.id))
    (turn.arrays.update({new.id: None}) if new.indices else turn.jobs.update({(new.id, 0): None}))
    detail = f'{{"hold":{"true" if new.hold else "false"}}}'
    turn.tell(event.at, Key(new.id, 0, 0), "submitted", detail)


def _job_modified(turn: _Turn, event: e.JobModified) -> None:
    new, elements = event.job, {}
    if new.environment is not None:
        turn.batch.environments[new.environment[0]] = new.environment
    _touch_record(turn, new.id)
    if event.indices:
        turn.batch.parts[new.id, event.part] = part_row(_array(turn.cluster, new.id), event)
        turn.jobs.update(((new.id, index), None) for index in event.indices)
        elements = {"indices": event.indices.text()}
    else:
        turn.batch.specs[new.id] = spec_row(turn.cluster, new)
        elements = but_changed(turn.cluster.jobs[new.id])
    for attempt in turn.cluster.attempts_of(new.id):  # its limits may have changed
        if not event.indices or attempt.key.index in event.indices:
            turn.attempts[attempt.key] = None
    kind = "switched" if event.switched_to else "modified"
    detail = v.detail(by=event.by, changes=event.changes, queue=event.switched_to, **elements)
    turn.tell(event.at, Key(new.id, 0, 0), kind, detail)


def _job_moved(turn: _Turn, event: e.JobMoved) -> None:
    _touch_record(turn, event.job)
    record = turn.cluster.jobs[event.job]
    if isinstance(record, ArrayRecord):  # elements changed by themselves move along
        turn.jobs.update(((event.job, index), None) for index in record.changed if record.job_of(index) is not None)
    if event.place:
        turn.tell(event.at, Key(event.job, 0, 0), "moved", v.detail(by=event.by, place=event.place))


def _touch_record(turn: _Turn, job: int) -> None:
    if isinstance(turn.cluster.jobs[job], ArrayRecord):
        turn.arrays[job] = None
    else:
        turn.jobs[job, 0] = None


@lru_cache(64)
def _by(by: str, reason: str) -> str:
    """Return the detail of one command, which is the same for each of its jobs."""
    return v.detail(by=by, reason=reason)


def _waiting_changed(turn: _Turn, event: e.PendingEnded | e.PendingHeld | e.PendingFreed, kind: str) -> None:
    record = turn.cluster.jobs[event.job]
    by, reason = event.by, event.reason if isinstance(event, e.PendingEnded) else ""
    if not isinstance(record, ArrayRecord):
        turn.jobs[event.job, 0] = None
        turn.tell(event.at, Key(event.job, 0, 0), kind, _by(by, reason))
        return
    turn.arrays[event.job] = None
    turn.tell(event.at, Key(event.job, 0, 0), kind, v.detail(indices=event.indices.text(), by=by, reason=reason))
    for index in record.attempts:
        if index in event.indices:
            _dispatched_before(turn, record, index, event)
    turn.jobs.update(((event.job, index), None) for index in record.changed if index in event.indices)


def _dispatched_before(
    turn: _Turn, array: ArrayRecord, index: int, event: e.PendingEnded | e.PendingHeld | e.PendingFreed
) -> None:
    """Update the row of a pending element that was dispatched before; the others are only in the array's sets."""
    if not isinstance(event, e.PendingEnded):
        turn.jobs[array.id, index] = None
    elif index in array.killed:
        end = v.end_values(JobEnd(event.at, 0, event.reason))
        turn.batch.jobs[array.id, index] = _waiting_row(array, index, end)


def _pending_ended(turn: _Turn, event: e.PendingEnded) -> None:
    _waiting_changed(turn, event, "completed" if event.is_done else "killed")


def _restarted_in_queue(turn: _Turn, event: t.RestartedInQueue) -> None:
    _touch_record(turn, event.job)
    turn.tell(event.at, Key(event.job, 0, 0), "restarted in queue", v.detail(reason=event.reason, count=event.times))


def _pending_held(turn: _Turn, event: e.PendingHeld) -> None:
    _waiting_changed(turn, event, "held")


def _pending_freed(turn: _Turn, event: e.PendingFreed) -> None:
    _waiting_changed(turn, event, "freed")


def _job_revived(turn: _Turn, event: e.JobRevived) -> None:
    record = turn.cluster.jobs[event.job]
    _touch_record(turn, event.job)
    elements = {}
    if isinstance(record, ArrayRecord):
        elements = {"indices": event.indices.text()}
        for index in event.indices:
            if index in record.attempts or index in record.changed:  # the others were killed without ever having a row
                turn.jobs[event.job, index] = None
            if index in record.tasks:
                turn.tasks[event.job, index] = None
    elif record.tasks is not None:
        turn.tasks[event.job, 0] = None
    turn.tell(event.at, Key(event.job, 0, 0), "revived", v.detail(by=event.by, hold=event.hold, **elements))


def _dependency_met(turn: _Turn, event: e.DependencyMet) -> None:
    _touch_record(turn, event.job)
    elements = {} if 0 in event.indices else {"indices": event.indices.text()}
    turn.tell(event.at, Key(event.job, 0, 0), "met", v.detail(**elements))


def _begin_time_reached(turn: _Turn, event: e.BeginTimeReached) -> None:
    _touch_record(turn, event.job)
    for index in event.elements:
        turn.jobs[event.job, index] = None


def _dispatched(turn: _Turn, event: e.AttemptDispatched) -> None:
    key = event.key
    attempt = turn.cluster.attempts.get(key)
    if turn.claims:
        _forget_claim(turn, key.job, key.index)
    turn.known[key] = attempt or Attempt(key, event.allocation, event.at, event.launch_now, event.reason)
    _change_attempt(turn, key)
    _touch_tasks(turn, key)
    hosts, reason = v.hosts_text(event.allocation), v.quote(event.reason)
    turn.tell(event.at, key, "dispatched", f'{{"hosts":{hosts},"reason":{reason}}}')


def _touch_tasks(turn: _Turn, key: Key) -> None:
    """Mark the tasks of an attempt as changed, if it has any."""
    if turn.known[key].tasks is not None:
        turn.tasks[key.job, key.index] = None


def _change_attempt(turn: _Turn, key: Key) -> None:
    """Mark job, attempt and, since elements move between its sets, the array as changed."""
    turn.jobs[key.job, key.index] = None
    turn.attempts[key] = None
    if key.index:
        turn.arrays[key.job] = None


def _attempt_only(turn: _Turn, event: _OfAttempt) -> None:
    turn.attempts[event.key] = None
    _touch_tasks(turn, event.key)


def _tasks_changed(turn: _Turn, event: t.TaskJobEvent) -> None:
    turn.tasks[event.key.job, event.key.index] = None
    if isinstance(event, t.TasksRestarted):  # it ends a hang
        turn.attempts[event.key] = None
    for kind, detail in task_rows.lines(turn.cluster, event):
        turn.tell(event.at, event.key, kind, detail)


def _released(turn: _Turn, event: e.HostReleased) -> None:
    """Update the job's row if a host reports its usage after the job has ended."""
    key = event.key
    turn.attempts[key] = None
    attempt = turn.known.get(key) if event.usage is not None else None
    job = turn.cluster.element(key.job, key.index) if attempt is not None and attempt.over else None
    if attempt is not None and job is not None and job.end is not None and job.attempts == key.attempt:
        turn.touch(key)
        turn.batch.accounting[key] = _accounting_row(turn.cluster, attempt, int(job.state), v.outcome(job.end))
    elif event.usage is None:
        ended = turn.cluster.element(key.job, key.index)
        if ended is not None and ended.end is not None and ended.end.post is PostState.ERR:  # perhaps only now
            turn.touch(key)


def _started(turn: _Turn, event: e.JobStarted) -> None:
    key = event.key
    turn.jobs[key.job, key.index] = None
    turn.attempts[key] = None
    home, cwd = v.quote(event.exec_home), v.quote(event.exec_cwd)
    turn.tell(event.at, key, "started", f'{{"pid":{event.pid},"home":{home},"cwd":{cwd}}}')


def _finished(turn: _Turn, event: e.JobFinished) -> None:
    key = event.key
    _change_attempt(turn, key)
    _touch_tasks(turn, key)
    job = turn.cluster.element(key.job, key.index)
    assert job is not None, f"{key} ended but its job is not in memory"
    attempt, end = turn.known[key], job.end
    assert end is not None, f"{key} ended and has no end"
    cpu_s, memory = v.finite(end.cpu_s), v.bounded(end.memory_mib_max)
    turn.batch.accounting[key] = _accounting_row(turn.cluster, attempt, int(job.state), v.outcome(end))
    text, detail = v.quote(event.reason), v.quote(event.detail)
    turn.tell(
        event.at,
        key,
        "finished",
        f'{{"status":{event.status},"cpu_s":{cpu_s!r},"memory_mib_max":{memory},"reason":{text},"detail":{detail}}}',
    )


def _post_exec_ended(turn: _Turn, event: e.PostExecEnded) -> None:
    if turn.cluster.element(event.key.job, event.key.index) is not None:
        turn.touch(event.key)
    turn.tell(event.at, event.key, "posted", v.detail(state=event.post.name))


def _requeued(turn: _Turn, event: e.JobRequeued) -> None:
    key = event.key
    _change_attempt(turn, key)
    _touch_tasks(turn, key)
    attempt = turn.known[key]
    outcome = v.outcome_of(attempt, event.at, event.reason)
    state = _PSUSP if event.hold else _PEND
    turn.batch.accounting[key] = _accounting_row(turn.cluster, attempt, state, outcome)
    turn.tell(event.at, key, "requeued", v.detail(reason=event.reason, hold=event.hold))


def _suspended(turn: _Turn, event: e.JobSuspended) -> None:
    _change_signalled(turn, event.key)
    if event.state not in _LATER:
        detail = v.detail(state=event.state.name, by=event.by, reason=event.reason)
        turn.tell(event.at, event.key, "suspended", detail)


def _resumed(turn: _Turn, event: e.JobResumed) -> None:
    _change_signalled(turn, event.key)
    if event.state not in _LATER:
        detail = v.detail(by=event.by, state=event.state.name, reason=event.reason)
        turn.tell(event.at, event.key, "resumed", detail)


def _room_claimed(turn: _Turn, event: e.RoomClaimed) -> None:
    key = (event.job, event.index)
    turn.claims.add(key)
    claim = turn.cluster.claims.get(key)
    if claim is not None:
        turn.batch.standing[v.claim_name(*key)] = v.claim_row(claim)
    turn.tell(event.at, Key(event.job, event.index, 0), "claimed", v.detail(reason=event.reason))


def _claim_dropped(turn: _Turn, event: e.ClaimDropped) -> None:
    _forget_claim(turn, event.job, event.index)
    turn.tell(event.at, Key(event.job, event.index, 0), "unclaimed", v.detail(reason=event.reason))


def _forget_claim(turn: _Turn, job: int, index: int) -> None:
    if (job, index) in turn.claims:
        turn.claims.discard((job, index))
        turn.batch.standing[v.claim_name(job, index)] = None


def _change_signalled(turn: _Turn, key: Key) -> None:
    """Mark job and attempt as changed: the state, and the signal to repeat."""
    turn.touch(key)
    turn.attempts[key] = None


def _signalled(turn: _Turn, event: e.JobSignalled) -> None:
    turn.attempts[event.key] = None
    turn.tell(event.at, event.key, "signalled", v.detail(signal=event.signal, by=event.by, reason=event.reason))


def _warned(turn: _Turn, event: JobWarned) -> None:
    turn.attempts[event.key] = None
    turn.tell(event.at, event.key, "warned", v.detail(text=event.text))


def _doomed(turn: _Turn, event: e.JobDoomed) -> None:
    turn.attempts[event.key] = None
    turn.tell(event.at, event.key, "doomed", v.detail(reason=event.reason, again=event.again, by=event.by))


def _growing(turn: _Turn, event: e.AttemptGrowing) -> None:
    turn.attempts[event.key] = None
    hosts, reason = v.hosts_text(event.additions), v.quote(event.reason)
    turn.tell(event.at, event.key, "growing", f'{{"hosts":{hosts},"reason":{reason}}}')


def _growth_given_up(turn: _Turn, event: e.GrowthGivenUp) -> None:
    turn.attempts[event.key] = None
    turn.tell(event.at, event.key, "ungrown", v.detail(reason=event.reason))


def _resized(turn: _Turn, event: e.AttemptResized) -> None:
    turn.attempts[event.key] = None
    _touch_tasks(turn, event.key)
    hosts, by, reason = v.hosts_text(event.allocation), v.quote(v.clean(event.by)), v.quote(event.reason)
    turn.tell(event.at, event.key, "resized", f'{{"hosts":{hosts},"by":{by},"reason":{reason}}}')


def _resize_wished(turn: _Turn, event: e.ResizeWished) -> None:
    turn.attempts[event.key] = None
    turn.tell(
        event.at, event.key, "wished", v.detail(tasks=event.tasks, by=v.clean(event.by), sizes=v.clean(event.words))
    )


def _lost(turn: _Turn, event: e.JobLost) -> None:
    turn.touch(event.key)
    turn.tell(event.at, event.key, "lost", v.detail(hosts=v.clean(event.hosts)))


def _found(turn: _Turn, event: e.JobFound) -> None:
    turn.touch(event.key)
    turn.tell(event.at, event.key, "found")


def _abandoned(turn: _Turn, event: e.JobAbandoned) -> None:
    _change_signalled(turn, event.key)
    turn.tell(event.at, event.key, "abandoned", v.detail(by=event.by, reason=event.reason))


def _activity_changed(turn: _Turn, event: a.ActivityEvent | t.HangEnded) -> None:
    turn.attempts[event.key] = None
    for kind, detail in activity_rows.lines(event):
        turn.tell(event.at, event.key, kind, detail)


def _cluster_changed(turn: _Turn, event: Any) -> None:
    cluster_rows.add(turn.batch, turn.cluster, event, turn.queues)


def _job_detached(turn: _Turn, event: e.JobDetached) -> None:
    _touch_record(turn, event.job)
    turn.tell(event.at, Key(event.job, 0, 0), "detached", v.detail(reservation=event.reservation, by=event.by))


# Silence, hearing, forgetting and new policies have no rows: they are found out anew after a restart. What budgets have
# warned of is in the rows of what is used of them.
_HANDLERS: dict[type, Callable[[_Turn, Any], None]] = {
    **dict.fromkeys(get_args(t.TaskJobEvent), _tasks_changed),  # some of them have handlers of their own below
    e.JobSubmitted: _job_submitted,
    e.JobModified: _job_modified,
    e.JobMoved: _job_moved,
    e.PendingEnded: _pending_ended,
    e.PendingHeld: _pending_held,
    e.PendingFreed: _pending_freed,
    e.JobRevived: _job_revived,
    e.DependencyMet: _dependency_met,
    t.RestartedInQueue: _restarted_in_queue,
    e.BeginTimeReached: _begin_time_reached,
    e.AttemptDispatched: _dispatched,
    **dict.fromkeys((e.HostStaged, e.AttemptLaunched, e.ProgressReported), _attempt_only),
    e.HostReleased: _released,
    e.JobStarted: _started,
    e.JobFinished: _finished,
    e.PostExecEnded: _post_exec_ended,
    e.JobRequeued: _requeued,
    e.JobSuspended: _suspended,
    e.JobResumed: _resumed,
    e.JobSignalled: _signalled,
    JobWarned: _warned,
    e.JobDoomed: _doomed,
    e.RoomClaimed: _room_claimed,
    e.ClaimDropped: _claim_dropped,
    e.AttemptGrowing: _growing,
    e.GrowthGivenUp: _growth_given_up,
    e.AttemptResized: _resized,
    e.ResizeNoted: _attempt_only,
    e.ResizeWished: _resize_wished,
    **dict.fromkeys((t.ResizeAcknowledged, t.PartsFreed), _attempt_only),
    e.JobLost: _lost,
    e.JobFound: _found,
    e.JobAbandoned: _abandoned,
    **dict.fromkeys((*cluster_rows.HANDLERS, e.QueueRuled), _cluster_changed),
    e.JobDetached: _job_detached,
    a.JobMessagePosted: lambda turn, event: activity_rows.add_message(turn.batch, event),
    a.ReasonGiven: lambda turn, event: activity_rows.add_reason(turn.batch, event),
    **dict.fromkeys(activity_rows.KINDS, _activity_changed),
}
