"""Rules of a job of tasks from its submission, checked: what a role's tasks may do to each other and to the job.

A sentence names the role that is wrong, as the user wrote it.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from lavad.core.model import PACK, RACK, SPREAD
from lavad.core.model.reasons import Refused
from lavad.core.model.task_rules import (
    PAUSE_MAX_S,
    REPLACE_S,
    RESTARTS,
    STABLE_S,
    Autoscale,
    InPlace,
    Metric,
    Policy,
    RoleRules,
    TaskAction,
    TaskEvent,
    TaskRules,
)
from protos import common_pb2, jobs_pb2

FORMAT = 1
POLICIES_MAX = 100
PORTS_MAX = 1000  # of one task
COUNT_MAX = 1_000_000
TASKS_MAX = 50_000  # completions of a role: the master keeps each of its tasks
_METRICS = {"script": Metric.SCRIPT, "pending-slots": Metric.PENDING}
INTERVAL_MIN_S = 1.0  # between two runs of a metric script
CODES_MAX = 256
TIME_MAX_S = 1e9
ARGUMENTS_MAX = 10_000
_NAME = re.compile(r"[A-Za-z0-9._~-]{1,255}")
_SPREADS = ("", PACK, SPREAD, RACK)
_ACTIONS, _EVENTS = frozenset(map(int, TaskAction)), frozenset(map(int, TaskEvent))


def check(spec: jobs_pb2.JobSpec) -> None:
    """Refuse a job of tasks that contradicts itself, and fields of such jobs in any other.

    Raises:
        Refused: one sentence names the role and what is wrong.
    """
    if not spec.HasField("tasks"):
        _check_plain(spec)
        return
    if spec.tasks.format != FORMAT:
        raise Refused(f"The job's rules have format {spec.tasks.format}; this version knows format {FORMAT}")
    if not spec.roles:
        raise Refused("The job has no roles")
    names = _names(spec.roles)
    for role in spec.roles:
        _check_role(role, spec.command)
    _check_order(spec.roles, names)
    if all(role.launch == common_pb2.LAUNCH_NONE for role in spec.roles):
        raise Refused("No role of the job has a command")
    _check_rules(spec.tasks)
    if spec.tasks.HasField("autoscale"):
        _check_autoscale(spec.tasks.autoscale, {role.name: role for role in spec.roles})
    _check_spares(spec)


def rules_of(spec: jobs_pb2.JobSpec) -> TaskRules | None:
    """Return the rules of a checked job of tasks; None for any other job."""
    if not spec.HasField("tasks"):
        return None
    rules = spec.tasks
    numbers = {role.name: number for number, role in enumerate(spec.roles)}
    return TaskRules(
        tuple([_role_rules(role, numbers) for role in spec.roles]),
        policies=tuple(map(_policy, rules.policies)),
        restarts_max=rules.restarts_max,
        restarts_when_failed=rules.restarts_when_failed,
        success_min=rules.success_min,
        succeeded_enough=rules.succeeded_enough,
        needs_each=rules.needs_each,
        final_codes=frozenset(rules.final_codes),
        free_codes=frozenset(rules.free_codes),
        ttl_s=rules.ttl_s if rules.has_ttl else None,
        autoscale=_autoscale(rules.autoscale, numbers) if rules.HasField("autoscale") else None,
        replace_s=rules.replace_s if rules.has_replace else REPLACE_S,
        pause_s=rules.restart_pause_s,
        pause_max_s=rules.restart_pause_max_s or PAUSE_MAX_S,
        stable_s=rules.stable_s or STABLE_S,
    )


def _role_rules(role: common_pb2.Role, numbers: Mapping[str, int]) -> RoleRules:
    return RoleRules(
        policies=tuple(map(_policy, role.policies)),
        after=tuple([numbers[name] for name in role.after]),
        after_any=role.after_any,
        after_done=tuple([numbers[name] for name in role.after_done]),
        in_place=InPlace(role.restart),
        restarts_max=role.restarts_max,
        group=role.group,
        success_min=role.success_min,
        failed_enough=role.failed_enough,
        succeeded_enough=role.succeeded_enough,
        run_limit_s=role.run_limit_s,
        completions=role.completions,
        pause_s=role.restart_pause_s,
        pause_max_s=role.restart_pause_max_s or PAUSE_MAX_S,
        stable_s=role.stable_s or STABLE_S,
    )


def _autoscale(rule: jobs_pb2.Autoscale, numbers: Mapping[str, int]) -> Autoscale:
    return Autoscale(
        numbers[rule.role], _METRICS[rule.metric], rule.least, rule.most, rule.cooldown_s, rule.target or 1
    )


def _policy(policy: common_pb2.TaskPolicy) -> Policy:
    return Policy(
        TaskAction(policy.action),
        frozenset(map(TaskEvent, policy.events)),
        frozenset(policy.exit_codes),
        policy.timeout_s,
        policy.index_plus_one - 1,
        not policy.uncounted,
    )


# -- checks ----------------------------------------------------------------------------------------------------------

# Fields of a role that have a meaning in a job of tasks only: elsewhere they would be taken and ignored.
_OF_TASKS = frozenset({
    "may_be_absent", "environment", "cwd", "ports", "after", "after_any", "policies", "restart", "restarts_max",
    "success_min", "failed_enough", "succeeded_enough", "run_limit_s", "spread", "argv", "image", "memory_limit_mib",
    "spares", "after_done", "group", "completions", "restart_pause_s", "restart_pause_max_s", "stable_s",
})  # fmt: skip


def _check_plain(spec: jobs_pb2.JobSpec) -> None:
    for role in spec.roles:
        given = next((field.name for field, value in role.ListFields() if value and field.name in _OF_TASKS), None)
        if given is not None:
            raise Refused(f"Role {role.name}: {given} is for jobs of tasks only")
        if role.launch in (common_pb2.LAUNCH_HOST, common_pb2.LAUNCH_NONE):
            raise Refused(f"Role {role.name}: its way to launch is for jobs of tasks only")


def _names(roles: Iterable[common_pb2.Role]) -> set[str]:
    names: set[str] = set()
    for role in roles:
        if not _NAME.fullmatch(role.name):
            raise Refused(f"Bad role name {role.name[:80]!r}: it takes letters, digits and . _ ~ -")
        if role.name in names:
            raise Refused(f"Two roles have the name {role.name}")
        names.add(role.name)
    return names


def _check_role(role: common_pb2.Role, command: str) -> None:
    has_command = role.command.strip() or role.argv or command.strip()
    if role.launch != common_pb2.LAUNCH_NONE and not has_command:
        raise _wrong(role, "no command is specified")
    if role.argv and role.command:
        raise _wrong(role, "it has a command and an argv; one of them is run")
    if role.spread not in _SPREADS:
        raise _wrong(role, f"unknown placement {role.spread[:80]!r}: it is {PACK}, {SPREAD} or {RACK}")
    if role.restart not in common_pb2.RestartInPlace.values():
        raise _wrong(role, f"unknown way to restart in place: {role.restart}")
    if role.may_be_absent and role.tasks_min:
        raise _wrong(role, "it may be absent, so that it has no minimum")
    _check_values(role)
    _check_counts(role)
    _check_policies(role.policies, f"Role {role.name}", _tasks_of(role))


def _wrong(role: common_pb2.Role, what: str) -> Refused:
    return Refused(f"Role {role.name}: {what}")


def _check_values(role: common_pb2.Role) -> None:
    if any(b"\0" in entry or entry.find(b"=") < 1 for entry in role.environment):
        raise _wrong(role, "its environment takes NAME=VALUE without NUL characters")
    if len(role.argv) > ARGUMENTS_MAX:
        raise _wrong(role, "its argv is too long")
    if role.cwd and not role.cwd.startswith("/"):
        raise _wrong(role, "its working directory must be an absolute path")
    if not (math.isfinite(role.run_limit_s) and 0 <= role.run_limit_s <= TIME_MAX_S):
        raise _wrong(role, "its run limit is no number of seconds")
    _check_pauses(role, f"Role {role.name}")
    names = [port.name for port in role.ports]
    if len(set(names)) < len(names):
        raise _wrong(role, "two of its ports have the same name")
    if sum(port.count or 1 for port in role.ports) > PORTS_MAX:
        raise _wrong(role, f"more than {PORTS_MAX} ports were requested for a task")
    if any(port.number + (port.count or 1) > 1 << 16 for port in role.ports):
        raise _wrong(role, "ports are numbers up to 65535")


def _check_pauses(given: common_pb2.Role | jobs_pb2.TaskRules, whose: str) -> None:
    times = (given.restart_pause_s, given.restart_pause_max_s, given.stable_s)
    if not all(math.isfinite(one) and 0 <= one <= TIME_MAX_S for one in times):
        raise Refused(f"{whose}: a time is no number of seconds")
    if any(times) and not given.restart_pause_s:
        raise Refused(f"{whose}: a longest pause, or a time after which it is stable, goes with a restart pause")


def _tasks_of(role: common_pb2.Role) -> int:
    return role.completions or role.tasks_max or role.tasks_min or 1


def _check_completions(role: common_pb2.Role) -> None:
    places = role.tasks_max or role.tasks_min or 1
    if not role.completions:
        return
    if role.completions < places:
        raise _wrong(role, f"it has {role.completions} completions, fewer than the {places} tasks that run at once")
    if role.completions > TASKS_MAX:
        raise _wrong(role, f"it has more than {TASKS_MAX} completions")
    if role.launch != common_pb2.LAUNCH_EACH:
        raise _wrong(role, "completions are for a role each of whose tasks has a command")
    if role.spares:
        raise _wrong(role, "it has spares and completions; one of them says what its places are for")


def _check_counts(role: common_pb2.Role) -> None:
    _check_completions(role)
    most = _tasks_of(role)
    counts = ("success_min", "failed_enough", "succeeded_enough")
    for name in counts:
        if getattr(role, name) > most:
            raise _wrong(role, f"{name} is {getattr(role, name)}, and it has at most {most} tasks")
    if role.restarts_max > COUNT_MAX:
        raise _wrong(role, f"more than {COUNT_MAX} restarts")


_RESTARTS = frozenset(map(int, RESTARTS))
_OF_LOSS = frozenset(map(int, (TaskEvent.ANY, TaskEvent.HOST_LOST)))


def _check_spares(spec: jobs_pb2.JobSpec) -> None:
    """Check that spares are of roles of a fixed size, and that a policy makes use of them."""
    for role in spec.roles:
        most = role.tasks_max or role.tasks_min or 1
        if not role.spares:
            continue
        if role.may_be_absent or most != (role.tasks_min or 1):
            raise _wrong(role, "spares are for a role with a fixed number of tasks; one with a range grows instead")
        named = (*role.policies, *spec.tasks.policies)
        if not any(one.action in _RESTARTS and not _OF_LOSS.isdisjoint(one.events) for one in named):
            raise _wrong(role, "its spares are of no use: no policy restarts anything when a host is lost")


def _check_policies(policies: Sequence[common_pb2.TaskPolicy], whose: str, tasks: int) -> None:
    if len(policies) > POLICIES_MAX:
        raise Refused(f"{whose}: more than {POLICIES_MAX} policies")
    for policy in policies:
        if policy.action not in _ACTIONS:
            raise Refused(f"{whose}: a policy has no known action")
        if any(event not in _EVENTS for event in policy.events):
            raise Refused(f"{whose}: a policy is for an unknown event")
        if not (policy.events or policy.exit_codes):
            raise Refused(f"{whose}: a policy names neither an event nor an exit code")
        if 0 in policy.exit_codes:
            raise Refused(f"{whose}: a policy is for exit code 0, which is no failure")
        if not (math.isfinite(policy.timeout_s) and 0 <= policy.timeout_s <= TIME_MAX_S):
            raise Refused(f"{whose}: the timeout of a policy is no number of seconds")
        if policy.uncounted and (policy.timeout_s or policy.action not in _RESTARTS):
            raise Refused(f"{whose}: a policy whose restarts do not count restarts something, and at once")
        if policy.index_plus_one > tasks:
            raise Refused(f"{whose}: a policy is for task {policy.index_plus_one - 1}, which it does not have")


def _check_order(roles: Sequence[common_pb2.Role], names: set[str]) -> None:
    """Check that roles start after roles of the job, and none after itself."""
    after = {role.name: {*role.after, *role.after_done} for role in roles}
    for role in roles:
        unknown = sorted(after[role.name] - names)
        if unknown:
            raise _wrong(role, f"it is to start after {unknown[0][:80]}, which the job does not have")
    left = dict(after)
    while left:
        free = [name for name, before in left.items() if not before & left.keys()]
        if not free:
            raise Refused(f"Role {min(left)} would wait for itself: {', '.join(sorted(left))} start after each other")
        for name in free:
            del left[name]


def _check_autoscale(rule: jobs_pb2.Autoscale, roles: Mapping[str, common_pb2.Role]) -> None:
    role = roles.get(rule.role)
    if role is None:
        raise Refused(f"autoscale: the job has no role {rule.role[:80]}")
    least, most = 0 if role.may_be_absent else role.tasks_min, role.tasks_max or role.tasks_min
    if least >= most:
        raise Refused(f"autoscale: role {role.name} has {most} tasks, no range: its tasks should be such as 1-8")
    if rule.metric not in _METRICS:
        raise Refused(f"autoscale: unknown metric {rule.metric[:80]!r}: it is {' or '.join(_METRICS)}")
    if (rule.metric == "script") != bool(rule.command.strip()):
        raise Refused("autoscale: a script needs a command, and other metrics take none")
    if not least <= (rule.least or least) <= (rule.most or most) <= most:
        raise Refused(f"autoscale: min and max lie within the {least} to {most} tasks of role {role.name}")
    times = (rule.cooldown_s, rule.interval_s, rule.limit_s)
    if not all(math.isfinite(one) and 0 <= one <= TIME_MAX_S for one in times):
        raise Refused("autoscale: a time is no number of seconds")
    if rule.metric == "script" and (rule.interval_s < INTERVAL_MIN_S or not rule.limit_s):
        raise Refused("autoscale: the interval is at least a second, and a run of the script has a limit")


def _check_rules(rules: jobs_pb2.TaskRules) -> None:
    _check_policies(rules.policies, "The job", COUNT_MAX)
    if any(policy.index_plus_one for policy in rules.policies):
        raise Refused("The job: a policy for one task belongs to its role")
    if len(rules.final_codes) > CODES_MAX or len(rules.free_codes) > CODES_MAX:
        raise Refused(f"The job: more than {CODES_MAX} exit codes in one list")
    if rules.restarts_max > COUNT_MAX:
        raise Refused(f"The job: more than {COUNT_MAX} restarts")
    if not all(math.isfinite(one) and 0 <= one <= TIME_MAX_S for one in (rules.ttl_s, rules.replace_s)):
        raise Refused("The job: a time is no number of seconds")
    _check_pauses(rules, "The job")
    if any(b"\0" in entry or entry.find(b"=") < 1 for entry in rules.secrets):
        raise Refused("The job: its secrets take NAME=VALUE without NUL characters")
    for convention in rules.conventions:
        if not _NAME.fullmatch(convention.name):
            raise Refused(f"The job: bad name of a convention: {convention.name[:80]!r}")
