"""Dependency links over several levels."""

from lavad.core.queries.dependency_links import Link, links
from tests.builders import Story, a_host, a_job


def a_chain() -> tuple[Story, list[int]]:
    """Four jobs: the second waits for the first, the third and fourth for the second, the fourth for the first, too."""
    story = Story(a_host("n1", 4))
    first = story.submit(a_job(hold=True))
    second = story.submit(a_job(dependency=f"done({first})"))
    third = story.submit(a_job(dependency=f"exit({second}, 3)"))
    fourth = story.submit(a_job(dependency=f"ended({second}) || started({first})"))
    return story, [first, second, third, fourth]


def test_parents_and_theirs() -> None:
    """Level by level, each job followed once."""
    story, (first, second, _, fourth) = a_chain()
    assert links(story.cluster, fourth, False, 1) == [Link(fourth, second, 0, 1), Link(fourth, first, 0, 1)]
    assert links(story.cluster, fourth, False, 9) == [
        Link(fourth, second, 0, 1), Link(fourth, first, 0, 1), Link(second, first, 0, 2)
    ]  # fmt: skip


def test_children_and_theirs() -> None:
    """Dependants of the first job, and theirs."""
    story, (first, second, third, fourth) = a_chain()
    assert links(story.cluster, first, True, 1) == [Link(first, second, 0, 1), Link(first, fourth, 0, 1)]
    deep = links(story.cluster, first, True, 2)
    assert deep[2:] == [Link(second, third, 0, 2), Link(second, fourth, 0, 2)]
