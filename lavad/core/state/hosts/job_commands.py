"""Jobs with commands before or after them: their own, their queue's or their application profile's.

Invariant: none is placed on a host whose agent is of a version that would leave these commands out.
"""

from typing import NamedTuple

from lavad.core.model import Shared
from lavad.core.model.policy import Policy
from lavad.core.model.rules.queues import AroundJob, JobDefaults

_NONE: frozenset[str] = frozenset()


class JobCommands(NamedTuple):
    """Queues and application profiles whose jobs have commands."""

    queues: frozenset[str] = _NONE
    applications: frozenset[str] = _NONE

    def includes(self, shared: Shared) -> bool:
        """Return True if such a job has commands before or after it."""
        return shared.special.has_commands or shared.queue in self.queues or shared.application in self.applications


def job_commands(policy: Policy) -> JobCommands:
    """Return the queues and profiles with commands."""
    queues = frozenset(one.name for one in policy.queues if _has_commands(one.around, one.defaults))
    profiles = policy.applications.values()
    return JobCommands(queues, frozenset(one.name for one in profiles if _has_commands(one.around, one.defaults)))


def _has_commands(rule: AroundJob, defaults: JobDefaults) -> bool:
    its = (rule.host_pre, rule.host_post, rule.job_pre, rule.job_post)
    return any(its) or bool(defaults.pre_exec or defaults.post_exec)
