"""The lifecycle machine: what follows from the fate of tasks. No cluster is needed for it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from lavad.core.decide.tasks import machine
from lavad.core.decide.tasks.job_phases import TRANSITIONS, JobPhase, phase_of
from lavad.core.decide.tasks.steps import Conclude, Delay, Drop, Restart, Step
from lavad.core.model.task_rules import InPlace, Policy, RoleRules, TaskAction, TaskEvent, TaskKey, TaskPhase, TaskRules
from lavad.core.model.task_values import Delayed, Verdict
from lavad.core.state.tasks import GROUP, JOB, ROLE, TASK, JobTasks, TaskRecord
from protos.endings import sentence

A, E, P = TaskAction, TaskEvent, TaskPhase
PS, WORKER = 0, 1
NOW = 1000.0


def on(event: TaskEvent, action: TaskAction, timeout_s: float = 0.0) -> Policy:
    return Policy(action, frozenset({event}), timeout_s=timeout_s)


def job(workers: int = 3, ps: int = 1, rules: TaskRules | None = None) -> JobTasks:
    """A parameter-server job of which everything runs."""
    found = rules or TaskRules((RoleRules(), RoleRules()), restarts_max=2)
    tasks = JobTasks(found, ("ps", "worker"), (ps, workers), (ps, workers), (ps, workers))
    for role, count in ((PS, ps), (WORKER, workers)):
        for index in range(count):
            tasks.records[TaskKey(role, index)] = TaskRecord(P.RUNNING, f"h{index}", run=1, started=NOW)
    return tasks


def ruled(*policies: Policy, ps: RoleRules | None = None, worker: RoleRules | None = None, **rest: object) -> TaskRules:
    found = TaskRules((ps or RoleRules(), worker or RoleRules()), policies=policies, restarts_max=2)
    return replace(found, **rest)  # type: ignore[arg-type]


def end(tasks: JobTasks, task: TaskKey, code: int = 0, at: float = NOW) -> TaskKey:
    phase = P.EXITED if code else P.DONE
    tasks.records[task] = tasks.records[task]._replace(phase=phase, status=code << 8, ended=at)
    return task


def fails(tasks: JobTasks, role: int = WORKER, index: int = 0, code: int = 1) -> list[Step]:
    return machine.happened(tasks, end(tasks, TaskKey(role, index), code), E.FAILED, NOW)


def succeeds(tasks: JobTasks, role: int = WORKER, index: int = 0) -> list[Step]:
    return machine.happened(tasks, end(tasks, TaskKey(role, index)), E.SUCCEEDED, NOW)


def verdict_of(steps: Sequence[Step]) -> Verdict:
    found = [step.verdict for step in steps if isinstance(step, Conclude)]
    assert len(found) == 1, steps
    return found[0]


# -- without policies --------------------------------------------------------------------------------------------------


def test_without_policies_a_failed_task_stays_failed_and_the_others_go_on() -> None:
    """Volcano's default: nothing is restarted, and the job waits for the rest."""
    tasks = job()
    assert fails(tasks) == []
    assert machine.due(tasks) == ()
    assert machine.at_end(tasks) == []  # the others still run


def test_when_all_have_ended_and_enough_succeeded_the_job_is_done() -> None:
    """The least numbers of successes, of a role and of the job, are met in spite of one failure."""
    tasks = job(rules=ruled(worker=RoleRules(success_min=2), success_min=3))
    fails(tasks, index=0)
    for key in list(tasks.records)[:1] + list(tasks.records)[2:]:
        end(tasks, key)
    assert verdict_of(machine.at_end(tasks)).action is A.COMPLETE


def test_when_too_few_of_a_role_succeeded_the_job_has_the_status_of_the_first_failure() -> None:
    """The exit code of the job is that of the task that failed first, not of the first by index."""
    tasks = job(rules=ruled(worker=RoleRules(success_min=3)))
    end(tasks, TaskKey(PS, 0))
    end(tasks, TaskKey(WORKER, 0), 7, at=NOW + 5)
    end(tasks, TaskKey(WORKER, 1), 9, at=NOW + 1)
    end(tasks, TaskKey(WORKER, 2))
    found = verdict_of(machine.at_end(tasks))
    assert (found.action, found.status, found.reason) == (A.TERMINATE, 9 << 8, "too few tasks of role worker succeeded")


def test_enough_successes_complete_a_parameter_server_job_while_its_servers_run() -> None:
    """Servers never end by themselves: the workers' success ends the job."""
    tasks = job(workers=2, rules=ruled(worker=RoleRules(succeeded_enough=2)))
    assert succeeds(tasks, index=0) == []
    found = verdict_of(succeeds(tasks, index=1))
    assert (found.action, found.status) == (A.COMPLETE, 0)


def test_enough_failures_end_the_job_with_the_failed_tasks_code() -> None:
    """OpenPAI's minFailedInstances."""
    tasks = job(rules=ruled(worker=RoleRules(failed_enough=2)))
    assert fails(tasks, index=0, code=3) == []
    found = verdict_of(fails(tasks, index=2, code=4))
    assert (found.action, found.status) == (A.TERMINATE, 4 << 8)


def test_a_success_told_together_with_a_failure_does_not_hide_its_code() -> None:
    """One report may tell of both ends: the job has the code of the task that failed, whichever is looked at first."""
    tasks = job(rules=ruled(worker=RoleRules(failed_enough=1)))
    end(tasks, TaskKey(WORKER, 1), 3)
    found = verdict_of(succeeds(tasks, index=0))
    assert (found.action, found.status) == (A.TERMINATE, 3 << 8)


# -- events x actions --------------------------------------------------------------------------------------------------

RESTARTS = {A.RESTART_TASK: TASK, A.RESTART_GROUP: GROUP, A.RESTART_ROLE: ROLE, A.RESTART_JOB: JOB}
EVENTS = [event for event in E if event is not E.ANY]


def bring_about(tasks: JobTasks, event: TaskEvent) -> list[Step]:
    """Let the event happen to worker 1, as the core would show it in the records."""
    task = TaskKey(WORKER, 1)
    if event in (E.SUCCEEDED, E.ROLE_COMPLETED):
        for index in (0, 2) if event is E.ROLE_COMPLETED else ():
            end(tasks, TaskKey(WORKER, index))
        end(tasks, task)
        return machine.happened(tasks, task, E.SUCCEEDED, NOW)
    if event in (E.HANGS, E.TIMEOUT):
        return machine.happened(tasks, task, event, NOW)
    if event is E.PENDING:
        waiting = tasks.records[task]._replace(phase=P.WAITING)
        tasks.records[task] = waiting
        tasks.delayed = tuple(
            step.delayed for step in machine.waits(tasks, [task], NOW, NOW) if isinstance(step, Delay)
        )
        return machine.expired(tasks, NOW + 60)
    end(tasks, task, 1)
    return machine.happened(tasks, task, E.FAILED if event is E.ROLE_FAILED else event, NOW)


@pytest.mark.parametrize("level", ["role", "job"])
@pytest.mark.parametrize("action", [action for action in A if action is not A.RESUME])
@pytest.mark.parametrize("event", EVENTS)
def test_every_event_leads_to_every_action(event: TaskEvent, action: TaskAction, level: str) -> None:
    """Each cell of the matrix, by a policy of the role and of the job."""
    policy = on(event, action, timeout_s=30 if event is E.PENDING else 0)
    own = RoleRules(policies=(policy,) if level == "role" else (), group=2)
    if event is E.ROLE_FAILED:
        own = replace(own, in_place=InPlace.ON_FAILURE)
    tasks = job(rules=ruled(*[policy] * (level == "job"), worker=own))
    steps = [step for step in bring_about(tasks, event) if not isinstance(step, Drop)]
    if action is A.IGNORE:
        assert steps == []
    elif action in RESTARTS:
        assert [(step.scope, step.is_counted) for step in steps if isinstance(step, Restart)] == [
            (RESTARTS[action], True)
        ]
        first, second, third = (TaskKey(WORKER, index) for index in range(3))
        wanted = {TASK: {second}, GROUP: {first, second}, ROLE: {first, second, third}, JOB: set(tasks.records)}
        assert {key for step in steps if isinstance(step, Restart) for key in step.tasks} == wanted[RESTARTS[action]]
    else:
        assert verdict_of(steps).action is action
        assert (verdict_of(steps).status == 0) is (action is A.COMPLETE)


def test_restarts_in_place_are_counted_for_each_group() -> None:
    """Groups of two with a restart each: that of the first leaves the second its own."""
    role = RoleRules(in_place=InPlace.ON_FAILURE, restarts_max=1, failed_enough=1, group=2)
    tasks = job(rules=ruled(worker=role))
    tasks.restarts_in_place[tasks.group_of(TaskKey(WORKER, 0))] = 1
    assert [type(step) for step in fails(tasks, index=2)] == [Restart]
    assert verdict_of(fails(tasks, index=1)).action is A.TERMINATE


def test_a_restart_that_does_not_count_is_never_one_too_many() -> None:
    """A policy may leave the job its restarts: it restarts even with none left, and uses none up."""
    policy = Policy(A.RESTART_JOB, frozenset({E.FAILED}), is_counted=False)
    (step,) = fails(job(rules=ruled(policy, restarts_max=0)))
    assert isinstance(step, Restart)
    assert not step.is_counted


def test_the_success_of_each_role_may_be_needed() -> None:
    """One role that has enough waits for the others that are to have; a role that needs none counts for nothing."""
    rules = ruled(ps=RoleRules(succeeded_enough=1), worker=RoleRules(succeeded_enough=2), needs_each=True)
    tasks = job(rules=rules)
    assert succeeds(tasks, role=PS) == []
    assert succeeds(tasks, index=0) == []
    assert verdict_of(succeeds(tasks, index=2)).action is A.COMPLETE
    tasks = job(rules=replace(rules, roles=(RoleRules(), rules.roles[1])))
    succeeds(tasks, index=0)
    assert verdict_of(succeeds(tasks, index=2)).action is A.COMPLETE


def test_a_role_is_complete_at_the_size_that_its_user_has_set() -> None:
    """An elastic job that was scaled down does not wait for tasks that it is not to have."""
    complete = RoleRules(policies=(on(E.ROLE_COMPLETED, A.COMPLETE),))
    tasks = job(rules=ruled(worker=complete))
    assert succeeds(tasks, index=0) == []
    tasks.wishes = (1, 2)
    assert verdict_of(succeeds(tasks, index=1)).action is A.COMPLETE


def test_a_policy_for_any_event_takes_each_of_them() -> None:
    """The event * of Volcano."""
    for event in (E.FAILED, E.EVICTED, E.HOST_LOST, E.HANGS, E.SUCCEEDED):
        tasks = job(rules=ruled(on(E.ANY, A.TERMINATE)))
        assert verdict_of(bring_about(tasks, event)).action is A.TERMINATE


def test_a_policy_for_an_exit_code_takes_that_code_only() -> None:
    """137 restarts the job, 1 does not."""
    rules = ruled(Policy(A.RESTART_JOB, exit_codes=frozenset({137})))
    assert fails(job(rules=rules), code=1) == []
    assert [type(step) for step in fails(job(rules=rules), code=137)] == [Restart]


def test_the_roles_policy_comes_before_the_jobs_and_only_for_what_it_names() -> None:
    """A role's policy does not replace the job's for other events."""
    own = RoleRules(policies=(on(E.FAILED, A.IGNORE),))
    tasks = job(rules=ruled(on(E.ANY, A.RESTART_JOB), worker=own))
    assert fails(tasks) == []
    assert [type(step) for step in fails(tasks, role=PS)] == [Restart]
    assert [type(step) for step in machine.happened(tasks, TaskKey(WORKER, 1), E.EVICTED, NOW)] == [Restart]


def test_a_policy_may_be_about_one_task_of_its_role() -> None:
    """Worker 0 decides, as in a TFJob without a chief."""
    first = Policy(A.COMPLETE, frozenset({E.SUCCEEDED}), index=0)
    tasks = job(rules=ruled(worker=RoleRules(policies=(first,))))
    assert succeeds(tasks, index=1) == []
    assert verdict_of(succeeds(tasks, index=0)).action is A.COMPLETE


# -- restarts ----------------------------------------------------------------------------------------------------------


def test_restarts_are_counted_and_one_too_many_fails_the_job() -> None:
    """Two restarts are allowed: the third request ends the job with the task's code."""
    tasks = job(rules=ruled(on(E.FAILED, A.RESTART_JOB)))
    tasks.restarts = 2
    found = verdict_of(fails(tasks, code=5))
    assert (found.action, found.status) == (A.TERMINATE, 5 << 8)
    assert found.reason == "task worker[0] failed, after 2 restarts"


def test_a_final_code_is_never_restarted_and_a_free_one_never_counted() -> None:
    """Exit classes of OpenPAI: permanent and transient failures."""
    rules = ruled(on(E.FAILED, A.RESTART_JOB), final_codes=frozenset({93}), free_codes=frozenset({137}))
    assert verdict_of(fails(job(rules=rules), code=93)).reason == "exit code 93 is final"
    tasks = job(rules=rules)
    tasks.restarts = 2
    assert [(step.scope, step.is_counted) for step in fails(tasks, code=137) if isinstance(step, Restart)] == [
        (JOB, False)
    ]


def test_an_end_by_a_limit_of_the_job_is_counted_whatever_its_code() -> None:
    """A process killed for its memory exits with 137, which is free: to be restarted for it would never end."""
    rules = ruled(on(E.FAILED, A.RESTART_JOB), free_codes=frozenset({137}), restarts_max=0)
    tasks = job(rules=rules)
    key = end(tasks, TaskKey(WORKER, 0), 137)
    tasks.records[key] = tasks.records[key]._replace(reason=sentence("TERM_MEMLIMIT"))
    assert verdict_of(machine.happened(tasks, key, E.FAILED, NOW)).action is A.TERMINATE


def test_a_failed_job_is_restarted_where_its_rules_say_so() -> None:
    """OpenPAI's jobRetryCount."""
    tasks = job(rules=ruled(worker=RoleRules(failed_enough=1), restarts_when_failed=True, restarts_max=1))
    assert [type(step) for step in fails(tasks)] == [Restart]
    tasks.restarts = 1
    assert verdict_of(fails(tasks, index=1)).action is A.TERMINATE


def test_a_task_is_restarted_in_place_before_any_policy_hears_of_it() -> None:
    """Once used up, the policy for the role's failure is asked first."""
    own = RoleRules(in_place=InPlace.ON_FAILURE, restarts_max=1, policies=(on(E.ROLE_FAILED, A.TERMINATE),))
    tasks = job(rules=ruled(on(E.FAILED, A.RESTART_JOB), worker=own))
    first = TaskKey(WORKER, 0)
    assert fails(tasks) == [Restart(TASK, (first,), E.FAILED, in_place=True, cause=first)]
    tasks.restarts_in_place[TaskKey(WORKER, 0)] = 1
    assert verdict_of(fails(tasks, index=1)).action is A.TERMINATE


def lose(tasks: JobTasks, *indices: int) -> TaskKey:
    """The host of these workers was lost."""
    for index in indices:
        key = TaskKey(WORKER, index)
        lost = tasks.records[key]._replace(phase=P.EXITED, host="", was_on="h9", ended=NOW)
        tasks.records[key] = lost
    return TaskKey(WORKER, indices[0])


def test_a_restart_of_the_job_takes_tasks_along_that_have_lost_their_places() -> None:
    """Their new places are decided upon with the cluster at hand."""
    tasks = job(rules=ruled(on(E.HOST_LOST, A.RESTART_JOB)))
    (step,) = machine.happened(tasks, lose(tasks, 1), E.HOST_LOST, NOW)
    assert step == Restart(JOB, tuple(tasks.records), E.HOST_LOST)


def test_tasks_that_were_lost_with_one_host_are_restarted_by_one_restart() -> None:
    """Policy restart-task: as far as the rules say the same about them."""
    tasks = job(workers=4, rules=ruled(on(E.HOST_LOST, A.RESTART_TASK)))
    (step,) = machine.happened(tasks, lose(tasks, 1, 2), E.HOST_LOST, NOW)
    assert step == Restart(TASK, (TaskKey(WORKER, 1), TaskKey(WORKER, 2)), E.HOST_LOST)


def test_no_task_starts_while_a_restart_of_the_job_ends_the_others() -> None:
    """All tasks of the new round start together, with the same peers."""
    tasks = job(workers=2)
    going = tasks.records[TaskKey(PS, 0)]
    tasks.records[TaskKey(PS, 0)] = going._replace(phase=P.STOPPING, again=True, waits_for_all=True)
    for index in range(2):
        key = TaskKey(WORKER, index)
        tasks.records[key] = tasks.records[key]._replace(phase=P.WAITING, waits_for_all=True)
    assert machine.due(tasks) == ()
    assert phase_of(tasks) is JobPhase.RESTARTING
    tasks.records[TaskKey(PS, 0)] = going._replace(phase=P.WAITING, waits_for_all=True)
    assert len(machine.due(tasks)) == 3


# -- order of start ----------------------------------------------------------------------------------------------------


def test_a_role_starts_when_those_before_it_are_ready() -> None:
    """Ready: as many run as the role needs at least."""
    tasks = job(workers=3, rules=ruled(ps=RoleRules(after=(WORKER,))))
    tasks.least = (1, 2)
    for key in tasks.records:
        tasks.records[key] = tasks.records[key]._replace(phase=P.WAITING)
    assert {key.role for key in machine.due(tasks)} == {WORKER}
    for index in range(2):
        tasks.records[TaskKey(WORKER, index)] = tasks.records[TaskKey(WORKER, index)]._replace(phase=P.RUNNING)
    assert TaskKey(PS, 0) in machine.due(tasks)


def test_a_role_starts_when_all_tasks_of_those_before_it_have_succeeded() -> None:
    """Running is not enough, nor is a part of them; a role that it is to follow ready counts beside that."""
    tasks = job(workers=2, rules=ruled(ps=RoleRules(after_done=(WORKER,))))
    tasks.records[TaskKey(PS, 0)] = TaskRecord(host="h0")
    assert machine.due(tasks) == ()
    end(tasks, TaskKey(WORKER, 0), 0)
    assert machine.due(tasks) == ()
    end(tasks, TaskKey(WORKER, 1), 0)
    assert machine.due(tasks) == (TaskKey(PS, 0),)
    assert machine.at_end(tasks) == []


def test_a_role_that_could_grow_is_done_with_the_tasks_that_it_has() -> None:
    """A task without a place yet does not keep others waiting; one that is to be started anew does."""
    tasks = job(workers=3, rules=ruled(ps=RoleRules(after_done=(WORKER,))))
    tasks.least = (1, 1)
    tasks.records[TaskKey(PS, 0)] = TaskRecord(host="h0")
    tasks.records[TaskKey(WORKER, 2)] = TaskRecord()
    end(tasks, TaskKey(WORKER, 0), 0)
    tasks.records[TaskKey(WORKER, 1)] = TaskRecord(host="h0")
    assert TaskKey(PS, 0) not in machine.due(tasks)
    end(tasks, TaskKey(WORKER, 1), 0)
    assert machine.due(tasks) == (TaskKey(PS, 0),)


@pytest.mark.parametrize("rule", [RoleRules(after_done=(WORKER,)), RoleRules(after_done=(WORKER,), success_min=1)])
def test_a_role_whose_forerunner_failed_fails_the_job(rule: RoleRules) -> None:
    """It can never start; the job does not wait for it."""
    tasks = job(workers=2, rules=ruled(ps=rule))
    tasks.records[TaskKey(PS, 0)] = TaskRecord(host="h0")
    end(tasks, TaskKey(WORKER, 0), 0)
    end(tasks, TaskKey(WORKER, 1), 2)
    found = machine.at_end(tasks)
    assert [type(one) for one in found] == [machine.Conclude]


def test_a_role_that_can_never_start_fails_the_job_when_all_others_have_ended() -> None:
    """Otherwise such a job would wait for ever."""
    tasks = job(workers=1, rules=ruled(ps=RoleRules(after=(WORKER,), success_min=1)))
    tasks.records[TaskKey(PS, 0)] = TaskRecord(host="h0")
    end(tasks, TaskKey(WORKER, 0), 2)
    found = verdict_of(machine.at_end(tasks))
    assert (found.action, found.status) == (A.TERMINATE, 2 << 8)


# -- time --------------------------------------------------------------------------------------------------------------


def test_a_delayed_action_is_dropped_when_the_task_runs_again() -> None:
    """RestartTask first, RestartJob if it is not back in ten minutes."""
    tasks = job(rules=ruled(on(E.EVICTED, A.RESTART_JOB, timeout_s=600)))
    task = TaskKey(WORKER, 0)
    tasks.records[task] = tasks.records[task]._replace(phase=P.EXITED, host="")
    (step,) = machine.happened(tasks, task, E.EVICTED, NOW)
    assert step == Delay(Delayed(NOW + 600, A.RESTART_JOB, E.EVICTED, task))
    tasks.delayed = (step.delayed,)
    assert machine.expired(tasks, NOW + 599) == []
    assert machine.runs(tasks, task) == [Drop(tasks.delayed)]
    assert [type(one) for one in machine.expired(tasks, NOW + 600)] == [Restart, Drop]


def test_waiting_too_long_needs_a_time() -> None:
    """Without a timeout the policy would act at once on every task."""
    tasks = job(rules=ruled(on(E.PENDING, A.TERMINATE)))
    assert machine.waits(tasks, tasks.records, NOW, NOW) == []


def test_an_expired_action_at_one_task_leaves_those_at_others() -> None:
    """Only what the action makes void is dropped."""
    tasks = job()
    tasks.delayed = tuple(Delayed(NOW + index, A.RESTART_TASK, E.FAILED, TaskKey(WORKER, index)) for index in range(2))
    steps = machine.expired(tasks, NOW)
    assert steps == [
        Restart(TASK, (TaskKey(WORKER, 0),), E.FAILED, cause=TaskKey(WORKER, 0)),
        Drop(tasks.delayed[:1]),
    ]


# -- the end -----------------------------------------------------------------------------------------------------------


def test_nothing_follows_once_the_job_is_concluded() -> None:
    """Tasks that fail because they are being ended change nothing."""
    tasks = job(rules=ruled(on(E.ANY, A.RESTART_JOB)))
    tasks.verdict = Verdict(A.COMPLETE)
    assert fails(tasks) == []
    assert machine.due(tasks) == ()
    assert phase_of(tasks) is JobPhase.COMPLETING


def test_an_aborted_job_can_be_resumed_by_hand_or_by_a_policy() -> None:
    """ResumeJob acts on aborted jobs only."""
    tasks = job(rules=ruled(on(E.EVICTED, A.RESUME)))
    assert machine.resumed(tasks) == []
    tasks.verdict = Verdict(A.ABORT, 256)
    assert verdict_of(machine.resumed(tasks)).action is A.RESTART_JOB
    task = end(tasks, TaskKey(WORKER, 0), 1)
    assert verdict_of(machine.happened(tasks, task, E.EVICTED, NOW)).action is A.RESTART_JOB
    assert machine.happened(tasks, task, E.FAILED, NOW) == []


def test_each_action_has_an_effect_only_in_the_phases_of_the_table() -> None:
    """The table decides, in every phase in which tasks are alive."""
    states = {
        JobPhase.ACTIVE: job(),
        JobPhase.RESTARTING: job(),
        JobPhase.ABORTING: job(),
        JobPhase.TERMINATING: job(),
        JobPhase.COMPLETING: job(),
    }
    first = TaskKey(WORKER, 0)
    restarting = states[JobPhase.RESTARTING].records
    restarting[first] = restarting[first]._replace(phase=P.STOPPING, again=True)
    for phase, action in (
        (JobPhase.ABORTING, A.ABORT),
        (JobPhase.TERMINATING, A.TERMINATE),
        (JobPhase.COMPLETING, A.COMPLETE),
    ):
        states[phase].verdict = Verdict(action)
    for phase, tasks in states.items():
        assert phase_of(tasks) is phase
        for action in (A.RESTART_TASK, A.RESTART_ROLE, A.RESTART_JOB, A.ABORT, A.TERMINATE, A.COMPLETE):
            assert bool(machine.act(tasks, action, first, E.EVICTED)) is ((phase, action) in TRANSITIONS), (
                phase,
                action,
            )
