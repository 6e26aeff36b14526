"""Windows: queues that do not dispatch for a while, jobs suspended while their queue does not run, hosts that take no
jobs."""

from collections.abc import Iterator

from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.decide.hosts import host_window_events
from lavad.core.decide.jobs.run_windows import run_window_events
from lavad.core.model import QueueWindow
from lavad.core.model.rules.queues import Queue
from lavad.core.model.windows import NEVER


def window_events(cluster: Cluster, now: float) -> Iterator[e.Event]:
    """Events for windows of queues and hosts that have opened or closed since the last call, and for their jobs."""
    changed: dict[str, bool] = {}
    for queue in cluster.policy.queues:
        if queue.has_windows or queue.name in cluster.windows:  # a queue may have lost its windows
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


def _host_events(cluster: Cluster, now: float) -> Iterator[e.Event]:
    for host in cluster.hosts.values():
        yield from host_window_events(cluster, host.facts, now)


def next_window_change(cluster: Cluster, now: float) -> float:
    """Time at which a window opens or closes next; now, if a queue's windows have not been evaluated yet."""
    policy, look = cluster.policy, cluster.calendar.look
    windows = {windows for queue in policy.queues for windows in (queue.run_windows, queue.dispatch_windows)}
    windows |= {rule.dispatch_windows for rule in policy.host_rules.values()}
    if any(queue.has_windows and queue.name not in cluster.windows for queue in policy.queues):
        return now
    return min((look(one, policy.zone, now)[1] for one in windows), default=NEVER)
