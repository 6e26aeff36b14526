"""Running jobs of several roles grow and shrink, role by role."""

import pytest

from lavad.core import commands as c
from lavad.core.language.requirements.parts import sizes_of
from lavad.core.model import HostFacts, JobState, Key
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.queues import Queue
from lavad.core.model.task_rules import TaskKey
from lavad.core.model.task_values import RolePart
from lavad.core.orders import ReleaseOrder, ResizeOrder, TasksOrder
from protos.common_pb2 import Role
from tests.builders import ANN, BOB, Story, a_host, a_job
from tests.task_jobs import NONE, TaskStory, a_task_role, adapt, leave, starts, stops
from tests.task_jobs import stage_growth as stage

PS = a_task_role("ps")
WORKERS = a_task_role("worker", 1, 3)


def a_cluster(*hosts: HostFacts) -> TaskStory:
    """Hosts that carry out orders for tasks."""
    return TaskStory(*hosts)


def run(story: TaskStory, *roles: Role) -> Key:
    """Run a job of these roles as far as there is room; its key."""
    key = story.begin(*(roles or (PS, WORKERS)))
    story.runs(key)
    return key


def sizes(story: Story, key: Key) -> list[int]:
    """Tasks of each role."""
    attempt = story.cluster.attempts[key]
    return sizes_of(attempt.allocation, len(story.job(key.job).shared.request.roles))


def scale(story: Story, key: Key, *wanted: tuple[str, int], may_shrink: bool = True, caller: c.Caller = ANN) -> None:
    """Ask for sizes of roles as lavactl scale does."""
    story.do(c.ScaleJob(c.Target(key.job), wanted, caller, may_shrink))


def test_roles_grow_towards_their_maximum_as_room_comes() -> None:
    """The gang starts with what fits; further tasks start when their hosts are ready, with the lowest indices."""
    story = a_cluster(a_host("n1", 2))
    key = run(story)
    assert (sizes(story, key), story.phases(key)) == ([1, 1], "RRWW")
    story.join(a_host("n2", 1))
    story.plan()
    assert sizes(story, key) == [1, 1]  # nothing starts there before the new host is staged
    orders = stage(story, key)
    assert starts(orders) == {"n2": [(1, 1, 1)]}
    told = [one.host for one in orders if isinstance(one, TasksOrder) and len(one.table) == 2]
    assert set(told) == {"n1", "n2"}
    assert story.task(key, 1, 1).ports == (9001,)
    story.runs(key)
    adapt(story, key)
    assert (sizes(story, key), story.where(key.job), story.phases(key)) == ([1, 2], ["n1", "n2"], "RRRW")
    story.join(a_host("n3", 4))
    story.plan()
    stage(story, key)
    assert sizes(story, key) == [1, 3]


def test_a_growth_that_is_given_up_leaves_no_trace() -> None:
    """The task waits without a place as before."""
    story = a_cluster(a_host("n1", 2))
    key = run(story)
    story.join(a_host("n2", 1))
    story.plan()
    assert story.task(key, 1, 1).joins == "n2"
    story.refused("n2", key)
    assert story.task(key, 1, 1) == (type(story.task(key, 1, 1)))()
    assert sizes(story, key) == [1, 1]


def test_tasks_on_hosts_that_the_job_has_start_with_their_ports() -> None:
    """The host chooses ports before the others are told of the task."""
    story = a_cluster(a_host("n1", 3))
    other = story.run(a_job(1))
    key = run(story)
    story.finished("n1", other)
    orders = story.plan()
    (resize,) = (one for one in orders if isinstance(one, ResizeOrder))
    assert resize.tasks == (RolePart(0, (0,)), RolePart(1, (0, 1)))
    assert story.task(key, 1, 1).host == ""
    orders = adapt(story, key)
    assert starts(orders) == {"n1": [(1, 1, 1)]}
    assert story.task(key, 1, 1).ports == (9001,)


def test_tasks_that_a_host_cannot_make_ready_are_taken_back() -> None:
    """For want of a port, say; they are tried again later."""
    story = a_cluster(a_host("n1", 3))
    other = story.run(a_job(1))
    key = run(story)
    story.finished("n1", other)
    story.plan()
    version = story.cluster.attempts[key].resizing.version
    story.do(c.ReportResized("n1", key, version, failed=True, detail="no port is free"))
    assert (sizes(story, key), story.phases(key)) == ([1, 1], "RRWW")
    assert not story.task(key, 1, 1).joins
    adapt(story, key)
    story.plan()
    assert sizes(story, key) == [1, 1]


def test_the_others_are_told_before_a_task_that_leaves_is_ended() -> None:
    """Its host gets the order to end it when all have the new table, and releases its part when it has ended."""
    story = a_cluster(*(a_host(f"n{n}", 1) for n in range(1, 5)))
    key = run(story)
    outcome = story.do(c.ScaleJob(c.Target(key.job), (("worker", 2),), ANN, True))
    assert not stops(outcome.orders)
    tables = {one.host: [host.host for host in one.table] for one in outcome.orders if isinstance(one, TasksOrder)}
    assert tables == {host: ["n1", "n2", "n3"] for host in ("n1", "n2", "n3")}
    orders = adapt(story, key)
    assert stops(orders) == {"n4": [(1, 2, 1)]}
    assert story.phases(key) == "RRRT"
    orders = story.stops(key).orders
    assert [one.host for one in orders if isinstance(one, ReleaseOrder)] == ["n4"]
    assert story.phases(key) == "RRRW"
    story.released("n4", key)
    assert story.where(story.run(a_job(1)).job) == ["n4"]


def test_hosts_that_do_not_answer_hold_nothing_up() -> None:
    """After a second those that leave are told all the same."""
    story = a_cluster(*(a_host(f"n{n}", 1) for n in range(1, 5)))
    key = run(story)
    scale(story, key, ("worker", 2))
    assert stops(story.wait(1.1).orders) == {"n4": [(1, 2, 1)]}


def test_what_a_task_held_on_a_host_that_stays_is_free_when_it_has_ended() -> None:
    """Not before."""
    story = a_cluster(a_host("n1", 4))
    key = run(story)
    waiting = story.submit(a_job(2))
    scale(story, key, ("worker", 1))
    adapt(story, key)
    story.plan()
    assert story.where(waiting) == []
    story.stops(key)
    story.plan()
    assert story.where(waiting) == ["n1"]


def test_a_named_task_leaves_and_comes_back() -> None:
    """The others keep their indices; a later growth takes the free index, and its runs count on."""
    story = a_cluster(*(a_host(f"n{n}", 1) for n in range(1, 5)))
    key = run(story)
    for word in ("worker-1", "worker/1", "worker[1]"):
        story.do(c.ShrinkJob(c.Target(key.job), word, ANN))
        assert story.phases(key) == "RRRR"
        leave(story, key)
        assert story.phases(key) == "RRWR"
        scale(story, key, ("worker", 3))
        story.plan()
        stage(story, key)
        story.runs(key)
        adapt(story, key)
        assert story.phases(key) == "RRRR"
    assert story.task(key, 1, 1).run == 4
    with pytest.raises(Refused, match="worker-7: the job has no such task now"):
        story.do(c.ShrinkJob(c.Target(key.job), "worker-7", ANN))


def test_the_end_of_a_task_that_leaves_is_no_failure() -> None:
    """No policy hears of it, also if it ends by itself before it is told to."""
    story = a_cluster(*(a_host(f"n{n}", 1) for n in range(1, 5)))
    key = run(story, PS, a_task_role("worker", 1, 3, failed_enough=1))
    scale(story, key, ("worker", 2))
    story.ends(key, 1, 2, code=1)
    adapt(story, key)
    assert story.phases(key) == "RRRW"
    assert story.state(key.job) is JobState.RUN
    assert story.tasks(key).verdict is None


def test_tasks_without_a_command_leave_when_nothing_runs_in_their_place() -> None:
    """Ranks of other roles run there: their slots are free when the host says that none of these is left."""
    story = a_cluster(a_host("n1", 3))
    key = run(story, PS, a_task_role("worker", 1, 2, launch=NONE))
    waiting = story.submit(a_job(1))
    assert story.phases(key) == "RRR"
    scale(story, key, ("worker", 1))
    assert story.phases(key) == "RRR"
    assert stops(adapt(story, key)) == {"n1": [(1, 1, 1)]}
    assert story.phases(key) == "RRT"
    story.plan()
    assert story.where(waiting) == []
    story.stops(key)
    story.plan()
    assert (story.phases(key), story.where(waiting)) == ("RRW", ["n1"])


def test_a_host_of_a_task_without_a_command_is_released_when_that_has_ended() -> None:
    """Its part of the job lasts as long as what was started there in the place of the task."""
    story = a_cluster(*(a_host(f"n{n}", 1) for n in range(1, 4)))
    key = run(story, PS, a_task_role("worker", 1, 2, launch=NONE))
    scale(story, key, ("worker", 1))
    assert not [one for one in adapt(story, key) if isinstance(one, ReleaseOrder)]
    assert [one.host for one in story.stops(key).orders if isinstance(one, ReleaseOrder)] == ["n3"]


def test_devices_keep_to_their_tasks() -> None:
    """A task that came back has the last devices of its host; the table names tasks in that order."""
    story = a_cluster(a_host("n1", 4, gpus=4))
    key = run(story, gpu_role(1, 3))
    story.do(c.ShrinkJob(c.Target(key.job), "worker-0", ANN))
    (share,) = story.cluster.attempts[key].allocation
    assert share.gpus == (1, 2)
    leave(story, key)
    scale(story, key, ("worker", 3))
    story.plan()
    adapt(story, key)
    (share,) = story.cluster.attempts[key].allocation
    assert share.gpus == (1, 2, 0)
    assert story.tasks(key).in_order("n1", 0) == [TaskKey(0, 1), TaskKey(0, 2), TaskKey(0, 0)]


def test_no_growth_delays_a_pending_job() -> None:
    """Room that a waiting job can use is left to it."""
    story = a_cluster(a_host("n1", 2))
    key = run(story)
    waiting = story.submit(a_job(2))
    story.join(a_host("n2", 2))
    story.plan()
    assert story.where(waiting) == ["n2"]
    assert sizes(story, key) == [1, 1]


def test_devices_for_each_task_on_hosts_that_have_the_role() -> None:
    """A job of one host grows there, with further devices."""
    story = a_cluster(a_host("n1", 4, gpus=4))
    other = story.run(a_job(2, gpus=2))
    key = run(story, gpu_role(1, 4))
    assert [share.gpus for share in story.cluster.attempts[key].allocation] == [(2, 3)]
    story.finished("n1", other)
    story.plan()
    assert [share.gpus for share in story.cluster.attempts[key].allocation] == [(2, 3, 0, 1)]
    adapt(story, key)
    scale(story, key, ("worker", 3))
    assert [share.gpus for share in story.cluster.attempts[key].allocation] == [(2, 3, 0)]


def gpu_role(least: int, most: int) -> Role:
    """Role with a GPU for each task."""
    role = a_task_role("worker", least, most)
    role.gpu.text = "num=1/task"
    return role


def test_a_role_is_scaled_down_and_stays_so() -> None:
    """The newest tasks go; others of the job's roles are not touched, and it does not grow back by itself."""
    story = a_cluster(*(a_host(f"n{n}", 1) for n in range(1, 5)))
    key = run(story)
    assert sizes(story, key) == [1, 3]
    scale(story, key, ("worker", 1))
    assert story.where(key.job) == ["n1", "n2"]
    leave(story, key)
    story.plan()
    assert sizes(story, key) == [1, 1]
    scale(story, key, ("worker", 2))
    story.plan()
    stage(story, key)
    assert sizes(story, key) == [1, 2]


def test_the_first_host_may_leave() -> None:
    """No host of a job of tasks leads the others."""
    story = a_cluster(*(a_host(f"n{n}", 1) for n in range(1, 4)))
    key = run(story, WORKERS)
    story.do(c.ShrinkJob(c.Target(key.job), "n1", ANN))
    assert story.where(key.job) == ["n2", "n3"]


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ((("worker", 4),), "Role worker has 1 to 3 tasks, as it was submitted"),
        ((("worker", 0),), "Role worker has 1 to 3 tasks, as it was submitted"),
        ((("chief", 1),), "chief: the job's roles are ps, worker"),
        ((("", 2),), "The role is missing: the job's roles are ps, worker"),
        ((("ps", 2),), "Role ps has 1 to 1 tasks, as it was submitted"),
    ],
)
def test_sizes_that_are_refused(wanted: tuple[tuple[str, int], ...], why: str) -> None:
    """Each with its reason."""
    story = a_cluster(a_host("n1", 4))
    key = run(story)
    with pytest.raises(Refused, match=why):
        scale(story, key, *wanted)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("", "Bad list"),
        ("worker=0", "Role worker needs at least 1 tasks; 0 would be left"),
        ("worker=3", "worker=3: the role has 3 tasks, so it would not shrink"),
        ("worker=x", "worker=x: after the = a number of tasks is expected"),
        ("n9", "n9: the job does not run on that host"),
        ("n1", "Role ps needs at least 1 tasks; 0 would be left"),
        ("9*n1", "9\\*n1: the job has only 4 there"),
    ],
)
def test_releases_that_are_refused(words: str, why: str) -> None:
    """Each with its reason."""
    story = a_cluster(a_host("n1", 4))
    key = run(story)
    with pytest.raises(Refused, match=why):
        story.do(c.ShrinkJob(c.Target(key.job), words, ANN))


@pytest.mark.parametrize("words", ["all", "worker-0", "worker=1", "1*n1", "n2 n9", "all ^n1", "worker/0"])
def test_a_release_of_hosts_takes_hosts_of_the_job_alone(words: str) -> None:
    """Neither tasks nor sizes, and nothing goes if one word is wrong."""
    story = a_cluster(a_host("n1", 2), a_host("n2", 2))
    key = run(story)
    before = sizes(story, key)
    with pytest.raises(Refused, match=r"the job does not run on that host"):
        story.do(c.ShrinkJob(c.Target(key.job), words, ANN, is_of_hosts=True))
    assert sizes(story, key) == before
    story.do(c.ShrinkJob(c.Target(key.job), "n2", ANN, is_of_hosts=True))
    assert [one.host for one in story.cluster.attempts[key].allocation] == ["n1"]


def test_words_of_a_release_add_up() -> None:
    """Hosts and roles in one list: no task counts twice."""
    story = a_cluster(*(a_host(f"n{n}", 2) for n in range(1, 4)))
    key = run(story, a_task_role("ps", 1, 2), a_task_role("worker", 1, 4))
    assert sizes(story, key) == [2, 4]
    story.do(c.ShrinkJob(c.Target(key.job), "1*n3 worker=2 ps=1", ANN))
    assert [(one.host, one.tasks_by_role) for one in story.cluster.attempts[key].allocation] == [
        ("n1", (1, 0)),
        ("n2", (0, 2)),
    ]


def test_all_leaves_the_minima() -> None:
    """bresize release all."""
    story = a_cluster(a_host("n1", 4))
    key = run(story)
    story.do(c.ShrinkJob(c.Target(key.job), "all", ANN))
    assert sizes(story, key) == [1, 1]


def test_a_request_does_not_shrink_and_others_may_not_ask() -> None:
    """bresize request names the way to give tasks back."""
    story = a_cluster(a_host("n1", 4))
    key = run(story)
    with pytest.raises(Refused, match="bresize release worker=1 gives tasks back"):
        scale(story, key, ("worker", 1), may_shrink=False)
    with pytest.raises(Refused):
        scale(story, key, ("worker", 1), caller=BOB)


def test_a_job_of_fixed_roles_says_why_it_is_not_resized() -> None:
    """And a classic one takes one number."""
    story = a_cluster(a_host("n1", 8))
    key = run(story, PS)
    with pytest.raises(Refused, match="none of its roles has a minimum below its maximum"):
        scale(story, key, ("ps", 1))
    classic = story.run(a_job(tasks_min=1, tasks_max=4, resizable=True))
    with pytest.raises(Refused, match="has no roles"):
        scale(story, classic, ("worker", 1))
    scale(story, classic, ("", 2))
    assert story.cluster.attempts[classic].slots == 2
    scale(story, classic, ("", 4))
    assert story.cluster.attempts[classic].resizing.wish == 4


def test_a_preferred_job_gets_its_room_by_a_shrink() -> None:
    """Roles go down to their minima before a whole job is preempted, and no further."""
    queues = (Queue("high", 50, preempts=(("normal", 0),)), Queue("normal", 30))
    story = TaskStory(a_host("n1", 2), a_host("n2", 2), policy=Policy(queues))
    key = run(story)
    assert sizes(story, key) == [1, 3]
    urgent = story.submit(a_job(1, queue="high"))
    story.plan()
    assert sizes(story, key) == [1, 2]
    adapt(story, key)
    story.stops(key)
    story.plan()
    assert story.where(urgent) == ["n2"]
    assert story.state(key.job) is JobState.RUN
