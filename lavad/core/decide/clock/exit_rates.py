"""Closing of hosts whose jobs end abnormally too often.

EXIT_RATE and GLOBAL_EXIT_RATE of LSF bound the ends that EXIT_RATE_TYPE counts. If neither is set, a host is closed if
jobs can't even be started there while others show that the host is the cause: their users differ, or elements of the
same array have started on other hosts. Programs that fail by themselves close nothing then.
"""

from collections import deque
from collections.abc import Iterator
from itertools import islice

from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.language.numbers import number_text
from lavad.core.state.hosts.exit_rates import AbnormalEnd
from lavad.core.state.records import ArrayRecord

BY = "lavad"  # recorded as the administrator who closed the host
JOBEXIT, NONLSF, JOBINIT = "JOBEXIT", "JOBEXIT_NONLSF", "JOBINIT"
STARTS_MAX = 10  # failed starts that close a host for which no rate is set
ENDED_LOOKED_AT = 10_000  # newest jobs that have ended


class _Starts:
    """Hosts on which elements of arrays were started, looked up once for all hosts that fail jobs."""

    def __init__(self, cluster: Cluster) -> None:
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


def exit_rate_events(cluster: Cluster, now: float) -> Iterator[e.Event]:
    """Events that close hosts, with the reason as text."""
    if not cluster.exit_rates:
        return
    starts = _Starts(cluster)
    for name, failures in cluster.exit_rates.since(now - cluster.policy.exit_rate_period_s):
        yield from _closed(cluster, starts, name, failures, now)


def fresh_exit_events(cluster: Cluster, now: float) -> Iterator[e.Event]:
    """The same for hosts on which jobs have just ended: a host that fails jobs at once takes no more until the next
    tick. The costly look at failed starts is left to the tick, but for the first that may close the host.
    """
    period_s, starts = cluster.policy.exit_rate_period_s, _Starts(cluster)
    for name in sorted(cluster.exit_rates.take_fresh()):
        failures = cluster.exit_rates.of(name, now - period_s)
        if _most(cluster, name) is not None or sum(1 for one in failures if one.is_start) == STARTS_MAX:
            yield from _closed(cluster, starts, name, failures, now)


def _most(cluster: Cluster, name: str) -> int | None:
    """EXIT_RATE of a host; None for one without, and for one that is unknown."""
    host = cluster.hosts.get(name)
    if host is None:
        return None
    rule = cluster.policy.host_rule(name, host.facts.model, host.facts.type)
    return rule.exit_rate if rule.exit_rate is not None else cluster.policy.global_exit_rate


def _closed(
    cluster: Cluster, starts: _Starts, name: str, failures: deque[AbnormalEnd], now: float
) -> Iterator[e.Event]:
    host = cluster.hosts.get(name)
    if host is None or host.closed_by:
        return
    most = _most(cluster, name)
    why = _by_starts(starts, name, failures) if most is None else _by_rate(cluster, failures, most)
    if why:
        minutes = cluster.policy.exit_rate_period_s / 60
        yield e.HostClosed(now, name, BY, f"{why} within {number_text(minutes)} minutes; open it by badmin hopen")


def _by_rate(cluster: Cluster, failures: deque[AbnormalEnd], most: int) -> str:
    types = cluster.policy.exit_rate_types
    if len(failures) <= most:
        return ""
    count = sum(1 for one in failures if _counts(one, types))
    return f"exit rate {count} above {most}: jobs ended abnormally here" if count > most else ""


def _counts(one: AbnormalEnd, types: frozenset[str]) -> bool:
    if JOBEXIT in types or (NONLSF in types and not one.is_by_lsf):
        return True
    return one.is_start and not types.isdisjoint((JOBINIT, "HPCINIT"))


def _by_starts(starts: _Starts, name: str, failures: deque[AbnormalEnd]) -> str:
    failed = [one for one in failures if one.is_start]
    if len(failed) < STARTS_MAX:
        return ""
    users, jobs = {one.user for one in failed}, {one.job for one in failed}
    if len(users) < 2 and not any(starts.elsewhere(job, name) for job in jobs):
        return ""
    return f"{len(failed)} jobs could not be started here ({failed[-1].detail})"
