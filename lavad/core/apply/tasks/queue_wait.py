"""Time for which a job of tasks waits in its queue, and the alarms of its policies for ``pending``.

The time counts from the submission, or from when the job came back to its queue or might start at last: after a
requeue, a hold, its begin time or its dependency. Of an array it counts from the newest return of any element.

A restart by such a policy changes nothing in the queue but uses up one of the job's restarts; the time counts anew from
it. These restarts stand beside the conditions of the job's start until it is dispatched: its tasks count on from them.
Those of an array are shared by its elements that were never dispatched.
"""

import heapq
from dataclasses import replace

from lavad.core.cluster import Cluster
from lavad.core.model import Shared
from lavad.core.model.task_rules import TaskEvent
from lavad.core.state.records import ArrayRecord, Job, StartConditions


def queued_at(record: Job | ArrayRecord) -> float:
    """Time since which the job waits in its queue."""
    since = record.start_conditions.queued_at if record.start_conditions is not None else 0.0
    return since or record.submitted_at


def restarts_left(record: Job | ArrayRecord) -> int:
    """Number of restarts that the job has left; an array of each element that was never dispatched."""
    most = record.shared.tasks.restarts_max if record.shared.tasks is not None else 0
    made = record.tasks.restarts if isinstance(record, Job) and record.tasks is not None else 0
    return max(0, most - made - made_in_queue(record))


def made_in_queue(record: Job | ArrayRecord) -> int:
    """Number of restarts in the queue since the last dispatch."""
    return record.start_conditions.restarts if record.start_conditions is not None else 0


def restarted(cluster: Cluster, record: Job | ArrayRecord, since: float, count: int) -> None:
    """Note restarts in the queue; the time counts from the last one."""
    made = made_in_queue(record) + count
    record.start_conditions = replace(record.start_conditions or StartConditions(), queued_at=since, restarts=made)
    watch(cluster, record)


def taken_along(job: Job) -> int:
    """Number of restarts in the queue that a job takes along as it is dispatched."""
    if job.array is not None:
        return made_in_queue(job.array) if job.attempts <= 1 else 0
    made = made_in_queue(job)
    forget(job)
    return made


def forget(record: Job | ArrayRecord) -> None:
    """Forget restarts in the queue: they are counted with the tasks, or the job begins anew."""
    if record.start_conditions is not None and record.start_conditions.restarts:
        record.start_conditions = replace(record.start_conditions, restarts=0)


def enters(cluster: Cluster, record: Job | ArrayRecord, at: float) -> None:
    """Note that the job is in its queue from now on, if it has policies for that."""
    if _timeouts(record.shared):
        record.start_conditions = replace(record.start_conditions or StartConditions(), queued_at=at)
        watch(cluster, record)


def watch(cluster: Cluster, record: Job | ArrayRecord) -> None:
    """Set alarms at which the policies of a pending job may act."""
    since = queued_at(record)
    for timeout_s in _timeouts(record.shared):
        heapq.heappush(cluster.alarms, (since + timeout_s, record.id))


def _timeouts(shared: Shared) -> set[float]:
    if shared.tasks is None:
        return set()
    policies = [*shared.tasks.policies, *[one for role in shared.tasks.roles for one in role.policies]]
    named = (one for one in policies if TaskEvent.PENDING in one.events or TaskEvent.ANY in one.events)
    return {one.timeout_s for one in named if one.timeout_s}
