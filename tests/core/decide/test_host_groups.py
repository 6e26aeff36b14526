"""Members of host groups that administrators change: badmin hghostadd and hghostdel."""

from dataclasses import replace

import pytest

from lavad.core import commands as c
from lavad.core.decide.reconfigure import changed_members
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.names import MemberChange, Names
from lavad.core.model.rules.queues import Queue
from lavad.core.model.rules.resources import ComputeUnit
from lavad.core.model.rules.users import GroupRow
from lavad.core.queries.pending_reasons import explain
from lavad.simulator.cluster.restart import reborn
from tests.builders import ANN, ROOT, Story, a_host, a_job

ROWS = (GroupRow("fast", ("n1",)), GroupRow("named", ("!",), is_external=True))


def a_policy(*fast: str) -> Policy:
    """The configuration with these members of group fast, to which a queue sends its jobs."""
    members = Names(False, frozenset(fast))
    return Policy(
        queues=(Queue("normal"), Queue("quick", hosts=members)),
        host_groups={"fast": members, "named": Names(False, frozenset({"n1"}))},
        host_group_rows=ROWS,
        known_hosts=frozenset({"n9"}),
        compute_units=(ComputeUnit("unit", "rack", members, ("n1",)),),
    )


@pytest.fixture
def story() -> Story:
    """Two hosts of one slot; n1 is the only member."""
    return Story(a_host("n1", 1), a_host("n2", 1), policy=a_policy("n1"))


def change(story: Story, is_added: bool, hosts: tuple[str, ...], *members: str, by: c.Caller = ROOT) -> None:
    """Change group fast; ``members`` are those that the configuration has then."""
    story.do(c.ChangeHostGroup("fast", hosts, is_added, by, "", a_policy(*members)))


def test_pending_jobs_follow_the_group(story: Story) -> None:
    """Those of -m and those of a queue that has the group start on the added host at once."""
    story.run(a_job())
    named, queued = story.submit(a_job(hosts=("fast",))), story.submit(a_job(queue="quick"))
    story.plan()
    assert story.where(named) == story.where(queued) == []
    change(story, True, ("n2",), "n1", "n2")
    story.plan()
    assert story.where(named) == ["n2"]
    assert story.cluster.group_changes == {"fast": MemberChange(frozenset({"n2"}))}


def test_a_job_stays_on_a_host_that_leaves(story: Story) -> None:
    """It goes on; the next one waits for a host of the group."""
    first = story.run(a_job(hosts=("fast",)))
    change(story, True, ("n2",), "n1", "n2")
    change(story, False, ("n1",), "n2")
    assert story.where(first.job) == ["n1"]
    story.finished("n1", first)
    later, waiting = story.submit(a_job(hosts=("fast",))), story.submit(a_job(hosts=("fast",)))
    story.plan()
    assert (story.where(later), story.where(waiting)) == (["n2"], [])
    reasons = [str(reason) for reason in explain(story.cluster, story.cluster.jobs[waiting], 0, story.now)]
    assert any("Not specified in job submission" in reason for reason in reasons), reasons


def test_what_is_undone_leaves_nothing(story: Story) -> None:
    """An added host that is deleted, and a deleted one that is added; n1 is a member by lsb.hosts."""
    change(story, True, ("n2", "n9", "n2"), "n1", "n2", "n9")
    change(story, False, ("n2", "n1"), "n9")
    assert story.cluster.group_changes == {"fast": MemberChange(frozenset({"n9"}), frozenset({"n1"}))}
    assert reborn(story.cluster).group_changes == story.cluster.group_changes
    change(story, True, ("n1",), "n1", "n9")
    change(story, False, ("n9",), "n1")
    assert not story.cluster.group_changes


def test_a_host_goes_and_comes_against_the_files(story: Story) -> None:
    """n2 was added, and lsb.hosts has it by now; n1 was deleted, and lsb.hosts has lost it."""
    change(story, True, ("n2",), "n1", "n2")
    against = frozenset({"n2"})
    story.do(c.ChangeHostGroup("fast", ("n2",), False, ROOT, "", a_policy("n1"), against))
    assert story.cluster.group_changes == {"fast": MemberChange(deleted=against)}
    change(story, False, ("n1",))
    against = frozenset({"n1"})
    story.do(c.ChangeHostGroup("fast", ("n1",), True, ROOT, "", a_policy("n1"), against))
    assert story.cluster.group_changes == {"fast": MemberChange(against, frozenset({"n2"}))}


def test_a_group_that_is_gone_takes_its_changes_with_it(story: Story) -> None:
    """The daemon says which; the others stay."""
    change(story, True, ("n2",), "n1", "n2")
    story.do(c.Reconfigure(a_policy("n1", "n2"), ("other",)))
    assert story.cluster.group_changes
    story.do(c.Reconfigure(replace(a_policy("n1"), host_group_rows=()), ("fast",)))
    assert not story.cluster.group_changes


@pytest.mark.parametrize(
    ("group", "host", "is_added", "sentence"),
    [
        ("slow", "n2", True, "slow: No such host group"),
        ("all", "n2", True, "all stands for every host: name a host group of lsb.hosts"),
        ("unit", "n2", True, "unit is a compute unit: its members are those of lsb.hosts"),
        ("named", "n2", True, "named has the members that egroup names: change them there, then badmin reconfig"),
        ("fast", "n3", True, "n3: Bad host name"),
        ("fast", "named", True, "named is a host group: name hosts, one by one"),
        ("fast", "n1", True, "n1 is already a member of host group fast"),
        ("fast", "n2", False, "n2 is not a member of host group fast"),
    ],
)
def test_refusals(story: Story, group: str, host: str, is_added: bool, sentence: str) -> None:
    """One sentence each, and nothing is changed, not for the hosts beside it either."""
    hosts = ("n9", host) if is_added else ("n1", host)
    with pytest.raises(Refused) as refused:
        changed_members(story.cluster, group, hosts, is_added, ROOT)
    assert str(refused.value) == sentence
    assert not story.cluster.group_changes


def test_only_administrators_change_groups(story: Story) -> None:
    """Others get LSF's sentence."""
    with pytest.raises(Refused, match="User permission denied"):
        change(story, True, ("n2",), "n1", "n2", by=ANN)
