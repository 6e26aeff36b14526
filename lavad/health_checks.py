"""Health checks of hosts: when each host runs the site's program, and how many at once.

Hosts are checked in turn when they are idle, after a job has failed on them, and as long as a check has them closed. No
more than a share of all hosts runs a check at any time; those that have waited longest come first. A host runs the
program of the site and those of its queues, one after the other; one that is closed also those that its queues run
before and after jobs, and opens when all of them are good, or none is left. A host that does not answer counts as one
whose check warns.
"""

import logging
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from lavad.agent_links.links import AgentLinks
from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.decide import health_checks
from lavad.core.events import Event, JobFinished
from lavad.core.model.rules.queues import NO_CHECKS, Queue
from lavad.core.model.task_rules import TaskPhase
from lavad.core.state.records import Host
from lavad.core.task_events import TasksReported
from lavad.settings import HealthSettings
from protos import agents_pb2 as pb

if TYPE_CHECKING:
    from lavad.core.model.policy import Policy

log = logging.getLogger(__name__)

OK, WARN, BAD = 0, 1, 2
ANSWER_S = 15.0  # for an answer to arrive, beyond the time limit of the check
FAILED_EVERY = 0.1  # of the interval: between two checks of a host whose jobs fail
TEXT_MAX = 200


Argv = tuple[str, ...]


class Program(NamedTuple):
    """Program of a check."""

    argv: Argv
    limit_s: float


class Result(NamedTuple):
    """Newest result of a program on a host."""

    at: float
    verdict: int
    text: str


@dataclass(slots=True)
class _Known:
    """State of a host's checks. ``number`` is that of the newest check, ``until`` the time by which it must answer."""

    number: int = 0
    until: float = 0.0
    checked_at: float = float("-inf")
    has_failed: bool = False  # a job of it, since the last check
    warning: str = ""
    left: list[Program] = field(default_factory=list)  # of this turn; the first one runs
    is_well: bool = True  # all that have ended in this turn were good
    results: dict[Argv, Result] = field(default_factory=dict)


class HealthChecks:
    """Checks of all hosts. Volatile: a new master checks each host within the interval."""

    def __init__(self, cluster: Cluster, links: AgentLinks, settings: HealthSettings) -> None:
        self.settings = settings
        self._cluster = cluster
        self._links = links
        self._known: dict[str, _Known] = {}
        self._number = cluster.term << 32  # those of an earlier master are lower
        self._queues: tuple[Policy | None, tuple[Queue, ...]] = None, ()  # those with checks, of this policy

    # -- when

    def look(self, now: float) -> list[c.Command]:
        """Let hosts that are due run a check, as far as the share allows; the commands that follow at once."""
        commands = self._without_checks()
        if self._are_configured:
            self._begin_due(now)
        return commands

    def _without_checks(self) -> list[c.Command]:
        """Commands that open hosts whose checks have all been removed since one of them closed the host."""
        closed = [(name, host) for name, host in self._cluster.hosts.items() if host.closed_by == health_checks.BY]
        return [c.HostChecked(name, True, False) for name, host in closed if not self._programs(name, host)]

    def _begin_due(self, now: float) -> None:
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

    @property
    def _are_configured(self) -> bool:
        return bool(self.settings.argv or self._with_checks())

    def _with_checks(self) -> tuple[Queue, ...]:
        """Queues with checks."""
        policy = self._cluster.policy
        if self._queues[0] is not policy:
            self._queues = policy, tuple([one for one in policy.queues if one.checks != NO_CHECKS])
        return self._queues[1]

    def _programs(self, name: str, host: Host) -> list[Program]:
        """Programs that the host is to run now, each once."""
        found = {self.settings.argv: self.settings.limit_s} if self.settings.argv else {}
        for queue in self._with_checks():
            if name in queue.hosts:
                checks = queue.checks
                is_closed = host.closed_by == health_checks.BY
                commands = (checks.between, *((checks.before, checks.after) if is_closed else ()))
                for command in filter(None, commands):
                    found.setdefault(tuple(shlex.split(command)), float(checks.limit_s))
        return [Program(*one) for one in found.items()]

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
        known = self._known[name]
        known.has_failed, known.is_well = False, True
        known.left = self._programs(name, self._cluster.hosts[name])
        self._ask(name, known, now)

    def _ask(self, name: str, known: _Known, now: float) -> None:
        """Ask for the next check of this turn, if there is one."""
        known.until = 0.0
        if not known.left:
            known.checked_at = now
            return
        argv, limit_s = known.left[0]
        self._number += 1
        known.number, known.until = self._number, now + limit_s + ANSWER_S
        self._links.outboxes[name].check(pb.HealthCheck(number=known.number, argv=argv, limit_s=limit_s))

    def _give_up_late(self, now: float) -> None:
        for name, known in self._known.items():
            if known.until and known.until < now:
                self._warn(name, known, "the host has not answered", now)

    def notify(self, events: Iterable[Event]) -> None:
        """Note the hosts on which jobs or tasks have failed."""
        if not self._are_configured:
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
        """Take a host's answer; the commands that follow, none if it changes nothing."""
        host, known = self._cluster.hosts.get(name), self._known.get(name)
        text = "".join(char if char.isprintable() else "?" for char in told.text[:TEXT_MAX])
        if host is None:
            return []
        if not told.number and told.verdict == BAD:  # before or after a job
            return self._bad(name, host, self._known.setdefault(name, _Known()), tuple(told.argv), text, now)
        if known is None or not known.until or told.number != known.number or not known.left:
            return []
        argv = known.left.pop(0).argv
        known.results[argv] = Result(now, told.verdict if told.verdict in (OK, BAD) else WARN, text)
        if told.verdict == BAD:
            known.left.clear()
            commands = self._bad(name, host, known, argv, text, now)
        elif told.verdict == OK:
            commands = self._good(name, host, known)
        else:
            commands = []
            known.is_well = False
            self._say(name, known, text or "no reason given")
        if name in self._links.outboxes:
            self._ask(name, known, now)
        return commands

    def _bad(self, name: str, host: Host, known: _Known, argv: Argv, text: str, now: float) -> list[c.Command]:
        text = text or "it failed without a word"
        known.results[argv] = Result(now, BAD, text)
        known.is_well, known.warning = False, ""
        if host.closed_by:
            return []
        if not health_checks.may_close(self._cluster):
            self._say(name, known, f"{text} (bad, but half of the hosts are closed by checks)")
        return [c.HostChecked(name, False, True, text)]

    def _good(self, name: str, host: Host, known: _Known) -> list[c.Command]:
        """The last good check of a turn opens a host that a check has closed."""
        known.warning = ""
        if known.left or not known.is_well or host.closed_by != health_checks.BY:
            return []
        return [c.HostChecked(name, True, False)]

    def results(self, name: str) -> dict[Argv, Result]:
        """Return the newest result of each program on a host since this master began."""
        known = self._known.get(name)
        return known.results if known is not None else {}

    def _warn(self, name: str, known: _Known, text: str, now: float) -> None:
        known.until, known.checked_at = 0.0, now
        known.left.clear()
        self._say(name, known, text)

    def _say(self, name: str, known: _Known, text: str) -> None:
        """Log a warning once: not for each host that has the same to say, nor each time."""
        if not any(one.warning == text for one in self._known.values()):
            log.warning("health=warning host=%s reason=%r", name, text)
        known.warning = text
