"""Policies of simulated sites, by the number of the seed."""

from dataclasses import replace
from typing import Any

from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.resources import Pool


def a_policy(seed: int, fence_after_s: float) -> Policy:
    """Return the seed's policy: of four seeds one preempts by suspending, one by requeue, and one has pools."""
    policy = Policy(clean_period_s=1e9, claim_timeout_s=60.0, fence_after_s=fence_after_s)
    if not seed % 4:
        return policy
    if seed % 4 == 3:
        one = Pool("one", Names(False, frozenset(("u1000",))), guaranteed={"slots": 8.0, "gpus": 2.0})
        return replace(policy, pools=(one, Pool("other", Names(False, frozenset(("u1001",))), deserved={"slots": 6.0})))
    lower = (("normal", 0), ("short", 1))
    changes: dict[str, dict[str, Any]] = {"priority": {"preempts": lower}, "normal": {"slot_reserve_s": 20.0}}
    queues = tuple(replace(one, **changes.get(one.name, {})) for one in policy.queues)
    return replace(policy, queues=queues, preempts_by_requeue=seed % 4 == 2)
