"""Suspended attempts that migrate by themselves (MIG), with the times at which they are to."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lavad.core.model import JobState, Key
from lavad.core.model.windows import NEVER

if TYPE_CHECKING:
    from lavad.core.model.policy import Policy
    from lavad.core.state.attempts import Attempt
    from lavad.core.state.records import Host, Job


class Migrations:
    """Times by attempt. ``next_at`` is no later than the earliest of them, so that nothing is looked through before."""

    def __init__(self, hosts: Mapping[str, "Host"]) -> None:
        self._hosts = hosts
        self._due: dict[Key, float] = {}
        self.next_at = NEVER

    def __bool__(self) -> bool:
        return bool(self._due)

    def follow(self, policy: "Policy", job: "Job", attempt: "Attempt") -> None:
        """Note when the attempt migrates, now that its job has changed: only while the system suspends it."""
        after_s = self._threshold_s(policy, job, attempt) if job.state is JobState.SSUSP else None
        if after_s is not None:
            self.note(attempt.key, attempt.suspended_at + after_s)
        else:
            self.forget(attempt.key)

    def _threshold_s(self, policy: "Policy", job: "Job", attempt: "Attempt") -> float | None:
        """-mig, else MIG of the profile, else the queue; that of a host if it is less. None: it does not migrate."""
        shared = job.shared
        if not (shared.rerunnable or shared.special.checkpointable):
            return None
        queue = policy.queue_for(shared.queue, shared.application)
        hosts = [host for share in attempt.allocation if (host := self._hosts.get(share.host)) is not None]
        rules = [policy.host_rule(host.facts.name, host.offered.model, host.offered.type) for host in hosts]
        own = shared.special.migration_s
        if own is None and queue is not None:
            own = queue.migration_s
        found = [own, *(rule.migration_s for rule in rules)]
        return min((one for one in found if one is not None), default=None)

    def note(self, key: Key, at: float) -> None:
        """Note that the attempt is to migrate at a time."""
        self._due[key] = at
        self.next_at = min(self.next_at, at)

    def forget(self, key: Key) -> None:
        """Let the attempt stay: it has been resumed, or has ended."""
        self._due.pop(key, None)

    def take_due(self, now: float) -> list[Key]:
        """Return the attempts whose time has come, and forget them."""
        if self.next_at > now:
            return []
        due = [key for key, at in self._due.items() if at <= now]
        for key in due:
            del self._due[key]
        self.next_at = min(self._due.values(), default=NEVER)
        return due
