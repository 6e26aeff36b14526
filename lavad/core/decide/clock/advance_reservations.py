"""Timer events of advance reservations: start, end, and termination of their jobs.

They are derived from the clock and from each attempt's dispatch time, so a master that was down at the end of a
reservation ends its jobs when it is back.
"""

from collections.abc import Iterator

from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.decide.advance_reservations import detached, jobs_in
from lavad.core.decide.jobs.control import kill_attempt
from lavad.core.model import JobState
from lavad.core.model import reasons as r
from lavad.core.model.advance_reservation import AdvanceReservation, end_after, is_over
from lavad.core.model.demand import demand_of
from lavad.core.model.windows import NEVER
from lavad.core.scheduling.capacity.advance_reservations import ReservedCapacity
from lavad.core.state.records import Claim

KEPT_FOR_OTHERS = "its slots are set apart by an advance reservation"


def turn_events(cluster: Cluster, now: float) -> Iterator[e.Event]:
    """Events of reservations that have begun or ended since the last call."""
    reserved = cluster.reserved
    if not reserved:
        return
    holding = reserved.timeline(cluster, now).now
    if not reserved.is_unsettled and holding == reserved.holding:
        return
    yield e.ReservationsTurned(now, holding)
    for one in list(reserved.by_name.values()):
        yield from _endings(cluster, one, now)
        if is_over(one.times, now):
            yield e.ReservationRemoved(now, one.name, "the clock")
            if one.is_open:
                yield from detached(cluster, one.name, "the clock", now)
    if cluster.claims:
        yield from _void_claims(cluster, now)


def _endings(cluster: Cluster, one: AdvanceReservation, now: float) -> Iterator[e.Event]:
    """Events that end the jobs of a closed reservation with the occurrence in which they were started."""
    zone = cluster.policy.zone
    for job in jobs_in(cluster, one.name) if not one.is_open else ():
        attempt = job.attempt
        if attempt is None or attempt.kill_reason or job.state is JobState.ZOMBI:
            continue
        if end_after(one.times, zone, attempt.dispatched_at) <= now:
            by = f"the end of advance reservation {one.name}"
            yield from kill_attempt(cluster, job, attempt, now, by, r.TERM_DEADLINE)


def _void_claims(cluster: Cluster, now: float) -> Iterator[e.Event]:
    """Events that drop claims on resources that are now reserved."""
    reserved_capacity = ReservedCapacity(cluster, now)
    for claim in cluster.claims.values():
        if _is_void(cluster, reserved_capacity, claim):
            yield e.ClaimDropped(now, claim.job, claim.index, KEPT_FOR_OTHERS)


def _is_void(cluster: Cluster, reserved_capacity: ReservedCapacity, claim: Claim) -> bool:
    demand = demand_of(cluster.bearer(claim.job, claim.index).shared)._replace(given=claim.allocation)
    return reserved_capacity.why(demand, claim.allocation) is not None


def next_turn(cluster: Cluster, now: float) -> float:
    """Time at which a reservation begins or ends next; now, if something is still to be decided."""
    reserved = cluster.reserved
    if not reserved:
        return NEVER
    timeline = reserved.timeline(cluster, now)
    return now if reserved.is_unsettled or timeline.now != reserved.holding else timeline.until
