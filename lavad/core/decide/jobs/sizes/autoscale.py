"""Automatic sizes of elastic roles: by the job's own metric script, or by the slots that its queue's jobs wait for.

The size asked for is kept within the rule's bounds and the role's, and no change follows another within the cooldown.
Growth is like any other: into slots that no pending job waits for. A metric without an answer leaves the size as it is.
"""

from collections.abc import Iterator
from math import ceil

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core import task_events as t
from lavad.core.apply.resize import may_change
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import Decision
from lavad.core.decide.jobs.resize import shrink_attempt, wished, wishes_of
from lavad.core.language.requirements.parts import could_release, sizes_of
from lavad.core.model import JobState, Request
from lavad.core.model.task_rules import Autoscale, Metric
from lavad.core.plan import Shrink
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import Job

BY = "autoscale"  # recorded as the user who changed the size


def wanted(cluster: Cluster, command: c.ReportWanted, now: float) -> Decision:
    """Decide about the size that a job's script has printed, or why it has none."""
    attempt = cluster.resizable.get(command.key)
    if attempt is None or attempt.tasks is None or command.host not in attempt.unreleased:
        return Decision()
    rule = attempt.tasks.rules.autoscale
    if rule is None or rule.metric is not Metric.SCRIPT:
        return Decision()
    if command.error:
        is_news = attempt.tasks.autoscale_error != command.error
        return Decision([t.AutoscaleNoted(now, attempt.key, command.error)] if is_news else [])
    return Decision(_scaled(cluster, attempt, rule, command.tasks, now))


def autoscale_by_queue(cluster: Cluster, now: float) -> Iterator[e.Event]:
    """Events for jobs whose size follows the slots that pending jobs of their queue ask for."""
    for attempt in cluster.resizable.values():
        rule = attempt.tasks.rules.autoscale if attempt.tasks is not None else None
        if rule is None or rule.metric is not Metric.PENDING or not may_change(attempt):
            continue
        queue = cluster.jobs[attempt.key.job].shared.queue
        yield from _scaled(
            cluster, attempt, rule, ceil(cluster.counters.slots_by_queue[queue, JobState.PEND] / rule.target), now
        )


def _scaled(cluster: Cluster, attempt: Attempt, rule: Autoscale, size: int, now: float) -> list[e.Event]:
    tasks, job = attempt.tasks, cluster.holder(attempt.key)
    assert tasks is not None, f"{attempt.key} has no tasks"
    healed: list[e.Event] = [t.AutoscaleNoted(now, attempt.key)] if tasks.autoscale_error else []
    if job is None or job.state is not JobState.RUN or not may_change(attempt) or tasks.verdict is not None:
        return healed
    request = job.shared.request
    role = request.roles[rule.role]
    size = min(max(size, rule.least, role.tasks_min), rule.most or role.tasks_max, role.tasks_max)
    is_resting = bool(tasks.autoscaled_at) and now < tasks.autoscaled_at + rule.cooldown_s
    if size == wishes_of(attempt, request)[rule.role] or is_resting:
        return healed
    changes = _changes(cluster, job, attempt, rule, size, now)
    return [*changes, t.AutoscaleNoted(now, attempt.key, is_change=True)] if changes else healed


def _changes(cluster: Cluster, job: Job, attempt: Attempt, rule: Autoscale, size: int, now: float) -> list[e.Event]:
    request = job.shared.request
    present, wishes = sizes_of(attempt.allocation, len(request.roles)), list(wishes_of(attempt, request))
    wishes[rule.role] = size
    if size >= present[rule.role]:
        words = f"{request.roles[rule.role].name}={size}"
        return wished(attempt, tuple(wishes), BY, now, words)
    return _shrunk(cluster, attempt, request, rule.role, present[rule.role] - size, tuple(wishes), now)


def _shrunk(
    cluster: Cluster, attempt: Attempt, request: Request, role: int, less: int, wishes: tuple[int, ...], now: float
) -> list[e.Event]:
    """Events of a shrink; none if so few tasks can't be kept: hosts may be released as a whole only."""
    most = [less if number == role else 0 for number in range(len(request.roles))]
    gives = could_release(attempt.allocation, request, less, most=most)
    if not gives:
        return []
    why = f"its metric asks for {request.roles[role].name}={wishes[role]}"
    return shrink_attempt(cluster, Shrink(attempt.key, gives, why), now, BY, wishes=wishes)
