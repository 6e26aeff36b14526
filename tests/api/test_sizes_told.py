"""Sizes of roles in the reply to a change of a job's size (lavactl scale): from what to what."""

from lavad.api.jobs import resize
from lavad.core import commands as c
from protos import jobs_pb2 as pb
from tests.builders import ANN, a_host, a_job
from tests.task_jobs import TaskStory, a_task_role

PS = a_task_role("ps")
WORKERS = a_task_role("worker", 1, 3)
Told = list[tuple[str, int, int]]


def told(story: TaskStory, job: int, command: c.Command, *sizes: tuple[str, int]) -> Told:
    """Carry out the command as the service does; role, size before and size after of each role of the reply."""
    known, reply = resize.Sizes(story.cluster, job), pb.ResizeReply()
    gives = story.do(command).reply
    known.tell(reply, [pb.RoleSize(role=role, tasks=tasks) for role, tasks in sizes], gives)
    return [(one.role, one.tasks, two.tasks) for one, two in zip(reply.before, reply.after, strict=True)]


def test_roles_that_are_named_or_change_are_told() -> None:
    """Sizes asked for, also where one stays; after the release of tasks only what they leave."""
    story = TaskStory(a_host("n1", 4))
    key = story.begin(PS, WORKERS)
    story.runs(key)
    target = c.Target(key.job)
    asked = (("worker", 2), ("ps", 1))
    assert told(story, key.job, c.ScaleJob(target, asked, ANN, True), *asked) == [("ps", 1, 1), ("worker", 3, 2)]


def test_what_a_release_leaves_is_told() -> None:
    """The role of the tasks that go, and no other."""
    story = TaskStory(a_host("n1", 4))
    key = story.begin(PS, WORKERS)
    story.runs(key)
    assert told(story, key.job, c.ShrinkJob(c.Target(key.job), "worker=1", ANN)) == [("worker", 3, 1)]


def test_a_job_without_roles_has_one_size() -> None:
    """It is told without a name."""
    story = TaskStory(a_host("n1", 4))
    key = story.run(a_job(tasks_min=1, tasks_max=4, resizable=True))
    command = c.ScaleJob(c.Target(key.job), (("", 2),), ANN, True)
    assert told(story, key.job, command, ("", 2)) == [("", 4, 2)]
