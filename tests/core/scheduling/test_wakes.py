"""Conditions under which a pass begins: each is preceded by the question whether there is work, and by nothing else."""

from dataclasses import replace

from lavad.core import commands as c
from lavad.core.model import Alternative, JobState, Request
from lavad.core.model.policy import Policy
from lavad.core.model.rules.queues import Queue
from lavad.core.model.rules.resources import Limit
from lavad.core.model.task_rules import TaskEvent
from lavad.core.model.windows import Window
from tests.builders import BEGIN, ROOT, Story, a_host, a_job, a_role
from tests.task_jobs import TaskStory, a_policy, a_task_role, adapt


def is_idle(story: Story) -> bool:
    """True if no pass would begin now."""
    return not story.worklist.has_work(story.cluster, story.now)


def test_new_rules_let_a_pass_begin() -> None:
    """Nothing else has changed: whatever was decided under the former rules is looked at again."""
    policy = Policy(queues=(Queue("normal", backfill_depth=1),))
    story = Story(a_host("n1", 1), policy=policy)
    story.run(a_job())
    story.submit(a_job())
    story.plan()
    assert is_idle(story)
    story.do(c.Reconfigure(replace(policy, clean_period_s=60.0)))
    assert not is_idle(story)
    story.plan()
    assert is_idle(story)


def test_an_alternative_whose_time_has_come_lets_a_pass_begin() -> None:
    """Of two requests in braces the second counts only after a delay; no event falls on its end."""
    story = Story(a_host("n1", 1))
    roles, others = (a_role(1, select="maxslots > 9"),), (a_role(1),)
    job = story.submit(a_job(request=Request(roles, alternatives=(Alternative(others, delay_s=30),))))
    story.plan()
    assert is_idle(story)
    story.now += 29
    story.hear("n1")
    assert is_idle(story)
    story.now += 2
    assert not is_idle(story)
    story.plan()
    assert story.state(job) is JobState.STAGING


def test_growth_that_is_due_lets_a_pass_begin() -> None:
    """A waiting job that is killed frees nothing; some time later the elastic job is looked at by itself."""
    story = Story(a_host("n1", 2), a_host("n2", 2))
    first = story.run(a_job(2, hosts=("n1",)))
    elastic = story.run(a_job(tasks_min=1, tasks_max=4, resizable=True))
    waiting = story.submit(a_job(3))
    story.plan()
    story.finished("n1", first)
    story.plan()
    story.kill(waiting)
    story.plan()
    assert not story.cluster.attempts[elastic].resizing.growth
    assert is_idle(story)
    story.now += 3
    story.hear("n1", "n2")
    assert not is_idle(story)
    story.plan()
    assert story.cluster.attempts[elastic].resizing.growth


def test_the_end_of_a_limits_window_lets_a_pass_begin() -> None:
    """Until then one slot is all that jobs may have; no event falls on the end of the window."""
    minute = int(BEGIN // 60 + 4 * 24 * 60) % (7 * 24 * 60)  # of the week: the first day of 1970 was a Thursday
    night = Limit("night", slots=1, windows=(Window(minute - 5, minute + 10),))
    story = Story(a_host("n1", 2), policy=Policy(limits=(night,)))
    story.run(a_job())
    job = story.submit(a_job())
    story.plan()
    assert is_idle(story)
    story.now += 5 * 60
    story.hear("n1")
    assert is_idle(story)
    story.now += 6 * 60
    assert not is_idle(story)
    story.plan()
    assert story.state(job) is JobState.STAGING


def test_a_replacement_that_failed_is_tried_again_after_its_delay() -> None:
    """The host that was to take the place of a lost one refused; another is free all the time."""
    story = TaskStory(*(a_host(f"h{number}", 1) for number in range(1, 6)))
    key = story.begin(a_task_role(tasks=3), policies=[a_policy(TaskEvent.HOST_LOST)], restarts_max=3)
    story.runs(key)
    story.released("h2", key)
    story.stops(key)
    adapt(story, key)
    story.plan()
    (new,) = (share.host for share in story.cluster.attempts[key].resizing.growth)
    story.refused(new, key)
    story.plan()
    assert story.cluster.attempts[key].resizing.growth == ()
    assert is_idle(story)
    story.now = story.cluster.attempts[key].resizing.retry_at
    assert not is_idle(story)
    story.plan()
    assert story.cluster.attempts[key].resizing.growth


def test_a_reservation_whose_time_has_passed_lets_a_pass_begin() -> None:
    """The job that was to end by then runs on: those that the reservation holds back are asked again."""
    story = Story(a_host("n1", 2), policy=Policy(queues=(Queue("normal", backfill_depth=1),)))
    story.run(a_job(run_limit_s=600))
    story.submit(a_job(2, run_limit_s=600))
    story.submit(a_job(1, run_limit_s=1200))
    story.plan()
    assert story.worklist.reservation_table.deferred
    story.now += 590
    story.hear("n1")
    assert is_idle(story)
    story.now += 20
    assert not is_idle(story)


def test_a_value_that_a_job_waits_for_lets_a_pass_begin() -> None:
    """Another load of a host, where the condition of a waiting job names that index."""
    story = Story(a_host("n1", 2))
    table, row = story.cluster.table, story.cluster.hosts["n1"].row
    table.set_load(row, [one + 1 for one in table.load[row]])
    story.submit(a_job(select="r1m<0.1"))
    story.plan()
    assert is_idle(story)
    table.set_load(row, [0.0 for _ in table.load[row]])
    assert not is_idle(story)


def test_a_closed_host_lets_a_pass_begin_where_jobs_are_held_back() -> None:
    """The reservation that holds them back may have been for that host."""
    policy = Policy(queues=(Queue("normal", backfill_depth=1, is_exclusive_allowed=True),))
    story = Story(a_host("n1", 2), a_host("n2", 1), policy=policy)
    story.run(a_job(run_limit_s=600, hosts=("n1",)))
    story.submit(a_job(2, run_limit_s=600, one_host=True))
    story.submit(a_job(1, run_limit_s=1200, hosts=("n1",)))
    story.plan()
    assert story.worklist.reservation_table.deferred
    assert is_idle(story)
    story.do(c.CloseHost("n2", ROOT))
    assert not is_idle(story)
