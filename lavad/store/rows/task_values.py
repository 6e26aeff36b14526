"""Encodings of jobs of tasks in rows, and their decoders: rules, tasks, and what the job has been through.

Numbers of events, actions and phases are those of the wire. Missing fields have their default values.
"""

import json
from collections.abc import Iterable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from lavad.core.apply.tasks.places import new_tasks
from lavad.core.model import Shared
from lavad.core.model.task_rules import (
    Autoscale,
    InPlace,
    Metric,
    Policy,
    RoleRules,
    TaskAction,
    TaskEvent,
    TaskKey,
    TaskPhase,
    TaskRules,
)
from lavad.core.model.task_values import Delayed, Replacement, Verdict
from lavad.core.state.tasks import JobTasks, TaskRecord
from lavad.store.writer.batch import Row

if TYPE_CHECKING:
    from sqlalchemy import Row as SqlRow

_encode = json.JSONEncoder(separators=(",", ":")).encode

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
        values["policies"] = [_policy_values(policy) for policy in values["policies"]]
    return values


def _policy_values(policy: Policy) -> list[Any]:
    rest = [] if policy.is_counted else [policy.is_counted]
    return [policy.action, sorted(policy.events), sorted(policy.exit_codes), policy.timeout_s, policy.index, *rest]


def decode_rules(values: dict[str, Any]) -> TaskRules:
    """Return the rules of ``rules_values``."""
    known = _known(TaskRules, values)
    known["roles"] = tuple([_role(one) for one in values["roles"]])
    known |= {name: frozenset(known[name]) for name in _SETS if name in known}
    if known.get("autoscale"):
        role, metric, *rest = known["autoscale"]
        known["autoscale"] = Autoscale(role, Metric(metric), *rest)
    return TaskRules(**known)


def _role(values: dict[str, Any]) -> RoleRules:
    known = _known(RoleRules, values)
    known |= {name: tuple(known[name]) for name in ("after", "after_done") if name in known}
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
            Policy(TaskAction(action), frozenset(map(TaskEvent, events)), frozenset(codes), *rest)
            for action, events, codes, *rest in values
        ]
    )


# -- tasks -----------------------------------------------------------------------------------------------------------


def task_row(job: int, index: int, attempt: int, key: TaskKey, record: TaskRecord) -> Row:
    """Build the row of a task."""
    seldom = {
        "again": record.again,
        "all": record.waits_for_all,
        "stopped": record.stopped,
        "as": int(record.ends_as or 0),
        "joins": record.joins,
        "joined": record.joined,
        "leaves": record.leaves,
        "was": record.was_on,
        "from": record.not_before,
        "failures": record.failures,
        "left": record.left,
        "place": record.place + 1,
    }
    return (
        job,
        index,
        *key,
        attempt,
        record.run,
        int(record.phase),
        record.host,
        ",".join(map(str, record.ports)),
        record.pid,
        record.started,
        record.ended,
        record.status,
        _clean(record.reason),
        _encode({name: value for name, value in seldom.items() if value}),
    )


def _clean(text: str) -> str:
    return text.replace("\0", "").encode(errors="replace").decode()


def record_of(row: "SqlRow[Any]") -> TaskRecord:
    """Build the task of a row."""
    seldom = json.loads(row.detail)
    return TaskRecord(
        TaskPhase(row.phase),
        row.host,
        row.run,
        tuple(map(int, filter(None, row.ports.split(",")))),
        row.pid,
        row.started_at,
        row.ended_at,
        row.status,
        row.reason,
        bool(seldom.get("again")),
        bool(seldom.get("all")),
        seldom.get("stopped", ""),
        TaskEvent(seldom["as"]) if "as" in seldom else None,
        seldom.get("joins", ""),
        seldom.get("joined", 0),
        bool(seldom.get("leaves")),
        seldom.get("was", ""),
        seldom.get("from", 0.0),
        seldom.get("failures", 0),
        seldom.get("left", ""),
        seldom.get("place", 0) - 1,
    )


def job_row(job: int, index: int, tasks: JobTasks) -> Row:
    """Build the row of all that concerns the tasks of a job together."""
    values = {
        "version": tasks.version,
        "restarts": tasks.restarts,
        "in_place": [(*group, count) for group, count in tasks.restarts_in_place.items()],
        "verdict": tasks.verdict,
        "delayed": tasks.delayed,
        "replacement": tasks.replacement,
        "pauses": tasks.pauses,
        "addresses": tasks.addresses,
        "autoscaled_at": tasks.autoscaled_at,
        "autoscale_error": tasks.autoscale_error,
    }
    return job, index, _encode({name: value for name, value in values.items() if value})


def tasks_of(shared: Shared, content: str, rows: Iterable["SqlRow[Any]"]) -> JobTasks:
    """Build the tasks of a job from its row and those of its tasks, in order of role and number."""
    tasks, values = new_tasks(shared), json.loads(content)
    for row in rows:
        if row.role >= len(tasks.sizes) or row.number >= tasks.sizes[row.role]:
            continue  # the job was made smaller since
        tasks.records[TaskKey(row.role, row.number)] = record_of(row)
    tasks.records.changed.clear()
    tasks.version, tasks.restarts = values.get("version", 0), values.get("restarts", 0)
    for role, *group, count in values.get("in_place", ()):  # without a group by versions that knew none
        tasks.restarts_in_place[TaskKey(role, *(group or [0]))] = count
    if "verdict" in values:
        action, *rest = values["verdict"]
        tasks.verdict = Verdict(TaskAction(action), *rest)
    tasks.delayed = tuple(
        [Delayed(at, TaskAction(action), TaskEvent(event), TaskKey(*task))
         for at, action, event, task in values.get("delayed", ())]
    )  # fmt: skip
    tasks.pauses = tuple(values.get("pauses", ()))
    if "replacement" in values:
        keys, hosts, until = values["replacement"]
        tasks.replacement = Replacement(tuple([TaskKey(*key) for key in keys]), tuple(hosts), until)
    tasks.addresses = dict(values.get("addresses", {}))
    tasks.autoscaled_at, tasks.autoscale_error = values.get("autoscaled_at", 0.0), values.get("autoscale_error", "")
    return tasks
