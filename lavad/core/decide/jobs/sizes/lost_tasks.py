"""Lost tasks of elastic roles: evicted, killed, or gone with a signal, and no policy has taken care of them.

The job goes on without them as long as the role's minimum is left: their places are given up, so that they leave the
lists, and the role grows back to its size after a while. A task that ends by its own exit code is not lost.

Where a role has a number of completions, each ended task gives its place up when no other is left that could take it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from lavad.core import events as e
from lavad.core.apply.resize import may_change
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import SYSTEM
from lavad.core.decide.jobs.resize import shrink_attempt
from lavad.core.decide.jobs.sizes import tasks_in
from lavad.core.language.requirements.parts import held_by, is_divisible_of, sizes_of
from lavad.core.model import Allocation, HostShare, JobState, Request
from lavad.core.model.reasons import EXIT_STATUS_LOST
from lavad.core.model.task_rules import TaskEvent, TaskKey, TaskPhase
from lavad.core.plan import Shrink
from lavad.core.state.attempts import Attempt
from lavad.core.state.tasks import ENDED, JobTasks, TaskRecord


def give_up_lost_tasks(cluster: Cluster, now: float) -> Iterator[e.Event]:
    """Events that shrink elastic jobs by tasks that they have lost. It costs O(running elastic jobs)."""
    for attempt in cluster.resizable.values():
        tasks = attempt.tasks
        if tasks is None or not may_change(attempt) or tasks.verdict is not None:
            continue
        if not any(tasks.total(phase) for phase in ENDED):
            continue
        job = cluster.holder(attempt.key)
        if job is None or job.state is not JobState.RUN:
            continue
        idle = tasks.records.idle - {one.task for one in tasks.delayed}
        over = [key for key in sorted(idle) if _is_over(tasks, key)]
        lost = [key for key in sorted(idle) if key not in over and _is_lost(tasks.records[key])]
        if events := _given_up(cluster, attempt, tasks, job.shared.request, lost, "lost", now):
            retry_at = now + cluster.policy.avoid_host_s
            yield from (replace(one, retry_at=retry_at) if isinstance(one, e.AttemptResized) else one for one in events)
        else:
            yield from _given_up(cluster, attempt, tasks, job.shared.request, over, "over", now)


def _given_up(
    cluster: Cluster, attempt: Attempt, tasks: JobTasks, request: Request, keys: list[TaskKey], what: str, now: float
) -> list[e.Event]:
    """Events that shrink the job by the places of these tasks, as far as it may."""
    gone = _spared(attempt, tasks, request, keys)
    gives = _held(attempt, tasks, request, gone)
    if not gives:
        return []
    why = f"{', '.join(map(tasks.label, gone))} {'are' if len(gone) > 1 else 'is'} {what}"
    return shrink_attempt(cluster, Shrink(attempt.key, gives, why), now, SYSTEM, gone=gone)


def _is_over(tasks: JobTasks, key: TaskKey) -> bool:
    """True if an ended task's place is of no use to its role any more."""
    return bool(tasks.rules.roles[key.role].completions) and not tasks.owed(key.role) and not tasks.records[key].leaves


def _is_lost(record: TaskRecord) -> bool:
    if record.phase not in ENDED or not record.host or record.leaves:
        return False
    if record.ends_as is TaskEvent.EVICTED:
        return True
    return record.phase is TaskPhase.EXITED and (record.status & 0x7F != 0 or record.status == EXIT_STATUS_LOST)


def _spared(attempt: Attempt, tasks: JobTasks, request: Request, lost: Iterable[TaskKey]) -> tuple[TaskKey, ...]:
    """Those of the lost tasks without which each role still has its minimum, and whose process stands for no other."""
    present = sizes_of(attempt.allocation, len(request.roles))
    gone: list[TaskKey] = []
    for key in lost:
        if present[key.role] > request.roles[key.role].tasks_min and not tasks.led.get(key):
            present[key.role] -= 1
            gone.append(key)
    return tuple(gone)


def _held(attempt: Attempt, tasks: JobTasks, request: Request, gone: Iterable[TaskKey]) -> Allocation:
    """Parts of the shares that these tasks hold; none if one of them can't be divided."""
    chosen = set(gone)
    found: list[HostShare] = []
    for share in attempt.allocation:
        here = [tasks_in.on_host(tasks, share.host, role) for role in range(len(request.roles))]
        places = [[at for at, key in enumerate(keys) if key in chosen] for keys in here]
        if any(places):
            part = held_by(share, places, request)
            if part != share and not is_divisible_of(share):
                return ()
            found.append(part)
    return tuple(found)
