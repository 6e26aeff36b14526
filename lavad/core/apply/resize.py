"""Events of resizing: the attempt's allocation, and the shares booked for it.

Invariant: on each of its hosts exactly the attempt's part of ``Attempt.booked`` is booked, until that host has released
it.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from lavad.core import events as e
from lavad.core import lifecycle
from lavad.core import task_events as t
from lavad.core.apply import charge
from lavad.core.apply.tasks import events as task_events
from lavad.core.apply.tasks import places
from lavad.core.cluster import Cluster
from lavad.core.language.requirements.parts import is_elastic, is_tied, sizes_of
from lavad.core.model import Allocation, JobState, Request, RoleRequest, Shared
from lavad.core.model.allocation import given_up, grown, slots_of
from lavad.core.state.attempts import Attempt, Resizing
from lavad.core.state.records import Job


def is_resizable(shared: Shared) -> bool:
    """True if jobs of these shared facts can be resized."""
    request = shared.request
    if request.is_of_tasks:
        return is_elastic(request)
    role = request.single_role
    return role is not None and role.resizable


def resizable_role(request: Request) -> RoleRequest:
    """The only role of a resizable job that is no job of tasks: one of several roles is refused at submission."""
    role = request.single_role
    assert role is not None, "a resizable job has one role"
    return role


def has_minima(request: Request, allocation: Allocation) -> bool:
    """True if each role has its minimum of tasks at least; its spares do not count."""
    sizes = sizes_of(allocation, len(request.roles))
    return all(role.tasks_min - role.spares <= size for role, size in zip(request.roles, sizes, strict=True))


def is_within_maxima(request: Request, allocation: Allocation) -> bool:
    """True if each role has its maximum of tasks at most."""
    sizes = sizes_of(allocation, len(request.roles))
    return all(size <= role.tasks_max for role, size in zip(request.roles, sizes, strict=True))


def may_change(attempt: Attempt) -> bool:
    """True if no resize is under way and the attempt is not being ended."""
    change = attempt.resizing
    return not (change.due or change.leaving or attempt.is_ending)


def is_in_state_to_grow(job: Job, attempt: Attempt) -> bool:
    """True in states in which a growth makes sense: one that replaces lost hosts does before the job runs again."""
    is_short = attempt.tasks is not None and attempt.tasks.replacement is not None
    is_begun = attempt.launched and job.state in (JobState.STAGING, JobState.UNKWN)
    return job.state is JobState.RUN or (is_short and is_begun)


def is_to_grow(job: Job, attempt: Attempt) -> bool:
    """True if the attempt may be given more hosts now."""
    return is_in_state_to_grow(job, attempt) and may_change(attempt)


def note_resizable(cluster: Cluster, job: Job) -> None:
    """Add a job that has started, or was restored, to the resizable ones if it is one."""
    attempt = job.attempt
    if attempt is None:
        return
    if attempt.started_at and is_resizable(job.shared):
        cluster.resizable[attempt.key] = attempt
    if attempt.key in cluster.resizable or attempt.tasks is not None:
        _note_waiting(cluster, attempt)


def has_lost_hosts(attempt: Attempt) -> bool:
    """True if a job of tasks waits for a replacement of lost hosts, or its allocation has changed before."""
    tasks = attempt.tasks
    return tasks is not None and (tasks.replacement is not None or attempt.resizing.version > 1)


def lacks_spares(attempt: Attempt, request: Request) -> bool:
    """True if a job of tasks has used or lost some of its spares, and may be given others."""
    tasks = attempt.tasks
    if tasks is None or tasks.replacement is not None or is_tied(request):
        return False
    sizes = sizes_of(attempt.allocation, len(request.roles))
    return any(role.spares and size < role.tasks_max for role, size in zip(request.roles, sizes, strict=True))


def forget(cluster: Cluster, attempt: Attempt) -> None:
    """Remove an attempt that its job has left."""
    cluster.resizable.pop(attempt.key, None)
    cluster.replacing.pop(attempt.key, None)
    cluster.resizing.pop(attempt.key, None)


def host_left(cluster: Cluster, attempt: Attempt, host: str, at: float) -> None:
    """Remove a host that has released the attempt from its resize."""
    if attempt.resizing.growth or attempt.resizing.leaving:
        before = _settled(cluster, attempt, at)
        change = attempt.resizing
        growth = tuple(share for share in change.growth if share.host != host)
        leaving = tuple(share for share in change.leaving if share.host != host)
        freed = tuple(name for name in change.freed if name != host)
        attempt.resizing = replace(change, growth=growth, leaving=leaving, freed=freed)
        if attempt.tasks is not None:
            places.left_host(attempt.tasks, host)
        attempt.staged -= {host}
        _note_waiting(cluster, attempt)
        _recount(cluster, attempt, before, at)


def _note_waiting(cluster: Cluster, attempt: Attempt) -> None:
    """Update the indexes of attempts that have lost hosts, and of those whose resize has a deadline."""
    if has_lost_hosts(attempt) and not attempt.over:
        cluster.replacing[attempt.key] = attempt
    if attempt.resizing.due and not attempt.over:
        cluster.resizing[attempt.key] = attempt
    else:
        cluster.resizing.pop(attempt.key, None)
    cluster.preemptable.resized(attempt)


def _changed(cluster: Cluster, event: Any) -> Attempt:
    job = cluster.holder(event.key)
    if job is None or job.attempt is None:
        raise lifecycle.IllegalTransition(f"{event.key} is over or unknown")
    lifecycle.check(job.state, event, job.state)
    cluster.changed_attempts.add(event.key)
    return job.attempt


def _rebook(cluster: Cluster, attempt: Attempt, names: Iterable[str], before_all: int, at: float) -> None:
    """Book the attempt's present shares on these hosts in place of the former ones; ``before_all`` is the number of
    slots before."""
    booked = {share.host: share for share in attempt.booked}
    for name in dict.fromkeys(names):
        if name not in attempt.unreleased and name not in cluster.hosts:
            continue  # lost, and removed since
        host = cluster.hosts[name]
        before, now = host.attempts.get(attempt.key), booked.get(name)
        if before == now:
            continue
        if before is not None:
            cluster.timed_rusage.take_again(cluster.table, attempt.key, name)
            cluster.table.give_back(host.row, before, attempt.takes_whole_hosts)
            cluster.pools.give_back(attempt.key, (before,), False)
        if now is not None and name in attempt.unreleased:
            host.attempts[attempt.key] = now
            cluster.table.take(host.row, now, attempt.takes_whole_hosts)
            cluster.pools.take(attempt.key, cluster.pools.number_of(cluster.jobs[attempt.key.job].shared), (now,))
        else:
            host.attempts.pop(attempt.key, None)
    _recount(cluster, attempt, before_all, at)


def _settled(cluster: Cluster, attempt: Attempt, at: float) -> int:
    """Number of slots before a change, when what was used of them is noted."""
    charge.settle_revocable(cluster, attempt, at)
    return slots_of(attempt.booked)


def _recount(cluster: Cluster, attempt: Attempt, before: int, at: float) -> None:
    """Charge the attempt for its present slots; slots times seconds so far are kept."""
    now = slots_of(attempt.booked)
    if now and now != before:
        since = at - (at - attempt.charged_since) * before / now
        attempt.resizing = replace(attempt.resizing, since=since)
    job = cluster.holder(attempt.key)
    if job is not None and attempt.key in cluster.charges:
        charge.recharge(cluster, job, job.shared)


def _growing(cluster: Cluster, event: e.AttemptGrowing) -> None:
    attempt = _changed(cluster, event)
    slots = _settled(cluster, attempt, event.at)
    here = {share.host for share in attempt.allocation}
    new = [share.host for share in event.additions if share.host not in here]
    joined = tuple({**dict(attempt.resizing.joined), **dict.fromkeys(new, event.version)}.items())
    attempt.version = event.version
    attempt.resizing = replace(
        attempt.resizing, growth=event.additions, due=event.due, reason=event.reason, joined=joined
    )
    attempt.unreleased = attempt.unreleased.union(new)
    if attempt.tasks is not None:
        places.joining(attempt.tasks, event.additions)
    _rebook(cluster, attempt, (share.host for share in event.additions), slots, event.at)
    _note_waiting(cluster, attempt)


def _growth_given_up(cluster: Cluster, event: e.GrowthGivenUp) -> None:
    attempt = _changed(cluster, event)
    slots = _settled(cluster, attempt, event.at)
    growth = attempt.resizing.growth
    attempt.version = event.version
    attempt.resizing = replace(attempt.resizing, growth=(), due=0.0, retry_at=event.retry_at, reason="")
    if attempt.tasks is not None:
        places.join_no_more(attempt.tasks)
    _rebook(cluster, attempt, (share.host for share in growth), slots, event.at)
    _note_waiting(cluster, attempt)


def _resized(cluster: Cluster, event: e.AttemptResized) -> None:
    attempt = _changed(cluster, event)
    slots = _settled(cluster, attempt, event.at)
    before, change = attempt.allocation, attempt.resizing
    held = tuple([share for share in before if share.host in attempt.unreleased])
    leaving = grown(change.leaving, given_up(held, event.allocation))
    attempt.allocation, attempt.version = event.allocation, event.version
    attempt.resizing = Resizing(
        event.version,
        (),
        leaving,
        event.due,
        False,
        given_up(event.allocation, before),
        max(change.retry_at, event.retry_at),
        event.wish or change.wish,
        event.notify,
        "",
        change.joined,
        change.since,
        event.wishes or change.wishes,
        (),
        change.freed,
        change.revocable_slot_s,
        change.revocable_until,
    )
    if attempt.tasks is not None:
        attempt.tasks.wishes = attempt.resizing.wishes
        here = {share.host for share in before}
        places.joined(attempt.tasks, {share.host for share in event.allocation} - here, event.version)
        places.given_up(attempt.tasks, event.gone)
        _look_at(cluster, attempt)
    _rebook(cluster, attempt, (share.host for share in (*before, *event.allocation)), slots, event.at)
    _note_waiting(cluster, attempt)


def _noted(cluster: Cluster, event: e.ResizeNoted) -> None:
    """Free slots given up on hosts that stay; hosts that leave have yet to release theirs."""
    attempt = _changed(cluster, event)
    if attempt.tasks is not None:
        places.stop_leaving(attempt.tasks, "its place was given up")
        attempt.resizing = replace(attempt.resizing, due=0.0, is_told=True, added=(), notify="")
        _note_waiting(cluster, attempt)
        _look_at(cluster, attempt)
        return
    slots = _settled(cluster, attempt, event.at)
    here = {share.host for share in attempt.allocation}
    before = attempt.resizing.leaving
    leaving = tuple(share for share in before if share.host not in here)
    attempt.resizing = replace(attempt.resizing, leaving=leaving, due=0.0, is_told=True, added=(), notify="")
    _rebook(cluster, attempt, (share.host for share in before if share.host in here), slots, event.at)
    _note_waiting(cluster, attempt)


def _look_at(cluster: Cluster, attempt: Attempt) -> None:
    job = cluster.holder(attempt.key)
    if job is not None:
        task_events.note(cluster, job)


def _acknowledged(cluster: Cluster, event: t.ResizeAcknowledged) -> None:
    attempt = _changed(cluster, event)
    assert attempt.tasks is not None, f"{event.key} has no tasks"
    attempt.resizing = replace(attempt.resizing, told=(*attempt.resizing.told, event.host))
    places.reserved(attempt.tasks, event.host, "", event.tasks)
    places.joined(attempt.tasks, (event.host,), attempt.resizing.version)
    _look_at(cluster, attempt)


def _parts_freed(cluster: Cluster, event: t.PartsFreed) -> None:
    """Free what left hosts that stay; hosts that leave have yet to release theirs."""
    attempt = _changed(cluster, event)
    slots = _settled(cluster, attempt, event.at)
    change = attempt.resizing
    stay = {host for host in event.hosts if attempt.share_on(host) is not None}
    leaving = tuple(share for share in change.leaving if share.host not in stay)
    freed = (*change.freed, *[host for host in event.hosts if host not in stay])
    attempt.resizing = replace(change, leaving=leaving, freed=freed)
    _rebook(cluster, attempt, stay, slots, event.at)
    _note_waiting(cluster, attempt)


def _awaited(cluster: Cluster, event: t.ReplacementAwaited) -> None:
    attempt = _changed(cluster, event)
    assert attempt.tasks is not None, f"{event.key} has no tasks"
    attempt.tasks.replacement = event.replacement
    cluster.timed_tasks[event.key.job, event.key.index] = None
    _note_waiting(cluster, attempt)
    _look_at(cluster, attempt)


def _wished(cluster: Cluster, event: e.ResizeWished) -> None:
    attempt = _changed(cluster, event)
    wishes = event.sizes or attempt.resizing.wishes
    attempt.resizing = replace(attempt.resizing, wish=event.tasks, wishes=wishes)
    if attempt.tasks is not None:
        attempt.tasks.wishes = wishes


HANDLERS: dict[type, Callable[[Cluster, Any], None]] = {
    e.AttemptGrowing: _growing,
    e.GrowthGivenUp: _growth_given_up,
    e.AttemptResized: _resized,
    e.ResizeNoted: _noted,
    e.ResizeWished: _wished,
    t.ResizeAcknowledged: _acknowledged,
    t.ReplacementAwaited: _awaited,
    t.PartsFreed: _parts_freed,
}
