"""Lease of an attempt: the time that its hosts may run it without contact to the master.

An attempt keeps the lease length of its dispatch, whatever is configured afterwards. Hosts measure it on their own
clocks, from the request that the master answered last; so the lease of a host has certainly expired when the master has
not heard the host for that long and a margin, for clock drift and for the killing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lavad.core.state.attempts import Attempt
    from lavad.core.state.records import Host

MARGIN_S = 5.0
DRIFT = 0.01


def ends_at(attempt: "Attempt", host: "Host") -> float:
    """Time from which nothing of the attempt runs on that host if the host stays silent; infinite without a lease."""
    if not attempt.lease_s or not host.facts.keeps_leases:
        return float("inf")
    return host.seen_at + attempt.lease_s * (1 + DRIFT) + MARGIN_S
