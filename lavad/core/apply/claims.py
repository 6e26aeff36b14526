"""Events of claims: book a claim, drop it."""

from collections.abc import Callable
from typing import Any

from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.state.records import Claim


def _room_claimed(cluster: Cluster, event: e.RoomClaimed) -> None:
    drop_claim(cluster, event.job, event.index)
    rest = (event.victims, event.until, event.reason, event.is_partial)
    book_claim(cluster, Claim(event.job, event.index, event.allocation, *rest))


def book_claim(cluster: Cluster, claim: Claim) -> None:
    """Book the claim's resources, so that no other job gets them."""
    cluster.claims[claim.job, claim.index] = claim
    for share in claim.allocation:
        host = cluster.hosts[share.host]
        host.claims[claim.job, claim.index] = share
        cluster.table.take(host.row, share, False)


def drop_claim(cluster: Cluster, job: int, index: int) -> None:
    """Drop the claim of this job, if any, and free its resources."""
    claim = cluster.claims.pop((job, index), None)
    for share in claim.allocation if claim is not None else ():
        host = cluster.hosts[share.host]
        del host.claims[job, index]
        cluster.table.give_back(host.row, share, False)


def _claim_dropped(cluster: Cluster, event: e.ClaimDropped) -> None:
    claim = cluster.claims.get((event.job, event.index))
    if claim is not None and claim.is_partial:
        cluster.rest(event.job, event.index, event.at)
    drop_claim(cluster, event.job, event.index)
    record = cluster.find_bearer(event.job, event.index)
    key = cluster.pending.key_of(record.shared) if record is not None else None
    if key is not None:
        cluster.pending.changed_buckets.add(key)


HANDLERS: dict[type, Callable[[Cluster, Any], None]] = {
    e.RoomClaimed: _room_claimed,
    e.ClaimDropped: _claim_dropped,
}
