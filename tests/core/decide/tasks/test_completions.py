"""Completions of a role: each of its tasks runs to its end, those that found no place at the start as well."""

from typing import Any

import pytest

from lavad.core import commands as c
from lavad.core.model import JobState, Key
from lavad.core.model.reasons import Refused
from lavad.core.model.task_rules import TaskAction, TaskEvent
from lavad.core.orders import TasksOrder
from protos.common_pb2 import RESTART_ALWAYS, RESTART_ON_FAILURE
from tests.builders import ANN, a_host
from tests.task_jobs import (
    FIRST,
    TaskStory,
    a_policy,
    a_task_role,
    a_task_spec,
    adapt,
    stage_growth,
    starts,
    submission,
)

S = JobState


def a_story(hosts: int = 1, slots: int = 3) -> TaskStory:
    return TaskStory(*(a_host(f"h{number}", slots) for number in range(1, hosts + 1)))


def run_out(story: TaskStory, key: Key, code: int = 0) -> list[str]:
    """Let all that starts run and end, one task after the other; the phases after each end."""
    found = []
    while story.state(key.job) not in (S.DONE, S.EXIT):
        story.runs(key)
        role, index = min(story.tasks(key).records.alive)
        story.ends(key, role, index, code)
        found.append(story.phases(key))
    return found


def test_a_gang_that_starts_small_owes_all_its_tasks() -> None:
    """Six tasks that may start with three take the places of those that have ended, and the job is done after six."""
    story = a_story()
    key = story.begin(a_task_role(tasks=3, most=6, completions=6))
    assert story.phases(key) == "SSSWWW"
    story.runs(key)
    orders = story.ends(key, 0, 1).orders
    assert starts(orders) == {"h1": [(0, 3, 1)]}
    assert story.phases(key) == "RDRSWW"
    assert story.state(key.job) is S.RUN
    assert len(run_out(story, key)) == 5
    assert story.phases(key) == "DDDDDD"
    assert story.state(key.job) is S.DONE


def test_a_place_is_passed_on_with_its_ports_and_devices() -> None:
    """The next task stands where the ended one stood among its host's tasks, whatever their indices are."""
    story = a_story()
    key = story.begin(a_task_role(tasks=3, most=6, completions=6))
    story.runs(key)
    (order,) = [one for one in story.ends(key, 0, 1).orders if isinstance(one, TasksOrder) and one.start]
    assert order.table[0].parts[0].indices == (0, 3, 2)
    assert order.table[0].parts[0].ports == (9000, 9001, 9002, 9003, 9004, 9005)
    story.runs(key)
    (order,) = [one for one in story.ends(key, 0, 3).orders if isinstance(one, TasksOrder) and one.start]
    assert order.table[0].parts[0].indices == (0, 4, 2)


def test_a_work_queue_runs_so_many_at_once() -> None:
    """Forty completions at a parallelism of three: never more than three alive, and done after forty."""
    story = a_story(slots=8)
    key = story.begin(a_task_role(tasks=3, completions=40))
    assert sum(share.slots for share in story.cluster.attempts[key].allocation) == 3
    phases = run_out(story, key)
    assert all(one.count("S") + one.count("R") <= 3 for one in phases)
    assert len(phases) == 40
    assert story.state(key.job) is S.DONE


def test_a_failed_task_of_a_work_queue_keeps_its_place_for_its_restart() -> None:
    """A restart in place comes before the next task; with none left the place is passed on."""
    story = a_story()
    key = story.begin(a_task_role(tasks=1, completions=3, restart=RESTART_ON_FAILURE, restarts_max=1, success_min=2))
    story.runs(key)
    assert starts(story.ends(key, 0, 0, 1).orders) == {"h1": [(0, 0, 2)]}
    story.runs(key)
    assert starts(story.ends(key, 0, 0, 1).orders) == {"h1": [(0, 1, 1)]}
    run_out(story, key)
    assert story.phases(key) == "EDD"
    assert story.state(key.job) is S.DONE


@pytest.mark.parametrize(("failures", "state"), [(2, S.DONE), (3, S.EXIT)])
def test_the_end_is_judged_when_all_have_ended(failures: int, state: S) -> None:
    """The successes that the role needs are counted over all its tasks, also where the first ones failed."""
    story = a_story()
    key = story.begin(a_task_role(tasks=2, completions=6, success_min=4))
    for count in range(6):
        story.runs(key)
        role, index = min(story.tasks(key).records.alive)
        assert story.state(key.job) is S.RUN
        story.ends(key, role, index, int(count < failures))
    assert story.state(key.job) is state


def test_a_restart_of_the_job_owes_all_its_tasks_again() -> None:
    """Tasks that have ended and left their places wait for their turn like those that never ran."""
    story = a_story()
    restart = a_policy(TaskEvent.FAILED, action=TaskAction.RESTART_JOB)
    key = story.begin(a_task_role(tasks=3, most=6, completions=6), policies=[restart], restarts_max=1)
    story.runs(key)
    story.ends(key, 0, 0)
    story.ends(key, 0, 1)
    assert story.phases(key) == "DDRSSW"
    story.runs(key)
    story.ends(key, 0, 3, 1)
    story.stops(key)
    assert story.phases(key) == "WWSSSW"
    run_out(story, key)
    assert story.phases(key) == "DDDDDD"
    assert story.tasks(key).restarts == 1
    assert [one.run for one in story.tasks(key).records.values()] == [2, 2, 2, 2, 2, 1]


def test_tasks_without_a_place_get_one_as_soon_as_there_is_room() -> None:
    """The job grows by the tasks that wait, and by no more."""
    story = a_story(2)
    blocker = story.begin(a_task_role(tasks=3, success_min=3))
    key = story.begin(a_task_role(tasks=3, most=6, completions=6))
    story.runs(blocker)
    story.runs(key)
    story.ends(key, 0, 0)
    story.runs(key)
    assert story.phases(key) == "DRRRWW"
    for index in range(3):
        story.ends(blocker, 0, index)
    for host in ("h1", "h2"):
        story.released(host, blocker)
    story.plan()
    assert sum(share.slots for share in story.cluster.attempts[key].resizing.growth) == 2
    stage_growth(story, key)
    adapt(story, key)
    assert story.phases(key) == "DRRRSS"
    run_out(story, key)
    assert story.state(key.job) is S.DONE


def test_a_smaller_size_is_all_that_is_owed_then() -> None:
    """A user who wants four of six tasks gets a job that is done after four."""
    story = a_story()
    key = story.begin(a_task_role(tasks=3, most=6, completions=6, success_min=6))
    story.runs(key)
    story.do(c.ScaleJob(story.target(key.job), (("worker", 4),), ANN))
    assert story.tasks(key).owed(0) == 1
    run_out(story, key)
    assert story.phases(key) == "DDDDEE"
    assert story.state(key.job) is S.DONE


def test_a_role_that_follows_another_waits_for_all_its_completions() -> None:
    """``after-done`` means all tasks, not those that happened to have a place."""
    story = a_story(slots=4)
    key = story.begin(a_task_role("work", 2, completions=4), a_task_role("sum", after_done=["work"]))
    for _ in range(3):
        story.runs(key)
        story.ends(key, *min(story.tasks(key).records.alive))
        assert story.phases(key)[-1] == "W"
    story.runs(key)
    story.ends(key, *min(story.tasks(key).records.alive))
    assert story.phases(key) == "DDDDS"


def test_a_role_whose_tasks_may_never_start_does_not_keep_the_job() -> None:
    """Its job ends with the role that it was to follow."""
    story = a_story(slots=4)
    key = story.begin(
        a_task_role("first", 1, success_min=1), a_task_role("rest", 1, completions=4, after_done=["first"])
    )
    story.runs(key)
    story.ends(key, 0, 0, 3)
    assert story.state(key.job) is S.EXIT


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"tasks": 3, "completions": 2}, "fewer than the 3 tasks"),
        ({"tasks": 1, "completions": 50_001}, "more than 50000"),
        ({"tasks": 1, "completions": 2, "launch": FIRST}, "each of whose tasks has a command"),
        ({"tasks": 2, "completions": 2, "spares": 1}, "spares and completions"),
        ({"tasks": 2, "stable_s": 5.0}, "goes with a restart pause"),
    ],
)
def test_completions_that_make_no_sense_are_refused(fields: dict[str, Any], words: str) -> None:
    """One sentence says what is wrong."""
    with pytest.raises(Refused, match=words):
        submission(a_task_spec(a_task_role(**fields)))


# -- pauses ------------------------------------------------------------------------------------------------------------


def test_a_role_has_pauses_of_its_own() -> None:
    """Each failure in a row doubles the pause up to the role's maximum; another role has the job's, or none."""
    story = a_story()
    rules = {"restart": RESTART_ON_FAILURE, "restarts_max": 9, "restart_pause_s": 10.0, "restart_pause_max_s": 30.0}
    key = story.begin(a_task_role("slow", **rules), a_task_role("fast", restart=RESTART_ON_FAILURE, restarts_max=9))
    story.runs(key)
    for pause in (10.0, 20.0, 30.0, 30.0):
        story.ends(key, 0, 0, 1)
        assert story.task(key, 0, 0).not_before == story.now + pause
        story.now += pause
        story.do(c.Tick())
        story.runs(key)
    assert starts(story.ends(key, 1, 0, 1).orders) == {"h1": [(1, 0, 2)]}


def test_a_task_that_is_always_started_anew_pauses_after_each_end() -> None:
    """Also where it ended well: else it would be started as fast as it ends."""
    story = a_story()
    key = story.begin(a_task_role(restart=RESTART_ALWAYS, restarts_max=9, restart_pause_s=10.0))
    story.runs(key)
    assert starts(story.ends(key, 0, 0).orders) == {}
    assert story.task(key, 0, 0).not_before == story.now + 10.0
    assert story.task(key, 0, 0).failures == 1
