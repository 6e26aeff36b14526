"""Ports that a program names itself: each host has one of each number, which a task takes like any other resource."""

from lavad.core.model import JobState
from lavad.core.queries.pending_reasons import explain
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.placement.growth import further_tasks
from protos.common_pb2 import LAUNCH_FIRST, PortRequest, Role
from tests.builders import a_host
from tests.task_jobs import TaskStory, a_task_role, a_task_spec, submission


def a_role(tasks: int = 1, number: int = 2222, name: str = "worker", **fields: object) -> Role:
    """Role whose program binds a fixed port."""
    return a_task_role(name, tasks, ports=[PortRequest(name="x", number=number)], **fields)


def hosts_of(story: TaskStory, job: int) -> list[str]:
    """Host of each share of the job's attempt."""
    return [share.host for share in story.cluster.attempts[story.key(job)].allocation]


def submit(story: TaskStory, *roles: Role) -> int:
    """Submit a job of tasks and plan."""
    job = int(story.do(submission(a_task_spec(*roles))).reply.job)
    story.plan()
    return job


def told(story: TaskStory, job: int) -> list[tuple[str, tuple[str, ...]]]:
    """Reasons of a pending job, with their hosts."""
    return [(one.text, one.hosts) for one in explain(story.cluster, story.cluster.jobs[job], 0, story.now)]


def test_tasks_that_name_one_port_are_spread_over_hosts() -> None:
    """Of one role and of several, although all would have slots on one host."""
    story = TaskStory(a_host("h1", 8), a_host("h2", 8), a_host("h3", 8))
    job = submit(story, a_role(1, name="ps"), a_role(2))
    assert hosts_of(story, job) == ["h1", "h2", "h3"]


def test_jobs_that_name_one_port_are_on_different_hosts() -> None:
    """The third waits for the port, and starts when a job that has it is over."""
    story = TaskStory(a_host("h1", 8), a_host("h2", 8))
    jobs = [submit(story, a_role()) for _ in range(3)]
    assert [hosts_of(story, job) for job in jobs[:2]] == [["h1"], ["h2"]]
    assert story.state(jobs[2]) is JobState.PEND
    reason = "A port that the job's tasks name is in use on the host (port 2222)"
    assert told(story, jobs[2]) == [(reason, ("h1", "h2"))]
    other = submit(story, a_role(number=2223))
    assert hosts_of(story, other) == ["h1"]
    key = story.key(jobs[1])
    story.stage(key)
    story.finished("h2", key)
    story.plan()
    assert hosts_of(story, jobs[2]) == ["h2"]


def test_a_job_with_too_few_hosts_is_told_which_port_it_is() -> None:
    """It has the slots, and would wait for ever."""
    story = TaskStory(a_host("h1", 8), a_host("h2", 8))
    job = submit(story, a_role(3))
    reason = "Not enough hosts for tasks that name the same port (port 2222: each host has it once)"
    assert told(story, job) == [(reason, ())]


def test_tasks_without_a_fixed_port_are_not_charged() -> None:
    """Any port, or a number that is only preferred, keeps nothing from others."""
    story = TaskStory(a_host("h1", 8))
    for wish in (PortRequest(name="x"), PortRequest(name="x", number=2222, is_preferred=True)):
        job = submit(story, a_task_role("worker", 3, ports=[wish]))
        assert hosts_of(story, job) == ["h1"]
        assert not story.cluster.attempts[story.key(job)].allocation[0].resources


def test_a_process_that_stands_for_several_tasks_has_the_port_once() -> None:
    """Launched on the first host only, a role of three tasks fits on one host."""
    story = TaskStory(a_host("h1", 8))
    assert hosts_of(story, submit(story, a_role(3, launch=LAUNCH_FIRST))) == ["h1"]


def test_ports_count_when_a_job_grows() -> None:
    """Further tasks of a job that has the port on its host go to others, one to each."""
    story = TaskStory(a_host("h1", 8), a_host("h2", 8), a_host("h3", 8))
    key = story.begin(a_task_role("worker", 1, 4, ports=[PortRequest(name="x", number=2222)]))
    attempt, request = story.cluster.attempts[key], story.cluster.jobs[key.job].shared.request
    held = attempt.allocation[:1]
    for share in attempt.allocation[1:]:
        story.cluster.table.give_back(story.cluster.table.rows[share.host], share, False)
    found = further_tasks(FreeResources(story.cluster.table), request, held, frozenset(), [3])
    assert [(share.host, share.tasks_by_role) for share in found] == [("h2", (1,)), ("h3", (1,))]


def test_the_port_of_a_host_is_forgotten_when_it_is_free() -> None:
    """Whatever numbers jobs name, the master keeps only those that are taken."""
    story = TaskStory(a_host("h1", 8))
    for number in range(3000, 3020):
        key = story.begin(a_role(number=number))
        assert list(story.cluster.table.site._ports) == [f"port.{number}"]
        story.finished("h1", key)
    assert not story.cluster.table.site._ports
