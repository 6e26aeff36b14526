"""Elastic growth delays no pending job: what becomes free is first of all for those that wait for room."""

from lavad.core import commands as c
from lavad.core.model import JobState
from lavad.core.model.policy import Policy
from lavad.core.model.rules.queues import Queue
from tests.builders import ROOT, Story, a_host, a_job
from tests.task_jobs import TaskStory, a_task_role, leave

POLICY = Policy(queues=(Queue("urgent", 50), Queue("normal", 30), Queue("low", 10)))


def test_room_that_comes_together_bit_by_bit_is_not_grown_into() -> None:
    """The waiting job starts when the last part is free; before, the elastic job would have taken the first."""
    story = Story(a_host("n1", 2), a_host("n2", 2), a_host("n3", 2), policy=POLICY)
    first, second = story.run(a_job(2, hosts=("n1",))), story.run(a_job(2, hosts=("n2",)))
    elastic = story.run(a_job(tasks_min=1, tasks_max=6, resizable=True))
    waiting = story.submit(a_job(4))
    story.plan()
    story.finished("n1", first)
    story.plan()
    assert story.cluster.attempts[elastic].slots == 2
    story.finished("n2", second)
    story.plan()
    assert story.state(waiting) is JobState.STAGING
    story.kill(waiting)


def test_jobs_of_less_urgent_queues_and_impossible_ones_hold_nothing_up() -> None:
    """A job that the cluster can never run does not wait for room."""
    story = Story(a_host("n1", 2), a_host("n2", 2), policy=POLICY)
    first = story.run(a_job(2, hosts=("n1",)))
    elastic = story.run(a_job(tasks_min=1, tasks_max=4, resizable=True, queue="normal"))
    story.submit(a_job(3, queue="low"))
    story.submit(a_job(64, queue="urgent"))
    story.submit(a_job(select="type==SPARC", queue="urgent"))
    story.plan()
    story.finished("n1", first)
    story.plan()
    assert story.cluster.attempts[elastic].resizing.growth


def test_a_job_of_a_queue_group_waits_at_its_groups_place() -> None:
    """QUEUE_GROUP: its queue's own PRIORITY does not say whether the elastic job goes before it."""
    queues = (Queue("urgent", 50), Queue("normal", 30), Queue("low", 10, group_priority=50))
    story = Story(a_host("n1", 2), a_host("n2", 2), policy=Policy(queues=queues))
    first = story.run(a_job(2, hosts=("n1",)))
    elastic = story.run(a_job(tasks_min=1, tasks_max=4, resizable=True, queue="normal"))
    story.submit(a_job(3, queue="low"))
    story.plan()
    story.finished("n1", first)
    story.plan()
    assert not story.cluster.attempts[elastic].resizing.growth


def test_growth_goes_on_when_the_waiting_job_is_killed() -> None:
    """Nothing becomes free by that, so growth looks again by itself."""
    story = Story(a_host("n1", 2), a_host("n2", 2), policy=POLICY)
    first = story.run(a_job(2, hosts=("n1",)))
    elastic = story.run(a_job(tasks_min=1, tasks_max=4, resizable=True))
    waiting = story.submit(a_job(3))
    story.plan()
    story.finished("n1", first)
    story.plan()
    assert not story.cluster.attempts[elastic].resizing.growth
    story.kill(waiting)
    story.now += 3
    story.hear("n1", "n2")
    assert story.worklist.elastic_growth.has_work(story.cluster, story.now)
    story.plan()
    assert story.cluster.attempts[elastic].resizing.growth


def test_a_job_that_waits_for_a_closed_host_holds_nothing_up() -> None:
    """It waited for room while the host was open; what becomes free elsewhere is of no use to it until it is again."""
    story = Story(a_host("n1", 2), a_host("n2", 2), a_host("n3", 2), policy=POLICY)
    first, second = story.run(a_job(2, hosts=("n1",))), story.run(a_job(2, hosts=("n2",)))
    elastic = story.run(a_job(tasks_min=1, tasks_max=6, resizable=True))
    story.submit(a_job(4, queue="urgent", hosts=("n1", "n2")))
    story.plan()
    story.finished("n1", first)
    story.plan()
    assert not story.cluster.attempts[elastic].resizing.growth
    story.do(c.CloseHost("n2", ROOT))
    story.finished("n2", second)
    story.plan()
    assert story.cluster.attempts[elastic].resizing.growth


def test_tasks_that_have_yet_to_run_go_before_pending_jobs_of_their_queue() -> None:
    """They were asked for at the submission; an elastic job would wait. A more urgent queue comes first."""
    for other, is_first in (("low", True), ("normal", True), ("urgent", False)):
        story = TaskStory(a_host("n1", 3), policy=POLICY)
        blocker = story.run(a_job(2))
        key = story.begin(a_task_role(tasks=1, most=3, completions=3))
        story.runs(key)
        waiting = story.submit(a_job(queue=other))
        story.plan()
        story.finished("n1", blocker)
        story.released("n1", blocker)
        story.plan()
        growing = story.cluster.attempts[key].resizing
        assert (sum(share.slots for share in (*growing.growth, *growing.added)) == 2) is is_first
        assert (story.state(waiting) is JobState.PEND) is is_first


def test_places_that_no_task_needs_any_more_are_given_up() -> None:
    """The job keeps those of tasks that run, and its minimum; what has ended stays in its lists."""
    story = TaskStory(a_host("n1", 4), policy=POLICY)
    key = story.begin(a_task_role(tasks=1, most=4, completions=5))
    story.runs(key)
    for index in range(3):
        story.ends(key, 0, index)
    story.runs(key)
    assert story.phases(key) == "DDDRR"
    story.do(c.Tick())
    leave(story, key)
    assert story.cluster.attempts[key].slots == 2
    assert story.phases(key) == "DDDRR"
    waiting = story.submit(a_job(2))
    story.plan()
    assert story.state(waiting) is JobState.STAGING
    story.ends(key, 0, 3)
    story.ends(key, 0, 4)
    assert story.state(key.job) is JobState.DONE
