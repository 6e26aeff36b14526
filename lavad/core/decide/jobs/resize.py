"""Resizing of running jobs, by the scheduler, their users (bresize) and reports of their hosts.

A growth is booked first, then staged on new hosts, and only then part of the allocation: a failure before that gives it
up without the job's knowledge. A shrink takes effect at once; the hosts that leave are told only when the lead host has
notified the job, and keep their shares until they report them released.
"""

from collections.abc import Collection
from dataclasses import replace
from math import inf
from typing import Protocol

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core import notices
from lavad.core import task_events as t
from lavad.core.apply.resize import (
    has_minima,
    is_in_state_to_grow,
    is_resizable,
    is_to_grow,
    is_within_maxima,
    resizable_role,
)
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import SYSTEM, Decision, check_owner
from lavad.core.decide.jobs.sizes import release_words, tasks_in
from lavad.core.decide.tasks.growth_end import give_growth_up
from lavad.core.decide.tasks.replacement import TABLE_S
from lavad.core.language.requirements import parts
from lavad.core.language.requirements.parts import keeps_first_host, sizes_of
from lavad.core.model import SUSPENDED, Allocation, HostShare, JobState, Request, RoleRequest
from lavad.core.model.allocation import could_give, grown, is_divisible, part_of, shrunk, tasks_of
from lavad.core.model.reasons import Refused
from lavad.core.model.task_rules import TaskKey
from lavad.core.plan import Grow, Resize, Shrink, Start
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import Job
from lavad.core.state.tasks import JobTasks

S = JobState
SCHEDULER = "the scheduler"
JOB = "the job itself"


# -- plans of the scheduler --------------------------------------------------------------------------------------------


def resize(cluster: Cluster, plan: Resize, room: "RoomLeft", now: float) -> Decision:
    """Carry out a plan's changes that still hold; the reply is the number of those that do not. ``room`` is that before
    the plan."""
    decision = Decision(reply=0)
    for shrink in plan.shrinks:
        events = shrink_attempt(cluster, shrink, now)
        decision.events += events
        decision.reply += not events
    for grow in plan.grows:
        start = Start(grow.key.job, grow.key.index, grow.additions)
        is_alone = cluster.jobs[grow.key.job].shared.request.exclusive if grow.key.job in cluster.jobs else False
        if _may_grow(cluster, grow, now) and room.fits(start, is_alone):
            room.take(start, is_alone)
            decision.events += _grow(cluster, grow, now)
        else:
            decision.reply += 1
    return decision


class RoomLeft(Protocol):
    """Resources left on each host while the growths of a plan are accepted one by one."""

    def fits(self, start: Start, exclusive: bool) -> bool:
        """True if the resources of the start are left."""

    def take(self, start: Start, exclusive: bool) -> None:
        """Take the start's resources."""


def _may_grow(cluster: Cluster, grow: Grow, now: float) -> bool:
    job, attempt = cluster.holder(grow.key), cluster.resized(grow.key)
    if job is None or attempt is None or not is_to_grow(job, attempt):
        return False
    there = {share.host for share in attempt.allocation}
    is_back = any(share.host in attempt.unreleased - there for share in grow.additions)
    is_small = is_within_maxima(job.shared.request, (*attempt.allocation, *grow.additions))
    return bool(grow.additions) and not is_back and is_small and attempt.resizing.retry_at <= now


def _grow(cluster: Cluster, grow: Grow, now: float) -> list[e.Event]:
    attempt = cluster.attempts[grow.key]
    shared = cluster.jobs[grow.key.job].shared
    version, due = attempt.version + 1, now + cluster.policy.staging_s(shared.queue, shared.application)
    growing = e.AttemptGrowing(now, grow.key, grow.additions, version, due, grow.reason)
    if all(attempt.share_on(share.host) for share in grow.additions):
        return [growing, _grown(cluster, attempt, grow.additions, version + 1, grow.reason, now)]
    return [growing]


def _grown(
    cluster: Cluster, attempt: Attempt, additions: Allocation, version: int, reason: str, now: float
) -> e.AttemptResized:
    due = now + _adapts_within_s(cluster, attempt)
    allocation = grown(attempt.allocation, additions)
    return e.AttemptResized(now, attempt.key, allocation, version, due, SCHEDULER, reason)


def _adapts_within_s(cluster: Cluster, attempt: Attempt) -> float:
    """Time for the job to adapt; hosts of a job of tasks only have to write its lists."""
    return cluster.policy.resize_timeout_s if attempt.tasks is None else TABLE_S


def shrink_attempt(
    cluster: Cluster,
    shrink: Shrink,
    now: float,
    by: str = SCHEDULER,
    notify: str = "",
    wishes: tuple[int, ...] = (),
    gone: tuple[TaskKey, ...] | None = None,
    within_s: float = inf,
) -> list[e.Event]:
    """Events that take these shares from an attempt; none if it can't give them.

    ``wishes``: sizes that the roles of a job of tasks are to have; without them those that its user has left it.
    ``gone``: its tasks that leave; without them the last on each host. ``within_s``: time to adapt, at most.
    """
    job, attempt = cluster.holder(shrink.key), cluster.resizable.get(shrink.key)
    if job is None or attempt is None or attempt.is_ending or attempt.lends:
        return []
    left, request = shrunk(attempt.allocation, shrink.gives), job.shared.request
    if not _is_sound(attempt, request, shrink.gives, left):
        return []
    events = give_growth_up(attempt, now, now, "it is to shrink") if attempt.resizing.growth else []
    version = attempt.version + bool(events) + 1
    adapts_s = _adapts_within_s(cluster, attempt) + notices.shrink_time(cluster, shrink.key)
    due = now + min(within_s, adapts_s)
    if attempt.tasks is not None and gone is None:
        gone = tasks_in.last_of(attempt.tasks, shrink.gives)
    if attempt.tasks is not None and not tasks_in.may_leave(attempt.tasks, gone or ()):
        return []
    is_wish = by not in (SCHEDULER, SYSTEM)
    if is_wish and request.is_of_tasks and not wishes:
        wishes = _wishes_after(attempt, request, shrink.gives, left)
    wish = tasks_of(left) if is_wish else 0
    resized = e.AttemptResized(now, shrink.key, left, version, due, by, shrink.reason, notify, wish, wishes=wishes)
    return [*events, replace(resized, gone=gone or ())]


def _wishes_after(attempt: Attempt, request: Request, gives: Allocation, left: Allocation) -> tuple[int, ...]:
    """Sizes that the roles are to grow to after a user's shrink: those that lost tasks do not take them back."""
    roles = len(request.roles)
    sizes = zip(sizes_of(gives, roles), sizes_of(left, roles), wishes_of(attempt, request), strict=True)
    return tuple([size if lost else wish for lost, size, wish in sizes])


def wishes_of(attempt: Attempt, request: Request) -> tuple[int, ...]:
    """Number of tasks that each role of a job of tasks is to have at most."""
    return attempt.resizing.wishes or tuple([role.tasks_max for role in request.roles])


def go_on_without(cluster: Cluster, attempt: Attempt, hosts: Collection[str], why: str, now: float) -> list[e.Event]:
    """Events that shrink an elastic job by the hosts it has lost; none if its first host is lost or too little would be
    left."""
    gives = tuple(share for share in attempt.allocation if share.host in hosts)
    return shrink_attempt(cluster, Shrink(attempt.key, gives, why), now, SYSTEM) if gives else []


def _is_sound(attempt: Attempt, request: Request, gives: Allocation, left: Allocation) -> bool:
    """True if the attempt has these shares, keeps its lead host and stays large enough."""
    for share in gives:
        mine = attempt.share_on(share.host)
        if mine is None or not _has(mine, share) or share.host not in attempt.unreleased:
            return False
    if not (gives and left) or not has_minima(request, left):
        return False
    return left[0].host == attempt.lead or (request.is_of_tasks and not keeps_first_host(request))


def _has(mine: HostShare, part: HostShare) -> bool:
    """True if it is a part of the share: a plan may be older than the cluster's state."""
    if part.slots > mine.slots or part.memory_mib > mine.memory_mib:
        return False
    fewer = all(less <= here for less, here in zip(part.tasks_by_role, mine.tasks_by_role, strict=True))
    return fewer and set(part.gpus) <= set(mine.gpus)


# -- reports of hosts --------------------------------------------------------------------------------------------------


def staged(cluster: Cluster, attempt: Attempt, command: c.ReportStaged, now: float) -> Decision:
    """Note that a new host is staged; with the last one the attempt grows, if it still runs."""
    decision, host = Decision(), command.host
    if host not in attempt.staged:
        decision.events.append(e.HostStaged(now, attempt.key, host, command.tasks, command.address))
    growth = attempt.resizing.growth
    new = {share.host for share in growth if attempt.share_on(share.host) is None}
    if new - attempt.staged - {host}:
        return decision
    job = cluster.holder(attempt.key)
    if job is None or not is_in_state_to_grow(job, attempt) or attempt.is_ending:
        decision.events += give_growth_up(attempt, now, now, "the job does not run just now")
    else:
        decision.events.append(_grown(cluster, attempt, growth, attempt.version + 1, attempt.resizing.reason, now))
    return decision


def not_to_be(cluster: Cluster, attempt: Attempt, host: str, now: float, why: str) -> list[e.Event]:
    """Give the growth up, as a whole, because a new host refuses it."""
    return give_growth_up(attempt, now, now + cluster.policy.avoid_host_s, why, gone=host)


def silent(cluster: Cluster, attempt: Attempt, host: str, now: float) -> list[e.Event]:
    """Give the growth up because a new host is silent."""
    why = f"{host} did not answer"
    return give_growth_up(attempt, now, now + cluster.policy.avoid_host_s, why)


def resized(cluster: Cluster, command: c.ReportResized, now: float) -> Decision:
    """Note the lead host's report about the newest allocation. A growth that the job refuses is taken back."""
    attempt = cluster.resized(command.key)
    if attempt is not None and attempt.tasks is not None:
        return _acknowledged(cluster, attempt, attempt.tasks, command, now)
    if attempt is None or command.host != attempt.lead:
        return Decision()
    change = attempt.resizing
    if change.is_told or command.version < change.version:
        return Decision()
    if command.failed and change.added and not attempt.is_ending:
        return Decision(_taken_back(cluster, attempt, command.detail, now))
    return Decision([e.ResizeNoted(now, command.key, change.version)])


def _acknowledged(
    cluster: Cluster, attempt: Attempt, tasks: JobTasks, command: c.ReportResized, now: float
) -> Decision:
    """Note that a host of a job of tasks has the newest allocation. With the last one those that leave are told."""
    change, host = attempt.resizing, command.host
    if command.version < change.version or host in change.told or attempt.share_on(host) is None:
        return Decision()
    if command.failed and (unready := tasks_in.joining(tasks, host)):
        return Decision(_not_joined(cluster, attempt, unready, command, now))
    decision = Decision([t.ResizeAcknowledged(now, attempt.key, host, command.tasks)])
    told = {*change.told, host}
    if not change.is_told and all(share.host in told for share in attempt.allocation):
        decision.events.append(e.ResizeNoted(now, attempt.key, change.version))
    return decision


def _not_joined(
    cluster: Cluster, attempt: Attempt, unready: tuple[TaskKey, ...], command: c.ReportResized, now: float
) -> list[e.Event]:
    """Take tasks back that a host could not make ready."""
    share, request = attempt.share_on(command.host), cluster.jobs[attempt.key.job].shared.request
    assert share is not None, f"{attempt.key} is not on {command.host}"
    counts = [sum(key.role == role for key in unready) for role in range(len(request.roles))]
    shrink = Shrink(attempt.key, (parts.last_of(share, counts, request),), f"{command.host}: {command.detail}")
    events = shrink_attempt(cluster, shrink, now, SYSTEM, gone=unready)
    retry_at = now + cluster.policy.avoid_host_s
    return [replace(one, retry_at=retry_at) if isinstance(one, e.AttemptResized) else one for one in events]


def _taken_back(cluster: Cluster, attempt: Attempt, detail: str, now: float) -> list[e.Event]:
    left = shrunk(attempt.allocation, attempt.resizing.added)
    due, retry_at = now + cluster.policy.resize_timeout_s, now + cluster.policy.avoid_host_s
    reason = f"its resize notification command failed: {detail}" if detail else "its resize notification command failed"
    version = attempt.version + 1
    return [e.AttemptResized(now, attempt.key, left, version, due, JOB, reason, retry_at=retry_at)]


def overdue(cluster: Cluster, now: float) -> list[e.Event]:
    """Events for resizes past their deadline: hosts that are not staged, jobs that do not adapt."""
    events: list[e.Event] = []
    for attempt in cluster.resizing.values():
        if attempt.resizing.due > now or attempt.lead not in attempt.unreleased:
            continue
        if attempt.resizing.growth:
            missing = [one.host for one in attempt.resizing.growth if one.host not in attempt.staged]
            why = f"{', '.join(missing)} did not answer"
            events += give_growth_up(attempt, now, now + cluster.policy.avoid_host_s, why)
        else:
            events.append(e.ResizeNoted(now, attempt.key, attempt.resizing.version))
    return events


# -- commands of users -------------------------------------------------------------------------------------------------


def shrink_job(cluster: Cluster, command: c.ShrinkJob, now: float) -> Decision:
    """Shrink a job (bresize release). It does not grow back by itself: that would undo the command at once."""
    job, attempt = running(cluster, command.target, command.caller)
    request = job.shared.request
    if command.is_of_hosts:
        _check_hosts(attempt, command.what)
    gone: tuple[TaskKey, ...] | None = None
    if request.is_of_tasks:
        gives, gone = release_words.shares_in(attempt, request, command.what)
    else:
        gives = _asked_for(attempt, resizable_role(request), command.what)
    check_what_is_left(request, shrunk(attempt.allocation, gives))
    if gone is not None and attempt.tasks is not None and not tasks_in.may_leave(attempt.tasks, gone):
        raise Refused("A task whose process stands for others of its role can't leave before them")
    by = command.caller.user
    events = shrink_attempt(cluster, Shrink(job.key, gives), now, by, command.notify, gone=gone)
    if not events:
        raise Refused("Nothing can be released from the job just now")
    return Decision(events, reply=gives)


def _check_hosts(attempt: Attempt, what: str) -> None:
    """Refuse words that are no hosts of the job, such as its tasks or ``all``."""
    if not what.split():
        raise Refused("The name of a host of the job is expected")
    for word in what.split():
        if attempt.share_on(word) is None:
            raise Refused(f"{word}: the job does not run on that host")


def check_what_is_left(request: Request, left: Allocation) -> None:
    """Refuse a shrink that would leave a role with less than its minimum."""
    for role, tasks in zip(request.roles, sizes_of(left, len(request.roles)), strict=True):
        if tasks < role.tasks_min:
            who = f"Role {role.name}" if request.is_of_tasks else "The job"
            raise Refused(f"{who} needs at least {role.tasks_min} tasks; {tasks} would be left")


def wish_size(cluster: Cluster, command: c.WishSize, now: float) -> Decision:
    """Set the size that the job is to grow to from now on (bresize request, cancel)."""
    job, attempt = running(cluster, command.target, command.caller)
    request, present = job.shared.request, tasks_of(attempt.allocation)
    if request.is_of_tasks:
        if command.tasks:
            raise Refused("The job has roles: bresize request role=tasks says which is to grow")
        return Decision(
            wished(attempt, tuple(sizes_of(attempt.allocation, len(request.roles))), command.caller.user, now)
        )
    role, tasks = resizable_role(request), command.tasks or present
    if tasks > role.tasks_max:
        raise Refused(f"The job asked for at most {role.tasks_max} tasks when it was submitted")
    if tasks < present:
        raise Refused(f"The job has {present} tasks: bresize release gives tasks back")
    events: list[e.Event] = [e.ResizeWished(now, job.key, tasks, command.caller.user)]
    if not command.tasks and attempt.resizing.growth:
        events += give_growth_up(attempt, now, now, f"cancelled by {command.caller.user}")
    return Decision(events)


def wished(attempt: Attempt, sizes: tuple[int, ...], by: str, now: float, words: str = "") -> list[e.Event]:
    """Events that set the sizes of the roles of a job of tasks; a growth beyond them is given up."""
    events: list[e.Event] = [e.ResizeWished(now, attempt.key, sum(sizes), by, sizes, words)]
    coming = sizes_of((*attempt.allocation, *attempt.resizing.growth), len(sizes))
    if attempt.resizing.growth and any(size > wish for size, wish in zip(coming, sizes, strict=True)):
        events += give_growth_up(attempt, now, now, f"cancelled by {by}")
    return events


def running(cluster: Cluster, target: c.Target, caller: c.Caller) -> tuple[Job, Attempt]:
    record = cluster.jobs.get(target.job)
    if record is None:
        raise Refused("No matching job found")
    check_owner(record, caller)
    if not isinstance(record, Job) or not is_resizable(record.shared):
        raise Refused(_why_fixed(record.shared.request))
    if record.attempt is None:
        raise Refused("Job has already finished" if record.end is not None else "Job has not started yet")
    if record.key not in cluster.resizable or record.state not in (S.RUN, *SUSPENDED):
        raise Refused("Job has not started yet" if record.state is S.STAGING else "Unable to contact execution host")
    return record, record.attempt


def _why_fixed(request: Request) -> str:
    if not request.is_of_tasks:
        return "The job is not resizable: bsub -ar makes it so"
    if all(role.tasks_min == role.tasks_max for role in request.roles):
        return "The job is not resizable: none of its roles has a minimum below its maximum"
    return "The job is not resizable: -x, span[block], cu[balance] and cu[excl] tie a job to its hosts"


def _asked_for(attempt: Attempt, role: RoleRequest, what: str) -> Allocation:
    """Shares named by the arguments of bresize release."""
    words = what.split()
    if not words:
        raise Refused("Bad host list: all, all ^host ..., or host and n*host ... are expected")
    if words[0] == "all":
        return _all_but(attempt, role, words[1:])
    asked: dict[str, HostShare] = {}
    for word in words:
        count, share = _part(attempt, word)
        if share.host in asked:
            raise Refused(f"{word}: the host is named twice")
        asked[share.host] = _slots_of(attempt, role, share, count if count else sum(share.tasks_by_role), word)
    return tuple(asked.values())


def _all_but(attempt: Attempt, role: RoleRequest, words: list[str]) -> Allocation:
    """All shares that can be released, except on these hosts."""
    kept: dict[str, int] = {}
    for word in words:
        if not word.startswith("^"):
            raise Refused(f"{word}: after all, ^host or ^n*host is expected")
        count, share = _part(attempt, word[1:])
        kept[share.host] = count or sum(share.tasks_by_role)
    if not words:  # down to the job's minimum
        return could_give(attempt.allocation, role, tasks_of(attempt.allocation))
    lead = attempt.lead
    kept[lead] = max(kept.get(lead, 0), 1 if is_divisible(role) else sum(attempt.allocation[0].tasks_by_role))
    gives = []
    for share in attempt.allocation:
        less = sum(share.tasks_by_role) - kept.get(share.host, 0)
        if less > 0 and (is_divisible(role) or not kept.get(share.host)):
            gives.append(part_of(share, less, role))
    return tuple(gives)


def _part(attempt: Attempt, word: str) -> tuple[int, HostShare]:
    """Number of tasks (0: all) and share of the host in a word such as ``h1`` or ``2*h1``."""
    count, star, name = word.rpartition("*")
    if star and not (count.isdigit() and int(count) > 0):
        raise Refused(f"{word}: before the * a number of slots is expected")
    share = attempt.share_on(name)
    if share is None:
        raise Refused(f"{name}: the job does not run on that host")
    return int(count or 0), share


def _slots_of(attempt: Attempt, role: RoleRequest, share: HostShare, tasks: int, word: str) -> HostShare:
    here = sum(share.tasks_by_role)
    if tasks > here:
        raise Refused(f"{word}: the job has only {here} there")
    if share.host == attempt.lead and tasks == here:
        raise Refused(f"{word}: the first host of a job can't be released")
    if tasks < here and not is_divisible(role):
        raise Refused(f"{word}: where tasks have devices or resources of their own, hosts are released as a whole")
    return part_of(share, tasks, role)
