"""Textbook policies as configurations of the scheduler: a single queue, no fairshare, no limits."""

from dataclasses import replace

from lavad.core.model.policy import Policy
from lavad.core.model.rules.queues import Queue

EVERYBODY = 2**62  # reservation depth: more than any queue is long
NEVER_S = 1e18

QUEUES = {
    "fcfs": Queue("trace", in_order=True),
    "easy": Queue("trace", backfill_depth=1),
    "conservative": Queue("trace", backfill_depth=EVERYBODY),
}


def policy(name: str) -> Policy:
    """Return first come first served, EASY or conservative backfilling.

    Raises:
        KeyError: there is no such policy.
    """
    return without_deadlines(Policy(queues=(QUEUES[name],), default_queue="trace"))


def without_deadlines(rules: Policy) -> Policy:
    """Return the policy with agents that never fall silent, no requeue, and ended jobs forgotten at once."""
    queues = tuple(replace(queue, defaults=replace(queue.defaults, requeue_exit_values="")) for queue in rules.queues)
    return replace(rules, queues=queues, silent_after_s=NEVER_S, staging_timeout_s=NEVER_S, clean_period_s=1.0)
