"""Agent sessions and host states: hosts join and reconcile their attempts, fall silent, are heard again, are closed and
opened.

Reconciliation makes restarts harmless: each attempt is adopted, ordered again, released or lost.
"""

from collections.abc import Callable, Iterable
from typing import Any

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.decide import reports
from lavad.core.decide.contact import is_in_contact_without, silent_hosts
from lavad.core.decide.decision import Decision, denial
from lavad.core.decide.jobs import resize, task_reports
from lavad.core.decide.recovery import is_left
from lavad.core.model import HostFacts, JobState, Key
from lavad.core.model.host_config import as_configured
from lavad.core.model.reasons import Refused
from lavad.core.notices import RevokeOrder
from lavad.core.orders import (
    LEFT,
    UNKNOWN,
    ForgetOrder,
    LaunchOrder,
    Order,
    ReleaseOrder,
    checkpoint_orders,
    doom_order,
    growth_orders,
    launch_hosts,
    leave_order,
    limits_orders,
    resize_order,
    signal_again,
    stacks_orders,
    stage_orders,
)
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import Host, Job

S = JobState
LOCK_IDS_MAX = 100  # of a host
ALL_LOCK_IDS = "all"  # as in hopen -i all; no lock ID is called so

_REPORTS: dict[type, Callable[[Cluster, Any, float], Decision]] = {
    c.ReportStaged: reports.staged,
    c.ReportRefused: reports.refused,
    c.ReportStarted: reports.started,
    c.ReportFinished: reports.finished,
    c.ReportReleased: reports.released,
    c.ReportResized: resize.resized,
    c.ReportLimit: reports.limit_reached,
}


def hello(cluster: Cluster, command: c.AgentHello, now: float) -> Decision:
    """Begin a session: the host joins, and each attempt on it is reconciled."""
    name = command.facts.name
    decision = Decision([e.HostJoined(now, command.facts, command.incarnation)])
    facts = as_configured(cluster.policy, command.facts)
    decision.events.extend(host_window_events(cluster, facts, now))
    host = cluster.hosts.get(name)
    if host is not None and host.facts.server and not command.facts.server and host.attempts:
        raise Refused(f"{name} runs jobs and can't become a login host until they have ended")
    if host is not None and host.leaves_at:
        decision.orders.append(RevokeOrder(name, max(0.0, host.leaves_at - now)))
    held = {one.key: one for one in command.held}  # an attempt that is named twice counts once
    for one in held.values():
        _merge(decision, _compare_held(cluster, name, one, now))
        _merge(decision, _order_lost(cluster, name, one))
        if not _ends(decision, one.key):
            _merge(decision, task_reports.compared(cluster, name, one, now))
        decision.orders.extend(_limits_again(cluster, name, one))
        if one.limit_reached is not None and not _ends(decision, one.key):
            _merge(decision, reports.limit_reached(cluster, one.limit_reached, now))
    if held and not any(isinstance(order, RevokeOrder) for order in decision.orders):
        # A withdrawal may have been lost with the last session, and shepherds end their attempts by the clock.
        decision.orders.insert(0, RevokeOrder(name, -1.0))
    if host is not None:
        lacking = [key for key in host.attempts if key not in held]
        for key in () if command.lacks_later else lacking:
            _merge(decision, _compare_missing(cluster, name, cluster.attempts[key], now))
        known = [key for key in host.attempts if key in held] if command.lacks_later else host.attempts
        decision.events.extend(_found_again(cluster, name, known, decision.events, now))
    return decision


def lacks(cluster: Cluster, command: c.AgentLacks, now: float) -> Decision:
    """Reconcile what a host did not know at its hello; an attempt that has given way to a newer one is over by now."""
    decision = Decision()
    for key in command.keys:
        attempt = cluster.attempts.get(key)
        if attempt is not None and command.host in attempt.unreleased:
            _merge(decision, _compare_missing(cluster, command.host, attempt, now))
    known = [key for key in command.keys if key in cluster.attempts]
    decision.events.extend(_found_again(cluster, command.host, known, decision.events, now))
    return decision


def _found_again(cluster: Cluster, name: str, keys: Iterable[Key], decided: list[e.Event], now: float) -> list[e.Event]:
    """Events for jobs in UNKWN whose last silent host this was, except those whose attempts have just ended here, or
    that go on without it."""
    over = {event.key for event in decided if isinstance(event, e.JobFinished | e.JobRequeued | e.JobFound)}
    return [
        e.JobFound(now, key) for key in keys if key not in over and _is_complete(cluster, cluster.attempts[key], name)
    ]


def _is_complete(cluster: Cluster, attempt: Attempt, name: str) -> bool:
    """True if the job is in UNKWN and, with this host, all its hosts are in contact."""
    job = cluster.holder_of(attempt)
    if job is None or job.state is not S.UNKWN:
        return False
    return is_in_contact_without(cluster, attempt, name)


def _order_lost(cluster: Cluster, name: str, one: c.HeldAttempt) -> Decision:
    """Stage order for an attempt that the host knows by its shepherds alone, because its journal was damaged."""
    attempt = cluster.attempts.get(one.key) if not one.version else None
    if attempt is None or attempt.over or name not in attempt.unreleased or isinstance(one.last, c.ReportFinished):
        return Decision()
    return Decision(orders=list(stage_orders(cluster, attempt, frozenset({name}))))


def _ends(decision: Decision, key: Key) -> bool:
    """True if the decision so far ends the attempt's job, or releases this host."""
    ends = (e.JobFinished, e.JobRequeued, e.HostReleased)
    return any(isinstance(event, ends) and event.key == key for event in decision.events)


def _limits_again(cluster: Cluster, name: str, one: c.HeldAttempt) -> list[Order]:
    """Limits that were changed while the host was away, ordered again."""
    attempt = cluster.attempts.get(one.key)
    if attempt is None or name not in attempt.unreleased or one.limits >= attempt.limits_version:
        return []
    return list(limits_orders(cluster, attempt, name))


def _merge(decision: Decision, more: Decision) -> None:
    decision.events.extend(more.events)
    decision.orders.extend(more.orders)


def _compare_held(cluster: Cluster, name: str, one: c.HeldAttempt, now: float) -> Decision:
    attempt = cluster.attempts.get(one.key)
    if attempt is not None and reports.is_of_earlier_stay(cluster, one.key, name, one.version):
        return _back_again(cluster, name, attempt, now)
    if attempt is None and not isinstance(one.last, c.ReportFinished) and is_left(cluster, one.key):
        return Decision()
    if one.last is not None and not isinstance(one.last, c.ReportStaged):
        decision = _REPORTS[type(one.last)](cluster, one.last, now)
        if isinstance(one.last, c.ReportStarted | c.ReportFinished):
            decision.orders.extend(_orders_again(cluster, name, attempt))
        if isinstance(one.last, c.ReportStarted):
            _merge(decision, _compare_size(cluster, name, one, now))
        return decision
    if attempt is None:
        return Decision(orders=[ReleaseOrder(name, one.key, UNKNOWN)])
    if attempt.over or name not in attempt.unreleased:
        return Decision(orders=[ReleaseOrder(name, one.key, "the attempt is over")])
    is_due = attempt.launched and not one.launched and name in launch_hosts(cluster, attempt)
    if is_due and (attempt.doomed or attempt.kill_reason):  # an attempt that is to end is not launched any more
        return _never_begun(cluster, name, attempt, now)
    decision = reports.staged(cluster, one.last, now) if isinstance(one.last, c.ReportStaged) else Decision()
    decision.orders.extend(_orders_again(cluster, name, attempt))
    if is_due:
        decision.orders.append(LaunchOrder(name, attempt.key, attempt.version))
    _merge(decision, _compare_size(cluster, name, one, now))
    return decision


def _back_again(cluster: Cluster, name: str, attempt: Attempt, now: float) -> Decision:
    """Reconcile a host that left the attempt and is to take part again: what it still has is from the first time."""
    decision = _compare_missing(cluster, name, attempt, now)
    decision.orders.insert(0, ReleaseOrder(name, attempt.key, LEFT))
    decision.orders.insert(1, ForgetOrder(name, attempt.key))
    return decision


def _compare_size(cluster: Cluster, name: str, one: c.HeldAttempt, now: float) -> Decision:
    """Order the newest allocation if the host has an older one; else note how the job took the last resize."""
    attempt = cluster.resized(one.key)
    if attempt is None or name not in attempt.unreleased:
        return Decision()
    if attempt.share_on(name) is None:
        return Decision()
    if 0 < one.version < attempt.resizing.version:
        return Decision(orders=[resize_order(cluster, attempt, name)])
    return Decision() if one.resized is None else resize.resized(cluster, one.resized, now)


def _never_begun(cluster: Cluster, name: str, attempt: Attempt, now: float) -> Decision:
    why = attempt.doomed or attempt.kill_reason
    if name == attempt.lead:
        return reports.never_started(cluster, attempt, name, now, why, assumed=True)
    return Decision(orders=[ReleaseOrder(name, attempt.key, why)])


def _orders_again(cluster: Cluster, name: str, attempt: Attempt | None) -> list[Order]:
    """Orders that the lost session may have swallowed; their serials keep them from taking effect twice."""
    if attempt is None or name not in attempt.unreleased:
        return []
    if attempt.over:
        return [ReleaseOrder(name, attempt.key, "the attempt is over")]
    is_over = attempt.lead not in attempt.unreleased  # a requeued job, which waits for the other hosts to end
    if attempt.tasks is not None:
        is_over = bool(attempt.doomed) and not attempt.tasks.is_running
    if is_over:
        return [ReleaseOrder(name, attempt.key, attempt.doomed)]
    if attempt.is_leaving(name):
        if attempt.tasks is not None and name not in attempt.resizing.freed:
            return []
        return [leave_order(cluster, attempt, name)] if attempt.resizing.is_told else []
    again: list[Order] = list(signal_again(cluster, attempt, name))
    again += [one for one in stacks_orders(attempt) if one.host == name]
    again += [one for one in checkpoint_orders(attempt) if one.host == name]
    if attempt.doomed:
        again.append(doom_order(cluster, attempt, name))
    return again


def _compare_missing(cluster: Cluster, name: str, attempt: Attempt, now: float) -> Decision:
    """Reconcile a share that the host does not know. Agents journal before they act, so it never began or is lost."""
    job = cluster.holder(attempt.key)
    if job is None:
        return Decision([e.HostReleased(now, attempt.key, name)])
    if attempt.is_growing_to(name) and name not in attempt.staged:
        return Decision(orders=list(growth_orders(cluster, attempt, frozenset({name}))))
    never_heard = name not in attempt.staged and not attempt.started_at
    if never_heard and not attempt.kill_reason and not attempt.doomed:
        return Decision(orders=list(stage_orders(cluster, attempt, frozenset({name}))))
    return reports.part_gone(cluster, job, attempt, name, now, f"{name} no longer knows the job")


def gone(cluster: Cluster, command: c.AgentGone, now: float) -> Decision:
    """End a session. The end of an older session does not affect a newer one of the same host."""
    host = cluster.hosts.get(command.host)
    if host is None or host.incarnation != command.incarnation or not host.is_connected:
        return Decision()
    return Decision([e.HostDisconnected(now, command.host)])


def heard(cluster: Cluster, command: c.AgentHeard, now: float) -> Decision:
    """Note that a silent host is heard again within its session; its jobs leave UNKWN."""
    host = cluster.hosts.get(command.host)
    if host is None or not host.is_silent:
        return Decision()
    decision = Decision([e.HostHeard(now, command.host), *_found_again(cluster, command.host, host.attempts, [], now)])
    for key in host.attempts:
        decision.orders.extend(_orders_again(cluster, command.host, cluster.attempts[key]))
    return decision


def silence(cluster: Cluster, host: Host, now: float, silent: frozenset[str] = frozenset()) -> list[e.Event]:
    """Events for a host that falls silent. Before launch was sent its share is freed; after, nothing is assumed.

    ``silent``: all hosts that fall silent at the same time.
    """
    name = host.facts.name
    events: list[e.Event] = [e.HostSilenced(now, name)]
    for key in list(host.attempts):
        attempt = cluster.attempts[key]
        job = cluster.holder(key)
        if job is not None:
            events.extend(_silent_attempt(cluster, name, job, attempt, now, silent | {name}))
        elif not attempt.launched:
            events.append(e.HostReleased(now, key, name, assumed=True))
    return events


def _silent_attempt(
    cluster: Cluster, name: str, job: Job, attempt: Attempt, now: float, silent: frozenset[str]
) -> list[e.Event]:
    key = attempt.key
    if not attempt.launched:
        return give_up_staging(cluster, attempt, [name], now)
    if attempt.is_growing_to(name):
        return resize.silent(cluster, attempt, name, now)
    if attempt.leaves_silent and attempt.unreleased <= silent | {*silent_hosts(cluster, attempt)}:
        return [reports.requeued(attempt, now, attempt.doomed)]
    lost = [share.host for share in attempt.allocation if share.host in silent & attempt.unreleased]
    if name not in lost[:1]:  # one event for all hosts that fall silent at the same time
        return []
    if not attempt.doomed and (smaller := _without_silent(cluster, attempt, lost, now)):
        return smaller
    return [e.JobLost(now, key, ", ".join(lost))] if job.state in (S.STAGING, S.RUN, S.USUSP, S.SSUSP) else []


def _without_silent(cluster: Cluster, attempt: Attempt, lost: list[str], now: float) -> list[e.Event]:
    """Events that shrink an elastic job to its other hosts, if that leaves it large enough."""
    why = f"{', '.join(lost)} of the job's hosts {'are' if len(lost) > 1 else 'is'} lost"
    return resize.go_on_without(cluster, attempt, lost, why, now)


def give_up_staging(cluster: Cluster, attempt: Attempt, missing: list[str], now: float) -> list[e.Event]:
    """Requeue a job that was never launched: free the hosts that do not answer, and avoid them for a while."""
    why = f"{', '.join(missing)} did not answer while the job was being staged"
    until = now + cluster.policy.avoid_host_s
    freed: list[e.Event] = [e.HostReleased(now, attempt.key, name, assumed=True) for name in missing]
    return [*freed, e.JobRequeued(now, attempt.key, why, False, missing[0], until)]


def close(cluster: Cluster, command: c.CloseHost, now: float) -> Decision:
    """Close a host (badmin hclose): no new jobs; running ones go on."""
    host = check_server(cluster, command.host, command.caller)
    if command.lock_id:
        if len(host.lock_ids) >= LOCK_IDS_MAX and command.lock_id not in host.lock_ids:
            raise Refused(
                f"{command.host} has {LOCK_IDS_MAX} lock IDs, which is the most: remove one by hopen -i first"
            )
        by = command.caller.user
        return Decision([e.LockIdAttached(now, command.host, by, command.lock_id, command.comment)])
    return Decision([e.HostClosed(now, command.host, command.caller.user, command.comment)])


def reopen(cluster: Cluster, command: c.OpenHost, now: float) -> Decision:
    """Open a host (badmin hopen); the reply says what keeps it closed."""
    _check_administrator(cluster, command.host, command.caller)
    host, by = cluster.hosts[command.host], command.caller.user
    if not command.lock_ids:
        opened = e.HostOpened(now, command.host, by, command.comment)
        return Decision([opened], reply=_kept_closed(host.lock_ids, is_closed=False))
    wanted = host.lock_ids if command.lock_ids == (ALL_LOCK_IDS,) else command.lock_ids
    removed = tuple(one for one in host.lock_ids if one in wanted)
    if not removed:
        named = " ".join(f"<{one}>" for one in command.lock_ids if one != ALL_LOCK_IDS)
        raise Refused(
            f"{command.host} is not closed with lock ID {named}" if named else f"{command.host} has no lock ID"
        )
    left = [one for one in host.lock_ids if one not in removed]
    event = e.LockIdsRemoved(now, command.host, by, removed, command.comment)
    return Decision([event], reply=_kept_closed(left, is_closed=bool(host.closed_by)))


def _kept_closed(lock_ids: Iterable[str], *, is_closed: bool) -> str:
    """The sentence that hopen replies about a host that remains closed; empty if it opens."""
    why = ["hclose without a lock ID"] if is_closed else []
    why += [f"lock ID <{one}>" for one in lock_ids]
    return f"host remains closed due to {', '.join(why)}" if why else ""


def check_server(cluster: Cluster, name: str, caller: c.Caller) -> Host:
    """Return a host that runs jobs.

    Raises:
        Refused: there is no such host, or the caller is no administrator.
    """
    _check_administrator(cluster, name, caller)
    host = cluster.hosts[name]
    if not host.facts.server:
        raise Refused(f"{name}: Host does not run jobs")
    return host


def _check_administrator(cluster: Cluster, host: str, caller: c.Caller) -> None:
    if not caller.is_administrator:
        raise Refused(denial(caller))
    if host not in cluster.hosts:
        raise Refused(f"{host}: Bad host name, host group name or cluster name")


def host_window_events(cluster: Cluster, facts: HostFacts, now: float) -> list[e.Event]:
    """Event for a dispatch window of the host that has opened or closed; the host need not have joined yet."""
    rule = cluster.policy.host_rule(facts.name, facts.model, facts.type)
    is_open, _ = cluster.calendar.look(rule.dispatch_windows, cluster.policy.zone, now)
    host = cluster.hosts.get(facts.name)
    is_shut = host is not None and host.is_shut
    return [e.HostWindowChanged(now, facts.name, is_open)] if is_open is is_shut else []
