"""Exceptions of running jobs in queues that have thresholds for them: each is a warning of the job, once an attempt."""

from collections.abc import Iterator

from lavad.core.activity_events import JobWarned
from lavad.core.cluster import Cluster
from lavad.core.model import JobState
from lavad.core.model.policy import Policy
from lavad.core.model.rules.exceptions import IDLE, OVERRUN, ExceptionRule
from lavad.core.model.usage import of_attempt
from lavad.core.state.attempts import Attempt

LOOK_EVERY_S = 10.0


def rules_of(policy: Policy) -> dict[str, ExceptionRule]:
    """Return the thresholds by queue, of those that have any."""
    return {queue.name: queue.exceptions for queue in policy.queues if any(queue.exceptions)}


def exception_events(cluster: Cluster, now: float) -> Iterator[JobWarned]:
    """Warnings of running jobs that have come to a threshold; looked for every few seconds."""
    if now < cluster.exceptions_due:
        return
    cluster.exceptions_due = now + LOOK_EVERY_S
    rules = rules_of(cluster.policy)
    for attempt in cluster.attempts.values() if rules else ():
        job = cluster.holder_of(attempt)
        rule = rules.get(job.shared.queue) if job is not None and job.state is JobState.RUN else None
        if rule is not None and attempt.started_at and not attempt.is_ending:
            yield from _warnings(attempt, rule, cluster.policy.idle_after_s, now)


def _warnings(attempt: Attempt, rule: ExceptionRule, idle_after_s: float, now: float) -> Iterator[JobWarned]:
    told = {about for _, about, _ in attempt.warnings}
    run_s = now - attempt.started_at
    if rule.overrun_s and run_s > rule.overrun_s and OVERRUN not in told:
        text = f"job overrun: it runs for longer than {rule.overrun_s / 60:g} minutes"
        yield JobWarned(now, attempt.key, OVERRUN, text)
    if rule.idle_factor and run_s > idle_after_s and IDLE not in told:
        factor = of_attempt(attempt).cpu_s / run_s
        if factor < rule.idle_factor:
            text = f"job idle: its CPU time over its run time is {factor:.2f}, less than {rule.idle_factor:g}"
            yield JobWarned(now, attempt.key, IDLE, text)
