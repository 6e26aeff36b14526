"""CPU time, memory and GPUs that attempts use, by host and in all.

Invariants: figures of a job never decrease, whichever of its hosts leaves, ends or is lost; a figure that is not
reported at the end is that of the last report; an attempt starts from 0, so a requeued job is counted anew.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from lavad.core.model.gpu_use import GpusByHost, GpuUse, continued, together


@dataclass(frozen=True, slots=True)
class HostUsage:
    """Usage of an attempt on one host, as last reported."""

    cpu_s: float = 0.0
    memory_mib: int = 0
    memory_mib_max: int = 0
    swap_mib: int = 0
    pids: tuple[int, ...] = ()
    process_groups: tuple[int, ...] = ()
    threads: int = 0
    memory_mib_mean: float = 0.0
    user_s: float = 0.0  # of cpu_s
    system_s: float = 0.0
    seconds: float = 0.0  # duration of the measurement; 0: not reported
    gpus: tuple[GpuUse, ...] = ()
    at: float = 0.0  # time of the report; 0: it was before the master started


class JobUsage(NamedTuple):
    """Usage of an attempt on all its hosts. The peaks of memory are added up as if they were simultaneous."""

    cpu_s: float = 0.0
    memory_mib_max: int = 0
    memory_mib_mean: float = 0.0
    user_s: float = 0.0
    system_s: float = 0.0


class Departed(NamedTuple):
    """Usage of an attempt on hosts that it has left."""

    cpu_s: float = 0.0
    user_s: float = 0.0
    system_s: float = 0.0
    memory_mib_max: int = 0  # of all hosts together, before the last of these left
    memory_mib_s: float = 0.0  # sum over hosts of mean times duration
    seconds: float = 0.0  # longest duration of a measurement
    gpus: GpusByHost = ()


NO_ONE = Departed()


ByHost = Mapping[str, HostUsage]


def newer(known: HostUsage | None, said: HostUsage) -> HostUsage:
    """Newest report of a host, with cumulative figures no less than the last ones."""
    if known is None:
        return said
    return replace(
        said,
        cpu_s=max(known.cpu_s, said.cpu_s),
        user_s=max(known.user_s, said.user_s),
        system_s=max(known.system_s, said.system_s),
        memory_mib_max=max(known.memory_mib_max, said.memory_mib_max),
        memory_mib_mean=said.memory_mib_mean or known.memory_mib_mean,
        seconds=max(known.seconds, said.seconds),
        gpus=continued(known.gpus, said.gpus),
    )


def taken(usage: ByHost, said: Iterable[tuple[str, HostUsage]]) -> ByHost:
    """The usage with the newest reports of these hosts."""
    return {**usage, **{host: newer(usage.get(host), one) for host, one in said}}


class UsageRecord(Protocol):
    """The fields of an attempt that are read here."""

    usage: ByHost  # of its present hosts
    departed: Departed


def of_attempt(attempt: UsageRecord) -> JobUsage:
    """Total usage of the attempt so far."""
    parts, departed = attempt.usage.values(), attempt.departed
    run_s = max((one.seconds for one in parts), default=0.0)
    run_s = max(run_s, departed.seconds)  # all hosts with longer measurements may have left before the end was reported
    mean = sum(one.memory_mib_mean * _part(one.seconds, run_s) for one in parts)
    return JobUsage(
        departed.cpu_s + sum(one.cpu_s for one in parts),
        max(departed.memory_mib_max, sum(one.memory_mib_max for one in parts)),
        mean + (departed.memory_mib_s / run_s if run_s else 0.0),
        departed.user_s + sum(one.user_s for one in parts),
        departed.system_s + sum(one.system_s for one in parts),
    )


def gpus_of_attempt(attempt: UsageRecord) -> GpusByHost:
    """Use of GPUs by the attempt so far, by host, each once: those it has left, and its present ones."""
    found: dict[str, tuple[GpuUse, ...]] = {}
    for host, gpus in (*attempt.departed.gpus, *((host, one.gpus) for host, one in attempt.usage.items() if one.gpus)):
        found[host] = together(found[host], gpus) if host in found else gpus
    return tuple(found.items())


def _part(seconds: float, run_s: float) -> float:
    """Part of a run for which a host was measured."""
    return seconds / run_s if seconds and run_s else 1.0


def depart(attempt: UsageRecord, host: str) -> None:
    """Move the usage of a host that leaves the attempt to that of departed hosts."""
    rest = dict(attempt.usage)
    gone, before, known = rest.pop(host), of_attempt(attempt), attempt.departed
    attempt.usage = rest
    attempt.departed = Departed(
        known.cpu_s + gone.cpu_s,
        known.user_s + gone.user_s,
        known.system_s + gone.system_s,
        max(known.memory_mib_max, before.memory_mib_max),
        known.memory_mib_s + gone.memory_mib_mean * gone.seconds,
        max(known.seconds, gone.seconds),
        (*known.gpus, (host, gone.gpus)) if gone.gpus else known.gpus,
    )
