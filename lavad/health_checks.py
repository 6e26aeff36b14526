"""Health checks of hosts: when each host runs the site's program, and how many at once.

Hosts are checked in turn when they are idle, after a job has failed on them, and as long as a check has them closed. No
more than a share of all hosts runs a check at any time; those that have waited longest come first. A host that does not
answer counts as one whose check warns.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from lavad.agent_links.links import AgentLinks
from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.decide import health_checks
from lavad.core.events import Event, JobFinished
from lavad.core.model.task_rules import TaskPhase
from lavad.core.state.records import Host
from lavad.core.task_events import TasksReported
from lavad.settings import HealthSettings
from protos import agents_pb2 as pb

log = logging.getLogger(__name__)

OK, WARN, BAD = 0, 1, 2
ANSWER_S = 15.0  # for an answer to arrive, beyond the time limit of the check
FAILED_EVERY = 0.1  # of the interval: between two checks of a host whose jobs fail
TEXT_MAX = 200


@dataclass(slots=True)
class _Known:
    """State of a host's checks. ``number`` is that of the newest check, ``until`` the time by which it must answer."""

    number: int = 0
    until: float = 0.0
    checked_at: float = float("-inf")
    has_failed: bool = False  # a job of it, since the last check
    warning: str = ""


class HealthChecks:
    """Checks of all hosts. Volatile: a new master checks each host within the interval."""

    def __init__(self, cluster: Cluster, links: AgentLinks, settings: HealthSettings) -> None:
        self.settings = settings
        self._cluster = cluster
        self._links = links
        self._known: dict[str, _Known] = {}
        self._number = cluster.term << 32  # those of an earlier master are lower

    # -- when

    def look(self, now: float) -> None:
        """Let hosts that are due run a check, as far as the share allows."""
        if not self.settings.argv:
            return
        for name in self._known.keys() - self._cluster.hosts.keys():
            del self._known[name]
        self._give_up_late(now)
        running = sum(1 for known in self._known.values() if known.until)
        servers = sum(1 for host in self._cluster.hosts.values() if host.facts.server)
        room = max(1, int(servers * self.settings.share)) - running
        if room > 0:
            due = [name for name, host in self._cluster.hosts.items() if self._is_due(name, host, now)]
            for name in sorted(due, key=self._urgency)[:room]:
                self._begin(name, now)

    def _urgency(self, name: str) -> tuple[bool, float]:
        known = self._known[name]
        return not known.has_failed, known.checked_at

    def _is_due(self, name: str, host: Host, now: float) -> bool:
        known = self._known.setdefault(name, _Known())
        if known.until or not host.facts.server or not host.is_in_contact or name not in self._links.outboxes:
            return False
        waited_s = now - known.checked_at
        if known.has_failed and waited_s >= self.settings.interval_s * FAILED_EVERY:
            return True
        is_free = host.closed_by == health_checks.BY or not host.attempts
        return is_free and waited_s >= self.settings.interval_s

    def _begin(self, name: str, now: float) -> None:
        known, limit_s = self._known[name], self.settings.limit_s
        self._number += 1
        known.number, known.until, known.has_failed = self._number, now + limit_s + ANSWER_S, False
        self._links.outboxes[name].check(pb.HealthCheck(number=known.number, argv=self.settings.argv, limit_s=limit_s))

    def _give_up_late(self, now: float) -> None:
        for name, known in self._known.items():
            if known.until and known.until < now:
                self._warn(name, known, "the host has not answered", now)

    def notify(self, events: Iterable[Event]) -> None:
        """Note the hosts on which jobs or tasks have failed."""
        if not self.settings.argv:
            return
        for event in events:
            if isinstance(event, JobFinished) and event.status and not event.reason:
                job = self._cluster.element(event.key.job, event.key.index)
                if job is not None and job.end is not None:
                    self._failed(share.host for share in job.end.hosts)
            elif isinstance(event, TasksReported) and any(one.phase is TaskPhase.EXITED for one in event.states):
                self._failed([event.host])

    def _failed(self, hosts: Iterable[str]) -> None:
        for name in hosts:
            self._known.setdefault(name, _Known()).has_failed = True

    # -- what came of it

    def take(self, name: str, told: pb.HealthVerdict, now: float) -> list[c.Command]:
        """Take a host's answer; the commands that follow."""
        known = self._known.get(name)
        if known is None or not known.until or told.number != known.number:
            return []
        text = "".join(char if char.isprintable() else "?" for char in told.text[:TEXT_MAX])
        if told.verdict not in (OK, BAD):
            self._warn(name, known, text or "no reason given", now)
            return []
        known.until, known.checked_at, known.warning = 0.0, now, ""
        is_bad = told.verdict == BAD
        if is_bad and not health_checks.may_close(self._cluster):
            self._say(name, known, f"{text} (bad, but half of the hosts are closed by checks)")
        return [c.HostChecked(name, not is_bad, is_bad, text or "it failed without a word")]

    def _warn(self, name: str, known: _Known, text: str, now: float) -> None:
        known.until, known.checked_at = 0.0, now
        self._say(name, known, text)

    def _say(self, name: str, known: _Known, text: str) -> None:
        """Log a warning once: not for each host that has the same to say, nor each time."""
        if not any(one.warning == text for one in self._known.values()):
            log.warning("health=warning host=%s reason=%r", name, text)
        known.warning = text
