"""Preemption: suspend or end jobs for another one, start it in the resources freed, resume suspended jobs.

Each plan is verified again: the victims' hosts must be in reach, and the resources must be there.
"""

from lavad.core import events as e
from lavad.core import notices
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import SYSTEM, Decision, dispatch
from lavad.core.decide.jobs.control import resumed
from lavad.core.decide.jobs.resize import shrink_attempt
from lavad.core.model import PREEMPTION, Allocation, JobState, Key
from lavad.core.plan import Preempt, ReserveSlots, Resume, StartClaimed
from lavad.core.scheduling.preemption.lent_resources import (
    UnclaimedResources,
    is_within_reach,
    leaving,
    on_their_way_out,
    shares_of,
)
from lavad.core.scheduling.preemption.preempt import fits_again, is_cleared, may_start, why_void
from lavad.core.scheduling.preemption.victim import lends
from lavad.core.state.records import Claim

SAVING = "free slots are reserved for it"


def take_over(cluster: Cluster, plan: Preempt, now: float) -> Decision:
    """Shrink, suspend and requeue the victims and claim their resources for the job; nothing at all if anything has
    changed."""
    start = plan.start
    shrinks = [shrink_attempt(cluster, one, now) for one in plan.shrinks]
    if not (all(shrinks) and _still_holds(cluster, plan)):
        return Decision(reply=1)
    decision = Decision([event for events in shrinks for event in events], reply=0)
    for key in plan.suspends:
        suspended = e.JobSuspended(now, key, JobState.SSUSP, SYSTEM, PREEMPTION, plan.why, lends(cluster))
        decision.events.append(suspended)
    if not (plan.requeues or plan.shrinks) and _is_there(cluster, plan):
        decision.events.append(dispatch(cluster, start, now))
        return decision
    decision.events += [e.JobDoomed(now, key, plan.why, again=True, warns=notices.PREEMPT) for key in plan.requeues]
    waits = [notices.time_of(cluster, key) for key in plan.requeues]
    waits += [notices.shrink_time(cluster, one.key) for one in plan.shrinks]
    until = now + cluster.policy.claim_timeout_s + max(waits, default=0.0)
    decision.events.append(
        e.RoomClaimed(now, start.job, start.index, start.allocation, plan.requeues, until, start.reason)
    )
    return decision


def _still_holds(cluster: Cluster, plan: Preempt) -> bool:
    start = plan.start
    own = cluster.claims.get((start.job, start.index))
    is_free = may_start(cluster, start.job, start.index) and (own is None or own.is_partial)
    victims = (*plan.suspends, *plan.requeues, *(one.key for one in plan.shrinks))
    if not (is_free and _are_open(cluster, start.allocation) and all(_may_be_told(cluster, key) for key in victims)):
        return False
    gone = on_their_way_out(cluster) | set(plan.requeues)
    unclaimed = UnclaimedResources(cluster, gone=gone)
    unclaimed.give([share for key, share in leaving(cluster) if key not in gone])
    for shrink in plan.shrinks:
        unclaimed.give(shrink.gives)
    unclaimed.give(own.allocation if own is not None else ())
    for key in plan.suspends:
        unclaimed.give(shares_of(cluster, key), lends(cluster))
    return unclaimed.holds(start.allocation)


def _are_open(cluster: Cluster, allocation: Allocation) -> bool:
    """True if all these hosts take jobs; a host that a job has exclusively does not."""
    return all(cluster.table.is_open(cluster.hosts[share.host].row) for share in allocation)


def _is_there(cluster: Cluster, plan: Preempt) -> bool:
    """True if suspending the victims frees all that the job needs, so that it need not wait for others to end."""
    unclaimed, own = UnclaimedResources(cluster), cluster.claims.get((plan.start.job, plan.start.index))
    unclaimed.give(own.allocation if own is not None else ())
    for key in plan.suspends:
        unclaimed.give(shares_of(cluster, key), lends(cluster))
    return unclaimed.holds(plan.start.allocation)


def save(cluster: Cluster, plan: ReserveSlots, now: float) -> Decision:
    """Reserve free slots for a blocked job, if they still are free."""
    own = cluster.claims.get((plan.job, plan.index))
    unclaimed = UnclaimedResources(cluster)
    unclaimed.give(own.allocation if own is not None else ())
    is_free = may_start(cluster, plan.job, plan.index) and (own is None or own.is_partial)
    if not (is_free and _are_open(cluster, plan.allocation) and unclaimed.holds(plan.allocation)):
        return Decision(reply=1)
    kept = e.RoomClaimed(now, plan.job, plan.index, plan.allocation, (), plan.until, SAVING, is_partial=True)
    return Decision([kept], reply=0)


def _may_be_told(cluster: Cluster, key: Key) -> bool:
    job, attempt = cluster.holder(key), cluster.attempts.get(key)
    if job is None or attempt is None or job.state is not JobState.RUN or attempt.is_ending:
        return False
    return is_within_reach(cluster, attempt)


def start_claimed(cluster: Cluster, plan: StartClaimed, now: float) -> Decision:
    """Dispatch jobs whose claims are cleared."""
    decision = Decision(reply=0)
    for start in plan.starts:
        claim = cluster.claims.get((start.job, start.index))
        if claim is None or why_void(cluster, claim, now) or not is_cleared(cluster, claim):
            decision.reply += 1
            continue
        decision.events.append(dispatch(cluster, start, now))
    return decision


def resume(cluster: Cluster, plan: Resume, now: float) -> Decision:
    """Resume suspended jobs whose own resources are free again."""
    decision, unclaimed = Decision(reply=0), UnclaimedResources(cluster)
    for key in plan.keys:
        job = cluster.holder(key)
        if job is None or job.state is not JobState.SSUSP or key not in cluster.lenders:
            decision.reply += 1
        elif fits_again(cluster, unclaimed, key, now):
            decision.events += resumed(job, PREEMPTION, SYSTEM, now, "its room is free again")
        else:
            decision.reply += 1
    return decision


def overdue_claims(cluster: Cluster, now: float) -> list[e.Event]:
    """Events that drop claims not cleared in time, or void."""
    found: list[e.Event] = []
    for claim in cluster.claims.values():
        why = why_void(cluster, claim, now) or (_too_late(claim) if claim.until <= now else "")
        if why:
            found.append(e.ClaimDropped(now, claim.job, claim.index, why))
    return found


def _too_late(claim: Claim) -> str:
    return "its slots were reserved for long enough" if claim.is_partial else "its room was not cleared in time"
