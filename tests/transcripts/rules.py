"""The rules of a transcript's cluster, from words: ``user_priority_max=100``; only what a situation is about."""

from collections.abc import Iterable
from typing import Any

from lavad.core.policy import Policy

NUMBERS = ("user_priority_max", "priority_step", "priority_step_s")


def policy(words: Iterable[str]) -> Policy:
    """The default policy but for these words."""
    values: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        assert name in NUMBERS, f"{name} is no rule that a transcript can set"
        values[name] = int(value)
    return Policy(**values)
