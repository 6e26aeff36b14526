"""The lease of an attempt: how long its hosts may run their parts without a word of the master.

An attempt keeps the length that it was begun with, whatever the site sets afterwards. The hosts measure it on their own
clocks, from when they said what the master answered last; so the lease of a host has ended there for sure when the
master has not heard the host for that long and a margin, for clocks that go differently and for the killing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lavad.core.state.records import Attempt, Host

MARGIN_S = 5.0
DRIFT = 0.01


def ends_at(attempt: "Attempt", host: "Host") -> float:
    """When nothing of the attempt runs on that host any more, if the host stays silent; infinite without a lease."""
    if not attempt.lease_s or not host.facts.keeps_leases:
        return float("inf")
    return host.seen_at + attempt.lease_s * (1 + DRIFT) + MARGIN_S
