"""Submission and modification: refusals, and retries without a second job."""

from dataclasses import replace

import pytest

from lavad.core import commands as c
from lavad.core.events import NewJob
from lavad.core.model import JobState, RoleRequest
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.queues import JobDefaults, Queue
from tests.builders import ANN, BOB, Story, a_cluster, a_host, a_job, a_role


@pytest.fixture
def story() -> Story:
    """Two hosts of four slots."""
    return a_cluster()


def test_a_retry_gets_the_same_job(story: Story) -> None:
    """A known request id makes no second job."""
    assert story.submit(a_job(request_id=b"one")) == story.submit(a_job(request_id=b"one"))
    assert len(story.cluster.jobs) == 1


@pytest.mark.parametrize(
    ("job", "sentence"),
    [
        (a_job(queue="nowhere"), "nowhere: No such queue"),
        (a_job(hosts=("nowhere",)), "nowhere: Bad host name"),
        (a_job(0), "Bad processor number"),
        (a_job(tasks_min=3, tasks_max=2), "Bad processor number"),
        (a_job(queue="short", run_limit_s=1000), "RUNLIMIT"),
        (a_job(priority=50), "Job priority control undefined"),
        (a_job()._replace(indices=(range(0, 3),)), "indices start at 1"),
        (a_job()._replace(indices=(range(1, 10**9),)), "index too large"),
        (a_job()._replace(indices=(range(5, 5),)), "array index error"),
        (a_job()._replace(indices=(range(3, 0, -1),)), "array index error"),
    ],
)
def test_refused(story: Story, job: object, sentence: str) -> None:
    """The refusal is one sentence, and nothing has changed."""
    with pytest.raises(Refused, match=sentence):
        story.do(c.SubmitJob(job, ANN))  # type: ignore[arg-type]
    assert not story.cluster.jobs


def test_a_job_without_roles_is_refused(story: Story) -> None:
    """There are no tasks to place."""
    job = a_job()
    nothing = job._replace(shared=replace(job.shared, request=replace(job.shared.request, roles=())))
    with pytest.raises(Refused, match="no tasks"):
        story.do(c.SubmitJob(nothing, ANN))


def test_a_queue_gives_its_limit(story: Story) -> None:
    """A job without one of its own gets it."""
    assert story.job(story.submit(a_job(queue="short"))).shared.run_limit_s == 900


def test_a_change_keeps_to_the_queue_s_limit_too(story: Story) -> None:
    """bmod can't do what bsub can't."""
    job = story.submit(a_job())
    with pytest.raises(Refused, match="RUNLIMIT"):
        change(story, job, a_job(queue="short", run_limit_s=1000), "queues", "run_limit_s")
    change(story, job, a_job(queue="short"), "queues")
    assert story.job(job).shared.run_limit_s == 900


def change(story: Story, job: int, new: NewJob, *fields: str, asked: c.Asked = c.NOTHING_MORE) -> None:
    """bmod."""
    story.do(c.ModifyJob(story.target(job), new, ANN, "", frozenset(fields), asked=asked))


def test_a_change_keeps_to_the_queue_s_size_and_kind_too() -> None:
    """PROCLIMIT and EXCLUSIVE of the queue apply, also through a change of the queue."""
    small = Queue("small", is_exclusive_allowed=False, defaults=JobDefaults(tasks_max=2))
    story = a_cluster(policy=Policy(queues=(small, Queue("normal"))))
    job, other = story.submit(a_job(queue="small")), story.submit(a_job(4))
    with pytest.raises(Refused, match="Too many processors"):
        change(story, job, a_job(4, queue="small"), "roles.tasks")
    with pytest.raises(Refused, match="EXCLUSIVE"):
        change(story, job, a_job(queue="small", exclusive=True), "exclusive")
    with pytest.raises(Refused, match="Too many processors"):
        change(story, other, a_job(4, queue="small"), "queues")


def test_a_change_of_something_else_keeps_the_queue_s_default_size() -> None:
    """A job without a size gets its queue's, also under another name."""
    queue = Queue("normal", defaults=JobDefaults(tasks_min=1, tasks_default=3, tasks_max=4))
    story = a_cluster(policy=Policy(queues=(queue,)))
    no_size = c.Asked(is_size_given=False)
    job = story.do(c.SubmitJob(a_job(), ANN, no_size)).reply.job
    change(story, job, a_job(name="other"), "name", asked=no_size)
    assert story.job(job).shared.request.roles[0].tasks_max == 3


def test_a_change_of_something_else_keeps_the_queue() -> None:
    """It also stays if its queue is closed by now, or if another candidate would accept it."""
    closed = Queue("b", open=False)
    story = a_cluster(policy=Policy(queues=(Queue("a"), Queue("b"))))
    job = story.submit(a_job(queue="b"))
    story.do(c.Reconfigure(Policy(queues=(Queue("a"), closed))))
    change(story, job, a_job(queue="a", name="other"), "name")
    assert story.job(job).shared.queue == "b"
    assert story.job(job).words["name"] == "other"


def test_an_array_does_not_become_resizable() -> None:
    """Nor can one be submitted so."""
    story = a_cluster()
    job = story.submit(a_job(array="1-3"))
    with pytest.raises(Refused, match="-ar"):
        change(story, job, a_job(array="1-3", tasks_min=1, tasks_max=3, resizable=True), "resizable", "roles.tasks")


def test_only_the_owner_may_change(story: Story) -> None:
    """Or an administrator."""
    job = story.submit(a_job())
    with pytest.raises(Refused, match="permission"):
        story.do(c.ModifyJob(story.target(job), a_job(2), BOB, "n"))


def test_a_held_job_waits_until_it_is_freed(story: Story) -> None:
    """bsub -H, bresume."""
    job = story.submit(a_job(hold=True))
    story.plan()
    assert story.state(job) is JobState.PSUSP
    story.do(c.ResumeJob(story.target(job), ANN))
    story.plan()
    assert story.state(job) is JobState.STAGING


def test_a_changed_array_gives_its_hosts_back_as_it_took_them() -> None:
    """An element holds a whole host when the array ceases to be exclusive: the host is open again afterwards."""
    story = a_cluster(a_host("n1"))
    job = story.submit(a_job(array="1-2", exclusive=True))
    story.plan()
    story.do(c.ModifyJob(story.target(job), a_job(array="1-2"), ANN, "x"))
    key = story.key(job, 1)
    story.started("n1", key)
    story.finished("n1", key)
    story.plan()
    assert story.state(job, 2) is JobState.STAGING


def test_a_forgotten_job_gives_its_host_back() -> None:
    """The record of an exclusive job has left memory long before its host comes back and releases it."""
    story = a_cluster(a_host("n1"))
    key = story.run(a_job(exclusive=True))
    story.kill(key.job, remove=True)
    story.wait(story.cluster.policy.clean_period_s + 100)
    assert key.job not in story.cluster.jobs
    story.back("n1")
    assert not story.cluster.table.taken_whole[story.cluster.hosts["n1"].row]


def test_a_lower_limit_of_an_array_is_kept_from_then_on(story: Story) -> None:
    """Running elements beyond it go on; none starts until the number has fallen below it."""
    job = story.submit(a_job(array="1-9", limit=4))
    story.plan()
    assert len(story.array(job).live) == 4
    story.do(c.ModifyJob(story.target(job), a_job(array="1-9", limit=2), ANN, "J"))
    story.plan()
    for index in (1, 2, 3):
        key = story.key(job, index)
        story.started(story.where(job, index)[0], key)
        story.finished(story.where(job, index)[0], key)
        story.plan()
    assert len(story.array(job).live) == 2


def test_roles_are_one_job(story: Story) -> None:
    """All roles start together, or none."""
    roles: tuple[RoleRequest, ...] = (a_role(3, one_host=True), a_role(6))
    job = story.submit(a_job(roles=roles))
    story.plan()
    assert story.state(job) is JobState.PEND
    story.join(a_host("n3"))
    story.plan()
    assert story.state(job) is JobState.STAGING


def test_of_two_jobs_of_one_name_that_is_to_be_unique_one_is_taken() -> None:
    """The first one, also at the same moment; another user, or an ended job, does not count, a retry does."""
    story = a_cluster(a_host("n1"))

    def hand_in(caller: c.Caller = ANN, request: bytes = b"", array: str = "") -> int:
        new = a_job(caller=caller, name="mnist", request_id=request, array=array)
        command = c.SubmitJob(new, caller, has_unique_name=True)
        number: int = story.do(command).reply.job
        return number

    first = hand_in(request=b"1")
    assert hand_in(request=b"1") == first
    with pytest.raises(Refused, match=f"Your job <{first}> of the name mnist has not ended yet"):
        hand_in()
    story.submit(a_job(caller=BOB, command="mnist"))  # has no name to be unique
    array = hand_in(BOB, array="1-2")
    with pytest.raises(Refused, match=f"<{array}>"):
        hand_in(BOB)
    story.kill(first)
    assert hand_in() > array
