"""Large jobs of tasks: the work for each report does not grow with the number of tasks."""

import time
from collections.abc import Iterator

from lavad.core import commands as c
from lavad.core.model import JobState, Key
from lavad.core.model.task_rules import TaskEvent, TaskPhase
from lavad.core.model.task_values import TaskReport
from lavad.core.orders import TasksOrder
from lavad.core.step import step
from tests.builders import a_host
from tests.task_jobs import TaskStory, a_policy, a_task_role, a_task_spec, starts, stops, submission

P, S = TaskPhase, JobState
TASKS, HOSTS = 5000, 100
SECONDS_MAX = 10.0  # of processor time; it takes about two


def _states(story: TaskStory, key: Key, phase: TaskPhase) -> Iterator[c.ReportTasks]:
    """A report of its own for each worker."""
    for task, record in list(story.tasks(key).of_role(1)):
        ended = 0.0 if phase is P.RUNNING else story.now
        yield c.ReportTasks(record.host, key, (TaskReport(task, record.run, phase, 7, story.now, ended),))


def test_five_thousand_tasks_from_dispatch_to_the_end() -> None:
    """Each reports its start and its end in a message of its own."""
    story = TaskStory(*(a_host(f"h{number}", TASKS // HOSTS) for number in range(HOSTS)))
    launcher = a_task_role("launcher", after=["worker"])
    job = story.do(submission(a_task_spec(launcher, a_task_role("worker", TASKS - 1)))).reply.job
    began = time.process_time()
    story.plan()
    key = story.key(job)
    story.stage(key)
    for phase in (P.RUNNING, P.DONE):
        for report in _states(story, key, phase):
            step(story.cluster, report, story.now)
    took_s = time.process_time() - began
    assert story.task(key, 0, 0).phase is P.STARTING  # ordered when the last worker ran
    story.runs(key)
    story.ends(key, 0, 0)
    assert story.state(job) is S.DONE
    assert took_s < SECONDS_MAX, f"it took {took_s:.1f} s"


def test_a_gang_that_loses_a_task_runs_again_on_its_hosts() -> None:
    """All 64 are ended and started anew, in two rounds of orders, without another dispatch."""
    story = TaskStory(*(a_host(f"h{number}", 8) for number in range(8)))
    key = story.begin(a_task_role(tasks=64), policies=[a_policy(TaskEvent.FAILED)], restarts_max=3)
    story.runs(key)
    ordered = story.ends(key, 0, 17, code=1).orders
    assert sum(map(len, stops(ordered).values())) == 63
    orders = [one for one in story.stops(key).orders if isinstance(one, TasksOrder)]
    assert sum(map(len, starts(orders).values())) == 64
    assert {run for runs in starts(orders).values() for _, _, run in runs} == {2}
    story.runs(key)
    assert story.phases(key) == "R" * 64
    assert story.key(key.job) == key
