"""Is no more set apart of hosts than they have? Asked whenever nobody has made them smaller since it was set apart."""

from lavad.core.cluster import Cluster
from lavad.core.invariants import check_reserved


class Overbooked:
    """Remembers how large hosts were when it last looked; rules may leave them fewer slots than are reserved."""

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._is_possible = False

    def check(self, cluster: Cluster, now: float) -> None:
        """Raise AssertionError where reservations, or their jobs, have more than they may."""
        before = self._slots
        self._slots = {name: host.facts.slots for name, host in cluster.hosts.items()}
        are_fewer = any(self._slots.get(name, slots) < slots for name, slots in before.items())
        self._is_possible = bool(cluster.reserved) and (self._is_possible or are_fewer)
        if not self._is_possible:
            check_reserved(cluster, now)
