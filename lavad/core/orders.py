"""Orders to agents, sent once the event is durable.

Orders are data: the driver adds the job's spec and sends them. Each has the attempt's key, so that repeating one is
safe.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lavad.core import events as e
from lavad.core.model import Allocation, JobState, Key, Launch, limits_of, serial_of
from lavad.core.model.allocation import grown

if TYPE_CHECKING:
    from lavad.core.cluster import Cluster
    from lavad.core.state.records import Attempt

LEFT = "the job gave this host up"
UNKNOWN = "the master has no such attempt"
TERMINATE = 0  # as a signal number: INT, TERM, KILL with the cluster's interval


@dataclass(frozen=True, slots=True)
class StageOrder:
    """Stage the attempt; with ``launch_now`` also launch it."""

    host: str
    key: Key
    version: int
    allocation: Allocation
    launch_now: bool
    lease_s: float = 0.0  # the host ends its part after so many seconds without contact to the master; 0: never


@dataclass(frozen=True, slots=True)
class LaunchOrder:
    host: str
    key: Key
    version: int


@dataclass(frozen=True, slots=True)
class SignalOrder:
    """Signal the attempt. ``reason`` becomes that of the job's end, if the signal ends it; ``causes`` are of a
    suspension."""

    host: str
    key: Key
    signal: int
    reason: str
    serial: int
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReleaseOrder:
    """End what is left of the attempt on that host, release everything, report it."""

    host: str
    key: Key
    reason: str


@dataclass(frozen=True, slots=True)
class ResizeOrder:
    """Change the attempt's allocation; the lead host notifies the job and then reports it."""

    host: str
    key: Key
    version: int
    allocation: Allocation
    notify: str = ""


@dataclass(frozen=True, slots=True)
class LimitsOrder:
    """Change the attempt's limits; 0 is none. The run limit counts from the start."""

    host: str
    key: Key
    version: int
    run_limit_s: int
    deadline: float
    memory_limit_mib: int


@dataclass(frozen=True, slots=True)
class ForgetOrder:
    """Forget the attempt: its last report is durable."""

    host: str
    key: Key


Order = StageOrder | LaunchOrder | SignalOrder | ReleaseOrder | ResizeOrder | LimitsOrder | ForgetOrder


def orders_for(cluster: "Cluster", event: e.Event) -> Iterator[Order]:
    """Orders that follow from an event, in the state after it was applied."""
    match event:
        case e.AttemptDispatched():
            yield from stage_orders(cluster.attempts[event.key])
        case e.AttemptLaunched():
            yield from launch_orders(cluster, cluster.attempts[event.key])
        case e.JobSignalled():
            attempt = cluster.attempts.get(event.key)
            if attempt is not None and not attempt.over:
                yield from _signal_orders(attempt, event.signal, event.reason, serial_of(event.at, event.signal))
        case e.JobAbandoned():  # hosts in contact end their parts now
            attempt = cluster.attempts.get(event.key)
            if attempt is not None and not attempt.over and attempt.last_signal is not None:
                yield from _signal_orders(attempt, *attempt.last_signal)
        case e.JobSuspended(state=state) | e.JobResumed(state=state) if state is not JobState.STAGING:
            attempt = cluster.attempts.get(event.key)
            if attempt is not None and not attempt.over and attempt.last_signal is not None:
                yield from _signal_orders(attempt, *attempt.last_signal)
        case e.JobDoomed():
            attempt = cluster.attempts.get(event.key)
            if attempt is not None and not attempt.over:
                yield from doom_orders(cluster, attempt)
        case e.AttemptGrowing() | e.AttemptResized() | e.ResizeNoted():
            attempt = cluster.attempts.get(event.key)
            if attempt is not None and not attempt.over:
                yield from _resize_orders(attempt, event)
        case e.JobModified():
            for attempt in cluster.attempts_of(event.job.id):
                for host in attempt.unreleased:
                    yield from limits_orders(cluster, attempt, host)
        case e.JobFinished() | e.JobRequeued():
            yield from _release_orders(cluster, event)
        case e.HostReleased(assumed=True):
            yield ReleaseOrder(event.host, event.key, "the attempt was given up before it was launched")
        case e.HostReleased():
            yield ForgetOrder(event.host, event.key)


def stage_orders(attempt: "Attempt", hosts: frozenset[str] | None = None) -> Iterator[StageOrder]:
    """Stage orders to all hosts of an attempt, or to some of them again."""
    launch_now = attempt.launched and len(attempt.allocation) == 1
    for share in attempt.allocation:
        if hosts is None or share.host in hosts:
            allocation = attempt.allocation
            yield StageOrder(share.host, attempt.key, attempt.version, allocation, launch_now, attempt.lease_s)


def _resize_orders(
    attempt: "Attempt", event: e.AttemptGrowing | e.AttemptResized | e.ResizeNoted
) -> Iterator[StageOrder | ResizeOrder | ReleaseOrder]:
    """Orders of a resize: stage on new hosts, tell those that stay, then release those that leave."""
    match event:
        case e.AttemptGrowing():
            yield from growth_orders(attempt)
        case e.AttemptResized():
            for share in attempt.allocation:
                if share.host in attempt.unreleased:
                    yield resize_order(attempt, share.host)
        case e.ResizeNoted():
            for share in attempt.resizing.leaving:
                yield ReleaseOrder(share.host, attempt.key, LEFT)


def growth_orders(attempt: "Attempt", hosts: frozenset[str] | None = None) -> Iterator[StageOrder]:
    """Stage orders to new hosts of a growth, or to some of them again."""
    allocation = grown(attempt.allocation, attempt.resizing.growth)
    for share in attempt.resizing.growth:
        if attempt.share_on(share.host) is None and (hosts is None or share.host in hosts):
            version = attempt.joined_with(share.host)
            yield StageOrder(share.host, attempt.key, version, allocation, False, attempt.lease_s)


def resize_order(attempt: "Attempt", host: str) -> ResizeOrder:
    """Order with the attempt's present allocation for one of its hosts."""
    change = attempt.resizing
    return ResizeOrder(host, attempt.key, change.version, attempt.allocation, change.notify)


def limits_orders(cluster: "Cluster", attempt: "Attempt", host: str) -> Iterator[LimitsOrder]:
    """Order with the attempt's present limits for one of its hosts, if they have changed since it was staged."""
    job = cluster.holder(attempt.key)
    if attempt.limits_version and job is not None and attempt.share_on(host) is not None:
        yield LimitsOrder(host, attempt.key, attempt.limits_version, *limits_of(job.shared))


def launch_orders(cluster: "Cluster", attempt: "Attempt") -> Iterator[LaunchOrder]:
    """Launch orders to the lead host, or to all hosts if a role's command is started for each task."""
    for host in launch_hosts(cluster, attempt):
        yield LaunchOrder(host, attempt.key, attempt.version)


def launch_hosts(cluster: "Cluster", attempt: "Attempt") -> list[str]:
    """Hosts on which launch orders start processes of the attempt."""
    record = cluster.jobs[attempt.key.job]
    if any(role.launch is Launch.EACH for role in record.shared.request.roles):
        return [share.host for share in attempt.allocation]
    return [attempt.lead]


def _signal_orders(attempt: "Attempt", signal: int, reason: str, serial: int) -> Iterator[SignalOrder]:
    for share in attempt.booked:
        if share.host in attempt.unreleased:
            yield SignalOrder(share.host, attempt.key, signal, reason, serial, tuple(attempt.suspended))


def signal_again(attempt: "Attempt", host: str) -> Iterator[SignalOrder]:
    """The attempt's last signal, sent again; its serial lets an agent drop a repeated one."""
    if attempt.last_signal is not None:
        yield SignalOrder(host, attempt.key, *attempt.last_signal, tuple(attempt.suspended))


def doom_orders(cluster: "Cluster", attempt: "Attempt") -> Iterator[SignalOrder]:
    """Orders that end a failed attempt on hosts in contact; the others get theirs when they are back."""
    for share in attempt.booked:
        host = cluster.hosts.get(share.host)
        if share.host in attempt.unreleased and host is not None and not host.is_silent:
            yield doom_order(attempt, share.host)


def doom_order(attempt: "Attempt", host: str) -> SignalOrder:
    """Order that ends one host's part of a failed attempt."""
    return SignalOrder(host, attempt.key, TERMINATE, attempt.doomed, serial_of(attempt.dispatched_at, 99))


def _release_orders(cluster: "Cluster", event: e.JobFinished | e.JobRequeued) -> Iterator[ReleaseOrder]:
    attempt = cluster.attempts.get(event.key)
    if attempt is None:
        return
    reason = event.reason or "the job has ended"
    for share in attempt.booked:
        if share.host in attempt.unreleased:
            yield ReleaseOrder(share.host, attempt.key, reason)
