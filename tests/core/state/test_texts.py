"""Texts of jobs, kept once."""

from lavad.core.model import pack_text
from lavad.core.state.jobs import texts
from tests.builders import Story, a_job


def test_jobs_with_equal_texts_share_them() -> None:
    """A job of another name has its own."""
    story = Story()
    first, second = (story.cluster.jobs[story.submit(a_job(name="same"))] for _ in range(2))
    other = story.cluster.jobs[story.submit(a_job(name="other"))]
    assert first.text is second.text
    assert other.text == pack_text("other", *first.text.decode().split("\0")[1:])


def test_a_bounded_number_is_kept() -> None:
    """Each is still its own where all differ."""
    kept = texts.Texts()
    for number in range(3 * texts.KEPT + 5):
        assert kept[b"%d" % number] == b"%d" % number
    assert len(kept) == 5
