"""Usage of attempts as their records have it: in all, and what stays counted of hosts that have left."""

from typing import Protocol

from lavad.core.model.usage import ByHost, Departed, JobUsage, whole


class UsageRecord(Protocol):
    """An attempt, as far as it is seen here."""

    usage: ByHost  # of the hosts that it has
    departed: Departed


def of_attempt(attempt: UsageRecord) -> JobUsage:
    """As far as it is known now."""
    return whole(attempt.usage, attempt.departed)


def depart(attempt: UsageRecord, host: str) -> None:
    """A host leaves the attempt, which goes on: what was used there stays counted."""
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
