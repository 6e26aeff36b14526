"""Host shares are entered when a host is read, without a visible difference to entering them at once."""

from lavad.core import commands as c
from lavad.core.apply.allocate import give_back_all
from lavad.core.apply.batch_dispatch import MANY
from lavad.core.invariants import check
from lavad.core.model import Key
from lavad.core.passes import slice_pass
from lavad.core.step import step
from tests.builders import ANN, Story, a_host, a_job

HOSTS = ("n1", "n2", "n3", "n4", "n5", "n6", "n7")


def a_story() -> Story:
    return Story(*(a_host(name, MANY) for name in HOSTS))


def entered(story: Story) -> list[list[Key]]:
    """Shares entered with each host."""
    return [list(story.cluster.hosts[name].entered) for name in HOSTS]


def known(story: Story) -> list[list[Key]]:
    """Shares of each host, as read."""
    return [list(story.cluster.hosts[name].attempts) for name in HOSTS]


def start(story: Story) -> None:
    """Run a pass; all that can start does. No host is read afterwards."""
    plan = slice_pass(story.cluster, story.worklist, 100_000, story.now)
    step(story.cluster, c.ApplyPlan(plan), story.now)


def a_gang(story: Story) -> Key:
    """Start a parallel job on all hosts, with a slot to spare on each."""
    job = story.submit(a_job(slots=len(HOSTS), ptile=1))
    start(story)
    return Key(job, 0, 1)


def test_whoever_looks_finds_all_that_was_booked() -> None:
    """A parallel job on all hosts."""
    story = a_story()
    key = a_gang(story)
    assert entered(story) == [[]] * len(HOSTS)
    assert known(story) == [[key]] * len(HOSTS) == entered(story)


def test_what_nobody_looked_at_goes_without_a_trace() -> None:
    """It was never entered with its hosts."""
    story = a_story()
    give_back_all(story.cluster, a_gang(story))
    assert entered(story) == known(story) == [[]] * len(HOSTS)


def test_one_host_lets_its_share_go() -> None:
    """All buffered shares are entered then, and this host has none."""
    story = a_story()
    key = a_gang(story)
    step(story.cluster, c.ReportRefused("n3", key, "no"), story.now)
    check(story.cluster)
    assert [name for name, keys in zip(HOSTS, known(story), strict=True) if keys] == [n for n in HOSTS if n != "n3"]


def test_what_came_first_stands_first() -> None:
    """Many starts at once are entered at once, after what was booked before them."""
    story = a_story()
    key = a_gang(story)
    for _ in range(MANY):
        step(story.cluster, c.SubmitJob(a_job(), ANN), story.now)
    start(story)
    assert [keys[0] for keys in known(story)] == [key] * len(HOSTS)
    assert sum(map(len, known(story))) == len(HOSTS) + MANY
