"""bmod -R of a running job: other memory on all its hosts, and no other change."""

import pytest

from lavad.core import commands as c
from lavad.core import invariants
from lavad.core.model import JobState, Key, RoleAsked
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.names import ALL
from lavad.core.model.rules.queues import Queue
from lavad.core.model.rules.resources import Limit, Pool
from lavad.simulator.cluster.restart import reborn
from tests.builders import ANN, ROOT, Story, a_cluster, a_host, a_job


def ask(story: Story, job: int, requirement: str, slots: int = 2) -> None:
    """bmod -R."""
    asked = c.Asked(roles=(RoleAsked(slots, slots, requirement=requirement),))
    fields = frozenset({"roles.requirement", "requirement_text"})
    story.do(c.ModifyJob(c.Target(job), a_job(slots), ANN, "requirement", fields, asked=asked))


@pytest.fixture
def story() -> Story:
    """Two hosts with 1000 MB."""
    limit = Limit("few", memory_mib=1900, users=ALL)
    pool = Pool("art", guaranteed={"mem": 1500.0})
    policy = Policy(queues=(Queue("normal"),), limits=(limit,), pools=(pool,))
    return a_cluster(a_host("n1", 4, memory_mib=1000), a_host("n2", 4, memory_mib=1000), policy=policy)


def a_pair(story: Story) -> Key:
    """It runs on both hosts, with 600 MB of each."""
    return story.run(a_job(2, ptile=1, memory_mib=600))


def free(story: Story) -> list[int]:
    """Unreserved memory of each host."""
    invariants.check(story.cluster)
    return story.cluster.table.memory_free_mib[:2].tolist()


def test_less_memory_lets_others_start(story: Story) -> None:
    """It is released on all its hosts, in the limits and in its pool; and after a restart."""
    key = a_pair(story)
    waiting = story.submit(a_job(memory_mib=900))
    story.plan()
    assert (story.state(waiting), free(story)) == (JobState.PEND, [400, 400])
    ask(story, key.job, "span[ptile=1] rusage[mem=100]")
    assert free(story) == [900, 900]
    story.cluster = reborn(story.cluster)
    assert [share.memory_mib for share in story.cluster.attempts[key].allocation] == [100, 100]
    invariants.check(story.cluster)


def test_it_starts_at_once(story: Story) -> None:
    """The bucket that waited for memory is tried again."""
    key = a_pair(story)
    waiting = story.submit(a_job(memory_mib=900))
    story.plan()
    ask(story, key.job, "span[ptile=1] rusage[mem=100]")
    story.plan()
    assert story.where(waiting) == ["n1"]


def test_more_memory_as_far_as_it_is_left(story: Story) -> None:
    """The refusal names a host with too little, and nothing is changed; at the end all memory is released."""
    key = a_pair(story)
    ask(story, key.job, "span[ptile=1] rusage[mem=700]")
    assert free(story) == [300, 300]
    story.run(a_job(memory_mib=200, hosts=("n2",)))
    with pytest.raises(Refused, match="n2: 100 MB of memory are not reserved; the job would need 200 MB more"):
        ask(story, key.job, "span[ptile=1] rusage[mem=900]")
    assert free(story) == [300, 100]
    story.released("n2", key)
    story.finished("n1", key)
    assert free(story) == [1000, 800]


def test_no_more_than_a_limit_leaves(story: Story) -> None:
    """A limit of lsb.resources applies to running jobs, too; a decrease is always allowed."""
    key = a_pair(story)
    story.run(a_job(memory_mib=300))
    story.run(a_job(memory_mib=300))
    with pytest.raises(Refused, match="Limit Name: few"):
        ask(story, key.job, "span[ptile=1] rusage[mem=700]")
    assert free(story) == [100, 100]
    ask(story, key.job, "span[ptile=1] rusage[mem=650]")
    ask(story, key.job, "span[ptile=1] rusage[mem=100]")
    assert free(story) == [600, 600]


@pytest.mark.parametrize(
    "requirement",
    ["span[ptile=2] rusage[mem=100]", "select[mem>5] span[ptile=1]", "span[ptile=1] rusage[mem=100,swp=5]", "2*{}"],
)
def test_nothing_else_of_it_changes(story: Story, requirement: str) -> None:
    """A change of placement is refused."""
    key = a_pair(story)
    with pytest.raises(Refused, match="only the amount of rusage"):
        ask(story, key.job, requirement)
    assert free(story) == [400, 400]


def test_it_keeps_the_new_amount_when_it_runs_again(story: Story) -> None:
    """A requeued job requests what it had last."""
    key = a_pair(story)
    ask(story, key.job, "span[ptile=1] rusage[mem=700]")
    assert story.job(key.job).shared.request.roles[0].memory_mib == 700
    assert story.job(key.job).shared.requirement == "rusage[mem=700] span[ptile=1]"


def test_memory_can_be_given_back_where_more_is_kept_than_there_is() -> None:
    """brun has dispatched another job to the same host."""
    story = a_cluster(a_host("n1", 4, memory_mib=1000), policy=Policy(queues=(Queue("normal"),)))
    key = story.run(a_job(memory_mib=800))
    forced = story.submit(a_job(memory_mib=600))
    story.do(c.ForceJob(story.target(forced), ROOT, (("n1", 0),)))
    ask(story, key.job, "rusage[mem=700]", 1)
    assert story.cluster.table.memory_free_mib[0] == -300
