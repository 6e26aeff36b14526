"""Resource usage of attempts: totals, including hosts that have left."""

from typing import Protocol

from lavad.core.model.usage import ByHost, Departed, JobUsage, whole


class UsageRecord(Protocol):
    """The fields of an attempt that are read here."""

    usage: ByHost  # of its present hosts
    departed: Departed


def of_attempt(attempt: UsageRecord) -> JobUsage:
    """Total usage of the attempt so far."""
    return whole(attempt.usage, attempt.departed)


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
    )
