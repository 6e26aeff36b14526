"""Policies for ``pending`` count from when a job enters its queue, and act there as well."""

from pathlib import Path

import pytest

from lavad.core import commands as c
from lavad.core.model import JobState
from lavad.core.model.task_rules import TaskAction, TaskEvent
from tests.builders import ANN, ROOT, a_host
from tests.store.test_tasks import a_story as a_saved_story
from tests.task_jobs import TaskStory, a_policy, a_task_role, a_task_spec, submission

A, E, S = TaskAction, TaskEvent, JobState


def waiting(action: TaskAction, hosts: int = 0, tasks: int = 2, **rules: int) -> tuple[TaskStory, int]:
    """A job that waits for room, with a policy for 100 s of that."""
    story = TaskStory(*(a_host(f"h{number}", 1) for number in range(1, hosts + 1)))
    policy = a_policy(E.PENDING, action=action, timeout_s=100.0)
    job: int = story.do(submission(a_task_spec(a_task_role(tasks=tasks), policies=[policy], **rules))).reply.job
    return story, job


@pytest.mark.parametrize(("action", "state"), [(A.TERMINATE, S.EXIT), (A.ABORT, S.PSUSP), (A.RESTART_JOB, S.EXIT)])
def test_a_job_that_waits_for_too_long_in_its_queue_meets_its_policy(action: TaskAction, state: JobState) -> None:
    """It is ended with the reason, or held; a restart without any left is a failure."""
    story, job = waiting(action)
    story.wait(99.0)
    assert story.state(job) is S.PEND
    story.wait(1.0)
    assert story.state(job) is state
    end = story.job(job).end
    assert end is None or end.reason == "task worker[0] waited for more than 100 s for a place"


def test_a_restart_in_the_queue_uses_up_one_that_is_left() -> None:
    """With two allowed the third time is too much."""
    story, job = waiting(A.RESTART_JOB, restarts_max=2)
    story.wait(299.0)
    assert story.state(job) is S.PEND
    story.wait(1.0)
    assert story.state(job) is S.EXIT


def test_restarts_in_the_queue_count_after_the_dispatch_as_well() -> None:
    """One of two is used up before a host is open: the job can be restarted once more, and fails with the next."""
    story = TaskStory(a_host("h1", 2))
    policies = [a_policy(E.PENDING, action=A.RESTART_JOB, timeout_s=100.0), a_policy(E.FAILED, action=A.RESTART_JOB)]
    story.do(c.CloseHost("h1", ROOT))
    job = story.do(submission(a_task_spec(a_task_role(tasks=2), policies=policies, restarts_max=2))).reply.job
    for _ in range(15):
        story.wait(10.0)
        story.hear("h1")
    assert story.job(job).start_conditions.restarts == 1
    story.do(c.OpenHost("h1", ROOT))
    story.plan()
    key = story.key(job)
    assert story.tasks(key).restarts == 1
    story.stage(key)
    story.runs(key)
    story.ends(key, 0, 0, code=1)
    assert (story.tasks(key).restarts, story.tasks(key).verdict) == (2, None)


def test_a_job_that_is_requeued_by_its_user_has_all_its_restarts_again() -> None:
    """Those that were used up in the queue are forgotten with it."""
    story, job = waiting(A.RESTART_JOB, restarts_max=1)
    story.wait(200.0)
    assert story.state(job) is S.EXIT
    assert story.job(job).end.reason == "task worker[0] waited for more than 100 s for a place, after 1 restart"
    story.do(c.RequeueJob(c.Target(job), ANN, frozenset({S.EXIT})))
    story.wait(199.0)
    assert story.state(job) is S.PEND
    story.wait(1.0)
    assert story.state(job) is S.EXIT


def test_a_job_that_its_policy_completes_in_the_queue_is_done() -> None:
    """As in Volcano, where a pending job becomes Completed; jobs that wait for its success may start."""
    story, job = waiting(A.COMPLETE)
    story.wait(100.0)
    assert story.state(job) is S.DONE
    assert story.job(job).end.reason == "task worker[0] waited for more than 100 s for a place"


def test_the_time_in_the_queue_counts_after_the_dispatch() -> None:
    """One task has no place still: 60 s in the queue and 40 after it."""
    story = TaskStory(a_host("h1", 1))
    policy = a_policy(E.PENDING, action=A.TERMINATE, timeout_s=100.0)
    spec = a_task_spec(a_task_role(tasks=1, most=2), policies=[policy])
    story.do(c.CloseHost("h1", ROOT))
    job = story.do(submission(spec)).reply.job
    for _ in range(6):
        story.wait(10.0)
        story.hear("h1")
    story.do(c.OpenHost("h1", ROOT))
    story.plan()
    key = story.key(job)
    story.stage(key)
    story.runs(key)
    for _ in range(4):
        assert not story.tasks(key).verdict
        story.now += 10.0
        story.hear("h1")
        story.wait(0)
    assert story.tasks(key).verdict


def test_the_time_counts_anew_when_a_job_comes_back_to_its_queue() -> None:
    """After a hold; while it is held, it does not wait for a place."""
    story, job = waiting(A.TERMINATE)
    story.do(c.StopJob(c.Target(job), ANN))
    story.wait(500.0)
    assert story.state(job) is S.PSUSP
    story.do(c.ResumeJob(c.Target(job), ANN))
    story.wait(99.0)
    assert story.state(job) is S.PEND
    story.wait(1.0)
    assert story.state(job) is S.EXIT


def test_restarts_in_the_queue_go_on_over_a_restart_of_the_master(tmp_path: Path) -> None:
    """They are in the job's row, as is the end of a job that its policy completes."""
    with a_saved_story(f"{tmp_path}/lava.db") as story:
        again = a_policy(E.PENDING, action=A.RESTART_JOB, timeout_s=100.0)
        job = story.do(submission(a_task_spec(a_task_role(tasks=99), policies=[again], restarts_max=2))).reply.job
        done = a_policy(E.PENDING, action=A.COMPLETE, timeout_s=150.0)
        other = story.do(submission(a_task_spec(a_task_role(tasks=99), policies=[done]))).reply.job
        story.wait(250.0)
        story.restart()
        assert story.state(other) is S.DONE
        story.wait(49.0)
        assert story.state(job) is S.PEND
        story.wait(1.0)
        assert story.state(job) is S.EXIT


def test_the_time_goes_on_over_a_restart_of_the_master(tmp_path: Path) -> None:
    """It counts from the newest return to the queue."""
    with a_saved_story(f"{tmp_path}/lava.db") as story:
        policy = a_policy(E.PENDING, action=A.TERMINATE, timeout_s=100.0)
        job = story.do(submission(a_task_spec(a_task_role(tasks=99), policies=[policy]))).reply.job
        story.do(c.StopJob(c.Target(job), ANN))
        story.wait(50.0)
        story.do(c.ResumeJob(c.Target(job), ANN))
        story.restart()
        story.wait(99.0)
        assert story.state(job) is S.PEND
        story.wait(1.0)
        assert story.state(job) is S.EXIT
