"""Abnormal ends of jobs on each host within a period: a host that fails jobs one after the other is closed.

LSF's EXIT_RATE and GLOBAL_EXIT_RATE bound the ends that EXIT_RATE_TYPE counts. Where neither is set, a host is closed
on which jobs can't even be started while others show that the host is the cause: their users differ, or elements of the
same array have started on other hosts. Programs that fail by themselves close nothing then. No rate counts a job of
which it is not known how it ended: the host went down or was cut off, or what kept the job was killed. Volatile: after
a restart the count begins anew; that a host was closed is kept.
"""

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from lavad.core import events as e
from lavad.core.state.records import ArrayRecord, Attempt, Job

if TYPE_CHECKING:
    from lavad.core.cluster import Cluster

BY = "lavad"  # closes hosts, where administrators have names
STARTS_MAX = 10  # so many failed starts close a host for which no rate is set
KEPT_MAX = 10_000  # ends of one host
ENDED_LOOKED_AT = 10_000  # of jobs that have ended, the newest
LOST = "TERM_UNKNOWN"  # LSF does not count what a host that is unavailable ends either
EXTERNAL_SIGNAL = "TERM_EXTERNAL_SIGNAL"
JOBEXIT, NONLSF, JOBINIT = "JOBEXIT", "JOBEXIT_NONLSF", "JOBINIT"


class Failure(NamedTuple):
    """An abnormal end."""

    at: float
    user: str
    job: int
    is_by_lsf: bool  # it was killed, by a person or a limit
    is_start: bool  # its command was never started
    detail: str


class ExitRates:
    """Recent failures by host."""

    def __init__(self) -> None:
        self._by_host: dict[str, deque[Failure]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_host)

    def note_end(self, job: Job, attempt: Attempt, event: "e.JobFinished", began_at: float) -> None:
        """A job has ended; one that was started shows that its host can do that."""
        if began_at:
            self.note_start(attempt.lead)
        if not event.status or event.is_lost or event.reason.startswith(LOST):
            return
        is_ended = bool(attempt.kill_reason or attempt.doomed)
        is_start = not began_at and bool(event.detail) and not is_ended
        is_by_lsf = is_ended or (
            event.reason.startswith("TERM_") and not event.reason.startswith(EXTERNAL_SIGNAL) and not is_start
        )
        failures = self._by_host.setdefault(attempt.lead, deque(maxlen=KEPT_MAX))
        failures.append(Failure(event.at, job.shared.user, job.id, is_by_lsf, is_start, event.detail))

    def note_start(self, host: str) -> None:
        """A job was started there: failed starts before it were not the host's."""
        failures = self._by_host.get(host)
        if failures is not None and any(one.is_start for one in failures):
            self._by_host[host] = deque((one for one in failures if not one.is_start), KEPT_MAX)

    def forget(self, host: str) -> None:
        """The host was opened, or is gone: the count begins anew."""
        self._by_host.pop(host, None)

    def since(self, moment: float) -> Iterator[tuple[str, deque[Failure]]]:
        """Each host with its failures since then; older ones are dropped."""
        for host, failures in list(self._by_host.items()):
            while failures and failures[0].at < moment:
                failures.popleft()
            if failures:
                yield host, failures
            else:
                del self._by_host[host]


def exit_rate_events(cluster: "Cluster", now: float) -> Iterator[e.Event]:
    """Hosts that are to be closed, with the reason for people."""
    if not cluster.exit_rates:
        return
    period_s, starts = cluster.policy.exit_rate_period_s, _Starts(cluster)
    for name, failures in cluster.exit_rates.since(now - period_s):
        host = cluster.hosts.get(name)
        if host is None or host.closed_by:
            continue
        facts = host.facts
        rule = cluster.policy.host_rule(name, facts.model, facts.type)
        most = rule.exit_rate if rule.exit_rate is not None else cluster.policy.global_exit_rate
        why = _by_starts(starts, name, failures) if most is None else _by_rate(cluster, failures, most)
        if why:
            yield e.HostClosed(now, name, BY, f"{why} within {period_s / 60:g} minutes; open it by badmin hopen")


def _by_rate(cluster: "Cluster", failures: deque[Failure], most: int) -> str:
    types = cluster.policy.exit_rate_types
    count = sum(1 for one in failures if _counts(one, types))
    return f"exit rate {count} above {most}: jobs ended abnormally here" if count > most else ""


def _counts(one: Failure, types: frozenset[str]) -> bool:
    if JOBEXIT in types or (NONLSF in types and not one.is_by_lsf):
        return True
    return one.is_start and not types.isdisjoint((JOBINIT, "HPCINIT"))


def _by_starts(starts: "_Starts", name: str, failures: deque[Failure]) -> str:
    failed = [one for one in failures if one.is_start]
    if len(failed) < STARTS_MAX:
        return ""
    users, jobs = {one.user for one in failed}, {one.job for one in failed}
    if len(users) < 2 and not any(starts.elsewhere(job, name) for job in jobs):
        return ""
    return f"{len(failed)} jobs could not be started here ({failed[-1].detail})"


class _Starts:
    """Hosts on which elements of arrays were started: for all hosts that fail jobs, looked up once for all of them."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self._ended: dict[int, set[str]] | None = None
        self._hosts: dict[int, set[str]] = {}

    def elsewhere(self, job: int, name: str) -> bool:
        """True if elements of that array run on another host, or have run there lately."""
        if job not in self._hosts:
            self._hosts[job] = self._hosts_of(job)
        return not self._hosts[job] <= {name}

    def _hosts_of(self, job: int) -> set[str]:
        array = self._cluster.jobs.get(job)
        if not isinstance(array, ArrayRecord):
            return set()
        if self._ended is None:
            self._ended = self._ended_lately()
        attempts = (one.attempt for one in array.live.values())
        return {one.lead for one in attempts if one is not None and one.started_at} | self._ended.get(job, set())

    def _ended_lately(self) -> dict[int, set[str]]:
        found: dict[int, set[str]] = {}
        for (job, index), one in islice(reversed(self._cluster.finished.items()), ENDED_LOOKED_AT):
            if index and one.end and one.end.started_at and one.end.hosts:
                found.setdefault(job, set()).add(one.end.hosts[0].host)
        return found
