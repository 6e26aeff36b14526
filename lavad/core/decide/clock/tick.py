"""Timer events: staging deadlines, silent hosts, ends of host avoidance, begin times and deadlines of pending jobs,
cleaning of ended jobs."""

import heapq
from collections.abc import Iterator

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core import task_events as t
from lavad.core.apply.enqueue import rank_anew
from lavad.core.apply.start_conditions import due_elements, is_due, ttl_end, waits_past_deadline
from lavad.core.cluster import FINISHED_KEPT, Cluster
from lavad.core.decide.activity import hang_events
from lavad.core.decide.clock.advance_reservations import next_turn, turn_events
from lavad.core.decide.clock.budgets import budget_events
from lavad.core.decide.clock.exceptions import exception_events
from lavad.core.decide.clock.exit_rates import exit_rate_events
from lavad.core.decide.clock.host_locks import expired_locks
from lavad.core.decide.clock.load_thresholds import load_events
from lavad.core.decide.clock.migrations import migration_events
from lavad.core.decide.clock.tasks import look_at_tasks, next_task_action
from lavad.core.decide.clock.windows import next_window_change, window_events
from lavad.core.decide.decision import Decision
from lavad.core.decide.evict import taken_away
from lavad.core.decide.hosts import give_up_staging, silence
from lavad.core.decide.jobs.resize import overdue
from lavad.core.decide.jobs.sizes.autoscale import autoscale_by_queue
from lavad.core.decide.jobs.sizes.lost_tasks import give_up_lost_tasks
from lavad.core.decide.preemption import overdue_claims
from lavad.core.decide.tasks.in_queue import wait_events
from lavad.core.model import JobState, Key
from lavad.core.model import reasons as r
from lavad.core.model.ranges import Ranges
from lavad.core.model.windows import NEVER
from lavad.core.state.records import ArrayRecord


def tick(cluster: Cluster, command: c.Tick, now: float) -> Decision:
    """Timer events of hosts and pending jobs; those of ``LATER`` are decided after it, in the state that it leaves.

    Timed rusage that ends, and hosts between two dispatches (JOB_ACCEPT_INTERVAL), are volatile, as load is: they have
    no events.
    """
    cluster.timed_rusage.ease(cluster.table, now)
    cluster.limits.end_rests(now)
    if cluster.absolute.due_at <= now:
        rank_anew(cluster, now)
    events = _overdue_staging(cluster, now)
    given_up = {event.key for event in events if isinstance(event, e.JobRequeued)}
    silent = _silent(cluster, now)
    for name, host in cluster.hosts.items():
        if name in silent:
            events.extend(_without(silence(cluster, host, now, silent), given_up))
            given_up |= {event.key for event in events if isinstance(event, e.JobRequeued)}
        elif 0 < host.avoid_until <= now:
            events.append(e.HostTrusted(now, host.facts.name))
    if cluster.resizing:
        events = list(_given_up_once(events))
    events.extend(_alarms(cluster, now))
    return Decision(events)


def _silent(cluster: Cluster, now: float) -> frozenset[str]:
    """Hosts that have exceeded the silence timeout and are not marked as silent yet."""
    since = now - cluster.policy.silent_after_s
    return frozenset([name for name, host in cluster.hosts.items() if not host.is_silent and host.seen_at < since])


def _given_up_once(events: list[e.Event]) -> Iterator[e.Event]:
    """Drop repeated events: two hosts that a job was to grow to may fall silent in the same tick."""
    seen: set[Key] = set()
    for event in events:
        if isinstance(event, e.GrowthGivenUp):
            if event.key in seen:
                continue
            seen.add(event.key)
        yield event


def _alarms(cluster: Cluster, now: float) -> Iterator[e.Event]:
    """Events for begin times reached, for pending jobs past their deadline, which would only be ended by it, or that
    their policies have wait no longer, and for ended jobs to be forgotten.

    An alarm is taken off the heap at once: its job is looked up, so one too many is harmless.
    """
    seen: set[int] = set()
    while cluster.alarms and cluster.alarms[0][0] <= now:
        _, job = heapq.heappop(cluster.alarms)
        record = cluster.jobs.get(job)
        if record is None or job in seen:
            continue
        seen.add(job)
        if waits_past_deadline(record, now):
            indices = Ranges([range(1)])
            if isinstance(record, ArrayRecord):
                indices = record.all_waiting(JobState.PEND)
                indices.update(record.all_waiting(JobState.PSUSP))
            yield e.PendingEnded(now, job, indices, "lavad", r.TERM_DEADLINE)
        elif ttl_end(record) <= now:
            yield t.JobForgotten(now, job)
        elif is_due(record, now):
            yield e.BeginTimeReached(now, job, due_elements(record, now))
        else:
            yield from wait_events(record, now)


def wake_at(cluster: Cluster, now: float) -> float:
    """Time of the next timer event that a job waits for: the next tick should be no later."""
    if cluster.dependants.dependents_to_check:
        return now
    alarm = cluster.alarms[0][0] if cluster.alarms else NEVER
    window = next_window_change(cluster, now)
    action = next_task_action(cluster, now) if cluster.timed_tasks else NEVER
    turns = (next_turn(cluster, now), cluster.limits.rest_ends_at, cluster.migrations.next_at)
    return min(alarm, window, cluster.absolute.due_at, action, *turns)


def _without(events: list[e.Event], given_up: set[Key]) -> list[e.Event]:
    """Drop events of attempts given up already: two hosts of one attempt may time out in the same tick."""
    return [event for event in events if getattr(event, "key", None) not in given_up]


def _overdue_staging(cluster: Cluster, now: float) -> list[e.Event]:
    events: list[e.Event] = []
    for attempt in cluster.staging.values():
        if not attempt.launched and attempt.launch_due < now:
            missing = [share.host for share in attempt.allocation if share.host not in attempt.staged]
            events.extend(give_up_staging(cluster, attempt, missing, now))
    return events


def _forget_finished(cluster: Cluster, now: float) -> list[e.Event]:
    before = now - cluster.policy.clean_period_s
    if len(cluster.finished) > FINISHED_KEPT:
        before = max(before, _end_of_nth(cluster, len(cluster.finished) - FINISHED_KEPT))
    oldest = next(iter(cluster.finished.values()), None)
    oldest_array = next(iter(cluster.ended_arrays.values()), None)
    is_due = (oldest is not None and oldest.end is not None and oldest.end.at < before) or (
        oldest_array is not None and oldest_array < before
    )
    return [e.FinishedForgotten(now, before)] if is_due else []


def _end_of_nth(cluster: Cluster, count: int) -> float:
    for number, job in enumerate(cluster.finished.values()):
        if number >= count:
            return job.end.at if job.end is not None else 0.0
    return 0.0


# After the silent hosts: a job that was just lost or requeued is not to be stopped by a window or a load.
LATER = (
    overdue_claims,
    overdue,
    taken_away,
    window_events,
    load_events,
    expired_locks,
    migration_events,
    turn_events,
    exit_rate_events,
    look_at_tasks,
    give_up_lost_tasks,
    autoscale_by_queue,
    hang_events,
    budget_events,
    exception_events,
    _forget_finished,
)
