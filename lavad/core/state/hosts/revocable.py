"""Revocable hosts: those that may be taken away at short notice (spot instances, idle desktops).

They have the Boolean resource ``revocable``, by their agent or by lsf.cluster, and are as if they had it exclusively
(``!revocable``) for jobs that could not bear to lose a host. A job whose select names the resource has decided itself.
"""

from lavad.core.language.requirements.parts import is_elastic
from lavad.core.model import HostFacts, Request, Shared
from lavad.core.model.host_config import REVOCABLE
from lavad.core.model.task_rules import RESTARTS, TaskEvent, TaskRules

_EVICTIONS = frozenset({TaskEvent.ANY, TaskEvent.EVICTED})


def tolerates(shared: Shared) -> bool:
    """True if such a job may be placed on revocable hosts without asking for one: it is elastic, may run again, or has
    a policy that restarts what is evicted."""
    if shared.rerunnable or _is_resizable(shared.request):
        return True
    return shared.tasks is not None and _restarts(shared.tasks)


def _is_resizable(request: Request) -> bool:
    if request.is_of_tasks:
        return is_elastic(request)
    return request.single_role is not None and request.single_role.resizable


def _restarts(rules: TaskRules) -> bool:
    policies = [*rules.policies, *[one for role in rules.roles for one in role.policies]]
    return any(one.action in RESTARTS and one.events & _EVICTIONS for one in policies)


def is_revocable(facts: HostFacts) -> bool:
    """True if the host may be taken away at short notice."""
    return REVOCABLE in facts.resources
