"""What windows bring about: queues that start nothing for a while, jobs that are suspended until their queue runs
again, hosts that take no jobs."""

from collections.abc import Iterator

from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.decide.jobs.control import SYSTEM, kill_attempt, resumed, suspended
from lavad.core.model import HOLDING, WINDOW, HostFacts, JobState, QueueWindow
from lavad.core.model import reasons as r
from lavad.core.model.policy import Queue
from lavad.core.model.windows import NEVER
from lavad.core.state.records import Job

REASON = "The run windows of the queue are closed"
_CAN_STOP = HOLDING - {JobState.ZOMBI}


def window_events(cluster: Cluster, now: float) -> Iterator[e.Event]:
    """Windows of queues and hosts that have opened or closed since they were last looked at, and what follows."""
    changed: dict[str, bool] = {}
    for queue in cluster.policy.queues:
        if queue.has_windows or queue.name in cluster.windows:  # it may have lost its windows
            state = _state_of(cluster, queue, now)
            if cluster.windows.get(queue.name) != state:
                yield e.QueueWindowChanged(now, queue.name, state)
                changed[queue.name] = state.may_run
    if changed:
        yield from _follow(cluster, changed, now)
    has_windows = any(rule.dispatch_windows for rule in cluster.policy.host_rules.values())
    if has_windows or any(host.is_shut for host in cluster.hosts.values()):
        yield from _host_events(cluster, now)


def _state_of(cluster: Cluster, queue: Queue, now: float) -> QueueWindow:
    zone, look = cluster.policy.zone, cluster.calendar.look
    may_run, until = look(queue.run_windows, zone, now)
    may_dispatch, _ = look(queue.dispatch_windows, zone, now)
    return QueueWindow(may_dispatch, may_run, until if may_run else NEVER)


def _follow(cluster: Cluster, changed: dict[str, bool], now: float) -> Iterator[e.Event]:
    for job in cluster.live_jobs():
        may_run = changed.get(job.shared.queue)
        if may_run is not None:
            yield from run_window_events(cluster, job, job.shared.queue, may_run, now)


def run_window_events(cluster: Cluster, job: Job, queue_name: str, may_run: bool, now: float) -> list[e.Event]:
    """Suspend a job whose queue does not run now, or end it (TERMINATE_WHEN), resume it when it does.

    One forced with brun -f goes on.
    """
    attempt = job.attempt
    assert attempt is not None, f"{job.key} holds no attempt"
    if job.state not in _CAN_STOP:
        return []
    if may_run:
        return resumed(job, WINDOW, "", now) if WINDOW in attempt.suspended else []
    if WINDOW in attempt.suspended or attempt.is_unconstrained:
        return []
    queue = cluster.policy.queue(queue_name)
    if queue is not None and "WINDOW" in queue.terminate_when and job.state is not JobState.UNKWN:
        ending = kill_attempt(cluster, job, attempt, now, SYSTEM, r.TERM_WINDOW)
        return [] if attempt.is_ending else ending
    return suspended(job, WINDOW, REASON, "", now)


def may_run(cluster: Cluster, queue_name: str) -> bool:
    """Are the run windows of that queue open, as far as the last tick knew?"""
    state = cluster.windows.get(queue_name)
    return state is None or state.may_run


def _host_events(cluster: Cluster, now: float) -> Iterator[e.Event]:
    for host in cluster.hosts.values():
        yield from host_window_events(cluster, host.facts, now)


def host_window_events(cluster: Cluster, facts: HostFacts, now: float) -> list[e.Event]:
    """Whether a host has begun, or ceased, to take jobs; it need not have joined yet."""
    rule = cluster.policy.host_rule(facts.name, facts.model, facts.type)
    is_open, _ = cluster.calendar.look(rule.dispatch_windows, cluster.policy.zone, now)
    host = cluster.hosts.get(facts.name)
    is_shut = host is not None and host.is_shut
    return [e.HostWindowChanged(now, facts.name, is_open)] if is_open is is_shut else []


def next_window_change(cluster: Cluster, now: float) -> float:
    """When a window opens or closes next; now, where one has not been looked at yet."""
    policy, look = cluster.policy, cluster.calendar.look
    windows = {windows for queue in policy.queues for windows in (queue.run_windows, queue.dispatch_windows)}
    windows |= {rule.dispatch_windows for rule in policy.host_rules.values()}
    if any(queue.has_windows and queue.name not in cluster.windows for queue in policy.queues):
        return now
    return min((look(one, policy.zone, now)[1] for one in windows), default=NEVER)
