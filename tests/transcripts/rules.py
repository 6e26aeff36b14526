"""The rules of a transcript's cluster, from words: ``user_priority_max=100``; only what a situation is about.

``preempts.priority=short,normal+2`` lets a queue take from others, ``requeue`` ends victims instead of suspending them.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from lavad.core.policy import Policy

NUMBERS = (
    "user_priority_max",
    "priority_step",
    "priority_step_s",
    "preempt_delay_s",
    "no_preempt_run_s",
    "no_preempt_finish_s",
    "preemptions_max",
    "claim_timeout_s",
)


def policy(words: Iterable[str]) -> Policy:
    """The default policy but for these words."""
    values: dict[str, Any] = {}
    queues = {queue.name: queue for queue in Policy().queues}
    for word in words:
        name, _, value = word.partition("=")
        name, _, queue = name.partition(".")
        if name == "preempts":
            queues[queue] = replace(queues[queue], preempts=tuple(_level(one) for one in value.split(",")))
        elif name == "requeue":
            values["preempts_by_requeue"] = True
        elif name == "lends":
            values["preemptable_resources"] = frozenset(value.split(","))
        else:
            assert name in NUMBERS, f"{name} is no rule that a transcript can set"
            values[name] = int(value)
    return Policy(queues=tuple(queues.values()), **values)


def _level(word: str) -> tuple[str, int]:
    name, _, level = word.partition("+")
    return name, int(level or 0)
