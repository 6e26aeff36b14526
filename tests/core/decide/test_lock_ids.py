"""Hosts that are closed with lock IDs open when all are removed, and nothing else has closed them."""

import pytest

from lavad.core import commands as c
from lavad.core.decide.hosts import LOCK_IDS_MAX
from lavad.core.model import JobState
from lavad.core.model.reasons import Refused
from tests.builders import ANN, ROOT, Story, a_host, a_job


@pytest.fixture
def story() -> Story:
    """One host of one slot."""
    return Story(a_host("n1", 1))


def opened(story: Story, *lock_ids: str) -> object:
    """Open the host; what keeps it closed."""
    return story.do(c.OpenHost("n1", ROOT, "", lock_ids)).reply


def test_a_host_opens_when_every_lock_id_is_removed(story: Story) -> None:
    """No job starts there before; hopen alone undoes hclose alone, and says what is left."""
    for lock_id in ("disk", "fan", "net"):
        story.do(c.CloseHost("n1", ROOT, f"new {lock_id}", lock_id))
    story.do(c.CloseHost("n1", ROOT, "audit"))
    job = story.submit(a_job())
    assert opened(story, "disk", "gone") == (
        "host remains closed due to hclose without a lock ID, lock ID <fan>, lock ID <net>"
    )
    assert opened(story) == "host remains closed due to lock ID <fan>, lock ID <net>"
    story.plan()
    assert story.state(job) is JobState.PEND
    assert not opened(story, "all")
    story.plan()
    assert story.where(job) == ["n1"]


def test_lock_ids_leave_the_closing_without_one(story: Story) -> None:
    """In either order; a second hclose with the same lock ID changes the comment only."""
    story.do(c.CloseHost("n1", ROOT))
    story.do(c.CloseHost("n1", ROOT, "first", "a"))
    story.do(c.CloseHost("n1", ROOT, "second", "a"))
    assert [one.comment for one in story.cluster.hosts["n1"].lock_ids.values()] == ["second"]
    assert opened(story, "a") == "host remains closed due to hclose without a lock ID"
    assert not story.cluster.hosts["n1"].is_usable
    assert not opened(story)
    assert story.cluster.hosts["n1"].is_usable


def test_a_health_check_does_not_open_it(story: Story) -> None:
    """Its own closing is beside the lock IDs."""
    story.do(c.CloseHost("n1", ROOT, "", "a"))
    story.do(c.HostChecked("n1", False, True, "no disk"))
    story.do(c.HostChecked("n1", True, False))
    assert story.cluster.hosts["n1"].is_closed
    assert not opened(story, "a")
    assert story.cluster.hosts["n1"].is_usable


def test_refusals(story: Story) -> None:
    """Lock IDs that are not there, too many of them, and callers who are no administrators."""
    with pytest.raises(Refused, match="n1 has no lock ID"):
        opened(story, "all")
    story.do(c.CloseHost("n1", ROOT, "", "a"))
    with pytest.raises(Refused, match="n1 is not closed with lock ID <b> <c>"):
        opened(story, "b", "c")
    for act in (c.OpenHost("n1", ANN, "", ("a",)), c.CloseHost("n1", ANN, "", "b")):
        with pytest.raises(Refused):
            story.do(act)
    for number in range(LOCK_IDS_MAX - 1):
        story.do(c.CloseHost("n1", ROOT, "", f"x{number}"))
    with pytest.raises(Refused, match="n1 has 100 lock IDs, which is the most"):
        story.do(c.CloseHost("n1", ROOT, "", "b"))
    story.do(c.CloseHost("n1", ROOT, "again", "a"))
