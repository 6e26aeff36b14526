"""Suspension of other jobs on the hosts of an active advance reservation, as far as its own jobs need the slots.

Jobs that ran there before the reservation began continue until one of its own jobs finds too few slots. They resume
when the reservation has ended, or when they fit beside all that it reserves.
"""

from collections.abc import Iterator

import numpy as np

from lavad.core.cluster_view import ClusterView
from lavad.core.model import Allocation, JobState, Key
from lavad.core.scheduling.capacity.advance_reservations import ReservedCapacity
from lavad.core.scheduling.preemption.lent_resources import UnclaimedResources, is_within_reach, shares_of
from lavad.core.scheduling.preemption.victim import PreemptionMode, Victim, lends, lent_part
from lavad.core.scheduling.preemption.victim_search import VictimSet, clear
from lavad.core.scheduling.queueing.cursor import JobCursor


def suspend_for_reservation(cluster: ClusterView, cursor: JobCursor, now: float) -> VictimSet | None:
    """Find the jobs to suspend for a job of an active reservation; None if that would not let it start."""
    key = cursor.key
    one = cluster.reserved.by_name.get(key.reservation)
    most = ReservedCapacity(cluster, now).most(key.demand)
    if one is None or not one.suspends or most is None or most.clip(0).sum() < key.request.slots_min:
        return None
    strangers = list(_strangers(cluster, np.flatnonzero(most > 0).tolist(), now))
    victims = (
        Victim(one, PreemptionMode.SUSPEND, _lent(cluster, one)) for one in strangers if _may_be_suspended(cluster, one)
    )
    return clear(cluster, key.request, [one for one in strangers if one in cluster.lenders], victims, most=most)


def _lent(cluster: ClusterView, key: Key) -> Allocation:
    what = lends(cluster)
    return tuple(lent_part(share, what) for share in shares_of(cluster, key))


def _strangers(cluster: ClusterView, rows: list[int], now: float) -> Iterator[Key]:
    """Attempts on these hosts that run in no active reservation, newest start first."""
    names, holding = cluster.table.names, cluster.reserved.timeline(cluster, now).now
    found = {key for row in rows for key in cluster.hosts[names[row]].attempts}
    for key in sorted(found, key=lambda key: (-cluster.attempts[key].started_at, key)):
        record = cluster.jobs.get(key.job)
        if record is not None and record.shared.request.reservation not in holding:
            yield key


def _may_be_suspended(cluster: ClusterView, key: Key) -> bool:
    job, attempt = cluster.holder(key), cluster.attempts[key]
    if job is None or job.state is not JobState.RUN or attempt.is_ending or attempt.takes_whole_hosts:
        return False
    return is_within_reach(cluster, attempt)


def is_needed(cluster: ClusterView, unclaimed: UnclaimedResources, key: Key, wanted: Allocation, now: float) -> bool:
    """True if an active reservation of others needs the resources in which a suspended job would resume."""
    record = cluster.jobs.get(key.job)
    reserved = cluster.reserved
    if record is None or record.shared.request.reservation in reserved.timeline(cluster, now).now:
        return False
    unused, rows = reserved.unused(cluster, now), cluster.table.rows
    return any(unclaimed.on(share.host).slots - share.slots < unused[rows[share.host]] for share in wanted)
