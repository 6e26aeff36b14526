"""Lost hosts of a running job of tasks: survivors keep theirs, and others take the places of the lost ones."""

from dataclasses import replace
from typing import Any

import pytest

from lavad.core import commands as c
from lavad.core.model import JobState, Key
from lavad.core.model.reasons import Refused
from lavad.core.model.task_rules import TaskAction, TaskEvent, TaskKey, TaskPhase
from lavad.core.orders import ReleaseOrder, StageOrder, TasksOrder
from protos.common_pb2 import Role
from tests.builders import ROOT, a_host, a_job
from tests.task_jobs import (
    FIRST,
    TaskStory,
    a_policy,
    a_task_role,
    a_task_spec,
    adapt,
    stage_growth,
    starts,
    stops,
    submission,
)

A, E, P, S = TaskAction, TaskEvent, TaskPhase, JobState
LOST = [a_policy(E.HOST_LOST)]
ALONE = [a_policy(E.HOST_LOST, action=A.RESTART_TASK)]


def gang(
    hosts: int = 3, workers: int = 3, slots: int = 1, role: Role | None = None, **rules: Any
) -> tuple[TaskStory, Key]:
    """A gang that runs, one worker a host unless said otherwise; the last hosts are free."""
    story = TaskStory(*(a_host(f"h{number}", slots) for number in range(1, hosts + 1)))
    given: dict[str, Any] = {"policies": LOST, "restarts_max": 3, **rules}
    key = story.begin(role or a_task_role(tasks=workers), **given)
    story.runs(key)
    return story, key


def replace_hosts(story: TaskStory, key: Key) -> None:
    """Let the scheduler find other hosts; these are staged, and all hosts get the new table."""
    adapt(story, key)
    story.plan()
    stage_growth(story, key)
    adapt(story, key)


# -- a host of the pool ------------------------------------------------------------------------------------------------


def test_only_the_lost_host_is_replaced() -> None:
    """The survivors' tasks are ended, and all start anew together in the same attempt, with the new host's address."""
    story, key = gang(hosts=4)
    lost = story.released("h2", key)
    assert stops(lost.orders) == {"h1": [(0, 0, 1)], "h3": [(0, 2, 1)]}
    assert starts(story.stops(key).orders) == {}  # two of three do not start
    adapt(story, key)
    stages = [one for one in story.plan() if isinstance(one, StageOrder)]
    assert [(one.host, one.tasks[0].indices) for one in stages] == [("h4", (1,))]
    orders = stage_growth(story, key)
    assert starts(orders) == {"h1": [(0, 0, 2)], "h3": [(0, 2, 2)], "h4": [(0, 1, 2)]}
    table = next(one.table for one in orders if isinstance(one, TasksOrder) and one.start)
    assert [one.host for one in table] == ["h1", "h4", "h3"]
    adapt(story, key)
    story.runs(key)
    assert (story.key(key.job), story.phases(key), story.where(key.job)) == (key, "RRR", ["h1", "h3", "h4"])
    assert story.tasks(key).restarts == 1
    for index in range(3):
        story.ends(key, 0, index)
    assert story.state(key.job) is S.DONE


def test_survivors_keep_their_processes_where_the_policy_restarts_only_what_was_lost() -> None:
    """Policy restart-task: nothing is ended, the lost tasks of a host run again together and count once."""
    story, key = gang(hosts=3, workers=4, slots=2, policies=ALONE)
    lost = story.released("h2", key)
    assert stops(lost.orders) == {}
    assert story.phases(key) == "RRWW"
    adapt(story, key)
    story.plan()
    assert starts(stage_growth(story, key)) == {"h3": [(0, 2, 2), (0, 3, 2)]}
    assert [story.task(key, 0, index).run for index in range(4)] == [1, 1, 2, 2]
    assert story.tasks(key).restarts == 1


def test_the_job_keeps_what_it_has_and_waits_until_a_host_is_free() -> None:
    """A pending job does not take the host that the gang waits for: it holds the others meanwhile."""
    story, key = gang(hosts=3)
    other = story.submit(a_job(1))
    story.plan()
    story.released("h2", key)
    story.stops(key)
    story.do(c.CloseHost("h2", ROOT))
    story.plan()
    assert story.phases(key) == "WWW"
    assert story.where(key.job) == ["h1", "h3"]
    assert story.state(other) is S.PEND
    story.join(a_host("h9", 1))
    replace_hosts(story, key)
    assert story.phases(key) == "SSS"
    assert story.state(other) is S.PEND


def test_after_its_time_it_goes_back_to_its_queue_as_a_whole() -> None:
    """The wait is part of the restart that counted already; no gang runs below its size meanwhile."""
    story, key = gang(hosts=2, workers=2, has_replace=True, replace_s=60.0)
    story.do(c.CloseHost("h2", ROOT))
    story.released("h2", key)
    story.stops(key)
    story.wait(59.0)
    story.hear("h1")
    assert (story.state(key.job), story.phases(key)) == (S.RUN, "WW")
    orders = story.wait(2.0).orders
    assert {one.host for one in orders if isinstance(one, ReleaseOrder)} == {"h1"}
    story.released("h1", key)
    assert story.state(key.job) is S.PEND
    assert story.tasks(key).restarts == 1


def test_without_a_wait_it_is_another_attempt_at_once() -> None:
    """The key replace-within: 0."""
    story, key = gang(hosts=4, has_replace=True, replace_s=0.0)
    story.released("h2", key)
    orders = story.stops(key).orders
    assert {one.host for one in orders if isinstance(one, ReleaseOrder)} == {"h1", "h3"}


def test_the_first_host_is_replaced_like_any_other() -> None:
    """No host leads a job of tasks; its next first one is another."""
    story, key = gang(hosts=4)
    story.released("h1", key)
    story.stops(key)
    replace_hosts(story, key)
    assert starts(story.runs(key).orders) == {}
    assert (story.phases(key), story.where(key.job)) == ("RRR", ["h2", "h3", "h4"])


def test_a_second_host_is_lost_while_the_first_is_being_replaced() -> None:
    """The host that was being staged is given up; places for both are found together, or none."""
    story, key = gang(hosts=4)
    story.released("h2", key)
    story.stops(key)
    adapt(story, key)
    story.plan()
    story.released("h3", key)
    assert story.where(key.job) == ["h1"]
    assert story.cluster.attempts[key].resizing.growth == ()
    replace_hosts(story, key)
    assert story.phases(key) == "SSS"
    assert story.tasks(key).restarts == 1


def test_the_new_host_is_lost_before_it_is_staged() -> None:
    """The growth is given up, and another host is found."""
    story, key = gang(hosts=5)
    story.released("h2", key)
    story.stops(key)
    adapt(story, key)
    story.plan()
    (new,) = (share.host for share in story.cluster.attempts[key].resizing.growth)
    story.refused(new, key)
    assert story.cluster.attempts[key].resizing.growth == ()
    story.wait(story.cluster.policy.avoid_host_s + 1)
    story.hear("h1", "h2", "h3", "h4", "h5")
    replace_hosts(story, key)
    assert story.phases(key) == "SSS"


def test_all_hosts_are_lost() -> None:
    """Nothing is left that could wait."""
    story, key = gang(hosts=4)
    for host in ("h1", "h2", "h3"):
        story.released(host, key)
    assert story.state(key.job) is S.PEND


def test_a_host_is_lost_while_the_gang_restarts_for_a_failure() -> None:
    """One incident, one restart: the tasks of the lost host were to be started anew already."""
    story, key = gang(hosts=4, policies=[a_policy(E.FAILED)])
    story.ends(key, 0, 0, code=1)
    assert story.phases(key) == "WTT"
    story.released("h2", key)
    story.report(key, (0, 2), phase=P.EXITED, code=143)
    assert story.phases(key) == "WWW"
    replace_hosts(story, key)
    assert story.phases(key) == "SSS"
    assert story.tasks(key).restarts == 1


def test_tasks_that_had_ended_on_the_lost_host_run_again_with_the_job() -> None:
    """A restart of the job is one of all its tasks, and needs a place for each."""
    story, key = gang(hosts=4)
    story.ends(key, 0, 1)
    story.released("h2", key)
    assert story.phases(key) == "RDR"
    assert (story.task(key, 0, 1).host, story.task(key, 0, 1).was_on) == ("", "h2")
    story.released("h3", key)
    story.stops(key)
    assert story.phases(key) == "WWW"
    replace_hosts(story, key)
    assert story.phases(key) == "SSS"


def test_a_lease_that_ends_takes_one_host_and_the_job_runs_again() -> None:
    """A silent host changes nothing before it is declared lost; then the job leaves UNKWN with a replacement."""
    story = TaskStory(*(a_host(f"h{number}", 1) for number in range(1, 5)))
    story.cluster.policy = replace(story.cluster.policy, fence_after_s=60.0)
    for name in ("h1", "h2", "h3", "h4"):
        story.join(a_host(name, 1, keeps_leases=True))
    key = story.begin(a_task_role(tasks=3), policies=LOST, restarts_max=3)
    story.runs(key)
    for _ in range(3):
        story.wait(20.0)
        story.hear("h1", "h3", "h4")
        assert story.phases(key) == "RRR"
    assert story.state(key.job) is S.UNKWN
    for _ in range(4):
        story.wait(20.0)
        story.hear("h1", "h3", "h4")
    story.do(c.EndLeases())
    assert (story.state(key.job), story.phases(key)) == (S.RUN, "TWT")
    story.stops(key)
    replace_hosts(story, key)
    assert story.phases(key) == "SSS"


def test_one_process_for_a_role_starts_anew_on_its_new_first_host() -> None:
    """An MPI launcher is told the new hosts: the role has one process again."""
    story, key = gang(hosts=4, role=a_task_role(tasks=3, launch=FIRST), policies=ALONE)
    story.released("h1", key)
    adapt(story, key)
    story.plan()
    orders = stage_growth(story, key)
    assert [len(runs) for runs in starts(orders).values()] == [1]
    adapt(story, key)
    story.runs(key)
    assert story.phases(key) == "RRR"


def test_a_job_with_its_hosts_for_itself_gets_another_for_itself() -> None:
    """-x: the replacement is a host without other jobs."""
    story = TaskStory(*(a_host(f"h{number}", 2) for number in range(1, 4)))
    spec = a_task_spec(a_task_role(tasks=2, requirement="span[ptile=1]"), policies=LOST, restarts_max=1)
    spec.exclusive = True
    job = story.do(submission(spec)).reply.job
    story.plan()
    key = story.key(job)
    story.stage(key)
    story.runs(key)
    story.released("h2", key)
    story.stops(key)
    replace_hosts(story, key)
    assert story.phases(key) == "SS"
    assert story.cluster.attempts[key].takes_whole_hosts


def test_an_elastic_job_whose_minimum_is_left_does_not_wait() -> None:
    """It starts anew with the hosts that are left, and grows when there is room."""
    story, key = gang(hosts=3, role=a_task_role(tasks=1, most=3))
    story.do(c.CloseHost("h2", ROOT))
    story.released("h2", key)
    orders = story.stops(key).orders
    assert starts(orders) == {"h1": [(0, 0, 2)], "h3": [(0, 2, 2)]}
    assert story.phases(key) == "SWS"


# -- spares ------------------------------------------------------------------------------------------------------------


def with_spares(spares: int = 1, hosts: int = 4, **rules: Any) -> tuple[TaskStory, Key]:
    return gang(hosts=hosts, role=a_task_role(tasks=3, spares=spares), **rules)


def test_spares_are_held_and_idle_from_the_start() -> None:
    """The job starts when there is room for all, and its tasks do not know of them."""
    story = TaskStory(*(a_host(f"h{number}", 1) for number in range(1, 4)))
    role = a_task_role(tasks=3, spares=1)
    job = story.do(submission(a_task_spec(role, policies=LOST))).reply.job
    story.plan()
    assert story.state(job) is S.PEND
    story.join(a_host("h4", 1))
    story.plan()
    key = story.key(job)
    assert story.where(job) == ["h1", "h2", "h3", "h4"]
    assert [one.host for one in story.tasks(key).table] == ["h1", "h2", "h3"]


def staged_with_spares(**rules: Any) -> tuple[TaskStory, Key]:
    """Three workers that run, and a spare host."""
    story = TaskStory(*(a_host(f"h{number}", 1) for number in range(1, 5)))
    given: dict[str, Any] = {"policies": LOST, "restarts_max": 3, **rules}
    job = story.do(submission(a_task_spec(a_task_role(tasks=3, spares=1), **given))).reply.job
    story.plan()
    key = story.key(job)
    story.stage(key)
    story.runs(key)
    return story, key


def test_a_spare_takes_the_place_of_a_lost_host_without_the_scheduler() -> None:
    """Its host makes ports ready for the task, and the gang starts anew."""
    story, key = staged_with_spares()
    story.released("h2", key)
    story.stops(key)
    assert story.phases(key) == "WWW"
    orders = adapt(story, key)
    assert starts(orders) == {"h1": [(0, 0, 2)], "h3": [(0, 2, 2)], "h4": [(0, 1, 2)]}
    story.runs(key)
    assert (story.state(key.job), story.where(key.job)) == (S.RUN, ["h1", "h3", "h4"])


def test_spares_are_used_even_where_the_job_would_not_wait_for_others() -> None:
    """replace-within: 0 says not to wait for the pool."""
    story, key = staged_with_spares(has_replace=True, replace_s=0.0)
    story.released("h2", key)
    story.stops(key)
    adapt(story, key)
    assert story.phases(key) == "SSS"
    story.runs(key)
    story.released("h3", key)
    story.stops(key)
    story.released("h1", key)
    story.released("h4", key)
    assert story.state(key.job) is S.PEND


def test_a_spare_host_that_is_lost_is_no_spare_any_more() -> None:
    """Nothing happens to the job before it would have needed it; then it waits for the pool."""
    story, key = staged_with_spares()
    story.released("h4", key)
    assert story.phases(key) == "RRR"
    story.do(c.CloseHost("h4", ROOT))
    story.do(c.CloseHost("h2", ROOT))
    story.released("h2", key)
    story.stops(key)
    assert (story.phases(key), story.where(key.job)) == ("WWW", ["h1", "h3"])
    story.join(a_host("h5", 1))
    replace_hosts(story, key)
    assert story.phases(key) == "SSS"


def test_a_spare_host_that_is_lost_while_it_is_made_ready() -> None:
    """Its task waits for the pool."""
    story, key = staged_with_spares()
    story.released("h2", key)
    story.stops(key)
    story.released("h4", key)
    assert story.where(key.job) == ["h1", "h3"]
    story.join(a_host("h5", 1))
    replace_hosts(story, key)
    assert story.phases(key) == "SSS"
    assert story.task(key, 0, 1).run == 2


def test_a_spare_is_taken_where_another_role_could_shrink() -> None:
    """The fixed role keeps its number of tasks; the elastic one does without those lost beside."""
    story = TaskStory(*(a_host(f"h{number}", slots) for number, slots in ((1, 2), (2, 3), (3, 2), (4, 2))))
    roles = (a_task_role("worker", 2, slots_per_task=2, spares=1), a_task_role("reader", 1, 3))
    key = story.begin(*roles, policies=LOST, restarts_max=3)
    story.runs(key)
    assert [story.task(key, *task).host for task in ((0, 1), (1, 0), (1, 1))] == ["h2", "h2", "h4"]
    story.released("h2", key)
    story.stops(key)
    adapt(story, key)
    adapt(story, key)
    assert [story.task(key, *task).host for task in ((0, 0), (0, 1), (1, 0), (1, 1))] == ["h1", "h3", "", "h4"]
    assert [story.task(key, *task).phase for task in ((0, 0), (0, 1), (1, 1))] == [P.STARTING] * 3


@pytest.mark.parametrize("how", ["silent", "revoked"])
def test_a_spare_on_a_host_that_may_not_last_is_not_taken(how: str) -> None:
    """The task waits for the pool; with the host back the spare is one again."""
    story, key = staged_with_spares()
    if how == "revoked":
        story.do(c.RevokeHost("h4", ROOT, 600))
    else:
        story.now += 20
        story.hear("h1", "h2", "h3")
        story.wait(0)
    story.released("h2", key)
    story.do(c.CloseHost("h2", ROOT))
    story.stops(key)
    assert (story.phases(key), story.task(key, 0, 1).joins) == ("WWW", "")
    if how == "revoked":
        story.do(c.OpenHost("h4", ROOT))
    else:
        story.do(c.AgentHeard("h4"))
    assert story.task(key, 0, 1).joins == "h4"


def test_a_spare_that_was_used_is_held_anew_when_there_is_room() -> None:
    """Not before a pending job that waits for the room; the tasks hear nothing of it, and it serves as the first."""
    story, key = staged_with_spares()
    story.released("h2", key)
    story.do(c.CloseHost("h2", ROOT))
    story.stops(key)
    adapt(story, key)
    story.runs(key)
    story.plan()
    waiting = story.submit(a_job(1))
    story.plan()
    story.join(a_host("h5", 1))
    story.plan()
    assert (story.where(key.job), story.where(waiting)) == (["h1", "h3", "h4"], ["h5"])
    story.join(a_host("h6", 1))
    story.plan()
    stage_growth(story, key)
    adapt(story, key)
    assert story.where(key.job) == ["h1", "h3", "h4", "h6"]
    assert story.phases(key) == "RRR"
    story.released("h3", key)
    story.stops(key)
    assert story.task(key, 0, 2).joins == "h6"


def test_a_spare_host_that_was_lost_is_replaced_when_there_is_room() -> None:
    """The job had nothing there but an idle place."""
    story, key = staged_with_spares()
    story.do(c.CloseHost("h4", ROOT))
    story.released("h4", key)
    assert story.where(key.job) == ["h1", "h2", "h3"]
    adapt(story, key)
    story.join(a_host("h5", 1))
    story.plan()
    stage_growth(story, key)
    adapt(story, key)
    assert (story.where(key.job), story.phases(key)) == (["h1", "h2", "h3", "h5"], "RRR")


@pytest.mark.parametrize(
    ("role", "words"),
    [
        (a_task_role(tasks=1, most=3, spares=1), "spares are for a role with a fixed number of tasks"),
        (a_task_role(tasks=2, spares=1), "no policy restarts anything when a host is lost"),
    ],
)
def test_spares_that_make_no_sense_are_refused(role: Role, words: str) -> None:
    """One sentence says why."""
    policies = [] if "policy" in words else LOST
    with pytest.raises(Refused, match=words):
        submission(a_task_spec(role, policies=policies))


# -- pauses ------------------------------------------------------------------------------------------------------------


def test_pauses_grow_with_each_failure_in_a_row_up_to_their_maximum() -> None:
    """10, 20, 25 s; a run that lasted begins anew."""
    story, key = gang(
        hosts=3,
        policies=[a_policy(E.FAILED)],
        restarts_max=9,
        restart_pause_s=10.0,
        restart_pause_max_s=25.0,
        stable_s=100.0,
    )
    for pause in (10.0, 20.0, 25.0):
        story.ends(key, 0, 1, code=1)
        story.stops(key)
        story.wait(pause - 1)
        story.hear("h1", "h2", "h3")
        assert story.phases(key) == "WWW"
        assert starts(story.wait(1.5).orders)
        story.runs(key)
    for _ in range(4):
        story.wait(30.0)
        story.hear("h1", "h2", "h3")
    story.ends(key, 0, 1, code=1)
    assert story.task(key, 0, 1).failures == 1


def test_a_run_that_lasted_before_it_hung_begins_a_new_row_of_failures() -> None:
    """The task that hangs still runs: its run has lasted until now."""
    story, key = gang(
        hosts=3, policies=[a_policy(E.HANGS)], restarts_max=9, restart_pause_s=10.0, stable_s=100.0
    )  # fmt: skip
    for _ in range(2):
        for _ in range(4):
            story.wait(30.0)
            story.hear("h1", "h2", "h3")
        for host in ("h1", "h2", "h3"):
            story.do(c.ReportActivity(host, key, 60.0))
        number = story.cluster.attempts[key].activity.hangs
        for host in ("h1", "h2", "h3"):
            story.do(c.ReportStacks(host, key, number, "/out/stacks"))
        assert story.task(key, 0, 0).failures == 1
        story.stops(key)
        assert starts(story.wait(11).orders)
        story.runs(key)


def test_a_task_that_restarts_in_place_pauses_alone() -> None:
    """By the rule of its role; the others run on."""
    role = a_task_role(tasks=2, restart=1, restarts_max=5)
    story, key = gang(hosts=2, role=role, policies=[], restart_pause_s=10.0)
    story.ends(key, 0, 1, code=1)
    assert story.phases(key) == "RW"
    assert starts(story.wait(11.0).orders) == {"h2": [(0, 1, 2)]}


def test_a_job_that_restarts_after_each_success_pauses_too() -> None:
    """As a group of a LeaderWorkerSet, whose containers are started anew however they end."""
    role = a_task_role(tasks=2, restart_pause_s=10.0, restart_pause_max_s=15.0)
    story, key = gang(hosts=2, role=role, policies=[a_policy(E.SUCCEEDED)], restarts_max=1000)
    for pause in (10.0, 15.0):
        story.ends(key, 0, 0)
        story.stops(key)
        assert not starts(story.wait(pause - 1).orders)
        assert starts(story.wait(2.0).orders)
        story.runs(key)


def test_a_task_that_ends_at_once_over_and_over_begins_once_a_second() -> None:
    """Restarted always, as a Volcano task without restartPolicy: the first ten restarts are made at once."""
    story, key = gang(hosts=1, role=a_task_role(restart=2, restarts_max=1000), policies=[])
    for _ in range(10):
        story.ends(key, 0, 0)
        assert story.phases(key) == "S"
        story.runs(key)
    for _ in range(2):
        story.now += 0.25
        story.ends(key, 0, 0)
        assert story.phases(key) == "W"
        story.wait(0.5)
        assert story.phases(key) == "W"
        assert starts(story.wait(0.25).orders)
        story.runs(key)
    story.now += 5.0
    story.ends(key, 0, 0)
    assert story.phases(key) == "S"


def test_a_task_whose_start_fails_over_and_over_is_tried_once_a_second() -> None:
    """It never has a process: the second counts from the end of the last try."""
    story, key = gang(hosts=1, role=a_task_role(restart=2, restarts_max=1000), policies=[])
    for _ in range(10):
        story.cannot_start(key, 0, 0)
        assert story.phases(key) == "S"
    for _ in range(2):
        story.cannot_start(key, 0, 0)
        assert story.phases(key) == "W"
        story.wait(0.75)
        assert story.phases(key) == "W"
        assert starts(story.wait(0.25).orders)


def test_a_replacement_does_not_pause() -> None:
    """A lost host is no fault of the task."""
    story, key = gang(hosts=4, restart_pause_s=100.0)
    story.released("h2", key)
    story.stops(key)
    replace_hosts(story, key)
    assert story.phases(key) == "SSS"
    assert story.tasks(key).records[TaskKey(0, 1)].failures == 0


def test_a_lost_host_that_joins_anew_is_not_lost_any_more() -> None:
    """It has rebooted, and takes some of the tasks while others wait for their ports on another host."""
    story, key = gang(hosts=2, workers=4, slots=3)
    assert [share.slots for share in story.cluster.attempts[key].allocation] == [3, 1]
    story.released("h1", key)
    story.stops(key)
    adapt(story, key)
    story.plan()
    assert {share.host for share in story.cluster.attempts[key].resizing.growth} == {"h1", "h2"}
    stage_growth(story, key)
    assert set(story.where(key.job)) == {"h1", "h2"}
    adapt(story, key)
    assert story.phases(key) == "SSSS"
