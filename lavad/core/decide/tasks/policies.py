"""Choice of the lifecycle policy for an event: the role's policies in order, then the job's (workload-specs.md 1.2)."""

from collections.abc import Iterable

from lavad.core.model.task_rules import Policy, TaskAction, TaskEvent, TaskKey, TaskRules

NO_CODE = 0  # an exit code of 0 is no failure, so that no policy can name it


def policy_for(rules: TaskRules, task: TaskKey, event: TaskEvent, code: int = NO_CODE) -> Policy | None:
    """First policy for an event of that task, or of its role; None if the rules say nothing about it."""
    candidates = (*rules.roles[task.role].policies, *rules.policies)
    return next((one for one in candidates if _matches(one, task, event, code)), None)


def _matches(policy: Policy, task: TaskKey, event: TaskEvent, code: int) -> bool:
    if policy.index not in (-1, task.index):
        return False
    if event is TaskEvent.PENDING and not policy.timeout_s:  # it would act at once on every task
        return False
    if policy.action is TaskAction.RESUME:
        return False
    is_named = event in policy.events or TaskEvent.ANY in policy.events
    return is_named or (event is TaskEvent.FAILED and code in policy.exit_codes)


def resumes(policies: Iterable[Policy], event: TaskEvent) -> bool:
    """True if one of these policies resumes an aborted job at that event."""
    return any(
        one.action is TaskAction.RESUME and (event in one.events or TaskEvent.ANY in one.events) for one in policies
    )
