"""Check that advance reservations fit their hosts, unless a host has been made smaller since they were added."""

from lavad.core.cluster import Cluster
from lavad.core.invariants import check_reserved


class Overbooked:
    """Detector of overbooked hosts that remembers their sizes.

    A new configuration may leave hosts fewer slots than are reserved.
    """

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._is_possible = False

    def check(self, cluster: Cluster, now: float) -> None:
        """Raise AssertionError if reservations, or their jobs, use more than their hosts have."""
        before = self._slots
        self._slots = {name: host.facts.slots for name, host in cluster.hosts.items()}
        are_fewer = any(self._slots.get(name, slots) < slots for name, slots in before.items())
        self._is_possible = bool(cluster.reserved) and (self._is_possible or are_fewer)
        if not self._is_possible:
            check_reserved(cluster, now)
