"""Warnings and limits from the use of GPUs: devices that draw no more power than idle ones, and faulty ones.

A device that is idle or in trouble is told once, and again after it was in use. The limit counts when all devices of
the job are idle: one rank that waits is no reason to end the others.
"""

from collections.abc import Iterator

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.activity_events import JobWarned
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import SYSTEM, Decision
from lavad.core.decide.jobs.control import kill_attempt
from lavad.core.model import HostShare, JobState
from lavad.core.model import reasons as r
from lavad.core.model.gpu_use import GpuIdleRule, GpuUse
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import Job

_ON = frozenset({JobState.RUN})


def rule_of(cluster: Cluster, job: Job) -> GpuIdleRule:
    """The rule for a job: its queue's, and the cluster's where that leaves something open."""
    queue = cluster.policy.queue(job.shared.queue)
    return queue.gpu_idle.over(cluster.policy.gpu_idle) if queue is not None else cluster.policy.gpu_idle


def check(cluster: Cluster, command: c.CheckGpus, now: float) -> Decision:
    """Warn of idle and faulty GPUs of a running job; end or requeue it at the limit."""
    attempt, job = cluster.attempts.get(command.key), cluster.holder(command.key)
    if attempt is None or job is None or job.state not in _ON or attempt.is_ending:
        return Decision()
    rule = rule_of(cluster, job)
    decision = Decision(list(_warnings(attempt, command.host, rule, now)))
    if rule.limit_s and _is_idle(attempt, command.host, rule.limit_s):
        decision.events += _ended(cluster, job, attempt, rule, now)
    return decision


def _warnings(attempt: Attempt, host: str, rule: GpuIdleRule, now: float) -> Iterator[JobWarned]:
    """Warnings of the devices of the host that has reported."""
    known = attempt.told
    if known is None:
        known = {about: (at, text) for at, about, text in attempt.warnings}
    usage = attempt.usage.get(host)
    for use in usage.gpus if usage is not None else ():
        where = f"GPU {use.index} of {host}"
        about = f"idle {where}"
        if rule.warn_s and use.idle_s >= rule.warn_s and _is_new(known.get(about), use, now):
            text = f"{where} has been idle for {use.idle_s:.0f} seconds: it draws {use.power_w:.0f} W"
            yield JobWarned(now, attempt.key, about, f"{text}, whatever its utilisation ({use.utilisation:.0%})")
        if use.trouble and known.get(where, (0.0, ""))[1] != f"{where}: {use.trouble}":
            yield JobWarned(now, attempt.key, where, f"{where}: {use.trouble}")


def _is_new(known: tuple[float, str] | None, use: GpuUse, now: float) -> bool:
    """True if the device was in use since the last warning."""
    return known is None or known[0] < now - use.idle_s


def _is_idle(attempt: Attempt, host: str, limit_s: float) -> bool:
    """True if every device of the job was idle for that long, as far as hosts have reported it.

    The host that has reported is looked at first, and the others up to the first with a device in use.
    """
    mine = attempt.share_on(host)
    if mine is None or not _is_idle_on(attempt, mine, limit_s):
        return False
    held = [share for share in attempt.allocation if share.gpus]
    return bool(held) and all(_is_idle_on(attempt, share, limit_s) for share in held)


def _is_idle_on(attempt: Attempt, share: HostShare, limit_s: float) -> bool:
    usage = attempt.usage.get(share.host)
    idle = {use.index for use in usage.gpus if use.idle_s >= limit_s} if usage is not None else set()
    return idle.issuperset(share.gpus)


def _ended(cluster: Cluster, job: Job, attempt: Attempt, rule: GpuIdleRule, now: float) -> list[e.Event]:
    if rule.requeues:
        why = f"all its GPUs were idle for {rule.limit_s:.0f} seconds"
        return [e.JobDoomed(now, attempt.key, why, again=True, by=SYSTEM)]
    return kill_attempt(cluster, job, attempt, now, SYSTEM, r.TERM_GPU_IDLE)
