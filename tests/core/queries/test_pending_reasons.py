"""Pending reasons: each cause, the hosts it excludes, and none once the job could start."""

import pytest

from lavad.core import commands as c
from lavad.core.model import Device
from lavad.core.model.policy import Policy
from lavad.core.model.rules.queues import Queue
from lavad.core.queries.pending_reasons import explain
from protos.common_pb2 import Role
from tests.builders import ROOT, Story, a_cluster, a_host, a_job
from tests.task_jobs import TaskStory, a_task_role, a_task_spec, submission


def reasons(story: Story, job: int, index: int = 0) -> list[tuple[str, tuple[str, ...]]]:
    """(sentence, hosts) of each reason."""
    return [(one.text, one.hosts) for one in explain(story.cluster, story.cluster.jobs[job], index, story.now)]


@pytest.fixture
def story() -> Story:
    """n1 with four slots, n2 with two slots and a GPU."""
    return a_cluster(a_host("n1", 4, memory_mib=4000), a_host("n2", 2, memory_mib=2000, gpus=1))


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (a_job(3, one_host=True, hosts=("n2",)), ("Not specified in job submission", ("n1",))),
        (a_job(3, one_host=True, hosts=("n2",)), ("Job slot limit reached", ("n2",))),
        (a_job(memory_mib=3000, hosts=("n2",)), ("Job's requirements for reserving resource (mem)", ("n2",))),
        (a_job(gpus=1, memory_mib=3000), ("Not enough GPUs on the hosts", ("n1",))),
        (a_job(select="maxslots > 9"), ("Job's resource requirements not satisfied", ("n1", "n2"))),
    ],
)
def test_each_cause_names_its_hosts(story: Story, job: object, expected: tuple[str, tuple[str, ...]]) -> None:
    """A host is excluded by the first cause that holds there."""
    number = story.submit(job)  # type: ignore[arg-type]
    story.plan()
    assert any(text.startswith(expected[0]) and hosts == expected[1] for text, hosts in reasons(story, number))


def test_full_hosts(story: Story) -> None:
    """Slots are held by others."""
    story.run(a_job(6))
    assert reasons(story, story.submit(a_job())) == [("Not enough job slot(s)", ("n1", "n2"))]


def test_too_few_in_all(story: Story) -> None:
    """Each host has free slots, the total is too small; the advice says how many are missing."""
    number = story.submit(a_job(7))
    first = explain(story.cluster, story.cluster.jobs[number], 0, story.now)[0]
    assert first.text == "Not enough job slot(s)"
    assert "7" in first.advice
    assert "6" in first.advice


def test_too_few_in_all_and_some_full(story: Story) -> None:
    """One line for both: the full hosts, and the slots missing on the others together."""
    story.run(a_job(3))
    found = [text for text, _ in reasons(story, story.submit(a_job(6)))]
    assert found == ["Not enough job slot(s)"]


def test_closed_unreachable_avoided(story: Story) -> None:
    """Reasons that lie with the hosts themselves."""
    job = story.submit(a_job())
    story.do(c.CloseHost("n1", ROOT))
    story.do(c.AgentGone("n2", story.incarnations["n2"]))
    assert reasons(story, job) == [
        ("Closed by LSF administrator", ("n1",)),
        ("Unable to reach slave batch server", ("n2",)),
    ]


def test_held_and_started(story: Story) -> None:
    """A held job waits for its user only; a started one has no reason."""
    held = story.submit(a_job(hold=True))
    assert reasons(story, held) == [("The job was suspended by the user while pending", ())]
    assert reasons(story, story.run(a_job()).job) == []


def test_a_fresh_job(story: Story) -> None:
    """It could start, but no pass has tried it yet."""
    assert reasons(story, story.submit(a_job())) == [("New job is waiting for scheduling", ())]


def test_why_the_last_attempt_came_to_nothing(story: Story) -> None:
    """It is shown beside the present reasons."""
    job = story.submit(a_job())
    story.plan()
    story.refused("n1", story.key(job))
    assert "n1: no" in reasons(story, job)[0][0]


def test_an_inactive_queue() -> None:
    """It accepts jobs and starts none."""
    story = a_cluster(policy=Policy(queues=(Queue("normal", active=False),)))
    job = story.submit(a_job())
    story.plan()
    assert story.where(job) == []
    assert reasons(story, job)[0][0] == "The queue is inactivated by the administrator"


def test_no_host_at_all() -> None:
    """The cluster has no hosts."""
    story = Story()
    assert reasons(story, story.submit(a_job())) == [("No host has joined the cluster yet", ())]


def test_room_enough_rules_nothing_out(story: Story) -> None:
    """An array at its own limit has that reason only, whatever its other hosts lack."""
    story.run(a_job(4, hosts=("n1",)))
    number = story.submit(a_job(array="1-3", limit=1))
    story.plan()
    assert [text for text, _ in reasons(story, number, 2)] == ["The job array has reached its running element limit"]


def test_a_span_that_does_not_fit(story: Story) -> None:
    """Enough slots, on too few hosts."""
    story.run(a_job(4, hosts=("n1",)))
    assert reasons(story, story.submit(a_job(2, ptile=1))) == [
        ("Not enough hosts to meet the job's spanning requirement", ()),
        ("Not enough job slot(s)", ("n1",)),
    ]


def test_a_model_of_gpu_that_there_is_not() -> None:
    """Models are named if no host has the one requested, and not if such GPUs are only in use."""
    v100, a100 = Device("Tesla V100", 32_000), Device("NVIDIA A100-SXM4-40GB", 40_000)
    story = a_cluster(a_host("n1", gpus=1, devices=(v100,)), a_host("n2", gpus=2, devices=(a100, v100)), a_host("n3"))
    typo, small = (
        story.submit(a_job(gpus=1, gpu="num=1:gmodel=H100")),
        story.submit(a_job(gpus=1, gpu="num=1:gmodel=A100-80G")),
    )
    for job, asked in ((typo, "H100"), (small, "A100 with 80 GB")):
        told = {one.text: one for one in explain(story.cluster, story.cluster.jobs[job], 0, story.now)}
        model = told["The host has no GPU of the model that the job asks for"]
        assert model.hosts == ("n1", "n2")
        assert model.advice == f"no host has a GPU of model {asked}; there are NVIDIA A100-SXM4-40GB, Tesla V100"
        assert told["Not enough GPUs on the hosts"].hosts == ("n3",)
    story.run(a_job(gpus=1, gpu="num=1:gmodel=A100"))
    late = story.submit(a_job(gpus=1, gpu="num=1:gmodel=A100"))
    told = {one.text: one for one in explain(story.cluster, story.cluster.jobs[late], 0, story.now)}
    model = told["The host has no GPU of the model that the job asks for"]
    assert (model.hosts, model.advice) == (("n1",), "")
    assert told["Not enough GPUs on the hosts"].hosts == ("n2", "n3")


def test_devices_of_the_requested_vendor() -> None:
    """A host that names no vendor has NVIDIA's devices, as those of agents of earlier versions have."""
    other = a_host("n1", gpus=1, devices=(Device("X300", 32_000),), gpu_vendor="other")
    story = a_cluster(other, a_host("n2", gpus=1, devices=(Device("Tesla V100", 32_000),)))
    wish = a_job(gpus=1, gpu="num=1:gvendor=nvidia")
    key = story.run(wish)
    assert [share.host for share in story.cluster.attempts[key].allocation] == ["n2"]
    second = story.submit(wish)
    told = {one.text: one.hosts for one in explain(story.cluster, story.cluster.jobs[second], 0, story.now)}
    assert told["The host has no GPU of the model that the job asks for"] == ("n1",)


# -- gangs -------------------------------------------------------------------------------------------------------------


def _advice(story: TaskStory, *roles: Role) -> list[tuple[str, str]]:
    job = story.do(submission(a_task_spec(*roles))).reply.job
    story.plan()
    found = explain(story.cluster, story.cluster.jobs[job], 0, story.now)
    return [(one.text, one.advice) for one in found]


def test_a_gang_short_of_slots_is_told_how_many() -> None:
    """Slots of a host count once, whatever roles fit there; no span was asked for."""
    story = TaskStory(a_host("h1", 4), a_host("h2", 4))
    story.run(a_job(4))
    (told, *_) = _advice(story, a_task_role("ps", 1), a_task_role("worker", 5))
    assert told == ("Not enough job slot(s)", "it needs 6 slots; the hosts it could use have 4 free")


def test_scattered_slots_are_told_as_slots() -> None:
    """Six are free, but only one task of two slots fits each host of three."""
    story = TaskStory(a_host("h1", 3), a_host("h2", 3))
    (told, *_) = _advice(story, a_task_role("worker", 3, slots_per_task=2))
    assert told == ("Not enough job slot(s)", "its tasks need 2 slots each; the 6 free slots are scattered")


def test_a_gang_that_can_never_start_is_told_so() -> None:
    """The slots of all hosts together, or of the largest, do not suffice, free or not."""
    story = TaskStory(a_host("h1", 4), a_host("h2", 4))
    story.run(a_job(8))
    (told, *_) = _advice(story, a_task_role("worker", 9))
    assert told == (
        "Not enough job slot(s)",
        "it needs 9 slots; the hosts it could use have 8 in all, so that it can't start",
    )
    told_of_task = _advice(story, a_task_role("worker", 1, slots_per_task=6))
    assert ("Job slot limit reached", "it needs 6 slots on one host") in told_of_task
