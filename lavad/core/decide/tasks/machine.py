"""Lifecycle of a job of tasks: the steps that follow from what happens to its tasks. Pure.

Order of decision for one event, after Volcano and OpenPAI's FrameworkController (workload-specs.md 1.2, 1.3, 3.4):
restarts in place; the first policy of the role, then of the job; then the counts. Once the job is concluded, nothing
follows from an event any more, but an aborted job can be resumed. A restart of the whole job, of a role or of a task by
a policy counts as one restart of the job; one more than allowed is its failure. All tasks lost with one host are
restarted together, whatever their places are to be.
"""

from collections.abc import Iterable

from lavad.core.decide.tasks import policies
from lavad.core.decide.tasks.job_phases import is_effective
from lavad.core.decide.tasks.steps import Conclude, Delay, Drop, Restart, Step
from lavad.core.model import Launch
from lavad.core.model.reasons import LIMITS_OF_JOBS
from lavad.core.model.task_rules import InPlace, TaskAction, TaskEvent, TaskKey, TaskPhase
from lavad.core.model.task_values import Delayed, Verdict
from lavad.core.model.windows import NEVER
from lavad.core.state.attempts import exit_code
from lavad.core.state.tasks import GROUP, JOB, ROLE, TASK, JobTasks, TaskRecord

A, E, P = TaskAction, TaskEvent, TaskPhase
FAILED_STATUS = 1 << 8  # wait status of a job that fails without a failed task: exit code 1
_SCOPES = {A.RESTART_TASK: TASK, A.RESTART_GROUP: GROUP, A.RESTART_ROLE: ROLE, A.RESTART_JOB: JOB}
QUICK_RESTARTS = 10  # of a role in place; after them each task begins once a second at most
SPACING_S = 1.0
# Ends of a task that are its own: pauses before the restarts that follow them grow.
_OWN_ENDS = frozenset({E.FAILED, E.ROLE_FAILED, E.TIMEOUT, E.HANGS, E.SUCCEEDED, E.ROLE_COMPLETED})


# -- events ------------------------------------------------------------------------------------------------------------


def happened(tasks: JobTasks, task: TaskKey, event: TaskEvent, now: float) -> list[Step]:
    """Steps after an event of a task, whose record shows it already."""
    if tasks.verdict is not None:
        return _after_verdict(tasks, task, event)
    if event is E.HOST_LOST and tasks.records[task].phase is P.WAITING:
        return _taken_along(tasks, task)
    again = _in_place(tasks, task, event)
    if again is not None:
        return [again]
    for one in _events_of(tasks, task, event):
        policy = policies.policy_for(tasks.rules, task, one, _code_of(tasks, task))
        if policy is not None and policy.timeout_s:
            return [Delay(Delayed(now + policy.timeout_s, policy.action, one, task))]
        if policy is not None and (steps := act(tasks, policy.action, task, one, policy.is_counted)):
            return steps
    return _by_counts(tasks, task) if event is not E.HANGS else []


def _after_verdict(tasks: JobTasks, task: TaskKey, event: TaskEvent) -> list[Step]:
    named = (*tasks.rules.roles[task.role].policies, *tasks.rules.policies)
    if is_effective(tasks, A.RESUME) and policies.resumes(named, event):
        return [Conclude(Verdict(A.RESTART_JOB, reason=f"resumed: {event.name}"))]
    return []


def _taken_along(tasks: JobTasks, task: TaskKey) -> list[Step]:
    """Steps for a task that was to be started anew when its host was lost: it still is, with those lost beside it."""
    if task in tasks.displaced:
        return []
    lost = [key for key, one in tasks.records.items() if one.phase is P.WAITING and one.was_on and not one.host]
    mine = tasks.records[task].waits_for_all
    keys = tuple([key for key in lost if tasks.records[key].waits_for_all is mine and key not in tasks.displaced])
    return [Restart(JOB if mine else TASK, keys, E.HOST_LOST, is_counted=False)]


def _events_of(tasks: JobTasks, task: TaskKey, event: TaskEvent) -> tuple[TaskEvent, ...]:
    """The event, preceded by the event of its role that it completes."""
    if event is E.SUCCEEDED and tasks.count(task.role, [P.DONE]) >= tasks.wanted(task.role):
        return E.SUCCEEDED, E.ROLE_COMPLETED
    role = tasks.rules.roles[task.role]
    if event is E.FAILED and role.in_place is not InPlace.NEVER:
        return E.ROLE_FAILED, E.FAILED
    return (event,)


def _in_place(tasks: JobTasks, task: TaskKey, event: TaskEvent) -> Restart | None:
    """Restart of a task by its role's own rule, as long as that allows it."""
    role, record = tasks.rules.roles[task.role], tasks.records[task]
    wanted = (E.FAILED, E.SUCCEEDED) if role.in_place is InPlace.ALWAYS else (E.FAILED,)
    if role.in_place is InPlace.NEVER or event not in wanted or not record.host:
        return None
    if event is E.FAILED and exit_code(record.status) in tasks.rules.final_codes:
        return None
    if tasks.restarts_in_place.get(tasks.group_of(task), 0) >= role.restarts_max:
        return None
    return Restart(TASK, (task,), event, in_place=True, cause=task)


def _code_of(tasks: JobTasks, task: TaskKey) -> int:
    return exit_code(tasks.records[task].status)


# -- actions -----------------------------------------------------------------------------------------------------------


def act(tasks: JobTasks, action: TaskAction, task: TaskKey, event: TaskEvent, is_counted: bool = True) -> list[Step]:
    """Steps of an action at that task, with those delayed actions dropped that it makes void; none if it has no effect
    in the job's phase. ``is_counted``: a restart counts."""
    if not is_effective(tasks, action):
        return []
    name = told(tasks, task, event)
    step: Step
    if action in _SCOPES:
        step = _restart(tasks, _SCOPES[action], task, event, name, is_counted)
    else:
        status = 0 if action is A.COMPLETE else tasks.records[task].status or FAILED_STATUS
        step = Conclude(Verdict(action, status, name))
    void = tuple(one for one in tasks.delayed if _is_void(one, step))
    return [step, Drop(void)] if void else [step]


_WORDS = {
    E.FAILED: "task {0} failed",
    E.EVICTED: "task {0} lost its place",
    E.PENDING: "task {0} waited too long",
    E.SUCCEEDED: "task {0} succeeded",
    E.ROLE_COMPLETED: "all tasks of role {1} succeeded",
    E.ROLE_FAILED: "role {1} used up its restarts",
    E.HOST_LOST: "the host of task {0} was lost",
    E.HANGS: "task {0} hangs",
    E.TIMEOUT: "task {0} ran for too long",
}


def told(tasks: JobTasks, task: TaskKey, event: TaskEvent) -> str:
    """The event in words, for the job's history."""
    return _WORDS[event].format(tasks.label(task), tasks.names[task.role])


def _is_void(delayed: Delayed, step: Step) -> bool:
    """True if a step makes a delayed action void: it ends the job, or starts the action's task anew."""
    return not isinstance(step, Restart) or delayed.task in step.tasks


def _after(restarts: int) -> str:
    return f", after {restarts} restart{'s' * (restarts > 1)}" if restarts else ""


def _restart(tasks: JobTasks, scope: str, task: TaskKey, event: TaskEvent, name: str, may_count: bool = True) -> Step:
    """Restart within the bounds of the rules; else the job fails."""
    status, code = tasks.records[task].status or FAILED_STATUS, _code_of(tasks, task)
    # An end by a limit of the job's own counts whatever its exit code: to run into it again would never end.
    is_free = code in tasks.rules.free_codes and not tasks.records[task].reason.startswith(LIMITS_OF_JOBS)
    is_counted = may_count and not is_free
    if event is E.FAILED and code in tasks.rules.final_codes:
        return Conclude(Verdict(A.TERMINATE, status, f"exit code {code} is final"))
    if is_counted and tasks.restarts >= tasks.rules.restarts_max:
        return Conclude(Verdict(A.TERMINATE, status, f"{name}{_after(tasks.restarts)}"))
    if scope in (TASK, GROUP) and tasks.launches and tasks.launches[task.role] is Launch.FIRST:
        scope = ROLE  # one process stands for all of its tasks
    keys = tuple(_scope(tasks, scope, task, event))
    return Restart(scope, keys, event, is_counted, cause=task if event in _OWN_ENDS else None)


def _scope(tasks: JobTasks, scope: str, task: TaskKey, event: TaskEvent) -> Iterable[TaskKey]:
    if scope == TASK:
        return _lost_beside(tasks, task) if event is E.HOST_LOST else (task,)
    if scope == GROUP:
        mine = tasks.group_of(task)
        return (key for key, one in tasks.of_role(task.role) if tasks.group_of(key) == mine and _has_part(one))
    return (key for key, one in tasks.records.items() if (scope == JOB or key.role == task.role) and _has_part(one))


def _lost_beside(tasks: JobTasks, task: TaskKey) -> Iterable[TaskKey]:
    """The task and those lost with the same host for which the rules say the same."""
    mine, policy = tasks.records[task], policies.policy_for(tasks.rules, task, E.HOST_LOST)
    for key, one in tasks.records.items():
        is_lost = one.phase is P.EXITED and (one.was_on, one.ended) == (mine.was_on, mine.ended) and not one.host
        if key == task or (is_lost and policies.policy_for(tasks.rules, key, E.HOST_LOST) == policy):
            yield key


def _has_part(record: TaskRecord) -> bool:
    """True unless the task is not in this size of the job: it has no place yet, or has given it up."""
    return not record.leaves and bool(record.host or record.was_on or record.phase is not P.WAITING)


# -- counts ------------------------------------------------------------------------------------------------------------


def _by_counts(tasks: JobTasks, task: TaskKey) -> list[Step]:
    """End of the job by the numbers of tasks that have failed or succeeded, whatever others still do."""
    role = tasks.rules.roles[task.role]
    failed, done = tasks.count(task.role, [P.EXITED]), tasks.count(task.role, [P.DONE])
    if role.failed_enough and failed >= role.failed_enough:
        last = _last_failed(tasks, task)
        return [_failure(tasks, last, f"{failed} of the tasks of role {tasks.names[task.role]} failed")]
    if role.succeeded_enough and done >= role.succeeded_enough and _others_have_enough(tasks):
        return [Conclude(Verdict(A.COMPLETE, 0, f"{done} of the tasks of role {tasks.names[task.role]} succeeded"))]
    total = tasks.total(P.DONE)
    if tasks.rules.succeeded_enough and total >= tasks.rules.succeeded_enough:
        return [Conclude(Verdict(A.COMPLETE, 0, f"{total} of the tasks succeeded"))]
    return []


def _others_have_enough(tasks: JobTasks) -> bool:
    """True unless the success of a role waits for that of others."""
    return not tasks.rules.needs_each or all(
        tasks.count(number, [P.DONE]) >= role.succeeded_enough for number, role in enumerate(tasks.rules.roles)
    )


def _last_failed(tasks: JobTasks, task: TaskKey) -> TaskKey:
    """The failed task of the role that ended last: another than this one, where one report told of both their ends."""
    if tasks.records[task].phase is P.EXITED:
        return task
    return max((record.ended, key) for key, record in tasks.of_role(task.role) if record.phase is P.EXITED)[1]


def _failure(tasks: JobTasks, task: TaskKey, reason: str) -> Step:
    """Failure of the job: a restart if its rules want one and allow it."""
    if tasks.rules.restarts_when_failed:
        return _restart(tasks, JOB, task, E.FAILED, reason)
    return Conclude(Verdict(A.TERMINATE, tasks.records[task].status or FAILED_STATUS, reason))


def at_end(tasks: JobTasks) -> list[Step]:
    """Steps when no task is alive or can be started, and nothing has concluded the job before."""
    if tasks.verdict is not None or not tasks.records or not is_over(tasks):
        return []
    short = next((role for role in range(len(tasks.rules.roles)) if _is_short(tasks, role)), None)
    total = tasks.total(P.DONE)
    if short is None and total >= tasks.rules.success_min:
        return [Conclude(Verdict(A.COMPLETE))]
    of = f" of role {tasks.names[short]}" if short is not None else ""
    return [_failure(tasks, _first_failed(tasks), f"too few tasks{of} succeeded")]


def is_over(tasks: JobTasks) -> bool:
    """True if nothing of the job is alive, and nothing is to be started."""
    return not (tasks.records.alive or is_to_go_on(tasks))


def is_to_go_on(tasks: JobTasks) -> bool:
    """True if something is to be started, or to be done, now or later."""
    return bool(tasks.delayed or tasks.replacement or due(tasks) or _owes(tasks))


def _owes(tasks: JobTasks) -> bool:
    """True if a task without a place is to run when it gets one."""
    owing = [role for role in range(len(tasks.sizes)) if tasks.owed(role)]
    return bool(owing) and any(role in _following(tasks) for role in owing)


def _is_short(tasks: JobTasks, role: int) -> bool:
    wanted = tasks.rules.roles[role].success_min
    if tasks.rules.roles[role].completions:  # its user may want fewer since
        wanted = min(wanted, tasks.wanted(role))
    return tasks.count(role, [P.DONE]) < wanted


def _first_failed(tasks: JobTasks) -> TaskKey:
    """The task that failed first; if none did, the first one that has not succeeded, or any."""
    failed = [(record.ended, key) for key, record in tasks.records.items() if record.phase is P.EXITED]
    if failed:
        return min(failed)[1]
    left = [key for key, record in tasks.records.items() if record.phase is not P.DONE]
    return next(iter(left or tasks.records))


# -- starts ------------------------------------------------------------------------------------------------------------


def due(tasks: JobTasks, now: float = NEVER) -> tuple[TaskKey, ...]:
    """Tasks that may start by now: placed, not started yet, with the roles ready, or done, that theirs is to follow.

    While a restart of the job or of a role ends its tasks, or some of them wait for another host, none of these is
    started: all start with the same peers. Without a time pauses do not count.
    """
    if tasks.verdict is not None or not tasks.records.waiting:
        return ()
    waits = bool(tasks.records.held_back) or any(tasks.records[key].waits_for_all for key in tasks.displaced)
    if waits and not tasks.records.waiting_alone:
        return ()
    roles = _following(tasks)
    found = ((key, tasks.records[key]) for key in sorted(tasks.records.waiting) if key.role in roles)
    return tuple([key for key, one in found if one.not_before <= now and not (waits and one.waits_for_all)])


def _following(tasks: JobTasks) -> set[int]:
    """Roles whose tasks may start: those that they are to follow are ready, or done."""
    ready = {role: is_ready(tasks, role) for role in {one for role in tasks.rules.roles for one in role.after}}
    done = {role: _is_done(tasks, role) for role in {one for role in tasks.rules.roles for one in role.after_done}}
    return {role for role in range(len(tasks.sizes)) if _may_follow(tasks, role, ready, done)}


def _may_follow(tasks: JobTasks, role: int, ready: dict[int, bool], done: dict[int, bool]) -> bool:
    rule = tasks.rules.roles[role]
    if not all(done[one] for one in rule.after_done):
        return False
    if not rule.after:
        return True
    found = [ready[one] for one in rule.after]
    return any(found) if rule.after_any else all(found)


def is_ready(tasks: JobTasks, role: int) -> bool:
    """True if as many tasks of a role as it needs at least are running or have succeeded."""
    return tasks.count(role, [P.RUNNING, P.DONE]) >= max(tasks.least[role], 1)


def _is_done(tasks: JobTasks, role: int) -> bool:
    """True if all tasks that a role has in this size of the job have succeeded, as many as it needs at least."""
    owed = tasks.wanted(role) if tasks.rules.roles[role].completions else 0
    if tasks.count(role, [P.DONE]) < max(owed, tasks.least[role]):  # spares a walk over the tasks for most reports
        return False
    return all(one.phase is P.DONE for _, one in tasks.of_role(role) if _has_part(one))


def next_places(tasks: JobTasks) -> tuple[tuple[TaskKey, TaskKey], ...]:
    """Places of ended tasks that others wait for: the ended task, and the next of its role."""
    if not tasks.records.idle or tasks.verdict is not None:
        return ()
    found: list[tuple[TaskKey, TaskKey]] = []
    delayed = {one.task for one in tasks.delayed}
    for role in range(len(tasks.sizes)):
        owed = tasks.owed(role)
        ended = sorted(key for key in tasks.records.idle - delayed if key.role == role) if owed else ()
        ended = [key for key in ended if not tasks.records[key].leaves][:owed]
        waiting = tasks.records.unplaced[role] if ended else ()
        indices = [min(waiting)] if len(ended) == 1 else sorted(waiting)
        found += [(key, TaskKey(role, index)) for key, index in zip(ended, indices, strict=False)]
    return tuple(found)


# -- time --------------------------------------------------------------------------------------------------------------


def waits(tasks: JobTasks, keys: Iterable[TaskKey], since: float, now: float) -> list[Step]:
    """Steps for tasks of a job that is dispatched, and waits since a time before: their policies for that, delayed.

    A restart that was due in the queue is due again after the same time.
    """
    found: list[Step] = []
    for key in keys:
        policy = policies.policy_for(tasks.rules, key, E.PENDING)
        if policy is not None and tasks.verdict is None:
            at = since + policy.timeout_s
            if policy.action in _SCOPES and at <= now:
                at += policy.timeout_s * ((now - at) // policy.timeout_s + 1)
            found.append(Delay(Delayed(at, policy.action, E.PENDING, key)))
    return found


def runs(tasks: JobTasks, key: TaskKey) -> list[Step]:
    """Steps when a task runs: delayed actions at it are dropped."""
    void = tuple(one for one in tasks.delayed if one.task == key)
    return [Drop(void)] if void else []


def expired(tasks: JobTasks, now: float) -> list[Step]:
    """Steps of the first delayed action whose time has come; none before."""
    for one in tasks.delayed:
        if one.at <= now:
            known = [step for step in act(tasks, one.action, one.task, one.event) if not isinstance(step, Drop)]
            rest = tuple(other for other in tasks.delayed if other == one or (known and _is_void(other, known[0])))
            return [*known, Drop(rest)]
    return []


def pause(tasks: JobTasks, cause: TaskKey | None, now: float) -> tuple[float, int]:
    """End of the pause before a restart, and the number of failures of its cause in a row; (0, 0) without a pause.

    The pause doubles with each failure up to its maximum. A run that lasted begins a new row. Where tasks are started
    anew however they end, each end counts.
    """
    if cause is None:
        return 0.0, 0
    role = tasks.rules.roles[cause.role]
    rules = role if role.pause_s else tasks.rules
    if not rules.pause_s:
        return 0.0, 0
    record = tasks.records[cause]
    until = now if record.is_alive else record.ended  # one that hangs, or that its time limit ends, still runs
    was_stable = record.started and until - record.started >= rules.stable_s
    failures = 1 if was_stable else record.failures + 1
    return now + min(rules.pause_max_s, rules.pause_s * 2.0 ** min(failures - 1, 60)), failures


def spaced(tasks: JobTasks, step: Restart, now: float) -> float:
    """Earliest start of a task that restarts in place over and over: a second after its last start, or after the end of
    a run that never had a process; 0: at once."""
    if not step.in_place or tasks.restarts_in_place.get(tasks.group_of(step.tasks[0]), 0) < QUICK_RESTARTS:
        return 0.0
    last = [tasks.records[key].started or tasks.records[key].ended for key in step.tasks]
    at = min(now, max(last)) + SPACING_S
    return at if at > now else 0.0


def unreplaced(tasks: JobTasks, now: float) -> list[Step]:
    """Steps when no host has replaced a lost one in time: the job is dispatched anew, as a whole."""
    awaited = tasks.replacement
    if awaited is None or now < awaited.until:
        return []
    status = next((tasks.records[key].status for key in awaited.tasks if tasks.records[key].status), FAILED_STATUS)
    reason = f"no host replaced {', '.join(awaited.hosts)} within {tasks.rules.replace_s:.0f} s"
    return [Conclude(Verdict(A.RESTART_JOB, status, reason, is_counted=False))]


def resumed(tasks: JobTasks) -> list[Conclude]:
    """Steps that resume an aborted job: it is dispatched anew, which counts as a restart."""
    if not is_effective(tasks, A.RESUME):
        return []
    return [Conclude(Verdict(A.RESTART_JOB, reason="resumed"))]
