"""Log warnings about hosts: silent, and back, each with the number of its jobs."""

import logging
from collections.abc import Iterable

from lavad.core import events as e
from lavad.core.cluster import Cluster

log = logging.getLogger("lavad.hosts")


class HostLog:
    """Listener of the engine that logs a silent host once, and once more when it is back."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._silent_since: dict[str, float] = {}

    def notify(self, events: Iterable[e.Event]) -> None:
        """Log changes of durable events."""
        for event in events:
            match event:
                case e.HostSilenced():
                    self._silenced(event)
                case e.HostHeard():
                    self._back(event.host, event.at)
                case e.HostRemoved():
                    self._silent_since.pop(event.host, None)
                case e.HostJoined():
                    self._back(event.facts.name, event.at)

    def _silenced(self, event: e.HostSilenced) -> None:
        host = self._cluster.hosts.get(event.host)
        if host is not None:
            self._silent_since[event.host] = host.seen_at
            silent_s = event.at - host.seen_at
            log.warning("host=silent name=%s jobs=%d silent_s=%.0f", event.host, len(host.attempts), silent_s)

    def _back(self, name: str, at: float) -> None:
        since = self._silent_since.pop(name, None)
        host = self._cluster.hosts.get(name)
        if since is not None and host is not None:
            log.warning("host=back name=%s jobs=%d silent_s=%.0f", name, len(host.attempts), at - since)
