"""Refusals of users who neither own a job nor administer it; who does: cluster, queue and group administrators."""

import pytest

from lavad.core import commands as c
from lavad.core.commands import Caller, Target
from lavad.core.model import JobState
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import Queue
from lavad.core.model.rules.users import GroupRow
from tests.builders import Story, a_cluster, a_host, a_job

QUEUE_ADMINISTRATOR, GROUP_ADMINISTRATOR, BOB = Caller("queen", 1002), Caller("head", 1003), Caller("bob", 1001)
GROUP = GroupRow("chem", ("ann",), administrators=frozenset({"head"}))
OTHERS = GroupRow("bio", ("bob",), administrators=frozenset({"warden"}))


def a_house() -> Story:
    """A queue and a group with administrators of their own, and another group with another one."""
    policy = Policy(
        queues=(
            Queue("normal", administrators=frozenset({"queen"})),
            Queue("other", administrators=frozenset({"bob"})),
        ),
        user_groups={"chem": Names(False, frozenset({"ann"})), "bio": Names(False, frozenset({"bob"}))},
        user_group_rows=(GROUP, OTHERS),
    )
    return a_cluster(a_host("n1"), policy=policy)


@pytest.mark.parametrize("caller", [QUEUE_ADMINISTRATOR, GROUP_ADMINISTRATOR])
def test_administrators_of_queue_and_group_control_its_jobs(caller: Caller) -> None:
    """They stop, resume, requeue and end jobs; the owner cannot resume what they have stopped."""
    story = a_house()
    job = story.submit(a_job())
    story.do(c.StopJob(Target(job), caller))
    assert story.cluster.jobs[job].state is JobState.PSUSP
    with pytest.raises(Refused, match="administrator"):
        story.do(c.ResumeJob(Target(job), Caller("ann", 1000)))
    story.do(c.ResumeJob(Target(job), caller))
    assert story.cluster.jobs[job].state is JobState.PEND
    story.kill(job, caller=caller)
    assert story.cluster.jobs[job].state is JobState.EXIT


@pytest.mark.parametrize("caller", [BOB, Caller("warden", 1004)])
def test_administrators_of_other_queues_and_groups_do_not(caller: Caller) -> None:
    """They are users like all others here."""
    story = a_house()
    job = story.submit(a_job())
    for command in (c.StopJob(Target(job), caller), c.KillJob(Target(job), caller)):
        with pytest.raises(Refused, match="User permission denied"):
            story.do(command)


@pytest.mark.parametrize("caller", [QUEUE_ADMINISTRATOR, GROUP_ADMINISTRATOR])
def test_what_runs_as_the_owner_is_not_theirs(caller: Caller) -> None:
    """To change a job's command would be to run one as its owner."""
    story = a_house()
    job = story.submit(a_job())
    changed = a_job(name="changed")
    with pytest.raises(Refused, match="User permission denied"):
        story.do(c.ModifyJob(Target(job), changed, caller, "command", frozenset({"command"})))


@pytest.mark.parametrize(
    ("caller", "sentence"),
    [
        (Caller("bob", 1001, host="n1"), "User permission denied$"),
        (Caller("root", 0, host="n1", would_administer=True), "denied: n1 is not a host that administrators are"),
    ],
)
def test_strangers_are_refused_with_the_reason(caller: Caller, sentence: str) -> None:
    """An administrator on a host without the right learns that the host is the reason."""
    story = a_cluster(a_host("n1"))
    job = story.submit(a_job())
    with pytest.raises(Refused, match=sentence):
        story.kill(job, caller=caller)
