"""CPU time and memory that attempts use, host by host and in all.

Invariants: figures of a job never fall, whoever of its hosts leaves, ends or is lost; what is not reported at the end
is the last report; an attempt starts from nothing, so a job that runs again is counted anew.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class HostUsage:
    """What an attempt uses on one host, as last heard."""

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
    seconds: float = 0.0  # for how long it was measured; 0: not told


class JobUsage(NamedTuple):
    """What an attempt has used on all its hosts. The largest memory of each is taken for the same moment."""

    cpu_s: float = 0.0
    memory_mib_max: int = 0
    memory_mib_mean: float = 0.0
    user_s: float = 0.0
    system_s: float = 0.0


class Departed(NamedTuple):
    """What an attempt has used on hosts that it has left."""

    cpu_s: float = 0.0
    user_s: float = 0.0
    system_s: float = 0.0
    memory_mib_max: int = 0  # of all its hosts together, before the last of these left
    memory_mib_s: float = 0.0  # the mean on each, times how long
    seconds: float = 0.0  # how long the longest was measured


NO_ONE = Departed()


ByHost = Mapping[str, HostUsage]


def newer(known: HostUsage | None, said: HostUsage) -> HostUsage:
    """What a host says now, and of what only grows no less than it said before."""
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
    )


def taken(usage: ByHost, said: Iterable[tuple[str, HostUsage]]) -> ByHost:
    """The figures with what these hosts say now."""
    return {**usage, **{host: newer(usage.get(host), one) for host, one in said}}


def whole(usage: ByHost, departed: Departed = NO_ONE) -> JobUsage:
    """Of all hosts together."""
    parts = usage.values()
    run_s = max((one.seconds for one in parts), default=0.0)
    run_s = max(run_s, departed.seconds)  # the only host that was left may have left before the end was told
    mean = sum(one.memory_mib_mean * _part(one.seconds, run_s) for one in parts)
    return JobUsage(
        departed.cpu_s + sum(one.cpu_s for one in parts),
        max(departed.memory_mib_max, sum(one.memory_mib_max for one in parts)),
        mean + (departed.memory_mib_s / run_s if run_s else 0.0),
        departed.user_s + sum(one.user_s for one in parts),
        departed.system_s + sum(one.system_s for one in parts),
    )


def _part(seconds: float, run_s: float) -> float:
    """The part of a run for which a host was there."""
    return seconds / run_s if seconds and run_s else 1.0
