"""Encodings of jobs of tasks in rows, and their decoders: their rules.

Numbers of events, actions and phases are those of the wire. Missing fields have their default values.
"""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from lavad.core.model.task_rules import InPlace, Policy, RoleRules, TaskAction, TaskEvent, TaskRules

_SETS = ("final_codes", "free_codes")


def rules_values(rules: TaskRules) -> dict[str, Any]:
    """Return the rules of a job as values for JSON; those with default values are left out."""
    values = _given(rules)
    values["roles"] = [_role_values(role) for role in rules.roles]
    values |= {name: sorted(values[name]) for name in _SETS if name in values}
    return _with_policies(values)


def _given(value: TaskRules | RoleRules) -> dict[str, Any]:
    named = {field.name: (getattr(value, field.name), field.default) for field in fields(value)}
    return {name: given for name, (given, default) in named.items() if given != default}


def _role_values(role: RoleRules) -> dict[str, Any]:
    return _with_policies(_given(role))


def _with_policies(values: dict[str, Any]) -> dict[str, Any]:
    if "policies" in values:
        values["policies"] = [
            [policy.action, sorted(policy.events), sorted(policy.exit_codes), policy.timeout_s, policy.index]
            for policy in values["policies"]
        ]
    return values


def decode_rules(values: dict[str, Any]) -> TaskRules:
    """Return the rules of ``rules_values``."""
    known = _known(TaskRules, values)
    known["roles"] = tuple([_role(one) for one in values["roles"]])
    known |= {name: frozenset(known[name]) for name in _SETS if name in known}
    return TaskRules(**known)


def _role(values: dict[str, Any]) -> RoleRules:
    known = _known(RoleRules, values)
    if "after" in known:
        known["after"] = tuple(known["after"])
    if "in_place" in known:
        known["in_place"] = InPlace(known["in_place"])
    return RoleRules(**known)


def _known(kind: type[TaskRules | RoleRules], values: dict[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    known = {name: value for name, value in values.items() if name in names}
    if "policies" in known:
        known["policies"] = _policies(known["policies"])
    return known


def _policies(values: Iterable[list[Any]]) -> tuple[Policy, ...]:
    return tuple(
        [
            Policy(TaskAction(action), frozenset(map(TaskEvent, events)), frozenset(codes), timeout_s, index)
            for action, events, codes, timeout_s, index in values
        ]
    )
