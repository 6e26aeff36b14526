"""A job of tasks from its dispatch to its end: orders to its hosts, their reports, and what becomes of the job."""

from dataclasses import replace
from typing import Any

import pytest

from lavad.core import commands as c
from lavad.core.model import JobState, Key
from lavad.core.model.reasons import Refused
from lavad.core.model.task_rules import TaskAction, TaskEvent, TaskKey, TaskPhase
from lavad.core.model.task_values import RolePart, TaskReport, TaskRun
from lavad.core.model.usage import HostUsage
from lavad.core.orders import LaunchOrder, ReleaseOrder, SignalOrder, StageOrder, TasksOrder
from lavad.core.task_events import TasksRestarted
from protos.common_pb2 import Role
from tests.builders import ANN, BOB, a_host
from tests.task_jobs import (
    FIRST,
    HOST,
    NONE,
    TaskStory,
    a_policy,
    a_task_role,
    a_task_spec,
    starts,
    stops,
    submission,
)

A, E, P, S = TaskAction, TaskEvent, TaskPhase, JobState
PS, WORKER = 0, 1


def a_story(hosts: int = 3, slots: int = 2) -> TaskStory:
    return TaskStory(*(a_host(f"h{number}", slots) for number in range(1, hosts + 1)))


def ps_and_workers(workers: int = 3, **worker: Any) -> tuple[Role, Role]:
    return a_task_role("ps"), a_task_role("worker", workers, **worker)


# -- start -------------------------------------------------------------------------------------------------------------


def test_all_hosts_stage_before_any_task_starts() -> None:
    """Stage orders name each host's tasks; the table with all ports and addresses comes with the starts."""
    story = a_story()
    job = story.do(submission(a_task_spec(*ps_and_workers()))).reply.job
    stages = [one for one in story.plan() if isinstance(one, StageOrder)]
    assert [(one.host, one.tasks, one.launch_now) for one in stages] == [
        ("h1", (RolePart(0, (0,)), RolePart(1, (0,))), False),
        ("h2", (RolePart(1, (1, 2)),), False),
    ]
    orders = story.stage(story.key(job))
    assert not any(isinstance(one, LaunchOrder) for one in orders)
    assert starts(orders) == {"h1": [(0, 0, 1), (1, 0, 1)], "h2": [(1, 1, 1), (1, 2, 1)]}
    table = next(one.table for one in orders if isinstance(one, TasksOrder))
    assert [(one.host, one.address) for one in table] == [("h1", "10.0.0.1"), ("h2", "10.0.0.2")]
    assert table[1].parts == (RolePart(1, (1, 2), (9000, 9001, 9002, 9003)),)


def test_a_job_on_one_host_is_staged_first_as_well() -> None:
    """Its ports must be known before its tasks start."""
    story = a_story(1, 4)
    job = story.do(submission(a_task_spec(a_task_role(tasks=2)))).reply.job
    (stage,) = story.plan()
    assert isinstance(stage, StageOrder)
    assert not stage.launch_now
    assert starts(story.stage(story.key(job))) == {"h1": [(0, 0, 1), (0, 1, 1)]}


def test_the_first_task_that_runs_starts_the_job() -> None:
    """The job is in RUN with the first report, and done when all tasks have succeeded."""
    story = a_story()
    key = story.begin(*ps_and_workers())
    assert story.state(key.job) is S.STAGING
    story.runs(key, (1, 1))
    assert story.state(key.job) is S.RUN
    assert story.job(key.job).attempt.pid == 4001  # type: ignore[union-attr]
    story.runs(key)
    assert story.phases(key) == "RRRR"
    for index in range(3):
        story.ends(key, WORKER, index)
    assert story.state(key.job) is S.RUN
    orders = story.ends(key, PS, 0).orders
    assert story.state(key.job) is S.DONE
    assert {one.host for one in orders if isinstance(one, ReleaseOrder)} == {"h1", "h2"}


def test_roles_start_after_those_that_they_need() -> None:
    """The launcher is ordered when all workers run."""
    story = a_story()
    key = story.begin(a_task_role("launcher", after=["worker"]), a_task_role("worker", 3))
    assert story.phases(key) == "WSSS"
    assert starts(story.runs(key, (1, 0), (1, 1)).orders) == {}
    assert starts(story.runs(key, (1, 2)).orders) == {"h1": [(0, 0, 1)]}


def test_a_role_starts_when_another_is_done() -> None:
    """The evaluation is ordered with the end of the last worker, and the job ends with it."""
    story = a_story()
    key = story.begin(a_task_role("train", 2), a_task_role("evaluate", after_done=["train"]))
    story.runs(key, (0, 0), (0, 1))
    assert starts(story.ends(key, 0, 0).orders) == {}
    assert story.phases(key) == "DRW"
    (ordered,) = starts(story.ends(key, 0, 1).orders).values()
    assert ordered == [(1, 0, 1)]
    story.runs(key, (1, 0))
    story.ends(key, 1, 0)
    assert story.state(key.job) is S.DONE


HELD = (a_task_role("launcher", after=["worker"]), a_task_role("worker", 3, launch=NONE))


def test_tasks_without_a_command() -> None:
    """Workers that hold their slots for others run at once, and are done when nothing is left in their place."""
    story = a_story()
    job = story.do(submission(a_task_spec(*HELD))).reply.job
    story.plan()
    orders = story.stage(story.key(job))
    held = [(one.host, run.task.index) for one in orders if isinstance(one, TasksOrder) for run in one.hold]
    assert held == [("h1", 0), ("h2", 1), ("h2", 2)]
    key = story.key(job)
    assert story.phases(key) == "SRRR"
    story.runs(key)
    assert stops(story.ends(key, 0, 0).orders) == {"h1": [(1, 0, 1)], "h2": [(1, 1, 1), (1, 2, 1)]}
    assert (story.phases(key), story.state(key.job)) == ("DTTT", S.RUN)
    for index in range(3):
        story.ends(key, 1, index)
    assert story.phases(key) == "DDDD"
    assert story.state(key.job) is S.DONE


def test_a_task_without_a_command_that_is_killed() -> None:
    """It is being ended until its host has ended what runs in its place, and counts as killed like any other."""
    story = a_story()
    key = story.begin(*HELD, policies=[a_policy(A.ABORT, E.EVICTED)])
    story.runs(key)
    outcome = story.do(c.KillJob(c.Target(key.job, None, "worker", 1), ANN))
    assert stops(outcome.orders) == {"h2": [(1, 1, 1)]}
    assert (story.phases(key), story.tasks(key).verdict) == ("RRTR", None)
    story.ends(key, 1, 1)
    assert story.tasks(key).verdict is not None
    assert story.phases(key) == "TTET"


def test_a_restart_ends_what_runs_in_the_place_of_tasks_without_a_command() -> None:
    """The next run of such a task is ordered when that is gone."""
    story = a_story()
    key = story.begin(*HELD, policies=[a_policy(A.RESTART_JOB, E.FAILED)], restarts_max=1)
    story.runs(key)
    assert stops(story.ends(key, 0, 0, code=1).orders) == {"h1": [(1, 0, 1)], "h2": [(1, 1, 1), (1, 2, 1)]}
    orders = story.stops(key).orders
    assert [run for one in orders if isinstance(one, TasksOrder) for run in one.hold] == [
        TaskRun(TaskKey(1, index), 2) for index in range(3)
    ]


def test_a_host_that_comes_back_is_told_of_tasks_without_a_command() -> None:
    """It holds those that it does not know, and what it knows is not ordered again."""
    story = a_story()
    key = story.begin(*HELD)
    story.runs(key)
    known = (TaskReport(TaskKey(1, 1), 1, TaskPhase.RUNNING, 0, story.now),)
    one = replace(story.runs_there("h2", key), tasks=known)
    orders = story.do(c.AgentHello(story.cluster.hosts["h2"].offered, 7, (one,))).orders
    held = [run.task.index for one in orders if isinstance(one, TasksOrder) for run in one.hold]
    assert held == [2]


def test_one_process_for_all_tasks_of_a_host() -> None:
    """The lowest index of the role on the host has it; the others are as that one is."""
    story = a_story()
    key = story.begin(a_task_role(tasks=5, launch=HOST))
    assert story.phases(key) == "SSSSS"
    story.runs(key, (0, 0), (0, 2), (0, 4))
    assert story.phases(key) == "RRRRR"
    story.ends(key, 0, 2, code=3)
    assert story.phases(key) == "RREER"


def test_one_process_for_a_role() -> None:
    """Only its first task is started."""
    story = a_story()
    job = story.do(submission(a_task_spec(a_task_role(tasks=5, launch=FIRST)))).reply.job
    story.plan()
    assert starts(story.stage(story.key(job))) == {"h1": [(0, 0, 1)]}


# -- failure -----------------------------------------------------------------------------------------------------------


def test_without_rules_a_failed_task_stays_failed_and_the_job_goes_on() -> None:
    """The counts decide when all have ended; by default the successes of none are needed."""
    story = a_story()
    key = story.begin(*ps_and_workers(success_min=3))
    story.runs(key)
    story.ends(key, WORKER, 0, code=7)
    assert (story.state(key.job), story.phases(key)) == (S.RUN, "RERR")
    for task in ((WORKER, 1), (WORKER, 2), (PS, 0)):
        story.ends(key, *task)
    job = story.job(key.job)
    assert (job.state, job.end.status) == (S.EXIT, 7 << 8)  # type: ignore[union-attr]


def test_a_role_restarts_in_place() -> None:
    """Its tasks are ended, and all start anew when the last has ended, on the same hosts and with the same peers."""
    story = a_story()
    policy = a_policy(E.FAILED, action=A.RESTART_ROLE)
    key = story.begin(*ps_and_workers(policies=[policy]), restarts_max=2)
    story.runs(key)
    ordered = story.ends(key, WORKER, 0, code=1).orders
    assert stops(ordered) == {"h2": [(1, 1, 1), (1, 2, 1)]}
    assert story.phases(key) == "RWTT"
    first = story.report(key, (WORKER, 1), phase=P.EXITED, code=143)
    assert starts(first.orders) == {}
    again = story.report(key, (WORKER, 2), phase=P.EXITED, code=143)
    assert starts(again.orders) == {"h1": [(1, 0, 2)], "h2": [(1, 1, 2), (1, 2, 2)]}
    assert story.tasks(key).restarts == 1
    assert story.key(key.job) == key


def test_a_group_restarts_with_new_restarts_of_its_own() -> None:
    """The tasks of a group are started anew together, as the pods of a recreated job; the others run on."""
    story = a_story()
    policy = a_policy(E.FAILED, action=A.RESTART_GROUP)
    key = story.begin(a_task_role(tasks=3, restart=1, restarts_max=1, group=2, policies=[policy]), restarts_max=1)
    story.runs(key)
    assert starts(story.ends(key, 0, 1, code=1).orders) == {"h1": [(0, 1, 2)]}
    story.runs(key)
    assert stops(story.ends(key, 0, 1, code=1).orders) == {"h1": [(0, 0, 1)]}
    assert starts(story.stops(key).orders) == {"h1": [(0, 0, 2), (0, 1, 3)]}
    story.runs(key)
    assert starts(story.ends(key, 0, 0, code=1).orders) == {"h1": [(0, 0, 3)]}  # in place, once again
    assert story.tasks(key).restarts == 1


def test_one_task_restarts_alone() -> None:
    """By its role's own rule, as often as that allows; then the failure is one."""
    story = a_story()
    key = story.begin(a_task_role(tasks=2, restart=1, restarts_max=1, failed_enough=1))
    story.runs(key)
    assert starts(story.ends(key, 0, 1, code=1).orders) == {"h1": [(0, 1, 2)]}
    story.runs(key)
    ended = story.ends(key, 0, 1, code=5)
    assert stops(ended.orders) == {"h1": [(0, 0, 1)]}
    assert story.state(key.job) is S.RUN  # the other is still being ended
    story.stops(key)
    job = story.job(key.job)
    assert (job.state, job.end.status) == (S.EXIT, 5 << 8)  # type: ignore[union-attr]


def test_after_the_last_restart_the_job_fails() -> None:
    """Each restart counts; one more than allowed is the failure of the job, with the status of the task."""
    story = a_story()
    key = story.begin(a_task_role(tasks=2), policies=[a_policy(E.FAILED)], restarts_max=2)
    for _ in range(2):
        story.runs(key)
        story.ends(key, 0, 0, code=9)
        story.stops(key)
    story.runs(key)
    assert [one.run for one in story.tasks(key).records.values()] == [3, 3]
    story.ends(key, 0, 0, code=9)
    story.stops(key)
    assert story.job(key.job).end.status == 9 << 8  # type: ignore[union-attr]


def test_a_job_is_complete_by_the_first_success() -> None:
    """The others are ended, and the job is DONE when none is left."""
    story = a_story()
    key = story.begin(
        a_task_role("launcher"), a_task_role("worker", 2), policies=[a_policy(E.SUCCEEDED, action=A.COMPLETE)]
    )
    story.runs(key)
    story.ends(key, 0, 0)
    assert story.phases(key) == "DTT"
    story.stops(key)
    assert story.state(key.job) is S.DONE


def test_an_aborted_job_waits_for_its_user() -> None:
    """It is held, without hosts, and bresume dispatches it anew, which counts as a restart."""
    story = a_story()
    key = story.begin(a_task_role(tasks=2), policies=[a_policy(E.FAILED, action=A.ABORT)], restarts_max=3)
    story.runs(key)
    story.ends(key, 0, 0, code=1)
    orders = story.stops(key).orders
    assert {one.host for one in orders if isinstance(one, ReleaseOrder)} == {"h1"}
    story.released("h1", key)
    assert story.state(key.job) is S.PSUSP
    story.do(c.ResumeJob(c.Target(key.job), ANN))
    assert story.state(key.job) is S.PEND
    story.plan()
    again = story.key(key.job)
    assert again.attempt == 2
    assert starts(story.stage(again)) == {"h1": [(0, 0, 2), (0, 1, 2)]}
    assert story.tasks(again).restarts == 1


@pytest.mark.parametrize("event", [E.HOST_LOST, E.TIMEOUT])
def test_an_aborted_job_is_resumed_by_what_happens_meanwhile(event: TaskEvent) -> None:
    """While its tasks are being ended nothing else can happen to it: readers of job files refuse other events."""
    story = a_story()
    policies = [a_policy(codes=(7,), action=A.ABORT), a_policy(event, action=A.RESUME)]
    key = story.begin(a_task_role(tasks=4), policies=policies, restarts_max=3)
    story.runs(key)
    story.ends(key, 0, 0, code=7)
    with pytest.raises(Refused, match="No such task of the job is running"):  # so that it is not evicted, either
        story.do(c.KillJob(c.Target(key.job, None, "worker", 1), ANN))
    if event is E.HOST_LOST:
        story.released("h2", key)
    else:
        state = TaskReport(TaskKey(0, 1), 1, P.EXITED, 77, story.now, story.now, 15, "TERM_RUNLIMIT: too long")
        story.do(c.ReportTasks("h1", key, (state,)))
    story.stops(key)
    for host in ("h1", "h2"):
        story.released(host, key)
    assert story.state(key.job) is S.PEND


def test_a_delayed_action_is_dropped_when_the_task_runs_again() -> None:
    """Otherwise it is taken at its time, by the clock."""
    story = a_story()
    policy = a_policy(E.FAILED, action=A.TERMINATE, timeout_s=10.0)
    key = story.begin(a_task_role(tasks=2, policies=[policy]))
    story.runs(key)
    story.ends(key, 0, 0, code=4)
    story.wait(9.0)
    assert story.phases(key) == "ER"
    story.wait(2.0)
    assert story.phases(key) == "ET"
    story.stops(key)
    assert story.job(key.job).end.status == 4 << 8  # type: ignore[union-attr]


def test_a_task_that_ran_for_too_long() -> None:
    """Its host has ended it; that counts as a timeout, whatever its exit status."""
    story = a_story()
    policy = a_policy(E.TIMEOUT, action=A.TERMINATE)
    key = story.begin(a_task_role(tasks=2, run_limit_s=60.0, policies=[policy]))
    story.runs(key)
    state = TaskReport(TaskKey(0, 0), 1, P.DONE, 77, story.now, story.now, 0, "TERM_RUNLIMIT: too long")
    story.do(c.ReportTasks("h1", key, (state,)))
    assert story.phases(key) == "DT"


# -- hosts -------------------------------------------------------------------------------------------------------------


def test_a_lost_host_takes_its_tasks_with_it() -> None:
    """No host leads: the job goes on without the first one, and counts decide at the end."""
    story = a_story()
    key = story.begin(*ps_and_workers())
    story.runs(key)
    story.released("h1", key)
    assert (story.state(key.job), story.phases(key)) == (S.RUN, "EERR")
    assert story.task(key, PS, 0).host == ""
    story.ends(key, WORKER, 1)
    story.ends(key, WORKER, 2)
    assert story.state(key.job) is S.DONE


def test_a_restart_without_a_host_needs_another_attempt() -> None:
    """All tasks are ended, all hosts release the job, and it is pending with its runs and restarts."""
    story = a_story()
    key = story.begin(*ps_and_workers(), policies=[a_policy(E.HOST_LOST)], restarts_max=1, has_replace=True)
    story.runs(key)
    assert stops(story.released("h1", key).orders) == {"h2": [(1, 1, 1), (1, 2, 1)]}
    orders = story.stops(key).orders
    assert {one.host for one in orders if isinstance(one, ReleaseOrder)} == {"h2"}
    story.released("h2", key)
    assert story.state(key.job) is S.PEND
    story.plan()
    again = story.key(key.job)
    assert starts(story.stage(again)) == {"h1": [(0, 0, 2), (1, 0, 2)], "h2": [(1, 1, 2), (1, 2, 2)]}
    assert story.tasks(again).restarts == 1


def test_a_job_that_may_be_rerun_is_when_it_loses_a_host() -> None:
    """As any other job with -r, unless its own rules say something else."""
    story = a_story()
    command = submission(a_task_spec(*ps_and_workers()))
    command = replace(command, job=command.job._replace(shared=replace(command.job.shared, rerunnable=True)))
    job = story.do(command).reply.job
    story.plan()
    key = story.key(job)
    story.stage(key)
    story.runs(key)
    story.released("h2", key)
    story.stops(key)
    story.released("h1", key)
    assert story.state(job) is S.PEND


def test_all_hosts_are_lost() -> None:
    """Nothing is left that could end: the job has the status of a lost one."""
    story = a_story()
    key = story.begin(*ps_and_workers(success_min=1))
    story.runs(key)
    story.released("h2", key)
    story.released("h1", key)
    job = story.job(key.job)
    assert (job.state, job.end.status) == (S.EXIT, 127 << 8)  # type: ignore[union-attr]
    assert key not in story.cluster.attempts


def test_a_host_that_refuses_to_stage_sends_the_job_back() -> None:
    """All or nothing: it is pending again, and the host is avoided."""
    story = a_story()
    job = story.do(submission(a_task_spec(a_task_role(tasks=6)))).reply.job
    story.plan()
    story.refused("h2", story.key(job), host_fault=True)
    assert story.state(job) is S.PEND


def test_usage_is_that_of_all_hosts() -> None:
    """Each host reports its own when it releases the job, after its end."""
    story = a_story()
    key = story.begin(a_task_role(tasks=4))
    story.runs(key)
    for index in range(4):
        story.ends(key, 0, index)
    assert story.state(key.job) is S.DONE
    for host in ("h1", "h2"):
        story.do(c.ReportReleased(host, key, 1, HostUsage(5.0, memory_mib_max=100)))
    end = story.job(key.job).end
    assert end is not None
    assert (end.cpu_s, end.memory_mib_max) == (10.0, 200)


# -- a host that comes back --------------------------------------------------------------------------------------------


def held(key: Key, *states: TaskReport) -> c.HeldAttempt:
    return c.HeldAttempt(key, None, True, tasks=states)


def test_starts_that_a_host_lacks_are_ordered_again() -> None:
    """The session broke before the order arrived; what the host has is not ordered a second time."""
    story = a_story()
    key = story.begin(*ps_and_workers())
    running = TaskReport(TaskKey(1, 1), 1, P.RUNNING, 77, story.now)
    orders = story.back("h2", held(key, running))
    assert starts(orders) == {"h2": [(1, 2, 1)]}
    assert story.phases(key) == "SSRS"


def test_stops_that_a_host_owes_are_ordered_again() -> None:
    """A task whose start never arrived is stopped as well: its host says that it has ended."""
    story = a_story()
    key = story.begin(*ps_and_workers(), policies=[a_policy(E.FAILED, action=A.TERMINATE)])
    story.runs(key, (0, 0), (1, 1))
    story.ends(key, PS, 0, code=1)
    running = TaskReport(TaskKey(1, 1), 1, P.RUNNING, 77, story.now)
    assert stops(story.back("h2", held(key, running))) == {"h2": [(1, 1, 1), (1, 2, 1)]}


def test_an_end_that_was_reported_to_no_master_is_in_the_hello() -> None:
    """It counts as if it had just happened."""
    story = a_story()
    key = story.begin(*ps_and_workers(), policies=[a_policy(E.FAILED)], restarts_max=1)
    story.runs(key)
    failed = TaskReport(TaskKey(1, 1), 1, P.EXITED, 77, story.now, story.now, 1 << 8)
    running = TaskReport(TaskKey(1, 2), 1, P.RUNNING, 78, story.now)
    assert stops(story.back("h2", held(key, failed, running)))["h2"] == [(1, 2, 1)]


def test_an_order_that_came_too_late_is_repeated() -> None:
    """The same run again: it was not started."""
    story = a_story()
    key = story.begin(*ps_and_workers())
    late = TaskReport(TaskKey(1, 2), 1, order_again=True)
    outcome = story.do(c.ReportTasks("h2", key, (late,)))
    assert (outcome.events, starts(outcome.orders)) == ([], {"h2": [(1, 2, 1)]})


def test_reports_of_earlier_runs_change_nothing() -> None:
    """A report may come twice, and late."""
    story = a_story()
    key = story.begin(a_task_role(tasks=2, restart=1, restarts_max=5))
    story.runs(key)
    old = TaskReport(TaskKey(0, 1), 1, P.EXITED, 77, story.now, story.now, 1 << 8)
    assert starts(story.do(c.ReportTasks("h1", key, (old,))).orders) == {"h1": [(0, 1, 2)]}
    assert story.do(c.ReportTasks("h1", key, (old,))).events == []


# -- users -------------------------------------------------------------------------------------------------------------


def test_bkill_of_a_task_is_an_eviction() -> None:
    """It lost its place: here the whole role starts anew."""
    story = a_story()
    policy = a_policy(E.EVICTED, action=A.RESTART_ROLE)
    key = story.begin(*ps_and_workers(policies=[policy]), restarts_max=1)
    story.runs(key)
    ordered = story.do(c.KillJob(c.Target(key.job, None, "worker", 1), ANN))
    assert stops(ordered.orders) == {"h2": [(1, 1, 1)]}
    assert story.phases(key) == "RRTR"
    ended = story.report(key, (WORKER, 1), phase=P.EXITED, code=143)
    assert stops(ended.orders) == {"h1": [(1, 0, 1)], "h2": [(1, 2, 1)]}


def test_bkill_of_a_role_and_of_tasks_that_are_not_there() -> None:
    """All tasks of the role are ended; what cannot be is refused in one sentence."""
    story = a_story()
    key = story.begin(*ps_and_workers())

    def refusal(role: str, task: int = -1, caller: c.Caller = ANN) -> str:
        with pytest.raises(Refused) as refused:
            story.do(c.KillJob(c.Target(key.job, None, role, task), caller))
        return str(refused.value)

    assert refusal("chief") == f"Job <{key.job}> has no role chief"
    assert refusal("worker", 3) == f"Role worker of job <{key.job}> has tasks 0 to 2"
    assert refusal("worker", 0, BOB) == "User permission denied"
    story.runs(key)
    story.do(c.KillJob(c.Target(key.job, None, "worker"), ANN))
    assert story.phases(key) == "RTTT"
    story.stops(key)
    assert refusal("worker") == "No such task of the job is running"
    assert story.state(key.job) is S.RUN


def test_bkill_of_a_task_that_is_being_ended_changes_nothing() -> None:
    """The others wait for it, to start anew together: none of them may start beside it."""
    story = a_story()
    key = story.begin(a_task_role(tasks=3), policies=[a_policy(E.FAILED), a_policy(E.EVICTED)], restarts_max=3)
    story.runs(key)
    story.ends(key, 0, 0, code=1)
    story.report(key, (0, 1), phase=P.EXITED, code=143)
    assert story.phases(key) == "WWT"
    with pytest.raises(Refused, match="No such task of the job is running"):
        story.do(c.KillJob(c.Target(key.job, None, "worker", 2), ANN))
    assert story.phases(key) == "WWT"
    story.stops(key)
    assert [one.run for one in story.tasks(key).records.values()] == [2, 2, 2]


def test_other_signals_are_passed_on_to_tasks() -> None:
    """They change nothing here."""
    story = a_story()
    key = story.begin(*ps_and_workers())
    story.runs(key)
    (order,) = story.do(c.SignalJob(c.Target(key.job, None, "ps"), 10, ANN)).orders
    assert isinstance(order, TasksOrder)
    assert (order.host, order.signal, [run.task for run in order.signalled]) == ("h1", 10, [TaskKey(0, 0)])
    with pytest.raises(Refused, match="this is for the whole job"):
        story.do(c.StopJob(c.Target(key.job, None, "ps"), ANN))


def test_bkill_ends_the_whole_job_whatever_its_rules() -> None:
    """Nothing is restarted, and the job ends when no task is left."""
    story = a_story()
    key = story.begin(*ps_and_workers(), policies=[a_policy(E.ANY)], restarts_max=9)
    story.runs(key)
    orders = story.kill(key.job).orders
    assert {one.host for one in orders if isinstance(one, SignalOrder)} == {"h1", "h2"}
    for role, index in ((0, 0), (1, 0), (1, 1)):
        assert story.ends(key, role, index, code=130).orders == []
    story.ends(key, 1, 2, code=130)
    job = story.job(key.job)
    assert (job.state, job.end.status >> 8) == (S.EXIT, 130)  # type: ignore[union-attr]
    assert job.end.reason.startswith("TERM_OWNER")  # type: ignore[union-attr]


def test_a_killed_job_whose_starts_never_arrived_ends() -> None:
    """The host that comes back is told to end what it was never told to start."""
    story = a_story()
    key = story.begin(a_task_role(tasks=2))
    story.kill(key.job)
    orders = story.back("h1", held(key))
    assert stops(orders) == {"h1": [(0, 0, 1), (0, 1, 1)]}
    story.report(key, (0, 0), (0, 1), phase=P.EXITED, code=130)
    assert story.state(key.job) is S.EXIT


def test_a_suspended_job_starts_nothing() -> None:
    """A task that ends meanwhile is restarted when the job is resumed."""
    story = a_story()
    key = story.begin(a_task_role(tasks=2, restart=1, restarts_max=5))
    story.runs(key)
    story.do(c.StopJob(c.Target(key.job), ANN))
    assert starts(story.ends(key, 0, 1, code=1).orders) == {}
    resumed = story.do(c.ResumeJob(c.Target(key.job), ANN))
    assert starts(resumed.orders) == {"h1": [(0, 1, 2)]}


def test_brequeue_takes_the_job_from_its_hosts_first() -> None:
    """Its tasks are ended, all hosts release it, then it is pending."""
    story = a_story()
    key = story.begin(a_task_role(tasks=4))
    story.runs(key)
    story.do(c.RequeueJob(c.Target(key.job), ANN, frozenset({S.RUN})))
    orders = story.report(key, *((0, index) for index in range(4)), phase=P.EXITED, code=143).orders
    assert {one.host for one in orders if isinstance(one, ReleaseOrder)} == {"h1", "h2"}
    story.released("h1", key)
    assert story.state(key.job) is S.RUN
    story.released("h2", key)
    assert story.state(key.job) is S.PEND


def test_a_job_wide_limit_ends_the_whole_job() -> None:
    """Whichever host reaches it, and whatever the rules say of failed tasks."""
    story = a_story()
    key = story.begin(a_task_role(tasks=4), policies=[a_policy(E.FAILED)], restarts_max=9)
    story.runs(key)
    orders = story.do(c.ReportLimit("h2", key, "TERM_RUNLIMIT: too long")).orders
    assert {one.host for one in orders if isinstance(one, SignalOrder)} == {"h1", "h2"}
    story.report(key, *((0, index) for index in range(4)), phase=P.EXITED, code=137)
    assert story.job(key.job).end.reason == "TERM_RUNLIMIT: too long"  # type: ignore[union-attr]


def test_an_element_of_an_array_keeps_its_runs() -> None:
    """Also while it is pending between two attempts, and no object of its own."""
    story = a_story()
    spec = a_task_spec(a_task_role(tasks=2), policies=[a_policy(E.HOST_LOST)], restarts_max=3)
    spec.array.add(first=1, last=2)
    job = story.do(submission(spec)).reply.job
    story.plan()
    key = story.key(job, 1)
    story.stage(key)
    story.runs(key)
    (host,) = {record.host for record in story.tasks(key).records.values()}
    story.released(host, key)
    story.plan()
    again = story.key(job, 1)
    assert again.attempt == 2
    assert [run for runs in starts(story.stage(again)).values() for run in runs] == [(0, 0, 2), (0, 1, 2)]


def test_an_ended_job_leaves_the_lists_after_the_time_that_it_asked_for() -> None:
    """As ttlSecondsAfterFinished says; one that asked for nothing stays for the clean period."""
    story = a_story()
    keys = [story.begin(a_task_role(), has_ttl=True, ttl_s=60.0), story.begin(a_task_role())]
    for key in keys:
        story.runs(key)
        story.ends(key, 0, 0)
        story.released("h1", key)
    story.wait(59.0)
    assert {key.job for key in keys} <= set(story.cluster.jobs)
    story.wait(2.0)
    assert keys[0].job not in story.cluster.jobs
    assert (keys[0].job, 0) not in story.cluster.finished
    assert keys[1].job in story.cluster.jobs


def test_a_job_that_runs_again_is_not_forgotten_meanwhile() -> None:
    """Requeued after its end: the time counts from the next one."""
    story = a_story()
    key = story.begin(a_task_role(), has_ttl=True, ttl_s=60.0)
    story.runs(key)
    story.ends(key, 0, 0)
    story.released("h1", key)
    story.do(c.RequeueJob(c.Target(key.job), ANN, frozenset({S.DONE})))
    story.wait(120.0)
    assert story.state(key.job) is S.PEND


# -- tasks that end together -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", [A.RESTART_JOB, A.RESTART_ROLE])
def test_tasks_that_fail_together_are_one_restart(scope: TaskAction) -> None:
    """Whichever report tells of them, in one or in several: the ends of a run that is over count for nothing."""
    story = a_story(4)
    key = story.begin(a_task_role(tasks=8, policies=[a_policy(E.FAILED, action=scope)]), restarts_max=1)
    for run in (1, 2):
        story.runs(key)
        for number in range(1, 5):
            here = [one for one in story.tasks(key).on_host(f"h{number}") if one.index < 8]
            states = [TaskReport(one, run, P.EXITED, 4000, story.now, story.now, 1 << 8) for one in here]
            story.do(c.ReportTasks(f"h{number}", key, tuple(states)))
        if run == 1:
            assert story.tasks(key).restarts == 1
            assert story.phases(key) == "SSSSSSSS"
    assert story.state(key.job) is S.EXIT
    restarted = [one for one in story.events if isinstance(one, TasksRestarted)]
    assert [len(one.tasks) for one in restarted] == [8]


def test_a_failed_job_is_restarted_once_for_all_its_failed_tasks() -> None:
    """Also by its counts, as OpenPAI does it."""
    story = a_story(4)
    key = story.begin(a_task_role(tasks=8, failed_enough=1), restarts_max=3, restarts_when_failed=True)
    story.runs(key)
    states = tuple(TaskReport(TaskKey(0, index), 1, P.EXITED, 4000, story.now, story.now, 1 << 8) for index in (0, 1))
    story.do(c.ReportTasks("h1", key, states))
    story.stops(key)
    assert story.tasks(key).restarts == 1
    assert story.phases(key) == "SSSSSSSS"


def test_a_job_that_its_rules_end_has_their_reason() -> None:
    """Lists, histories and accounts all show it: its exit code is that of one task, or of none."""
    story = a_story()
    key = story.begin(a_task_role(tasks=2, failed_enough=1))
    story.runs(key)
    story.ends(key, 0, 0, 3)
    story.stops(key)
    end = story.job(key.job).end
    assert end is not None
    assert (end.status, end.reason) == (3 << 8, "1 of the tasks of role worker failed")
