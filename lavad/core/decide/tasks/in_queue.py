"""Policies of a job of tasks for ``pending`` while the job waits in its queue: all its tasks wait for a place.

A restart changes nothing there: it uses up one of the job's restarts each time, and with none left the job has failed.
A job that its policy completes is DONE, as in Volcano: it needs no task for that. So are waiting elements of an array.
"""

from collections.abc import Iterator

from lavad.core import events as e
from lavad.core.apply.tasks.queue_wait import made_in_queue, queued_at, restarts_left
from lavad.core.decide.tasks.policies import policy_for
from lavad.core.model.ranges import Ranges
from lavad.core.model.task_rules import RESTARTS, Policy, TaskAction, TaskEvent, TaskKey
from lavad.core.state.records import ArrayRecord, Job
from lavad.core.task_events import RestartedInQueue

BY = "lavad"


def wait_events(record: Job | ArrayRecord, now: float) -> Iterator[e.Event]:
    """Event of the first policy whose time is over for a job in its queue; none before."""
    indices = _waiting(record)
    due = [one for one in _limits(record) if one[0] <= now] if indices else []
    if not due:
        return
    at, task, policy = min(due, key=lambda one: one[0])
    if policy.action is TaskAction.ABORT:
        yield e.PendingHeld(now, record.id, indices, BY)
        return
    role = record.shared.request.roles[task.role].name
    reason = f"task {role}[{task.index}] waited for more than {policy.timeout_s:.0f} s for a place"
    if policy.action in RESTARTS:
        times, left = int((now - at) // policy.timeout_s) + 1, restarts_left(record)
        if times <= left:
            yield RestartedInQueue(now, record.id, at + (times - 1) * policy.timeout_s, times, reason)
            return
        made = _restarts_of(record) + left
        reason += f", after {made} restart{'s' * (made > 1)}" if made else ""
    is_done = policy.action is TaskAction.COMPLETE
    yield e.PendingEnded(now, record.id, indices, BY, reason, is_done)


def _restarts_of(record: Job | ArrayRecord) -> int:
    before = record.tasks.restarts if isinstance(record, Job) and record.tasks is not None else 0
    return before + made_in_queue(record)


def _waiting(record: Job | ArrayRecord) -> Ranges:
    if isinstance(record, ArrayRecord):
        return record.pending.copy()
    return Ranges([range(1)]) if record.may_start else Ranges()


def _limits(record: Job | ArrayRecord) -> Iterator[tuple[float, TaskKey, Policy]]:
    """Times at which policies act, each with one of its tasks."""
    rules, since = record.shared.tasks, queued_at(record)
    if rules is None:
        return
    for number, role in enumerate(record.shared.request.roles):
        named = {one.index for one in (*rules.roles[number].policies, *rules.policies)}
        for index in sorted({0, *named} & set(range(rules.roles[number].completions or role.tasks_max - role.spares))):
            policy = policy_for(rules, TaskKey(number, index), TaskEvent.PENDING)
            if policy is not None:
                yield since + policy.timeout_s, TaskKey(number, index), policy
