"""Facts of a host in effect: those its agent offers, corrected by its row in lsb.hosts and lsf.cluster.

An agent reports what it finds; the configuration overrides slots, model, type and resources.
"""

from dataclasses import replace
from typing import Final

from lavad.core.model import HostFacts
from lavad.core.model.policy import Policy

BY_HOST: Final = "the host's own notice"  # recorded as the administrator who closed the host
REVOCABLE: Final = "revocable"  # Boolean resource of hosts that may be taken away at short notice
# Exclusive resource, which no job can name, of hosts whose agent runs no commands before and after jobs.
NO_COMMANDS: Final = "no commands"
NO_COPIES: Final = "no copies"  # the same, of those that copy no files
NO_CHECKPOINTS: Final = "no checkpoints"  # and of those that make no checkpoints


def as_configured(policy: Policy, offered: HostFacts) -> HostFacts:
    """Facts of the host in effect; the offered ones if the configuration says nothing."""
    rule = policy.host_rule(offered.name, offered.model, offered.type)
    model = rule.model or offered.model
    is_server = offered.server and rule.is_server
    slots = offered.slots if rule.slots is None else rule.slots
    resources = offered.resources | rule.resources
    facts = replace(
        offered,
        slots=slots if is_server else 0,
        server=is_server,
        model=model,
        type=rule.type or offered.type,
        cpu_factor=policy.cpu_factors.get(model, offered.cpu_factor),
        resources=resources,
        exclusive_resources=rule.exclusive_resources | (resources & {REVOCABLE}) | _lacks(offered),
    )
    return offered if facts == offered else facts


def _lacks(offered: HostFacts) -> frozenset[str]:
    lacks = (
        (NO_COMMANDS, offered.lacks_commands),
        (NO_COPIES, offered.lacks_copies),
        (NO_CHECKPOINTS, offered.lacks_checkpoints),
    )
    return frozenset(name for name, is_lacking in lacks if is_lacking)
